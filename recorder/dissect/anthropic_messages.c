/* Anthropic's Messages, and what speaks like them: vLLM, llama.cpp, SGLang, LM Studio, Vertex, Bedrock's
 * invoke.
 *
 * Content comes in blocks; a block's start names it, its deltas fill it. The whole answer is one choice. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

static const struct hole_path holes[] = {
    {"index", HOLE_NUMBER}, {"p", HOLE_PADDING}, /* Bedrock's */
};

static bool is(const char *text, const char *right) {
    return text && strcmp(text, right) == 0;
}

/* Hosts that name the model in the path tell this API by the body's version. */
static bool asked(const char *path, const struct json *body) {
    static const char *const hosted[] = {":rawPredict", ":streamRawPredict", "/invoke",
                                         "/invoke-with-response-stream"};
    if (!body) return dialect_path_ends(path, "/v1/messages");
    if (!json_is_array(json_get(body, "messages"))) return false;
    if (dialect_path_ends(path, "/v1/messages")) return true;
    /* mail and chat services have messages, too */
    if (dialect_path_ends(path, "/messages") &&
        json_text(json_get(json_first(json_get(body, "messages")), "role")))
        return json_text(json_get(body, "model")) || !json_is_null(json_get(body, "max_tokens"));
    if (!json_text(json_get(body, "anthropic_version")) || strstr(path, "/count-tokens:")) return false;
    for (size_t i = 0; i < sizeof hosted / sizeof *hosted; i++)
        if (dialect_path_ends(path, hosted[i])) return true;
    return false;
}

static bool answered(const struct json *root) {
    static const char *const types[] = {"message_start",      "content_block_start", "content_block_delta",
                                        "content_block_stop", "message_delta",       "message_stop"};
    const char *type = json_text(json_get(root, "type"));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is(type, types[i])) return true;
    return is(type, "message") && json_is_array(json_get(root, "content"));
}

/* -- the request */
static bool has_tool_result(const struct json *content) {
    for (const struct json *b = json_is_array(content) ? json_first(content) : NULL; b; b = json_next(b))
        if (json_text(json_get(b, "tool_use_id"))) return true;
    return false;
}

static const char *schema(const struct json *body) {
    const char *type = json_text(json_at(body, "output_config.format.type"));
    if (!type) type = json_text(json_at(body, "output_format.type"));
    return is(type, "json_schema") ? type : NULL;
}

static void request(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    int n_tools = json_count(json_get(body, "tools"));
    const char *constraint = schema(body);
    dialect_common_request(a, body);
    prompt_system(&p, json_get(body, "system"));
    for (const struct json *m = json_first(json_get(body, "messages")); m; m = json_next(m)) {
        const struct json *content = json_get(m, "content");
        prompt_message(&p, has_tool_result(content) ? "tool" : json_text(json_get(m, "role")));
        prompt_content(&p, content);
    }
    prompt_tell(a, &p);
    if (n_tools >= 0) answer_int(a, F_tools, n_tools);
    if (constraint) answer_text(a, F_schema, constraint, strlen(constraint));
}

/* -- counts */
static int64_t kept(const struct answer *a, enum fact f) {
    return a->has[f] & ANSWER_INT ? a->latest[f] : 0;
}

/* input_tokens excludes what came from or went to the cache. An event may tell some of the three: the others
 * keep what an earlier one told. Zeros are placeholders: no prompt has no token. */
static void prompt_tokens(struct answer *a, const struct json *usage) {
    int64_t input = kept(a, F_prompt_tokens) - kept(a, F_cached_tokens), n;
    int64_t write = kept(a, F_cache_write_tokens);
    input = input < write ? -1 : input - write;
    if (json_int(json_get(usage, "input_tokens"), &n) && n >= 0 && (n > 0 || input < 0)) input = n;
    answer_keep_total(a, F_cached_tokens, json_get(usage, "cache_read_input_tokens"));
    answer_keep_total(a, F_cache_write_tokens, json_get(usage, "cache_creation_input_tokens"));
    bool told = (a->has[F_prompt_tokens] & ANSWER_INT) || json_int(json_get(usage, "input_tokens"), &n);
    if (!told || input < 0 || __builtin_add_overflow(input, kept(a, F_cached_tokens), &n) ||
        __builtin_add_overflow(n, kept(a, F_cache_write_tokens), &n))
        return;
    if (n > 0) answer_keep(a, F_prompt_tokens, n);
}

