/* Ollama's own API, /api/chat and /api/generate: lines of JSON that differ in where the text stands.
 *
 * Counts and times come with the last line and are left out when they are zero: what is not there is not
 * told. A failure ends the stream with a line of its own. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/jsonsize.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

/* created_at is a text that changes with each line. */
static const struct hole_path holes[] = {{"created_at", HOLE_PADDING}};
/* The token ids of the whole conversation; a generated picture. */
static const char *const skipped[] = {"context", "image", NULL};

/* A body without a model is another API's at the same path. Behind a prefix it needs what it is asked, too:
 * a model alone (to load it) is told by its answer there. */
static bool asked_at(const char *path, const struct json *body, const char *suffix, const char *what) {
    if (!dialect_path_ends(path, suffix)) return false;
    if (!body) return true;
    bool alone = strncmp(path, suffix, strlen(suffix)) == 0;
    return json_text(json_get(body, "model")) && (alone || !json_is_null(json_get(body, what)));
}
static bool asked_chat(const char *path, const struct json *body) {
    return asked_at(path, body, "/api/chat", "messages");
}
static bool asked_generate(const char *path, const struct json *body) {
    return asked_at(path, body, "/api/generate", "prompt");
}

static bool answered_chat(const struct json *root) {
    return json_is_object(json_get(root, "message")) && !json_is_null(json_get(root, "done"));
}
static bool answered_generate(const struct json *root) {
    return json_text(json_get(root, "response")) && !json_is_null(json_get(root, "done"));
}

/* -- request */
static void options(struct answer *a, const struct json *o) {
    int64_t limit;
    double temperature;
    /* 0 and below: no limit */
    if (json_int(json_get(o, "num_predict"), &limit) && limit > 0) answer_int(a, F_max_tokens, limit);
    if (json_real(json_get(o, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
}

static void common(struct answer *a, const struct json *body) {
    const struct json *format = json_get(body, "format");
    int n_tools = json_count(json_get(body, "tools"));
    dialect_common_request(a, body);
    options(a, json_get(body, "options"));
    const char *schema = json_is_object(format) ? "json_schema" : json_truthy(format) ? "json_object" : "";
    answer_text(a, F_schema, schema, strlen(schema));
    if (n_tools >= 0) answer_int(a, F_tools, n_tools);
}

/* Pictures stand beside the text. */
static int64_t images(const struct json *v) {
    int n = json_count(json_get(v, "images"));
    return n > 0 ? n : 0;
}

static void request_chat(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    common(a, body);
    for (const struct json *m = json_first(json_get(body, "messages")); m; m = json_next(m)) {
        prompt_message(&p, json_text(json_get(m, "role")));
        prompt_content(&p, json_get(m, "content"));
        p.media += images(m);
    }
    prompt_tell(a, &p);
}

static void request_generate(struct answer *a, const struct json *body) {
    static const char *const texts[] = {"system", "prompt", "suffix"};
    size_t bytes = 0;
    common(a, body);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bytes += json_text_bytes(json_get(body, texts[i]));
    answer_int(a, F_prompt_bytes, (int64_t)bytes);
    if (images(body) > 0) answer_int(a, F_images, images(body));
}

/* -- answer */
static void keep_count(struct answer *a, enum fact f, const struct json *v) {
    int64_t n;
    if (json_int(v, &n) && n >= 0) answer_keep(a, f, n);
}

static void totals(struct answer *a, const struct json *root) {
    keep_count(a, F_prompt_tokens, json_get(root, "prompt_eval_count"));
    keep_count(a, F_output_tokens_told, json_get(root, "eval_count"));
    answer_keep_ns(a, F_reported_total_ns, json_get(root, "total_duration"), 1);
    answer_keep_ns(a, F_reported_load_ns, json_get(root, "load_duration"), 1);
    answer_keep_ns(a, F_reported_prefill_ns, json_get(root, "prompt_eval_duration"), 1);
    answer_keep_ns(a, F_reported_decode_ns, json_get(root, "eval_duration"), 1);
}

/* Adds the bytes of a kind of text; true: there are some. */
static bool add(struct tok_event *e, unsigned what, size_t bytes) {
    e->text_bytes += (uint32_t)bytes;
    if (bytes > 0) e->what |= what;
    return bytes > 0;
}

/* A call comes whole, its arguments as values and not as text. It is never continued: the index is left out
 * when it is 0, so it does not tell calls apart. */
static void tools(struct answer *a, const struct json *calls, struct tok_event *e) {
    for (const struct json *t = json_first(calls); t; t = json_next(t)) {
        const struct json *f = json_get(t, "function"), *args = json_get(f, "arguments");
        if (!json_is_object(f)) continue;
        add(e, TOK_TOOL, json_text_bytes(json_get(f, "name")));
        add(e, TOK_TOOL, json_text(args) ? json_text_bytes(args) : jsonsize(args));
        struct tool_call *call = answer_tool(a, e->choice, (int64_t)a->n_tools, json_text(args));
        if (call && !json_text(args)) call->args_are = ARGS_VALUES;
    }
}

static void finish(struct answer *a, const struct json *root, struct choice *c, struct tok_event *e) {
    const char *reason = json_text(json_get(root, "done_reason"));
    if (!json_is_true(json_get(root, "done"))) return;
    a->typed_end = true;
    if (!reason || !*reason) return;
    e->what |= TOK_FINISH;
    if (strcmp(reason, "length") != 0) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, reason);
}

/* Where a line's texts are, and how templates find them. */
struct place {
    const char *text, *text_path, *thinking_path;
};
static const struct place in_message = {"content", "message.content", "message.thinking"};
static const struct place in_root = {"response", "response", "thinking"};

static void line(struct answer *a, const struct json *root, const struct json *from, const struct place *at) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = json_count(json_get(root, "logprobs"))};
    if (json_is_null(json_get(root, "done")) && !from) return; /* a failure */
    struct choice *c = answer_choice(a, 0);
    size_t text = json_text_bytes(json_get(from, at->text)),
           thinking = json_text_bytes(json_get(from, "thinking"));
    answer_text_once(a, F_response_model, json_get(root, "model"));
    a->text_bytes += text;
    a->reasoning_bytes += thinking;
    add(&e, TOK_CONTENT, text);
    add(&e, TOK_REASONING, thinking);
    tools(a, json_get(from, "tool_calls"), &e);
    totals(a, root);
    finish(a, root, c, &e);
    if (e.logprobs < 0)
        a->plain_path = e.what == TOK_CONTENT     ? at->text_path
                        : e.what == TOK_REASONING ? at->thinking_path
                                                  : NULL;
    answer_event(a, &e);
}

static void chat(struct answer *a, const struct json *root) {
    line(a, root, json_get(root, "message"), &in_message);
}
static void generate(struct answer *a, const struct json *root) {
    line(a, root, json_get(root, "response") ? root : NULL, &in_root);
}

const struct dialect dialect_ollama_chat = {
    .name = "ollama-chat",
    .generates = true,
    .asked = asked_chat,
    .answered = answered_chat,
    .request = request_chat,
    .chunk = chat,
    .body = chat,
    .holes = holes,
    .n_holes = 1,
    .skipped = skipped,
};

const struct dialect dialect_ollama_generate = {
    .name = "ollama-generate",
    .generates = true,
    .asked = asked_generate,
    .answered = answered_generate,
    .request = request_generate,
    .chunk = generate,
    .body = generate,
    .holes = holes,
    .n_holes = 1,
    .skipped = skipped,
};
