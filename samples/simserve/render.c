/* Answers as JSON. cJSON's builders accept NULL and a failed one only leaves a field out. */
#include "samples/simserve/render.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void render_free(char *json) {
    cJSON_free(json);
}

static char *print(cJSON *root) {
    char *json = root ? cJSON_PrintUnformatted(root) : NULL;

    cJSON_Delete(root);
    return json;
}

static void add_number(cJSON *to, const char *name, uint64_t n) {
    cJSON_AddNumberToObject(to, name, (double)n);
}

/* Milliseconds with microsecond digits, as a person would write them. */
static void add_ms(cJSON *to, const char *name, uint64_t ns) {
    char text[40];

    snprintf(text, sizeof text, "%llu.%03llu", (unsigned long long)(ns / 1000000u),
             (unsigned long long)(ns / 1000u % 1000u));
    cJSON_AddRawToObject(to, name, text);
}

static cJSON *envelope(const struct gen *g, const char *object) {
    cJSON *root = cJSON_CreateObject();

    cJSON_AddStringToObject(root, "id", g->id);
    cJSON_AddStringToObject(root, "object", object);
    add_number(root, "created", (uint64_t)g->created);
    cJSON_AddStringToObject(root, "model", g->srv->opts.model);
    return root;
}

static const char *event_object(const struct gen *g) {
    return g->body.chat ? "chat.completion.chunk" : "text_completion";
}

static uint64_t cached(const struct gen *g) {
    return g->choice[0].seq.n_cached;
}

static uint64_t answer_tokens(const struct gen *g) {
    uint64_t n = 0;

    for (unsigned i = 0; i < g->body.n; i++) n += g->choice[i].seq.n_out;
    return n;
}

/* vLLM leaves the details out where nothing was cached, so a reader cannot tell 0 from unknown; kept so. */
static void add_usage(cJSON *root, const struct gen *g, uint64_t completion, bool whole) {
    cJSON *usage = cJSON_AddObjectToObject(root, "usage");

    add_number(usage, "prompt_tokens", g->body.prompt.n);
    add_number(usage, "total_tokens", g->body.prompt.n + completion);
    add_number(usage, "completion_tokens", completion);
    if (whole && (cached(g) > 0 || g->srv->opts.always_report_cache)) {
        add_number(cJSON_AddObjectToObject(usage, "prompt_tokens_details"), "cached_tokens", cached(g));
    }
}

static void add_histogram(cJSON *to, const char *name, const uint32_t *steps, uint64_t n) {
    cJSON *list = cJSON_AddArrayToObject(to, name);

    for (uint64_t i = 0; i <= n; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber(steps[i]));
}

static void add_histograms(cJSON *to, const struct seq *s, uint64_t drafts) {
    uint32_t all[ENGINE_MAX_DRAFTS + 1] = {0};
    cJSON *by_length;

    for (uint64_t d = 0; d <= drafts; d++) {
        for (uint64_t a = 0; a <= d; a++) all[a] += s->accepted_hist[d][a];
    }
    add_histogram(to, "acceptance_histogram", all, drafts);
    by_length = cJSON_AddObjectToObject(to, "acceptance_histogram_by_draft_length");
    for (uint64_t d = 0; d <= drafts; d++) {
        char name[8];
        uint64_t steps = 0;

        for (uint64_t a = 0; a <= d; a++) steps += s->accepted_hist[d][a];
        snprintf(name, sizeof name, "%u", (unsigned)d);
        if (steps > 0) add_histogram(by_length, name, s->accepted_hist[d], d);
    }
}

