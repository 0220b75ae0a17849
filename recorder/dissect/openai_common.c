/* What differs between the APIs is where a choice's text stands; all else is read here. */
#include "recorder/dissect/openai_common.h"

#include <string.h>

const struct hole_path openai_holes[OPENAI_HOLES] = {
    {"usage.completion_tokens", HOLE_RUNNING},
    {"usage.total_tokens", HOLE_NUMBER},
    {"choices.0.token_ids", HOLE_IDS},
    {"created", HOLE_NUMBER},
    {"obfuscation", HOLE_PADDING},
};

size_t openai_content_bytes(const struct json *content, int64_t *n_media) {
    if (json_text(content)) return json_text_bytes(content);
    size_t bytes = 0;
    if (!json_is_array(content)) return 0;
    for (const struct json *part = json_first(content); part; part = json_next(part)) {
        const struct json *text = json_get(part, "text");
        if (json_text(text))
            bytes += json_text_bytes(text);
        else if (json_is_object(part) && n_media)
            ++*n_media;
    }
    return bytes;
}

/* Names of the response and its engine. */
static void names(struct answer *a, const struct json *root) {
    answer_text_once(a, F_response_id, json_get(root, "id"));
    answer_text_once(a, F_response_model, json_get(root, "model"));
    answer_text_once(a, F_system_fingerprint, json_get(root, "system_fingerprint"));
    answer_text_once(a, F_service_tier, json_get(root, "service_tier"));
}

/* Disjoint lists of token ids: vLLM, LMDeploy. */
static int32_t ids(const struct json *choice) {
    int32_t n = json_count(json_get(choice, "token_ids"));
    return n >= 0 ? n : json_count(json_get(choice, "output_ids"));
}

/* Chat lists entries in content (or refusal), completions in tokens. */
static int32_t logprobs(const struct json *choice) {
    static const char *const keys[] = {"content", "tokens", "refusal"};
    const struct json *l = json_get(choice, "logprobs");
    for (int i = 0; i < 3; i++) {
        int32_t n = json_count(json_get(l, keys[i]));
        if (n >= 0) return n;
    }
    return -1;
}

static void finish(struct answer *a, struct choice *c, const struct json *choice, struct tok_event *e) {
    const char *reason = json_text(json_get(choice, "finish_reason"));
    if (!reason || !*reason) return;
    e->what |= TOK_FINISH;
    if (strcmp(reason, "length") != 0) e->what |= TOK_STOP;
    if (c) answer_finish(a, c, reason);
    a->plain_path = NULL;
}

/* Takes the echoed prompt off an event's text. Where its length is not known it is the first event. */
static void take_echo(struct answer *a, struct choice *c, struct tok_event *e) {
    if (!c || c->echo_left == 0 || !(e->what & TOK_CONTENT)) return;
    int64_t bytes = e->text_bytes, echoed = c->echo_left < 0 || bytes < c->echo_left ? bytes : c->echo_left;
    c->echo_left = c->echo_left < 0 ? 0 : c->echo_left - echoed;
    a->text_bytes -= (uint64_t)echoed;
    a->plain_path = NULL;
    if (echoed == bytes)
        e->what = (e->what & ~(uint32_t)TOK_CONTENT) | TOK_ECHO;
    else
        e->text_bytes -= (uint32_t)echoed;
}

static void read_choice(struct answer *a, const struct json *choice, int64_t position, int64_t running,
                        openai_texts *texts) {
    struct tok_event e = {.running = running, .ids = ids(choice), .logprobs = logprobs(choice)};
    int64_t index = position, at;
    if (json_int(json_get(choice, "index"), &at) && at >= 0 && at <= INT32_MAX) index = at;
    e.choice = (uint32_t)index;
    struct choice *c = answer_choice(a, index);
    if (running >= 0) answer_count_of_choice(a, index, running);
    texts(a, choice, &e);
    take_echo(a, c, &e);
    finish(a, c, choice, &e);
    if (json_get(choice, "matched_stop")) answer_keep(a, F_matched_stop_seen, 1);
    answer_keep_real(a, F_decoded_per_iter, json_get(choice, "avg_decoded_tokens_per_iter"));
    answer_event(a, &e);
}

void openai_read(struct answer *a, const struct json *root, openai_texts *texts) {
    names(a, root);
    const struct json *choices = json_get(root, "choices");
    int64_t running = openai_usage(a, root), position = 0;
    for (const struct json *c = json_first(choices); c; c = json_next(c))
        read_choice(a, c, position++, running, texts);
    if (running >= 0 && (position != 1 || !a->streamed)) a->total_of_choice = false; /* it is of all */
    if (position != 1) a->plain_path = NULL;
}
