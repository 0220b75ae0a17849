/* LM Studio's own chat: named events, of which the last repeats the whole answer with its counts. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/jsonsize.h"
#include "recorder/dissect/prompt.h"

#include <string.h>

static bool is(const char *text, const char *right) {
    return text && strcmp(text, right) == 0;
}

static bool asked(const char *path, const struct json *body) {
    return dialect_path_ends(path, "/api/v1/chat") && !json_is_array(json_get(body, "messages"));
}

static bool answered(const struct json *root) {
    static const char *const types[] = {"chat.",         "model_load.", "prompt_processing.", "message.delta",
                                        "message.start", "reasoning.",  "tool_call."};
    const char *type = json_text(json_get(root, "type"));
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strncmp(type, types[i], strlen(types[i])) == 0) return true;
    return json_text(json_get(root, "model_instance_id")) && json_is_array(json_get(root, "output"));
}

static void request(struct answer *a, const struct json *body) {
    struct prompt p = {0};
    int64_t most;
    dialect_common_request(a, body);
    if (json_int(json_get(body, "max_output_tokens"), &most)) answer_int(a, F_max_tokens, most);
    prompt_system(&p, json_get(body, "system_prompt"));
    if (!json_is_null(json_get(body, "input"))) prompt_message(&p, "user");
    prompt_content(&p, json_get(body, "input"));
    prompt_tell(a, &p);
}

static void loaded(struct answer *a, const struct json *seconds) {
    const double s = 1e9;
    answer_keep(a, F_loading, 1);
    answer_keep_ns(a, F_reported_load_ns, seconds, s);
}

/* The whole answer's names and counts. A load's time stands there only when there was one. */
static void result(struct answer *a, const struct json *v) {
    const double s = 1e9;
    const struct json *stats = json_get(v, "stats"), *load = json_get(stats, "model_load_time_seconds");
    answer_text_once(a, F_response_model, json_get(v, "model_instance_id"));
    answer_text_once(a, F_response_id, json_get(v, "response_id"));
    answer_keep_total(a, F_prompt_tokens, json_get(stats, "input_tokens"));
    answer_keep_total(a, F_output_tokens_told, json_get(stats, "total_output_tokens"));
    answer_keep_total(a, F_reasoning_tokens, json_get(stats, "reasoning_output_tokens"));
    answer_keep_ns(a, F_reported_ttft_ns, json_get(stats, "time_to_first_token_seconds"), s);
    if (!json_is_null(load)) loaded(a, load);
}

static void text(struct answer *a, const struct json *v, uint32_t what, struct tok_event *e) {
    size_t bytes = json_text_bytes(json_get(v, "content"));
    *(what == TOK_REASONING ? &a->reasoning_bytes : &a->text_bytes) += bytes;
    if (bytes == 0) return;
    e->what |= what;
    e->text_bytes += (uint32_t)bytes;
}

/* Arguments come as values: their bytes are those of the shortest way to write them. */
static void arguments(const struct json *v, struct tok_event *e) {
    const struct json *args = json_get(v, "arguments");
    if (!json_first(args)) return;
    e->what |= TOK_TOOL;
    e->text_bytes += (uint32_t)jsonsize(args);
}

static void tool(struct answer *a, const struct json *v, struct tok_event *e) {
    struct tool_call *call = answer_tool(a, 0, (int64_t)a->n_tools, NULL);
    if (call) call->args_are = ARGS_VALUES;
    e->what |= TOK_TOOL;
    e->text_bytes += (uint32_t)json_text_bytes(json_get(v, "tool"));
}

/* The event that names the tool begins a call; what came of it is the tool's, not the model's. */
static void event(struct answer *a, const char *type, const struct json *root, struct tok_event *e) {
    if (is(type, "message.delta"))
        text(a, root, TOK_CONTENT, e);
    else if (is(type, "reasoning.delta"))
        text(a, root, TOK_REASONING, e);
    else if (is(type, "tool_call.start"))
        tool(a, root, e);
    else if (is(type, "tool_call.arguments"))
        arguments(root, e);
    else if (strncmp(type, "model_load.", 11) == 0)
        loaded(a, json_get(root, "load_time_seconds"));
}

static void chunk(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    const char *type = json_text(json_get(root, "type"));
    answer_choice(a, 0);
    answer_text_once(a, F_response_model, json_get(root, "model_instance_id"));
    event(a, type ? type : a->event_name, root, &e);
    if (is(type ? type : a->event_name, "chat.end")) {
        a->typed_end = true;
        result(a, json_get(root, "result"));
    }
    if (type && (e.what == TOK_CONTENT || e.what == TOK_REASONING)) a->plain_path = "content";
    answer_event(a, &e);
}

static void body(struct answer *a, const struct json *root) {
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    if (!answered(root)) return;
    answer_choice(a, 0);
    result(a, root);
    for (const struct json *o = json_first(json_get(root, "output")); o; o = json_next(o)) {
        const char *type = json_text(json_get(o, "type"));
        if (json_text(json_get(o, "tool")))
            tool(a, o, &e);
        else
            text(a, o, is(type, "reasoning") ? TOK_REASONING : TOK_CONTENT, &e);
    }
    answer_event(a, &e);
}

const struct dialect dialect_lmstudio_chat = {
    .name = "lmstudio-chat",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
};
