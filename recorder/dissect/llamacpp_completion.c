/* llama.cpp's own completion API: /completion, /completions, /infill.
 *
 * Each event tells how many tokens its answer has so far. The ids beside it are not counted: tokens whose
 * text is held back (half a character, a possible stop word) show none. */
#include "recorder/dissect/openai_common.h"

#include <string.h>

static const struct hole_path holes[] = {{"tokens_predicted", HOLE_RUNNING}, {"tokens.0", HOLE_NUMBER}};
static const char *const skipped[] = {"prompt", "generation_settings", "tokens", NULL};

static bool has_own_field(const struct json *body) {
    static const char *const keys[] = {"n_predict", "cache_prompt", "id_slot", "n_keep", "return_progress"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_is_null(json_get(body, keys[i]))) return true;
    return false;
}

/* /v1/completions answers as OpenAI does, whatever fields it is asked with. */
static bool asked(const char *path, const struct json *body) {
    if (dialect_path_ends(path, "/completion") || dialect_path_ends(path, "/infill")) return true;
    return dialect_path_ends(path, "/completions") && !dialect_path_ends(path, "/v1/completions") &&
           !dialect_path_ends(path, "/chat/completions") && has_own_field(body);
}

static bool answered(const struct json *root) {
    return json_text(json_get(root, "content")) && !json_is_null(json_get(root, "stop"));
}

/* -- request */
struct asked_for {
    int64_t prompts, bytes, media; /* prompts: of a list; 0 without one */
};

static bool has_number(const struct json *list) {
    double unused;
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (json_real(v, &unused)) return true;
    return false;
}

/* One prompt: a text, an object with media, or a list of token ids and texts. */
static void one_prompt(const struct json *p, struct asked_for *r) {
    int n_media = json_count(json_get(p, "multimodal_data"));
    r->bytes += (int64_t)json_text_bytes(p);
    if (json_is_object(p)) r->bytes += (int64_t)json_text_bytes(json_get(p, "prompt_string"));
    if (n_media > 0) r->media += n_media;
    if (!json_is_array(p)) return;
    for (const struct json *v = json_first(p); v; v = json_next(v)) r->bytes += (int64_t)json_text_bytes(v);
}

/* A list with a number in it is one prompt, any other one is a list of prompts. */
static void prompts(const struct json *p, struct asked_for *r) {
    if (!json_is_array(p) || has_number(p)) {
        one_prompt(p, r);
        return;
    }
    for (const struct json *v = json_first(p); v; v = json_next(v), r->prompts++) one_prompt(v, r);
}

static void infill(const struct json *body, struct asked_for *r) {
    r->bytes += (int64_t)json_text_bytes(json_get(body, "input_prefix"));
    r->bytes += (int64_t)json_text_bytes(json_get(body, "input_suffix"));
    for (const struct json *f = json_first(json_get(body, "input_extra")); f; f = json_next(f))
        r->bytes += (int64_t)json_text_bytes(json_get(f, "text"));
}

static void request(struct answer *a, const struct json *body) {
    struct asked_for r = {.prompts = 0};
    const char *schema = openai_schema(body);
    int n_images = json_count(json_get(body, "image_data"));
    int64_t n;
    dialect_common_request(a, body);
    if (json_int(json_get(body, "n_cmpl"), &n)) answer_int(a, F_n, n);
    prompts(json_get(body, "prompt"), &r);
    infill(body, &r);
    if (n_images > 0) r.media += n_images;
    answer_int(a, F_prompt_bytes, r.bytes);
    if (r.prompts > 0) answer_keep(a, F_prompts, r.prompts); /* kept: totals are added over prompts */
    if (r.media > 0) answer_int(a, F_images, r.media);
    if (schema) answer_text(a, F_schema, schema, strlen(schema));
}

/* -- answer */
static int64_t count(const struct json *r, const char *key) {
    int64_t n;
    return json_int(json_get(r, key), &n) && n >= 0 ? n : -1;
}

static void add(struct answer *a, enum fact f, int64_t n) {
    int64_t sum = a->has[f] ? a->latest[f] : 0;
    if (n >= 0 && sum <= INT64_MAX - n) answer_keep(a, f, sum + n);
}

static bool several_prompts(const struct answer *a) {
    return a->has[F_prompts] && a->latest[F_prompts] > 1;
}

