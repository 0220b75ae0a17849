/* What a request of the OpenAI family asks, engines' own fields included. */
#include "recorder/dissect/openai_common.h"

#include <string.h>

static void messages(struct answer *a, const struct json *list, int64_t *bytes, int64_t *media) {
    static const struct {
        const char *role;
        enum fact fact;
    } roles[] = {{"system", F_messages_system}, {"developer", F_messages_system},
                 {"user", F_messages_user},     {"assistant", F_messages_assistant},
                 {"tool", F_messages_tool},     {"function", F_messages_tool}};
    enum { N_ROLES = sizeof roles / sizeof *roles };
    int64_t n[N_FACTS] = {0};
    for (const struct json *m = json_first(list); m; m = json_next(m)) {
        const char *role = json_text(json_get(m, "role"));
        for (int i = 0; role && i < N_ROLES; i++)
            if (strcmp(role, roles[i].role) == 0) n[roles[i].fact]++;
        *bytes += (int64_t)openai_content_bytes(json_get(m, "content"), media);
    }
    answer_int(a, F_messages, json_count(list));
    for (int i = 0; i < N_ROLES; i++)
        if (n[roles[i].fact] > 0) {
            answer_int(a, roles[i].fact, n[roles[i].fact]);
            n[roles[i].fact] = 0;
        }
}

/* A prompt: text, a list of texts, token ids, or a list of such lists. */
static void prompt(struct answer *a, const struct json *p, int64_t *bytes) {
    const struct json *first = json_first(p);
    int64_t n = 0, unused;
    if (json_text(p)) {
        *bytes += (int64_t)json_text_bytes(p);
        a->echo_bytes = *bytes;
    }
    if (!json_is_array(p) || json_int(first, &unused)) return;
    for (const struct json *v = first; v; v = json_next(v), n++) *bytes += (int64_t)json_text_bytes(v);
    answer_int(a, F_prompts, n);
    if (n == 1 && json_text(first)) a->echo_bytes = *bytes;
}

const char *openai_schema(const struct json *body) {
    static const struct {
        const char *path, *name;
    } rows[] = {
        {"guided_json", "json_schema"},
        {"guided_regex", "regex"},
        {"guided_choice", "choice"},
        {"guided_grammar", "grammar"},
        {"structured_outputs.json", "json_schema"},
        {"structured_outputs.regex", "regex"},
        {"structured_outputs.choice", "choice"},
        {"structured_outputs.grammar", "grammar"},
        {"structured_outputs.json_object", "json_object"},
        {"guided_json_object", "json_object"},
        {"json_schema", "json_schema"},
        {"grammar", "grammar"},
        {"ebnf", "grammar"},
        {"regex", "regex"},
    };
    static const char *const types[] = {"json_schema", "json_object", "grammar", "regex", "structural_tag"};
    const char *type = json_text(json_at(body, "response_format.type"));
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0) return types[i];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (json_truthy(json_at(body, rows[i].path))) return rows[i].name;
    return NULL;
}

static void told_int(struct answer *a, enum fact f, const struct json *v) {
    int64_t n;
    if (json_int(v, &n)) answer_int(a, f, n);
}

void dialect_common_request(struct answer *a, const struct json *body) {
    static const char *const limits[] = {"n_predict", "max_tokens", "max_completion_tokens"};
    const char *model = json_text(json_get(body, "model"));
    if (model && *model) {
        answer_text(a, F_model, model, strlen(model));
        a->asked_model = true;
    }
    const struct json *stream = json_get(body, "stream");
    if (!json_is_null(stream)) answer_int(a, F_stream, json_is_true(stream));
    for (int i = 0; i < 3; i++) {
        int64_t limit; /* below 0 is none: llama.cpp */
        if (json_int(json_get(body, limits[i]), &limit) && limit >= 0) answer_int(a, F_max_tokens, limit);
    }
    double temperature;
    if (json_real(json_get(body, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
    told_int(a, F_n, json_get(body, "n"));
}

static void adapter(struct answer *a, const struct json *body) {
    static const char *const keys[] = {"lora_path", "adapter_id", "lora_name"};
    for (int i = 0; i < 3; i++) {
        const char *text = json_text(json_get(body, keys[i]));
        if (text && *text) {
            answer_text(a, F_adapter, text, strlen(text));
            return;
        }
    }
}

void openai_request(struct answer *a, const struct json *body) {
    int64_t bytes = 0, media = 0;
    int n_tools = json_count(json_get(body, "tools"));
    dialect_common_request(a, body);
    adapter(a, body);
    if (json_is_true(json_at(body, "stream_options.include_usage"))) answer_int(a, F_include_usage, 1);
    if (json_is_array(json_get(body, "messages"))) messages(a, json_get(body, "messages"), &bytes, &media);
    prompt(a, json_get(body, "prompt"), &bytes);
    answer_int(a, F_prompt_bytes, bytes);
    if (media > 0) answer_int(a, F_images, media);
    if (n_tools < 0) n_tools = json_count(json_get(body, "functions"));
    if (n_tools >= 0) answer_int(a, F_tools, n_tools);
    const char *constraint = openai_schema(body);
    if (constraint) answer_text(a, F_schema, constraint, strlen(constraint));
    if (json_is_object(json_get(body, "prediction"))) answer_int(a, F_prediction, 1);
    a->echo = json_is_true(json_get(body, "echo"));
    if (a->echo) answer_int(a, F_echo, 1);
}