static void add_speculation(cJSON *metrics, const struct gen *g) {
    const struct seq *s = &g->choice[0].seq;
    cJSON *spec;

    if (g->srv->opts.engine.drafts == 0) return;
    spec = cJSON_AddObjectToObject(metrics, "speculative_decoding");
    if (s->n_verify > 0) {
        cJSON_AddNumberToObject(spec, "mean_acceptance_length",
                                1 + (double)s->n_accepted / (double)s->n_verify);
    }
    if (s->n_drafted > 0) {
        cJSON_AddNumberToObject(spec, "draft_acceptance_rate", (double)s->n_accepted / (double)s->n_drafted);
    }
    add_histograms(spec, s, g->srv->opts.engine.drafts);
    add_number(spec, "num_spec_steps", s->n_verify);
    add_number(spec, "num_accepted_draft_tokens", s->n_accepted);
    add_number(spec, "num_draft_tokens", s->n_drafted);
    add_number(spec, "num_spec_tokens", g->srv->opts.engine.drafts);
}

static void add_prefix_cache(cJSON *metrics, const struct gen *g) {
    const struct seq *s = &g->choice[0].seq;
    cJSON *prefix = cJSON_AddObjectToObject(metrics, "prefix_cache");

    add_number(prefix, "num_computed_tokens", s->n_prompt - s->n_cached);
    add_number(prefix, "num_cached_tokens", s->n_cached);
    add_number(prefix, "num_local_cached_tokens", s->n_cached);
    add_number(prefix, "num_external_cached_tokens", 0);
    add_ms(prefix, "prefill_time_ms", s->first_ns - s->scheduled_ns);
}

static void add_metrics(cJSON *root, const struct gen *g) {
    const struct seq *s = &g->choice[0].seq;
    uint64_t generation_ns = s->last_ns - s->first_ns;
    cJSON *metrics;

    if (!g->srv->opts.metrics_per_request || g->body.n > 1 || s->n_out == 0) return;
    metrics = cJSON_AddObjectToObject(root, "metrics");
    add_ms(metrics, "time_to_first_token_ms", s->first_ns - s->scheduled_ns);
    add_ms(metrics, "generation_time_ms", generation_ns);
    add_ms(metrics, "queue_time_ms", s->scheduled_ns > g->received_ns ? s->scheduled_ns - g->received_ns : 0);
    if (s->n_out > 1) add_ms(metrics, "mean_itl_ms", generation_ns / (s->n_out - 1));
    cJSON_AddNumberToObject(metrics, "tokens_per_second",
                            (double)s->n_out * 1e9 / (double)(s->last_ns - s->scheduled_ns));
    add_prefix_cache(metrics, g);
    add_speculation(metrics, g);
}

static cJSON *id_list(const uint32_t *ids, size_t n) {
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < n; i++) cJSON_AddItemToArray(list, cJSON_CreateNumber(ids[i]));
    return list;
}

static cJSON *answer_ids(const struct gen_choice *ch, uint64_t from) {
    cJSON *list = cJSON_CreateArray();

    for (uint64_t i = from; i < ch->seq.n_out; i++) {
        cJSON_AddItemToArray(list, cJSON_CreateNumber(gen_token(ch, i)));
    }
    return list;
}

static cJSON *add_choice(cJSON *choices, unsigned index) {
    cJSON *choice = cJSON_CreateObject();

    cJSON_AddItemToArray(choices, choice);
    add_number(choice, "index", index);
    return choice;
}

static void add_finish(cJSON *choice, const struct gen_choice *ch) {
    cJSON_AddNullToObject(choice, "logprobs");
    if (!ch->done) {
        cJSON_AddNullToObject(choice, "finish_reason");
        return;
    }
    cJSON_AddStringToObject(choice, "finish_reason", ch->finish);
    if (ch->stop_reason)
        cJSON_AddStringToObject(choice, "stop_reason", ch->stop_reason);
    else
        cJSON_AddNullToObject(choice, "stop_reason");
}

char *render_role(const struct gen *g, unsigned choice) {
    cJSON *root = envelope(g, event_object(g));
    cJSON *item = add_choice(cJSON_AddArrayToObject(root, "choices"), choice);
    cJSON *delta = cJSON_AddObjectToObject(item, "delta");

    cJSON_AddStringToObject(delta, "role", "assistant");
    cJSON_AddStringToObject(delta, "content", "");
    cJSON_AddNullToObject(item, "logprobs");
    cJSON_AddNullToObject(item, "finish_reason");
    if (g->body.continuous_usage) add_usage(root, g, 0, false);
    if (g->body.token_ids) {
        cJSON_AddItemToObject(root, "prompt_token_ids", id_list(g->body.prompt.id, g->body.prompt.n));
    }
    return print(root);
}

