/* The native /generate of SGLang and LMDeploy: a text, token ids, and meta_info with the running count.
 *
 * Both speak alike: SGLang's meta_info has an id. Tokens are taken from the running count alone, since lists
 * of ids are retold by some servers and not by others. Reasoning tokens are not told: their text stands in
 * the answer's text, unmarked, so that they are not hidden as they are in other APIs. */
#include "recorder/dissect/openai_common.h"
#include "recorder/dissect/retold.h"

#include <string.h>

static const double NS = 1e9;                      /* ns in a second */
static const int64_t COUNT_MAX = INT64_C(1) << 40; /* what is above is no count; sums of these stay exact */

static const struct hole_path holes[] = {{"meta_info.completion_tokens", HOLE_RUNNING},
                                         {"output_ids", HOLE_NUMBERS}};
static const char *const skipped[] = {"output_ids", NULL};

/* -- request */
static const struct json *prompt_of(const struct json *body) {
    static const char *const keys[] = {"text", "prompt", "input_ids", "input_embeds"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct json *v = json_get(body, keys[i]);
        if (!json_is_null(v)) return v;
    }
    return NULL;
}

static bool is_generate(const char *path) {
    return strcmp(path, "/generate") == 0 || strcmp(path, "/generate/") == 0;
}

/* LMDeploy's parameters stand beside the prompt. */
static bool lmdeploy_asked(const char *path, const struct json *body) {
    if (!is_generate(path) || json_is_object(json_get(body, "sampling_params"))) return false;
    if (!json_is_null(json_get(body, "text"))) return false;
    if (json_text(json_get(body, "prompt"))) return true;
    return json_is_array(json_get(body, "input_ids")) && !json_is_null(json_get(body, "max_tokens"));
}

static bool sglang_asked(const char *path, const struct json *body) {
    if (!body) return is_generate(path);
    if (!dialect_path_ends(path, "/generate") || !json_is_null(json_get(body, "prompt"))) return false;
    /* behind a prefix a text alone is any service's */
    return prompt_of(body) && (is_generate(path) || json_is_object(json_get(body, "sampling_params")) ||
                               json_is_array(json_get(body, "input_ids")));
}

/* Prompts of a list of texts, or of a list of lists; 0: it is one prompt. */
static int64_t prompts(const struct json *prompt, int64_t *bytes) {
    const struct json *first = json_first(prompt);
    bool list = json_is_array(prompt) && (json_text(first) || json_is_array(first));
    *bytes = (int64_t)json_text_bytes(prompt);
    for (const struct json *v = first; list && v; v = json_next(v)) *bytes += (int64_t)json_text_bytes(v);
    return list ? json_count(prompt) : 0;
}

/* Images and the like: one, or a list. */
static int64_t media(const struct json *body) {
    static const char *const keys[] = {"image_data", "video_data", "audio_data"};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct json *v = json_get(body, keys[i]);
        if (json_is_array(v))
            n += json_count(v);
        else
            n += json_truthy(v);
    }
    return n;
}

