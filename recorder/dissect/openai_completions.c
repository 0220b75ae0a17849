/* OpenAI's legacy completions: the text stands in the choice itself, and the prompt may be echoed in it. */
#include "recorder/dissect/openai_common.h"

#include <string.h>

/* Behind other prefixes the word alone says too little. */
static bool asked(const char *path, const struct json *body) {
    if (!dialect_path_ends(path, "/completions")) return false;
    if (!json_is_null(json_get(body, "prompt"))) return true;
    return dialect_path_ends(path, "/v1/completions") || strncmp(path, "/completions", 12) == 0;
}

static bool answered(const struct json *root) {
    const char *object = json_text(json_get(root, "object"));
    if (object) return strcmp(object, "text_completion") == 0;
    return json_text(json_get(json_first(json_get(root, "choices")), "text")) != NULL;
}

static void texts(struct answer *a, const struct json *choice, struct tok_event *e) {
    size_t bytes = json_text_bytes(json_get(choice, "text"));
    e->text_bytes = (uint32_t)bytes;
    if (bytes > 0) e->what |= TOK_CONTENT;
    a->text_bytes += bytes;
    a->plain_path = bytes > 0 ? "choices.0.text" : NULL;
}

static void read_root(struct answer *a, const struct json *root) {
    openai_read(a, root, texts);
}

const struct dialect dialect_openai_completions = {
    .name = "openai-completions",
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
