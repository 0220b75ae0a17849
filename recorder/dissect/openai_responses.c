/* OpenAI's Responses, and what speaks like them: Azure, vLLM, llama.cpp, SGLang, Ollama, LM Studio, xAI.
 *
 * An answer is a list of items, each made of parts; deltas fill them one after the other, so they are one
 * choice. What ends in .done, and the response that the last event brings, repeat what deltas said. */
#include "recorder/dissect/openai_common.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

/* item_id: some gateways write another one with each event. */
static const struct hole_path holes[] = {
    {"sequence_number", HOLE_NUMBER},
    {"obfuscation", HOLE_PADDING},
    {"item_id", HOLE_PADDING},
};

static const char before[] = "response."; /* all its events' types */
static const size_t n_before = sizeof before - 1;

static bool is(const char *text, const char *right) {
    return text && strcmp(text, right) == 0;
}

static bool asked(const char *path, const struct json *body) {
    if (!dialect_path_ends(path, "/responses") || json_is_array(json_get(body, "messages"))) return false;
    if (dialect_path_ends(path, "/v1/responses") || dialect_path_ends(path, "/openai/responses")) return true;
    if (strncmp(path, "/responses", 10) == 0) return true;
    /* behind other prefixes the word alone says too little */
    return json_text(json_get(body, "model")) || !json_is_null(json_get(body, "input"));
}

static bool answered(const struct json *root) {
    const char *type = json_text(json_get(root, "type"));
    return is(json_text(json_get(root, "object")), "response") ||
           (type && strncmp(type, before, n_before) == 0);
}

/* -- the request */
/* Items without a role are calls and what came of them, or reasoning: only results are messages. */
static void input_item(struct prompt *p, const struct json *item) {
    const char *role = json_text(json_get(item, "role"));
    bool result = !json_is_null(json_get(item, "output")) && json_text(json_get(item, "call_id"));
    if (!role && !result) return;
    prompt_message(p, role ? role : "tool");
    prompt_content(p, json_get(item, role ? "content" : "output"));
}

static void input(struct prompt *p, const struct json *v) {
    if (json_text(v)) {
        prompt_message(p, "user");
        prompt_content(p, v);
    }
    if (!json_is_array(v)) return;
    for (const struct json *item = json_first(v); item; item = json_next(item)) input_item(p, item);
}

static void request(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    int64_t most;
    int n_tools = json_count(json_get(body, "tools"));
    const char *format = json_text(json_at(body, "text.format.type"));
    dialect_common_request(a, body);
    if (json_int(json_get(body, "max_output_tokens"), &most)) answer_int(a, F_max_tokens, most);
    prompt_system(&p, json_get(body, "instructions"));
    input(&p, json_get(body, "input"));
    prompt_tell(a, &p);
    if (n_tools >= 0) answer_int(a, F_tools, n_tools);
    if (is(format, "json_schema") || is(format, "json_object"))
        answer_text(a, F_schema, format, strlen(format));
}

/* -- the response object */
static void names(struct answer *a, const struct json *response) {
    answer_text_once(a, F_response_id, json_get(response, "id"));
    answer_text_once(a, F_response_model, json_get(response, "model"));
    answer_text_once(a, F_service_tier, json_get(response, "service_tier"));
}

static void usage(struct answer *a, const struct json *u) {
    static const struct {
        const char *path;
        enum fact fact;
    } rows[] = {
        {"input_tokens", F_prompt_tokens},
        {"output_tokens", F_output_tokens_told},
        {"input_tokens_details.cached_tokens", F_cached_tokens},
        {"input_tokens_details.cache_write_tokens", F_cache_write_tokens},
        {"output_tokens_details.reasoning_tokens", F_reasoning_tokens},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct json *v = json_at(u, rows[i].path);
        int64_t n;
        answer_keep_total(a, rows[i].fact, v);
        if (json_int(v, &n)) a->has[rows[i].fact] |= ANSWER_BY_USAGE;
    }
}

/* How it ended, in the words of incomplete_details where there are some. */
static void finish(struct answer *a, const struct json *response, const char *status, struct tok_event *e) {
    static const char *const ends[] = {"completed", "incomplete", "failed", "cancelled"};
    static const char *const lengths[] = {"max_output_tokens", "max_tokens", "length"};
    const char *reason = json_text(json_at(response, "incomplete_details.reason"));
    struct choice *c = answer_choice(a, 0);
    bool over = false, length = false;
    for (int i = 0; i < 4; i++) over = over || is(status, ends[i]);
    if (!over || !c) return;
    if (!reason || !*reason) reason = status;
    for (int i = 0; i < 3; i++) length = length || is(reason, lengths[i]);
    e->what |= TOK_FINISH | (length ? 0u : TOK_STOP);
    answer_finish(a, c, reason);
}

/* -- deltas */
static void add(struct answer *a, struct tok_event *e, uint32_t what, size_t bytes) {
    if (bytes == 0) return;
    e->what |= what;
    if (what != TOK_SUMMARY) e->text_bytes += (uint32_t)bytes;
    if (what == TOK_REASONING) a->reasoning_bytes += bytes;
    if (what == TOK_CONTENT || what == TOK_REFUSAL) a->text_bytes += bytes;
}