static void parameters(struct answer *a, const struct json *p) {
    int64_t n;
    double temperature;
    if (json_int(json_get(p, "max_new_tokens"), &n) && n >= 0) answer_int(a, F_max_tokens, n);
    if (json_real(json_get(p, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
    /* kept: the answer needs it, see counts_prompt() */
    if (json_int(json_get(p, "n"), &n) && n > 0 && n <= ANSWER_CHOICES_MAX) answer_keep(a, F_n, n);
}

static void request(struct answer *a, const struct json *body) {
    const struct json *p = json_get(body, "sampling_params"), *prompt = prompt_of(body);
    int64_t bytes, n_prompts = prompts(prompt, &bytes), n_media = media(body);
    dialect_common_request(a, body);
    parameters(a, p);
    if (n_prompts > 0) answer_int(a, F_prompts, n_prompts);
    /* of ids it is not known */
    if (json_text(prompt) || json_text(json_first(prompt))) answer_int(a, F_prompt_bytes, bytes);
    if (n_media > 0) answer_int(a, F_images, n_media);
    const char *constraint = openai_schema(json_is_object(p) ? p : body);
    if (constraint) answer_text(a, F_schema, constraint, strlen(constraint));
    const char *adapter = json_text(json_get(body, "lora_path"));
    if (adapter) answer_text(a, F_adapter, adapter, strlen(adapter));
}

/* -- answer */
static const struct json *meta_of(const struct json *root) {
    const struct json *meta = json_get(root, "meta_info");
    return json_is_null(json_get(meta, "completion_tokens")) ? NULL : meta;
}

static bool sglang_answered(const struct json *root) {
    return json_text(json_get(meta_of(root), "id")) != NULL;
}

static bool lmdeploy_answered(const struct json *root) {
    const struct json *meta = meta_of(root);
    return meta && json_is_null(json_get(meta, "id"));
}

static int64_t count(const struct json *v) {
    int64_t n;
    return json_int(v, &n) && n >= 0 && n <= COUNT_MAX ? n : -1;
}

/* Counts that each choice tells for itself; the fact is their sum. Names changed: old and new have one slot.
 */
enum slot { PROMPT, CACHED, RETRACTED, DRAFTED, ACCEPTED, STEPS, N_SLOTS };
_Static_assert(N_SLOTS <= RETOLD_COUNTS, "a slot for each");
static const struct row {
    const char *key;
    enum slot slot;
    enum fact fact;
} rows[] = {
    {"prompt_tokens", PROMPT, F_prompt_tokens},
    {"cached_tokens", CACHED, F_cached_tokens},
    {"total_retractions", RETRACTED, F_preemptions},
    {"num_retractions", RETRACTED, F_preemptions},
    {"spec_draft_token_num", DRAFTED, F_draft_tokens},
    {"spec_num_proposed_drafts", DRAFTED, F_draft_tokens},
    {"spec_accept_token_num", ACCEPTED, F_accepted_tokens},
    {"spec_num_correct_drafts", ACCEPTED, F_accepted_tokens},
    {"spec_verify_ct", STEPS, F_spec_steps},
};

/* Choices of one prompt follow one another and tell the same prompt: the first of them counts. */
static bool counts_prompt(const struct answer *a, const struct choice *c) {
    int64_t each = a->has[F_n] ? a->latest[F_n] : 1;
    return c->index % each == 0;
}

static void counts(struct answer *a, struct choice *c, const struct json *meta) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        int64_t n = count(json_get(meta, r->key));
        if (n < 0 || (r->slot <= CACHED && !counts_prompt(a, c))) continue;
        int64_t others = a->n_choices == 1 ? 0 : a->latest[r->fact] - c->retold.counts[r->slot];
        answer_keep(a, r->fact, others + n);
        c->retold.counts[r->slot] = n;
    }
}

/* What is told with the end alone, since an earlier one would not be of the whole. */
static void told_at_end(struct answer *a, const struct json *meta) {
    answer_keep_ns(a, F_reported_total_ns, json_get(meta, "e2e_latency"), NS);
    answer_keep_ns(a, F_reported_queue_ns, json_get(meta, "queue_time"), NS);
    answer_keep_real(a, F_reported_accept_length, json_get(meta, "spec_accept_length"));
    openai_histogram(a, json_get(meta, "spec_accept_histogram"));
    openai_histogram(a, json_get(meta, "spec_correct_drafts_histogram"));
}

/* An object, of which the type says it. */
static void finish(struct answer *a, struct choice *c, const struct json *meta, struct tok_event *e) {
    const struct json *f = json_get(meta, "finish_reason");
    const char *reason = json_text(json_is_object(f) ? json_get(f, "type") : f);
    if (!reason || !*reason) return;
    e->what |= TOK_FINISH;
    if (strcmp(reason, "length") != 0) e->what |= TOK_STOP;
    answer_finish(a, c, reason);
    if (strcmp(reason, "abort") == 0 && json_text(json_get(f, "message"))) answer_error(a, f, f);
    told_at_end(a, meta);
}

static struct choice *choice_of(struct answer *a, const struct json *root, int64_t position) {
    int64_t index = count(json_get(root, "index"));
    return answer_choice(a, index < 0 || index > INT32_MAX ? position : index);
}

/* Behind text(), which needs the count before. */
static void running(struct answer *a, const struct tok_event *e) {
    if (e->running < 0) return;
    answer_keep_running(a, F_output_tokens_told, e->running);
    answer_count_of_choice(a, e->choice, e->running);
}

static void text(struct answer *a, struct choice *c, const struct json *root, struct tok_event *e) {
    const struct json *meta = json_get(root, "meta_info");
    const struct retelling r = {
        .text = json_text(json_get(root, "text")),
        .ids = json_get(root, "output_ids"),
        .running = e->running,
        .before = c->told,
        .may_shrink = json_text(json_at(meta, "finish_reason.matched")) != NULL,
        .by_ids = a->dialect == &dialect_lmdeploy_generate,
    };
    e->text_bytes = (uint32_t)retold_new_bytes(c, &r);
    if (e->text_bytes > 0) e->what |= TOK_CONTENT;
    a->text_bytes += e->text_bytes;
}

static void output(struct answer *a, const struct json *root, int64_t position) {
    const struct json *meta = meta_of(root);
    struct choice *c = meta ? choice_of(a, root, position) : NULL;
    if (!c) return;
    struct tok_event e = {.choice = (uint32_t)c->index,
                          .running = count(json_get(meta, "completion_tokens")),
                          .ids = -1,
                          .logprobs = -1};
    answer_text_once(a, F_response_id, json_get(meta, "id"));
    text(a, c, root, &e);
    running(a, &e);
    counts(a, c, meta);
    finish(a, c, meta, &e);
    answer_event(a, &e);
    a->plain_path = e.what == TOK_CONTENT && c->retold.text == TEXT_PIECES ? "text" : NULL;
}

static void chunk(struct answer *a, const struct json *root) {
    output(a, root, 0);
}

static void body(struct answer *a, const struct json *root) {
    int64_t position = 0;
    if (!json_is_array(root)) output(a, root, 0);
    for (const struct json *v = json_is_array(root) ? json_first(root) : NULL; v; v = json_next(v))
        output(a, v, position++);
}

const struct dialect dialect_sglang_generate = {
    .name = "sglang-generate",
    .generates = true,
    .asked = sglang_asked,
    .answered = sglang_answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
    .skipped = skipped,
    .counts_by_choice = true,
};
const struct dialect dialect_lmdeploy_generate = {
    .name = "lmdeploy-generate",
    .generates = true,
    .asked = lmdeploy_asked,
    .answered = lmdeploy_answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
    .skipped = skipped,
    .counts_by_choice = true,
};