/* A NUL in place of the first byte not to be shown; the text itself is never shortened by it. */
static void add_text(cJSON *to, const char *name, const struct gen_choice *ch, size_t from, size_t until) {
    char kept = '\0';

    if (!ch->text || from >= until) {
        cJSON_AddStringToObject(to, name, "");
        return;
    }
    kept = ch->text[until];
    ch->text[until] = '\0';
    cJSON_AddStringToObject(to, name, ch->text + from);
    ch->text[until] = kept;
}

char *render_delta(const struct gen_choice *ch, size_t from, size_t until, unsigned n) {
    const struct gen *g = ch->gen;
    cJSON *root = envelope(g, event_object(g));
    cJSON *item = add_choice(cJSON_AddArrayToObject(root, "choices"), ch->index);

    if (g->body.chat)
        add_text(cJSON_AddObjectToObject(item, "delta"), "content", ch, from, until);
    else
        add_text(item, "text", ch, from, until);
    add_finish(item, ch);
    if (g->body.token_ids) cJSON_AddItemToObject(item, "token_ids", answer_ids(ch, ch->seq.n_out - n));
    if (g->body.continuous_usage) add_usage(root, g, ch->seq.n_out, false);
    return print(root);
}

char *render_usage_event(const struct gen *g) {
    cJSON *root = envelope(g, event_object(g));

    cJSON_AddArrayToObject(root, "choices");
    add_usage(root, g, answer_tokens(g), true);
    add_metrics(root, g);
    return print(root);
}

static void add_answer(cJSON *choices, const struct gen_choice *ch) {
    cJSON *item = add_choice(choices, ch->index);

    if (ch->gen->body.chat) {
        cJSON *message = cJSON_AddObjectToObject(item, "message");

        cJSON_AddStringToObject(message, "role", "assistant");
        add_text(message, "content", ch, 0, ch->len);
        cJSON_AddNullToObject(message, "refusal");
        cJSON_AddArrayToObject(message, "tool_calls");
    } else {
        add_text(item, "text", ch, 0, ch->len);
    }
    add_finish(item, ch);
    if (ch->gen->body.token_ids) cJSON_AddItemToObject(item, "token_ids", answer_ids(ch, 0));
}

char *render_answer(const struct gen *g) {
    cJSON *root = envelope(g, g->body.chat ? "chat.completion" : "text_completion");
    cJSON *choices = cJSON_AddArrayToObject(root, "choices");

    for (unsigned i = 0; i < g->body.n; i++) add_answer(choices, &g->choice[i]);
    add_usage(root, g, answer_tokens(g), true);
    add_metrics(root, g);
    return print(root);
}

char *render_error(const char *message, const char *type, int code) {
    cJSON *root = cJSON_CreateObject();
    cJSON *error = cJSON_AddObjectToObject(root, "error");

    cJSON_AddStringToObject(error, "message", message);
    cJSON_AddStringToObject(error, "type", type);
    cJSON_AddNullToObject(error, "param");
    cJSON_AddNumberToObject(error, "code", code);
    return print(root);
}

char *render_models(const char *model, uint64_t max_len) {
    cJSON *root = cJSON_CreateObject();
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(root, "object", "list");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(root, "data"), item);
    cJSON_AddStringToObject(item, "id", model);
    cJSON_AddStringToObject(item, "object", "model");
    add_number(item, "created", (uint64_t)time(NULL));
    cJSON_AddStringToObject(item, "owned_by", "simserve");
    add_number(item, "max_model_len", max_len);
    return print(root);
}

char *render_tokens(const struct tokens *tokens, uint64_t max_len) {
    cJSON *root = cJSON_CreateObject();

    add_number(root, "count", tokens->n);
    add_number(root, "max_model_len", max_len);
    cJSON_AddItemToObject(root, "tokens", id_list(tokens->id, tokens->n));
    return print(root);
}
