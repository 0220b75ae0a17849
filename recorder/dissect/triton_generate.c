/* Triton's generate extension: /v2/models/NAME[/versions/V]/generate and /generate_stream.
 *
 * What an event holds is the model's own: text_output may be new text or all so far, with or without the
 * prompt, and nothing on the wire says which. Its bytes are told as they stand. Counts and reasons are there
 * when the model was asked for them. */
#include "recorder/dissect/dialect.h"

#include <string.h>

static const struct hole_path holes[] = {
    {"cum_log_probs", HOLE_NUMBER}, {"output_log_probs", HOLE_NUMBERS}, {"cumulative_logprob", HOLE_NUMBER}};

/* -- request */
static bool asked(const char *path, const struct json *body) {
    if (!dialect_path_ends(path, "/generate") && !dialect_path_ends(path, "/generate_stream")) return false;
    return strstr(path, "/v2/models/") || !json_is_null(json_get(body, "text_input"));
}

static void request(struct answer *a, const struct json *body) {
    const struct json *input = json_get(body, "text_input"), *images = json_get(body, "image");
    int64_t bytes = (int64_t)json_text_bytes(input);
    dialect_common_request(a, body);
    dialect_common_request(a, json_get(body, "parameters"));
    if (json_is_array(input)) {
        for (const struct json *v = json_first(input); v; v = json_next(v))
            bytes += (int64_t)json_text_bytes(v);
        answer_int(a, F_prompts, json_count(input));
    }
    answer_int(a, F_prompt_bytes, bytes);
    int n_images = json_is_array(images) ? json_count(images) : json_truthy(images);
    if (n_images > 0) answer_int(a, F_images, n_images);
}

/* -- answer */
static bool answered(const struct json *root) {
    const struct json *text = json_get(root, "text_output");
    return json_text(text) || json_is_array(text);
}

/* An output of one element is that element, any other one a list: beams, or several sequences. */
static const struct json *element(const struct json *output, int64_t position) {
    if (!json_is_array(output)) return position == 0 ? output : NULL;
    const struct json *v = json_first(output);
    for (int64_t i = 0; v && i < position; i++) v = json_next(v);
    return v;
}

static void finish(struct answer *a, struct choice *c, const struct json *reason, struct tok_event *e) {
    const char *text = json_text(reason);
    if (!text || !*text || strcmp(text, "None") == 0) return; /* Python's word for none yet */
    e->what |= TOK_FINISH;
    if (strcmp(text, "length") != 0) e->what |= TOK_STOP;
    answer_finish(a, c, text);
}

static int64_t count(const struct json *v) {
    int64_t n;
    return json_int(v, &n) && n >= 0 && n <= INT32_MAX ? n : -1;
}

/* num_output_tokens are those of this response. */
static void sequence(struct answer *a, const struct json *root, const struct json *text, int64_t position,
                     int64_t *tokens) {
    int64_t index = count(json_get(root, "sequence_index")), n;
    struct choice *c = answer_choice(a, index < 0 ? position : index);
    if (!c) return;
    n = count(element(json_get(root, "num_output_tokens"), position));
    struct tok_event e = {.choice = (uint32_t)c->index, .running = -1, .ids = (int32_t)n, .logprobs = -1};
    e.text_bytes = (uint32_t)json_text_bytes(text);
    if (e.text_bytes > 0) e.what |= TOK_CONTENT;
    a->text_bytes += e.text_bytes;
    if (n > 0) *tokens += n;
    finish(a, c, element(json_get(root, "finish_reason"), position), &e);
    answer_event(a, &e);
    a->plain_path = e.what == TOK_CONTENT && c->index == 0 ? "text_output" : NULL;
}

static int64_t read_root(struct answer *a, const struct json *root) {
    const struct json *text = json_get(root, "text_output");
    int64_t position = 0, tokens = 0;
    answer_text_once(a, F_response_model, json_get(root, "model_name"));
    answer_keep_total(a, F_prompt_tokens, element(json_get(root, "num_input_tokens"), 0));
    if (json_text(text)) sequence(a, root, text, 0, &tokens);
    if (!json_is_array(text)) return tokens;
    for (const struct json *v = json_first(text); v; v = json_next(v), position++)
        sequence(a, root, v, position, &tokens);
    a->plain_path = NULL;
    return tokens;
}

static void chunk(struct answer *a, const struct json *root) {
    (void)read_root(a, root);
}

static void body(struct answer *a, const struct json *root) {
    int64_t tokens = read_root(a, root);
    if (tokens > 0) answer_keep(a, F_output_tokens_told, tokens);
}

const struct dialect dialect_triton_generate = {
    .name = "triton-generate",
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