/* Each answer of a response tells its own output. */
static void output(struct answer *a, struct choice *c, int64_t running) {
    int64_t sum = 0;
    if (running < 0 || !c) return;
    c->told = running;
    for (size_t i = 0; i < a->n_choices; i++)
        sum = sum <= INT64_MAX - a->choices[i].told ? sum + a->choices[i].told : INT64_MAX;
    answer_keep_running(a, F_output_tokens_told, sum);
}

/* Several answers to one prompt tell that prompt each; answers to several prompts tell one each, and their
 * sum is known when they end. */
static void prompt(struct answer *a, const struct json *r, bool ends) {
    int64_t evaluated = count(r, "tokens_evaluated");
    if (evaluated < 0 || (several_prompts(a) && !ends)) return;
    if (several_prompts(a) && a->ended)
        add(a, F_prompt_tokens, evaluated);
    else
        answer_keep(a, F_prompt_tokens, evaluated);
}

/* Times are those of the first answer that ended, drafts are added. Cached tokens follow the prompt. */
static void timings(struct answer *a, const struct json *r, bool ends) {
    const struct json *t = json_get(r, "timings");
    if (!a->ended && (ends || (a->n_choices == 1 && !several_prompts(a)))) {
        openai_usage(a, r);
    } else if (ends) {
        add(a, F_draft_tokens, count(t, "draft_n"));
        add(a, F_accepted_tokens, count(t, "draft_n_accepted"));
        if (several_prompts(a)) add(a, F_cached_tokens, count(t, "cache_n"));
    }
}

/* Servers of before said it with three flags. */
static const char *reason_of(const struct json *r) {
    static const char *const flags[][2] = {
        {"stopped_eos", "eos"}, {"stopped_word", "word"}, {"stopped_limit", "limit"}};
    const char *type = json_text(json_get(r, "stop_type"));
    if (type && *type) return type;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_is_true(json_get(r, flags[i][0]))) return flags[i][1];
    return NULL;
}

static void finish(struct answer *a, const struct json *r, struct choice *c, struct tok_event *e) {
    const char *reason = reason_of(r);
    a->typed_end = true;
    if (!reason) return;
    e->what |= TOK_FINISH;
    if (strcmp(reason, "limit") != 0) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, reason);
}

/* The choice of a result. When a second one comes, what templates say of the first one's count is no total
 * any more. */
static struct choice *choice_of(struct answer *a, const struct json *r, int64_t position, uint32_t *index) {
    int64_t told = count(r, "index");
    size_t before = a->n_choices;
    *index = (uint32_t)(told >= 0 && told <= INT32_MAX ? told : position);
    struct choice *c = answer_choice(a, *index);
    if (a->n_choices == 2 && before == 1) {
        a->choices[0].told = a->has[F_output_tokens_told] ? a->latest[F_output_tokens_told] : 0;
        a->templates.version++;
    }
    return c;
}

static void result(struct answer *a, const struct json *r, int64_t position) {
    struct tok_event e = {.running = count(r, "tokens_predicted"), .ids = -1, .logprobs = -1};
    size_t bytes = json_text_bytes(json_get(r, "content"));
    bool stop = json_is_true(json_get(r, "stop"));
    if (json_is_null(json_get(r, "content")) && !stop) return;                   /* a failure */
    if (json_is_object(json_get(r, "prompt_progress")) && bytes == 0 && !stop) { /* no token yet */
        prompt(a, r, false);
        return;
    }
    struct choice *c = choice_of(a, r, position, &e.choice);
    bool ends = stop && !(c && c->finished);
    e.logprobs = json_count(json_get(r, "completion_probabilities"));
    e.text_bytes = (uint32_t)bytes;
    if (bytes > 0) e.what |= TOK_CONTENT;
    a->text_bytes += bytes;
    answer_text_once(a, F_response_model, json_get(r, "model"));
    timings(a, r, ends);
    output(a, c, e.running);
    prompt(a, r, ends);
    if (stop) finish(a, r, c, &e);
    if (e.what == TOK_CONTENT && a->n_choices == 1 && e.logprobs < 0) a->plain_path = "content";
    answer_event(a, &e);
}

static void read_root(struct answer *a, const struct json *root) {
    int64_t position = 0;
    if (!json_is_array(root)) {
        result(a, root, 0);
        return;
    }
    for (const struct json *r = json_first(root); r; r = json_next(r)) result(a, r, position++);
    a->plain_path = NULL;
}

const struct dialect dialect_llamacpp_completion = {
    .name = "llamacpp-completion",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = read_root,
    .body = read_root,
    .holes = holes,
    .n_holes = 2,
    .skipped = skipped,
};