/* What a delta's type says it carries; the first that stands in it. */
static uint32_t kind(const char *type) {
    static const struct {
        const char *part;
        uint32_t what;
    } kinds[] = {
        {"reasoning_summary", TOK_SUMMARY},
        {"reasoning", TOK_REASONING},
        {"refusal", TOK_REFUSAL},
        {"audio", TOK_AUDIO},
        {"call", TOK_TOOL},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(type, kinds[i].part)) return kinds[i].what;
    return TOK_CONTENT;
}

static int64_t hash(const char *text) {
    uint64_t h = 14695981039346656037u;
    for (; text && *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (int64_t)h;
}

/* What tells an item from others. Servers that leave out its index name it; the names differ between an item
 * and its deltas, so that a call's own is tried where there is no other. */
static int64_t item_key(const struct json *root) {
    int64_t index;
    if (json_int(json_get(root, "output_index"), &index)) return index;
    const char *id = json_text(json_get(root, "item_id"));
    if (!id) id = json_text(json_at(root, "item.id"));
    return hash(id ? id : json_text(json_at(root, "item.call_id")));
}

static void call(struct answer *a, int64_t key, const char *args, bool is_free) {
    struct tool_call *t = answer_tool(a, 0, key, is_free ? NULL : args);
    if (t && is_free) t->args_are = ARGS_FREE;
}

/* A call's item: its arguments, empty when deltas will bring them, are JSON; an input is free text. */
static void call_item(struct answer *a, const struct json *item, int64_t key, struct tok_event *e) {
    const struct json *args = json_get(item, "arguments"), *in = json_get(item, "input");
    size_t name = json_text_bytes(json_get(item, "name"));
    if (name == 0) return;
    add(a, e, TOK_TOOL, name + json_text_bytes(args) + json_text_bytes(in));
    call(a, key, json_text(args), !args && in);
}

static void delta(struct answer *a, const struct json *root, const char *type, struct tok_event *e) {
    const struct json *v = json_get(root, "delta");
    size_t bytes = json_text_bytes(v);
    uint32_t what = kind(type);
    int32_t n_logprobs = json_count(json_get(root, "logprobs"));
    if (bytes == 0 && !json_first(v)) return;
    if (strstr(type, "call_output")) return; /* what a tool said, not the model */
    /* sound has no text but its transcript; values have a length nobody told */
    e->what |= what;
    if (what != TOK_AUDIO || strstr(type, "transcript")) add(a, e, what, bytes);
    if (n_logprobs > 0) e->logprobs = n_logprobs; /* an empty list: they were not asked for */
    if (what == TOK_TOOL)
        call(a, item_key(root), json_text(v), !strstr(type, "arguments")); /* all else is free text */
}

/* The next event need not be parsed when it differs from this one in its text alone. */
static void plain(struct answer *a, const struct json *root, const struct tok_event *e) {
    bool text = e->what == TOK_CONTENT || e->what == TOK_REASONING || e->what == TOK_REFUSAL;
    bool typed = json_text(json_get(root, "type")) && json_text(json_get(root, "delta"));
    if (text && typed && e->running < 0 && e->logprobs < 0) a->plain_path = "delta";
}

static bool ends(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void chunk(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const struct json *response = json_get(root, "response");
    const char *type = json_text(json_get(root, "type"));
    type = type ? type : a->event_name;
    if (strncmp(type, before, n_before) != 0) return;
    answer_choice(a, 0);
    e.running = openai_usage(a, root); /* llama.cpp's timings */
    if (json_is_object(response)) {
        names(a, response);
        openai_usage(a, response);
        usage(a, json_get(response, "usage"));
        finish(a, response, type + n_before, &e);
        a->typed_end = a->typed_end || e.what & TOK_FINISH;
    } else if (ends(type, ".delta")) {
        delta(a, root, type, &e);
    } else if (is(type, "response.output_item.added")) {
        call_item(a, json_get(root, "item"), item_key(root), &e);
    }
    plain(a, root, &e);
    answer_event(a, &e);
}

/* -- a whole response */
static void part(struct answer *a, const struct json *v, uint32_t what, struct tok_event *e) {
    add(a, e, what, json_text_bytes(json_get(v, "text")));
    add(a, e, TOK_REFUSAL, json_text_bytes(json_get(v, "refusal")));
}

static void body(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    int64_t index = 0;
    if (!answered(root)) return;
    answer_choice(a, 0);
    names(a, root);
    openai_usage(a, root);
    usage(a, json_get(root, "usage"));
    for (const struct json *o = json_first(json_get(root, "output")); o; o = json_next(o)) {
        uint32_t what = is(json_text(json_get(o, "type")), "reasoning") ? TOK_REASONING : TOK_CONTENT;
        for (const struct json *p = json_first(json_get(o, "content")); p; p = json_next(p))
            part(a, p, what, &e);
        call_item(a, o, index++, &e);
    }
    finish(a, root, json_text(json_get(root, "status")), &e);
    answer_event(a, &e);
}

const struct dialect dialect_openai_responses = {
    .name = "openai-responses",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
};
