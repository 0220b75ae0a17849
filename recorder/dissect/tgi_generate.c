/* TGI's native API: /generate, /generate_stream, and / with either.
 *
 * Each event of a stream is one token by contract, special ones included, which have no text of the answer.
 * The last one holds the whole text again. */
#include "recorder/dissect/dialect.h"

#include <string.h>

static const struct hole_path holes[] = {
    {"index", HOLE_NUMBER}, {"token.id", HOLE_NUMBER}, {"token.logprob", HOLE_NUMBER}};

/* -- request */
static bool is_root(const char *path) {
    return strcmp(path, "/") == 0 || dialect_path_ends(path, "/invocations");
}

/* At the root other servers are asked with inputs, too. */
static bool asked(const char *path, const struct json *body) {
    if (dialect_path_ends(path, "/generate_stream")) return !body || json_text(json_get(body, "inputs"));
    if (!json_text(json_get(body, "inputs"))) return false;
    bool generates = json_is_object(json_get(body, "parameters")) || !json_is_null(json_get(body, "stream"));
    return dialect_path_ends(path, "/generate") || (is_root(path) && generates);
}

static const char *constraint(const struct json *grammar) {
    const char *type = json_text(json_get(grammar, "type"));
    if (!type) return NULL;
    return strcmp(type, "json") == 0 ? "json_schema" : type;
}

static void request(struct answer *a, const struct json *body) {
    const struct json *p = json_get(body, "parameters");
    const char *schema = constraint(json_get(p, "grammar")), *adapter = json_text(json_get(p, "adapter_id"));
    int64_t n;
    double temperature;
    dialect_common_request(a, body);
    if (json_int(json_get(p, "max_new_tokens"), &n) && n >= 0) answer_int(a, F_max_tokens, n);
    if (json_real(json_get(p, "temperature"), &temperature))
        trw_real(a->trw, a->id, F_temperature, temperature);
    if (schema) answer_text(a, F_schema, schema, strlen(schema));
    if (adapter) answer_text(a, F_adapter, adapter, strlen(adapter));
    a->echo_bytes = (int64_t)json_text_bytes(json_get(body, "inputs"));
    answer_int(a, F_prompt_bytes, a->echo_bytes);
    a->echo = json_is_true(json_get(p, "return_full_text"));
    if (a->echo) answer_int(a, F_echo, 1);
}

/* -- answer */
static bool answered(const struct json *root) {
    if (json_text(json_get(root, "generated_text"))) return true;
    return json_text(json_at(root, "token.text")) && !json_is_null(json_at(root, "token.id"));
}

/* Reasons: length, eos_token, stop_sequence. */
static void finish(struct answer *a, struct choice *c, const struct json *details, struct tok_event *e) {
    const char *reason = json_text(json_get(details, "finish_reason"));
    if (!reason || !*reason) return;
    e->what |= TOK_FINISH;
    if (strcmp(reason, "length") != 0) e->what |= TOK_STOP;
    answer_finish(a, c, reason);
}

static void chunk(struct answer *a, const struct json *root) {
    const struct json *token = json_get(root, "token"), *details = json_get(root, "details");
    struct choice *c = json_is_object(token) ? answer_choice(a, 0) : NULL;
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    if (!c) return;
    bool special = json_is_true(json_get(token, "special"));
    e.what = TOK_CONTRACT;
    e.text_bytes = special ? 0 : (uint32_t)json_text_bytes(json_get(token, "text"));
    if (e.text_bytes > 0) e.what |= TOK_CONTENT;
    a->text_bytes += e.text_bytes;
    answer_keep_total(a, F_output_tokens_told, json_get(details, "generated_tokens"));
    answer_keep_total(a, F_prompt_tokens, json_get(details, "input_length"));
    finish(a, c, details, &e);
    a->typed_end = a->typed_end || json_text(json_get(root, "generated_text"));
    answer_event(a, &e);
    a->plain_path = e.text_bytes > 0 && !a->typed_end && !a->ended ? "token.text" : NULL;
}

/* One of the texts of a whole answer. */
static void sequence(struct answer *a, const struct json *text, const struct json *details, int64_t *tokens) {
    struct choice *c = answer_choice(a, (int64_t)a->n_choices);
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1};
    int64_t bytes = (int64_t)json_text_bytes(text), n;
    if (!c) return;
    if (a->echo) bytes -= a->echo_bytes < bytes ? a->echo_bytes : bytes;
    a->text_bytes += (uint64_t)bytes;
    finish(a, c, details, &e);
    if (json_int(json_get(details, "generated_tokens"), &n) && n >= 0 && n <= UINT32_MAX) *tokens += n;
}

/* With best_of the others come beside the best one: they were generated as well. */
static void whole(struct answer *a, const struct json *root, int64_t *tokens) {
    const struct json *details = json_get(root, "details"), *text = json_get(root, "generated_text");
    if (!json_text(text)) return;
    a->typed_end = true;
    sequence(a, text, details, tokens);
    const struct json *others = json_get(details, "best_of_sequences");
    for (const struct json *v = json_is_array(others) ? json_first(others) : NULL; v; v = json_next(v))
        sequence(a, json_get(v, "generated_text"), v, tokens);
}

/* At the root an answer is a list of one. */
static void body(struct answer *a, const struct json *root) {
    int64_t tokens = 0;
    if (!json_is_array(root)) whole(a, root, &tokens);
    for (const struct json *v = json_is_array(root) ? json_first(root) : NULL; v; v = json_next(v))
        whole(a, v, &tokens);
    if (tokens > 0) answer_keep(a, F_output_tokens_told, tokens);
}

const struct dialect dialect_tgi_generate = {
    .name = "tgi-generate",
    .generates = true,
    .asked = asked,
    .answered = answered,
    .request = request,
    .chunk = chunk,
    .body = body,
    .holes = holes,
    .n_holes = sizeof holes / sizeof *holes,
};