static void names(struct answer *a, const struct json *message) {
    answer_text_once(a, F_response_id, json_get(message, "id"));
    answer_text_once(a, F_response_model, json_get(message, "model"));
    answer_text_once(a, F_service_tier, json_at(message, "usage.service_tier"));
}

/* -- blocks */
static void add(struct tok_event *e, unsigned what, size_t bytes) {
    if (bytes == 0) return;
    e->what |= what;
    e->text_bytes += (uint32_t)bytes;
}

/* Text and thinking stand under the same keys in a block and in its deltas. The thinking that is shown is a
 * summary of what was thought. */
static void texts(struct answer *a, const struct json *v, struct tok_event *e) {
    size_t text = json_text_bytes(json_get(v, "text")), thinking = json_text_bytes(json_get(v, "thinking"));
    a->text_bytes += text;
    a->reasoning_bytes += thinking;
    add(e, TOK_CONTENT, text);
    add(e, TOK_REASONING | TOK_SUMMARY, thinking);
}

/* A block's start, or a block of a whole answer: its input is an object there, {} until deltas fill it. */
static void block(struct answer *a, const struct json *v, int64_t index, struct tok_event *e) {
    size_t name = json_text_bytes(json_get(v, "name"));
    texts(a, v, e);
    add(e, TOK_TOOL, name);
    struct tool_call *call = name > 0 ? answer_tool(a, 0, index, NULL) : NULL;
    if (call) call->args_are = ARGS_VALUES;
    /* thought, but not shown */
    if (is(json_text(json_get(v, "type")), "redacted_thinking")) e->what |= TOK_SUMMARY;
}

static void delta(struct answer *a, const struct json *v, int64_t index, struct tok_event *e) {
    const char *json = json_text(json_get(v, "partial_json"));
    texts(a, v, e);
    if (json) {
        answer_tool(a, 0, index, json);
        add(e, TOK_TOOL, strlen(json));
    }
    /* a signature of thinking of which nothing was shown */
    if (a->reasoning_bytes == 0 && json_text_bytes(json_get(v, "signature")) > 0) e->what |= TOK_SUMMARY;
    if (e->what == TOK_CONTENT) a->plain_path = "delta.text";
    if (e->what == (TOK_REASONING | TOK_SUMMARY)) a->plain_path = "delta.thinking";
}

static void finish(struct answer *a, const struct json *reason, struct tok_event *e) {
    const char *text = json_text(reason);
    struct choice *c = answer_choice(a, 0);
    if (!text || !*text) return;
    e->what |= TOK_FINISH;
    if (!is(text, "max_tokens") && !is(text, "model_context_window_exceeded")) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, text);
}

/* output_tokens is not read here: at a stream's start it is neither a total nor a count so far. */
static void start(struct answer *a, const struct json *message) {
    answer_choice(a, 0);
    names(a, message);
    prompt_tokens(a, json_get(message, "usage"));
}

static void event(struct answer *a, const char *type, const struct json *root, struct tok_event *e) {
    int64_t index = 0;
    json_int(json_get(root, "index"), &index);
    if (is(type, "message_start")) {
        start(a, json_get(root, "message"));
    } else if (is(type, "content_block_start")) {
        block(a, json_get(root, "content_block"), index, e);
    } else if (is(type, "content_block_delta")) {
        delta(a, json_get(root, "delta"), index, e);
    } else if (is(type, "message_delta")) {
        prompt_tokens(a, json_get(root, "usage"));
        answer_keep_total(a, F_output_tokens_told, json_at(root, "usage.output_tokens"));
        finish(a, json_at(root, "delta.stop_reason"), e);
    } else if (is(type, "message_stop")) {
        a->typed_end = true;
    }
}

static void chunk(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const char *type = json_text(json_get(root, "type"));
    event(a, type ? type : a->event_name, root, &e);
    if (!type) a->plain_path = NULL; /* what its name says, a template would not see */
    if (e.what) answer_choice(a, 0);
    answer_event(a, &e);
}

static void body(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    int64_t index = 0;
    if (!answered(root)) return;
    start(a, root);
    answer_keep_total(a, F_output_tokens_told, json_at(root, "usage.output_tokens"));
    for (const struct json *b = json_first(json_get(root, "content")); b; b = json_next(b))
        block(a, b, index++, &e);
    finish(a, json_get(root, "stop_reason"), &e);
    answer_event(a, &e);
}

const struct dialect dialect_anthropic_messages = {
    .name = "anthropic-messages",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
};
