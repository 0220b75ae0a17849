/* Amazon Bedrock's Converse: an answer in blocks. Events are told apart by their fields, not by their frames'
 * names: models that are invoked and speak the same shape put each under a key of that name instead. The
 * whole answer is one choice. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/jsonsize.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

static const struct hole_path holes[] = {
    {"p", HOLE_PADDING},
    {"contentBlockIndex", HOLE_NUMBER},
};

static bool is(const char *text, const char *right) {
    return text && strcmp(text, right) == 0;
}

static bool asked(const char *path, const struct json *body) {
    bool converse = dialect_path_ends(path, "/converse") || dialect_path_ends(path, "/converse-stream");
    if (converse && strstr(path, "/model/")) return true;
    return json_is_array(json_get(body, "messages")) && (json_is_object(json_get(body, "inferenceConfig")) ||
                                                         json_is_array(json_at(body, "toolConfig.tools")));
}

/* What an event says: its root, or the object under the root's one key. */
static const struct json *inside(const struct json *root) {
    static const char *const names[] = {"messageStart",     "contentBlockStart", "contentBlockDelta",
                                        "contentBlockStop", "messageStop",       "metadata"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct json *v = json_get(root, names[i]);
        if (json_is_object(v)) return v;
    }
    return root;
}

static bool answered(const struct json *root) {
    const struct json *v = inside(root), *usage = json_get(v, "usage");
    int64_t n;
    return json_is_object(json_at(root, "output.message")) || json_text(json_get(v, "stopReason")) ||
           json_int(json_get(v, "contentBlockIndex"), &n) ||
           (json_int(json_get(usage, "inputTokens"), &n) && json_int(json_get(usage, "outputTokens"), &n));
}

/* -- the request */
/* Counts text and media of a message's blocks. True: one of them is a tool's result. */
static bool prompt_blocks(struct prompt *p, const struct json *list) {
    static const char *const media[] = {"image", "document", "video", "audio"};
    bool result = false;
    for (const struct json *v = json_is_array(list) ? json_first(list) : NULL; v; v = json_next(v)) {
        const struct json *of_tool = json_get(v, "toolResult");
        p->bytes += (int64_t)json_text_bytes(json_get(v, "text"));
        p->bytes += (int64_t)json_text_bytes(json_at(v, "reasoningContent.reasoningText.text"));
        for (size_t i = 0; i < sizeof media / sizeof *media; i++)
            p->media += json_is_object(json_get(v, media[i]));
        if (!json_is_object(of_tool)) continue;
        result = true;
        for (const struct json *r = json_first(json_get(of_tool, "content")); r; r = json_next(r))
            p->bytes += (int64_t)(json_text_bytes(json_get(r, "text")) + jsonsize(json_get(r, "json")));
    }
    return result;
}

