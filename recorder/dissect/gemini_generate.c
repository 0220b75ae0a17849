/* Gemini's generateContent and streamGenerateContent, of Google's two hosts and gateways that keep their
 * shape.
 *
 * Each event is an answer of the same shape as a whole one. Thoughts are counted apart from the candidates'
 * tokens, and what is shown of them is a summary. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/jsonsize.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

static const struct hole_path holes[] = {
    {"usageMetadata.candidatesTokenCount", HOLE_RUNNING},
    {"usageMetadata.totalTokenCount", HOLE_NUMBER},
    {"usageMetadata.candidatesTokensDetails.0.tokenCount", HOLE_NUMBER},
    {"createTime", HOLE_PADDING}, /* Vertex */
};

static bool is(const char *text, const char *right) {
    return text && strcmp(text, right) == 0;
}

/* A member by either of its spellings: requests may have both. */
static const struct json *either(const struct json *v, const char *camel, const char *snake) {
    const struct json *found = json_get(v, camel);
    return found ? found : json_get(v, snake);
}

static bool asked(const char *path, const struct json *body) {
    if (dialect_path_ends(path, ":generateContent") || dialect_path_ends(path, ":streamGenerateContent"))
        return true;
    /* other methods take contents, too; at other paths contents of parts need a field of this API beside */
    const char *last = strrchr(path, '/');
    if (last && strchr(last, ':')) return false;
    const struct json *first = json_first(json_get(body, "contents"));
    bool own = json_is_object(json_get(body, "generationConfig")) || json_text(json_get(first, "role")) ||
               json_is_object(either(body, "systemInstruction", "system_instruction"));
    return own && json_is_array(json_get(first, "parts"));
}

static bool answered(const struct json *root) {
    return json_is_array(json_get(root, "candidates")) || json_is_object(json_get(root, "usageMetadata")) ||
           json_is_object(json_get(root, "promptFeedback"));
}

/* -- the request */
/* Counts text and media of a content's parts. True: one of them is a tool's result. */
static bool prompt_parts(struct prompt *p, const struct json *content) {
    bool result = false;
    for (const struct json *v = json_first(json_get(content, "parts")); v; v = json_next(v)) {
        p->bytes += (int64_t)json_text_bytes(json_get(v, "text"));
        if (either(v, "inlineData", "inline_data") || either(v, "fileData", "file_data")) p->media++;
        if (either(v, "functionResponse", "function_response")) result = true;
    }
    return result;
}

static void contents(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    const struct json *system = either(body, "systemInstruction", "system_instruction");
    if (json_is_object(system)) {
        prompt_message(&p, "system");
        prompt_parts(&p, system);
    }
    for (const struct json *c = json_first(json_get(body, "contents")); c; c = json_next(c)) {
        const char *role = json_text(json_get(c, "role"));
        prompt_message(&p, prompt_parts(&p, c) || is(role, "function") ? "tool" : role ? role : "user");
    }
    prompt_tell(a, &p);
}

static void told_int(struct answer *a, enum fact f, const struct json *v) {
    int64_t n;
    if (json_int(v, &n)) answer_int(a, f, n);
}

static const char *constraint(const struct json *config) {
    const char *type = json_text(either(config, "responseMimeType", "response_mime_type"));
    const char *const schemas[][2] = {{"responseSchema", "response_schema"},
                                      {"responseJsonSchema", "response_json_schema"}};
    if (is(type, "text/x.enum")) return "choice";
    for (int i = 0; i < 2; i++)
        if (json_truthy(either(config, schemas[i][0], schemas[i][1]))) return "json_schema";
    return is(type, "application/json") ? "json_object" : NULL;
}

/* Functions that are offered, and tools of the host as one each. */
static void tools(struct answer *a, const struct json *list) {
    int64_t n = 0;
    if (!json_is_array(list)) return;
    for (const struct json *t = json_first(list); t; t = json_next(t)) {
        int functions = json_count(either(t, "functionDeclarations", "function_declarations"));
        n += functions >= 0 ? functions : 1;
    }
    answer_int(a, F_tools, n);
}

