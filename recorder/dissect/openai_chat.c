/* OpenAI chat completions, and what speaks like them: vLLM, SGLang, llama.cpp, TensorRT-LLM, Azure, DeepSeek,
 * Groq, OpenRouter and others. */
#include "recorder/dissect/jsonsize.h"
#include "recorder/dissect/openai_common.h"

#include <string.h>

static bool asked(const char *path, const struct json *body) {
    if (!dialect_path_ends(path, "/chat/completions") && !dialect_path_ends(path, "/v1/completions"))
        return false;
    if (json_is_array(json_get(body, "messages"))) return true;
    return dialect_path_ends(path, "/chat/completions") && json_is_null(json_get(body, "prompt"));
}

static bool answered(const struct json *root) {
    const char *object = json_text(json_get(root, "object"));
    /* any other name is another API's (of speech, say); Azure's first event has an empty one */
    if (object && *object) return strncmp(object, "chat.completion", 15) == 0;
    const struct json *c = json_first(json_get(root, "choices"));
    return json_is_object(json_get(c, "delta")) || json_is_object(json_get(c, "message"));
}

/* Adds bytes of a kind of text. */
static size_t add(struct tok_event *e, unsigned what, size_t bytes) {
    if (bytes == 0) return 0;
    e->what |= what;
    e->text_bytes += (uint32_t)bytes;
    return bytes;
}

static struct tool_call *function(struct answer *a, const struct json *f, int64_t index,
                                  struct tok_event *e) {
    const struct json *values = json_get(f, "arguments");
    const char *args = json_text(values);
    if (!args) args = json_text(json_get(f, "input"));
    add(e, TOK_TOOL, json_text_bytes(json_get(f, "name")));
    add(e, TOK_TOOL, args ? strlen(args) : json_is_object(values) ? jsonsize(values) : 0);
    return answer_tool(a, e->choice, index, args);
}

static void tools(struct answer *a, const struct json *delta, struct tok_event *e) {
    int64_t position = 0, index;
    for (const struct json *t = json_first(json_get(delta, "tool_calls")); t; t = json_next(t), position++) {
        const struct json *f = json_get(t, "function");
        bool custom = !json_is_object(f) && json_is_object(json_get(t, "custom"));
        if (custom) f = json_get(t, "custom");
        if (!json_int(json_get(t, "index"), &index)) index = position;
        struct tool_call *call = function(a, f, index, e);
        if (call && custom) call->args_are = ARGS_FREE;
    }
    const struct json *legacy = json_get(delta, "function_call");
    if (json_is_object(legacy)) function(a, legacy, -1, e);
}

/* Engines call it reasoning_content, reasoning, or both at once. */
static const char *reasoning(struct answer *a, const struct json *delta, struct tok_event *e) {
    static const char *const keys[] = {"reasoning_content", "reasoning"};
    for (int i = 0; i < 2; i++) {
        size_t bytes = json_text_bytes(json_get(delta, keys[i]));
        a->reasoning_bytes += bytes;
        if (add(e, TOK_REASONING, bytes)) return keys[i];
    }
    return NULL;
}

static void audio(const struct json *delta, struct tok_event *e) {
    const struct json *sound = json_get(delta, "audio");
    if (json_text_bytes(json_get(sound, "data")) > 0) e->what |= TOK_AUDIO;
    add(e, TOK_AUDIO, json_text_bytes(json_get(sound, "transcript")));
}

/* The path of the only text of a delta, so that the next event need not be parsed. */
static const char *plain(const struct tok_event *e, const struct json *content, const char *reasoning_key) {
    if (e->what == TOK_CONTENT && json_text(content)) return "choices.0.delta.content";
    if (e->what != TOK_REASONING || !reasoning_key) return NULL;
    return strcmp(reasoning_key, "reasoning") == 0 ? "choices.0.delta.reasoning"
                                                   : "choices.0.delta.reasoning_content";
}

static void texts(struct answer *a, const struct json *choice, struct tok_event *e) {
    const struct json *delta = json_get(choice, "delta");
    bool is_delta = json_is_object(delta);
    if (!is_delta) delta = json_get(choice, "message");
    const struct json *content = json_get(delta, "content"), *refusal = json_get(delta, "refusal");
    a->text_bytes += add(e, TOK_CONTENT, openai_content_bytes(content, NULL));
    const char *reasoning_key = reasoning(a, delta, e);
    a->text_bytes += add(e, TOK_REFUSAL, json_text_bytes(refusal));
    audio(delta, e);
    tools(a, delta, e);
    a->plain_path = is_delta && json_is_null(refusal) ? plain(e, content, reasoning_key) : NULL;
}

static void read_root(struct answer *a, const struct json *root) {
    openai_read(a, root, texts);
}

const struct dialect dialect_openai_chat = {
    .name = "openai-chat",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = openai_request,
    .chunk = read_root,
    .body = read_root,
    .holes = openai_holes,
    .n_holes = OPENAI_HOLES,
    .counts_by_choice = true,
};