static void request(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    int64_t max_tokens;
    double temperature;
    const struct json *config = json_get(body, "inferenceConfig"), *system = json_get(body, "system");
    int n_tools = json_count(json_at(body, "toolConfig.tools"));
    dialect_common_request(a, body);
    if (json_count(system) > 0) {
        prompt_message(&p, "system");
        prompt_blocks(&p, system);
    }
    for (const struct json *m = json_first(json_get(body, "messages")); m; m = json_next(m)) {
        bool result = prompt_blocks(&p, json_get(m, "content"));
        prompt_message(&p, result ? "tool" : json_text(json_get(m, "role")));
    }
    prompt_tell(a, &p);
    if (json_int(json_get(config, "maxTokens"), &max_tokens)) answer_int(a, F_max_tokens, max_tokens);
    if (json_real(json_get(config, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
    if (n_tools >= 0) answer_int(a, F_tools, n_tools);
}

/* -- counts */
/* inputTokens excludes what came from or went to the cache. */
static void usage(struct answer *a, const struct json *u) {
    int64_t sum = 0, n;
    static const char *const keys[] = {"inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"};
    bool told = json_int(json_get(u, keys[0]), &n);
    for (int i = 0; i < 3; i++)
        if (json_int(json_get(u, keys[i]), &n) && (n < 0 || __builtin_add_overflow(sum, n, &sum)))
            told = false;
    if (told) answer_keep(a, F_prompt_tokens, sum);
    if (json_int(json_get(u, "outputTokens"), &n) && n >= 0) answer_keep(a, F_output_tokens_told, n);
    if (json_int(json_get(u, keys[1]), &n) && n >= 0) answer_keep(a, F_cached_tokens, n);
    if (json_int(json_get(u, keys[2]), &n) && n >= 0) answer_keep(a, F_cache_write_tokens, n);
}

static void metadata(struct answer *a, const struct json *v) {
    const double ms = 1e6;
    usage(a, json_get(v, "usage"));
    answer_keep_ns(a, F_reported_total_ns, json_at(v, "metrics.latencyMs"), ms);
    answer_text_once(a, F_service_tier, json_at(v, "serviceTier.type"));
}

/* -- blocks */
static void add(struct tok_event *e, unsigned what, size_t bytes) {
    if (bytes == 0) return;
    e->what |= what;
    e->text_bytes += (uint32_t)bytes;
}

/* Reasoning of some models is a summary and of others is not, no count of it is told, and nothing on the wire
 * says which it is: so it is taken as a summary, whose gaps are not known. */
static void texts(struct answer *a, const struct json *text, const struct json *reasoning,
                  struct tok_event *e) {
    size_t n_text = json_text_bytes(text), n_reasoning = json_text_bytes(reasoning);
    a->text_bytes += n_text;
    a->reasoning_bytes += n_reasoning;
    add(e, TOK_CONTENT, n_text);
    add(e, TOK_REASONING | TOK_SUMMARY, n_reasoning);
}

/* A call's name; whole answers have its arguments beside it, as a value. */
static void tool(struct answer *a, const struct json *use, int64_t index, struct tok_event *e) {
    const struct json *input = json_get(use, "input");
    size_t name = json_text_bytes(json_get(use, "name"));
    if (name == 0) return;
    add(e, TOK_TOOL, name + jsonsize(input));
    struct tool_call *t = answer_tool(a, 0, index, NULL);
    if (t) t->args_are = ARGS_VALUES; /* without any it is a call without parameters */
}

static void delta(struct answer *a, const struct json *v, int64_t index, struct tok_event *e) {
    const struct json *reasoning = json_get(v, "reasoningContent");
    const char *input = json_text(json_at(v, "toolUse.input"));
    texts(a, json_get(v, "text"), json_get(reasoning, "text"), e);
    if (input) {
        answer_tool(a, 0, index, input);
        add(e, TOK_TOOL, strlen(input));
    }
    /* thought, but not shown */
    if (json_text_bytes(json_get(reasoning, "redactedContent")) > 0) e->what |= TOK_SUMMARY;
}

static void finish(struct answer *a, const struct json *v, struct tok_event *e) {
    const char *reason = json_text(json_get(v, "stopReason"));
    struct choice *c = answer_choice(a, 0);
    if (!reason || !*reason) return;
    e->what |= TOK_FINISH;
    if (!is(reason, "max_tokens") && !is(reason, "model_context_window_exceeded")) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, reason);
}

static void chunk(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const struct json *v = inside(root);
    int64_t index = 0;
    answer_choice(a, 0);
    json_int(json_get(v, "contentBlockIndex"), &index);
    tool(a, json_at(v, "start.toolUse"), index, &e);
    delta(a, json_get(v, "delta"), index, &e);
    finish(a, v, &e);
    if (json_is_object(json_get(v, "usage"))) {
        metadata(a, v);
        a->typed_end = true;
    }
    if (v == root && e.what == TOK_CONTENT) a->plain_path = "delta.text";
    if (v == root && e.what == (TOK_REASONING | TOK_SUMMARY)) a->plain_path = "delta.reasoningContent.text";
    answer_event(a, &e);
}

static void body(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const struct json *content = json_at(root, "output.message.content");
    int64_t index = 0;
    if (!answered(root)) return;
    for (const struct json *b = json_first(content); b; b = json_next(b), index++) {
        texts(a, json_get(b, "text"), json_at(b, "reasoningContent.reasoningText.text"), &e);
        tool(a, json_get(b, "toolUse"), index, &e);
    }
    finish(a, root, &e);
    metadata(a, root);
}

const struct dialect dialect_bedrock_converse = {
    .name = "bedrock-converse",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
};