static void request(struct answer *a, const struct json *body) {
    const struct json *config = either(body, "generationConfig", "generation_config");
    const char *schema = constraint(config);
    double temperature;
    dialect_common_request(a, body);
    contents(a, body);
    told_int(a, F_max_tokens, either(config, "maxOutputTokens", "max_output_tokens"));
    told_int(a, F_n, either(config, "candidateCount", "candidate_count"));
    if (json_real(json_get(config, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
    if (schema) answer_text(a, F_schema, schema, strlen(schema));
    tools(a, json_get(body, "tools"));
}

/* -- counts */
static bool count(const struct json *usage, const char *key, int64_t *n) {
    return json_int(json_get(usage, key), n) && *n >= 0;
}

/* Output: candidates and thoughts together; an event may tell one of them, and then the other is as before.
 * Returns the candidates' count that this event tells, or -1. */
static int64_t usage(struct answer *a, const struct json *u) {
    static const int64_t OUTPUT_MAX = 1000000000000000; /* no count is larger; sums stay small */
    int64_t n, candidates = -1, before = 0;
    if (a->has[F_output_tokens_told]) before = a->latest[F_output_tokens_told] - a->beside_running;
    if (count(u, "promptTokenCount", &n)) answer_keep(a, F_prompt_tokens, n);
    if (count(u, "cachedContentTokenCount", &n)) answer_keep(a, F_cached_tokens, n);
    bool thought = count(u, "thoughtsTokenCount", &n) && n < OUTPUT_MAX;
    if (thought) {
        answer_keep(a, F_reasoning_tokens, n);
        a->beside_running = n;
    }
    bool told = count(u, "candidatesTokenCount", &candidates) && candidates < OUTPUT_MAX;
    if (!told && !thought) return -1;
    answer_keep_running(a, F_output_tokens_told, (told ? candidates : before) + a->beside_running);
    return told ? candidates : -1;
}

/* -- texts */
static void add(struct tok_event *e, unsigned what, size_t bytes) {
    if (bytes == 0) return;
    e->what |= what;
    e->text_bytes += (uint32_t)bytes;
}

/* A call comes whole. Where its arguments are streamed, a first part names it and others bring texts. */
static void call(struct answer *a, const struct json *f, struct tok_event *e) {
    size_t name = json_text_bytes(json_get(f, "name"));
    add(e, TOK_TOOL, name + jsonsize(json_get(f, "args")));
    for (const struct json *p = json_first(json_get(f, "partialArgs")); p; p = json_next(p))
        add(e, TOK_TOOL, json_text_bytes(json_get(p, "stringValue")));
    if (name == 0) return;
    struct tool_call *t = answer_tool(a, e->choice, (int64_t)a->n_tools, NULL);
    if (!t) return;
    t->args_are = ARGS_VALUES;
    t->too_long = json_is_true(json_get(f, "willContinue")); /* its parts are not put together */
}

static void part(struct answer *a, const struct json *v, struct tok_event *e) {
    size_t text = json_text_bytes(json_get(v, "text"));
    const struct json *f = json_get(v, "functionCall"), *data = json_get(v, "inlineData");
    const char *type = json_text(json_get(data, "mimeType"));
    if (json_is_true(json_get(v, "thought"))) {
        /* the tokens are counted as thoughts, whose own text is not shown */
        if (text > 0) e->what |= TOK_SUMMARY;
        return;
    }
    a->text_bytes += text;
    add(e, TOK_CONTENT, text);
    if (json_is_object(f)) call(a, f, e);
    add(e, TOK_TOOL, json_text_bytes(json_at(v, "executableCode.code")));
    if (type && strncmp(type, "audio/", 6) == 0 && json_text_bytes(json_get(data, "data")) > 0)
        e->what |= TOK_AUDIO;
}

static void finish(struct answer *a, struct choice *c, const char *reason, struct tok_event *e) {
    if (!reason || !*reason || is(reason, "FINISH_REASON_UNSPECIFIED")) return;
    e->what |= TOK_FINISH;
    if (!is(reason, "MAX_TOKENS")) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, reason);
}

static void candidate(struct answer *a, const struct json *v, int64_t position, int64_t running) {
    struct tok_event e = {.running = running, .ids = -1, .logprobs = -1};
    const struct json *parts = json_at(v, "content.parts");
    int64_t index = position, at;
    if (json_int(json_get(v, "index"), &at) && at >= 0 && at <= INT32_MAX) index = at;
    e.choice = (uint32_t)index;
    size_t known = a->n_choices;
    struct choice *c = answer_choice(a, index);
    if (a->n_choices > known) a->templates.version++; /* what earlier events said is not said any more: */
    if (a->n_choices > 1) e.running = -1;             /* the count is one of all candidates */
    for (const struct json *p = json_first(parts); p; p = json_next(p)) part(a, p, &e);
    finish(a, c, json_text(json_get(v, "finishReason")), &e);
    if (e.what == TOK_CONTENT && json_count(parts) == 1) a->plain_path = "candidates.0.content.parts.0.text";
    answer_event(a, &e);
}

/* A prompt that was refused has no candidate: the refusal is how it finished. */
static void blocked(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const char *reason = json_text(json_at(root, "promptFeedback.blockReason"));
    if (!reason || !*reason) return;
    finish(a, answer_choice(a, 0), reason, &e);
    answer_event(a, &e);
}

static void chunk(struct answer *a, const struct json *root) {
    const struct json *candidates = json_get(root, "candidates");
    int n = json_count(candidates);
    int64_t position = 0, running = usage(a, json_get(root, "usageMetadata"));
    answer_text_once(a, F_response_id, json_get(root, "responseId"));
    answer_text_once(a, F_response_model, json_get(root, "modelVersion"));
    for (const struct json *c = json_first(candidates); c; c = json_next(c))
        candidate(a, c, position++, n == 1 ? running : -1);
    if (n != 1) a->plain_path = NULL;
    if (n <= 0) blocked(a, root);
}

static void body(struct answer *a, const struct json *root) {
    if (!json_is_array(root)) chunk(a, root);
    for (const struct json *v = json_is_array(root) ? json_first(root) : NULL; v; v = json_next(v))
        chunk(a, v);
}

const struct dialect dialect_gemini_generate = {
    .name = "gemini-generate",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
    .ends_with_body = true,
};
