/* The mixed load. */
#include "samples/simload/mix.h"

#include "samples/common/rng.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One name for each thing that is drawn, so that a new one does not shift the others. */
enum draw {
    DRAW_GAP = 1,
    DRAW_OTHER,
    DRAW_WHICH_OTHER,
    DRAW_API,
    DRAW_STREAM,
    DRAW_SHARED,
    DRAW_WHICH_SHARED,
    DRAW_LENGTH,
    DRAW_LIMIT,
    DRAW_ABORT,
    DRAW_ABORT_AFTER,
    DRAW_OPTIONS,
    DRAW_REPEAT
};

enum { N_SHARED = 3, SHARED_WORDS = 500 };

static const char *const words[] = {"ship",  "harbour", "what",   "is",    "the",    "shortest", "way",
                                    "from",  "here",    "to",     "an",    "island", "when",     "wind",
                                    "comes", "north",   "please", "list",  "every",  "port",     "and",
                                    "its",   "depth",   "in",     "metres"};
enum { N_WORDS = sizeof words / sizeof words[0] };

static uint64_t draw(const struct mix *m, uint64_t n, enum draw what) {
    return rng_mix(rng_mix(m->seed, n), what);
}

static bool chance(const struct mix *m, uint64_t n, enum draw what, double share) {
    return rng_unit(draw(m, n, what)) < share;
}

/* Log-uniform: as many short ones as long ones in each doubling. */
static uint64_t between(uint64_t hash, double low, double high) {
    return (uint64_t)(low * exp(rng_unit(hash) * log(high / low)));
}

static char *make_text(uint64_t key, uint64_t n_words) {
    char *text = malloc(n_words * 10 + 1);
    char *at = text;

    if (!text) return NULL;
    *at = '\0';
    for (uint64_t i = 0; i < n_words; i++) {
        const char *word = words[rng_mix(key, i) % N_WORDS];

        if (i > 0) *at++ = ' ';
        at = stpcpy(at, word);
    }
    return text;
}

static void add_text(cJSON *to, const char *name, uint64_t key, uint64_t n_words) {
    char *text = make_text(key, n_words);

    cJSON_AddStringToObject(to, name, text ? text : "");
    free(text);
}

static void add_message(cJSON *list, const char *role, uint64_t key, uint64_t n_words) {
    cJSON *message = cJSON_CreateObject();

    cJSON_AddItemToArray(list, message);
    cJSON_AddStringToObject(message, "role", role);
    add_text(message, "content", key, n_words);
}

/* Clients differ in what usage they ask for: most at the end, some on every event, some not at all. */
static void add_options(cJSON *root, uint64_t hash) {
    double which = rng_unit(hash);
    cJSON *options;

    if (which < 0.2) return;
    options = cJSON_AddObjectToObject(root, "stream_options");
    cJSON_AddTrueToObject(options, "include_usage");
    if (which > 0.6) cJSON_AddTrueToObject(options, "continuous_usage_stats");
    if (which > 0.85) cJSON_AddTrueToObject(root, "return_token_ids");
}

/* A repeated prompt is that of an earlier request, word for word: what a prefix cache likes best. */
static void add_prompt(const struct mix *m, uint64_t n, bool chat, cJSON *root) {
    uint64_t from = n > 10 && chance(m, n, DRAW_REPEAT, m->repeat) ? n - 1 - draw(m, n, DRAW_REPEAT) % 10 : n;
    uint64_t n_words = between(draw(m, from, DRAW_LENGTH), 8, (double)m->max_prompt_words);
    cJSON *list;

    if (!chat) {
        add_text(root, "prompt", draw(m, from, DRAW_LENGTH), n_words);
        return;
    }
    list = cJSON_AddArrayToObject(root, "messages");
    if (chance(m, from, DRAW_SHARED, m->shared)) {
        add_message(list, "system", m->seed + draw(m, from, DRAW_WHICH_SHARED) % N_SHARED, SHARED_WORDS);
    }
    add_message(list, "user", draw(m, from, DRAW_LENGTH), n_words);
}

static char *make_body(const struct mix *m, uint64_t n, bool chat, bool stream) {
    cJSON *root = cJSON_CreateObject();
    char *body;

    cJSON_AddStringToObject(root, "model", m->model);
    add_prompt(m, n, chat, root);
    cJSON_AddNumberToObject(root, "max_tokens",
                            (double)between(draw(m, n, DRAW_LIMIT), 16, (double)m->max_tokens));
    if (stream) {
        cJSON_AddTrueToObject(root, "stream");
        add_options(root, draw(m, n, DRAW_OPTIONS));
    }
    body = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return body;
}

static bool make_generation(const struct mix *m, uint64_t n, struct shot *out) {
    bool chat = !chance(m, n, DRAW_API, m->completions);

    out->method = "POST";
    out->generation = true;
    out->stream = chance(m, n, DRAW_STREAM, m->streamed);
    out->api = chat ? "chat" : "completions";
    out->path = chat ? "/v1/chat/completions" : "/v1/completions";
    if (chance(m, n, DRAW_ABORT, m->aborted))
        out->abort_after_ms = between(draw(m, n, DRAW_ABORT_AFTER), 20, 800);
    out->body = make_body(m, n, chat, out->stream);
    return out->body != NULL;
}

static bool make_other(const struct mix *m, uint64_t n, struct shot *out) {
    static const char *const paths[] = {"/health", "/v1/models", "/no/such/path"};

    out->method = "GET";
    out->api = "other";
    out->path = paths[draw(m, n, DRAW_WHICH_OTHER) % 3];
    return true;
}

bool mix_shot(const struct mix *m, uint64_t n, uint64_t previous_due_ns, struct shot *out) {
    memset(out, 0, sizeof *out);
    out->due_ns = previous_due_ns + (uint64_t)(rng_exponential(draw(m, n, DRAW_GAP), 1e9 / m->rate));
    if (chance(m, n, DRAW_OTHER, m->other)) return make_other(m, n, out);
    return make_generation(m, n, out);
}

void mix_fini_shot(struct shot *shot) {
    cJSON_free(shot->body);
    shot->body = NULL;
}
