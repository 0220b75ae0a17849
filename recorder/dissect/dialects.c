/* Which dialect a message is in. The body's shape is asked before the path, since paths differ
 * between hosts and gateways and shapes do not. */
#include "recorder/dissect/dialect.h"

#include <string.h>

#define DIALECT(id) &dialect_##id,
static const struct dialect *const dialects[] = {DIALECTS(DIALECT)};
#undef DIALECT
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

bool dialect_path_ends(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    while (n > 1 && path[n - 1] == '/') n--;
    return n >= m && memcmp(path + n - m, suffix, m) == 0;
}

/* -- paths that are never a generation's, whatever is asked or answered there: what counts, embeds, ranks,
 * speaks or draws, and what manages stored answers. */
static bool one_ends(const char *path) {
    static const char *const ends[] = {
        "/embeddings",
        "/embed",
        "/embed_all",
        "/embed_sparse",
        "/encode",
        "/rerank",
        "/score",
        "/classify",
        "/pooling",
        "/tokenize",
        "/detokenize",
        "/chat_tokenize",
        "/apply-template",
        "/moderations",
        "/count_tokens",
        "/count-tokens",
        "/token_counter",
        "/audio/transcriptions",
        "/audio/translations",
        "/audio/speech",
        "/images/generations",
        "/images/edits",
        "/images/variations",
        "/videos",
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (dialect_path_ends(path, ends[i])) return true;
    return false;
}

/* Something follows these: an id, and what is done with it; Vertex names a method as if it were a model. */
static bool one_holds(const char *path) {
    static const char *const below[] = {"/v1/responses/", "/openai/responses/", "/completions/",
                                        "/batches/",      "/cachedContents/",   "/count-tokens:"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        const char *at = strstr(path, below[i]);
        if (at && at[strlen(below[i])]) return true;
    }
    return dialect_path_ends(path, "/batches") || dialect_path_ends(path, "/cachedContents");
}

/* Google's methods stand behind the last colon. */
static bool one_method(const char *path) {
    static const char *const methods[] = {"embed", "count", "compute", "batch", "asyncBatch"};
    const char *last = strrchr(path, '/'), *method = last ? strrchr(last, ':') : NULL;
    for (size_t i = 0; method && i < sizeof methods / sizeof *methods; i++)
        if (strncmp(method + 1, methods[i], strlen(methods[i])) == 0) return true;
    return false;
}

bool dialect_may_generate(const char *method, const char *path) {
    return strcmp(method, "POST") == 0 && !one_ends(path) && !one_holds(path) && !one_method(path);
}

/* -- the body alone, where no path is known: a failure has no answer whose shape would tell it */
static bool has_any(const struct json *body, const char *const *keys) {
    for (; *keys; keys++)
        if (!json_is_null(json_get(body, *keys))) return true;
    return false;
}

static const struct dialect *by_messages(const struct json *body) {
    static const char *const anthropic[] = {"system", "anthropic_version", NULL};
    static const char *const openai[] = {
        "n",        "stop",       "response_format",       "stream_options",
        "logprobs", "seed",       "frequency_penalty",     "presence_penalty",
        "user",     "logit_bias", "max_completion_tokens", "functions",
        NULL};
    bool is_anthropic = !json_is_null(json_get(body, "max_tokens")) && has_any(body, anthropic);
    return is_anthropic && !has_any(body, openai) ? &dialect_anthropic_messages : &dialect_openai_chat;
}

/* A model and an input are not enough, since embeddings are asked so; nor is a prompt for a picture or film.
 */
static const struct dialect *by_body(const struct json *body) {
    static const char *const pictured[] = {"size", "width", "aspect_ratio", "seconds", "duration", NULL};
    if (!json_text(json_get(body, "model"))) return &dialect_other;
    if (json_is_array(json_get(body, "messages"))) return by_messages(body);
    const struct json *prompt = json_get(body, "prompt");
    bool prompted = json_text(prompt) || json_is_array(prompt);
    return prompted && !has_any(body, pictured) ? &dialect_openai_completions : &dialect_other;
}

const struct dialect *dialect_of_request(const char *method, const char *path, const struct json *body) {
    if (!dialect_may_generate(method, path)) return &dialect_other;
    for (int i = 0; i < N_DIALECTS; i++)
        if (dialects[i]->asked(path, body)) return dialects[i];
    return by_body(body);
}

const struct dialect *dialect_of_response(const struct json *root) {
    for (int i = 0; i < N_DIALECTS; i++)
        if (dialects[i]->answered(root)) return dialects[i];
    return NULL;
}
