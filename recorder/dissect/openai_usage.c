/* Counts and times that engines report. Tables of (where it stands, which fact): null and absent are not
 * told, later values replace earlier ones. */
#include "recorder/dissect/openai_common.h"

#include <stdio.h>

enum place {
    USAGE,
    PROMPT,
    OUTPUT,
    TIMINGS,
    METRICS,
    PREFIX,
    SPEC,
    SGL_SPEC,
    GROQ,
    GROQ_PROMPT,
    GROQ_OUTPUT,
    TIME_INFO,
    NVEXT,
    STATS,
    N_PLACES
};

/* Objects that hold counts and times, each by the key that leads to it in another one or in the root. */
static const struct {
    int in; /* a place before this one, -1: the root */
    const char *path;
} places[N_PLACES] = {
    [USAGE] = {-1, "usage"},
    [PROMPT] = {USAGE, "prompt_tokens_details"},
    [OUTPUT] = {USAGE, "completion_tokens_details"},
    [TIMINGS] = {-1, "timings"},
    [METRICS] = {-1, "metrics"},
    [PREFIX] = {METRICS, "prefix_cache"},
    [SPEC] = {METRICS, "speculative_decoding"},
    [SGL_SPEC] = {-1, "sglext.spec_tokens_details"},
    [GROQ] = {-1, "x_groq.usage"},
    [GROQ_PROMPT] = {GROQ, "prompt_tokens_details"},
    [GROQ_OUTPUT] = {GROQ, "completion_tokens_details"},
    [TIME_INFO] = {-1, "time_info"},
    [NVEXT] = {-1, "nvext.timing"},
    [STATS] = {-1, "stats"},
};

static const double NS = 1e9, MS = 1e6; /* ns in a second, in a millisecond */

/* Rows of one fact: the last one that is there holds, so what is most trusted stands last. unit_ns: 0 for a
 * count. */
static const struct row {
    enum place place;
    const char *key;
    enum fact fact;
    double unit_ns;
} rows[] = {
    {PREFIX, "num_cached_tokens", F_cached_tokens, 0},
    {GROQ_PROMPT, "cached_tokens", F_cached_tokens, 0},
    {GROQ_OUTPUT, "reasoning_tokens", F_reasoning_tokens, 0},
    {USAGE, "prompt_cache_hit_tokens", F_cached_tokens, 0},
    {USAGE, "cached_tokens", F_cached_tokens, 0},
    {PROMPT, "cached_tokens", F_cached_tokens, 0},
    {PROMPT, "created_cache_tokens", F_cache_write_tokens, 0},
    {PROMPT, "cache_write_tokens", F_cache_write_tokens, 0},
    {USAGE, "reasoning_tokens", F_reasoning_tokens, 0},
    {OUTPUT, "reasoning_tokens", F_reasoning_tokens, 0},
    {OUTPUT, "audio_tokens", F_audio_tokens, 0},
    {OUTPUT, "accepted_prediction_tokens", F_accepted_prediction_tokens, 0},
    {OUTPUT, "rejected_prediction_tokens", F_rejected_prediction_tokens, 0},
    {TIMINGS, "draft_n", F_draft_tokens, 0},
    {TIMINGS, "draft_n_accepted", F_accepted_tokens, 0},
    {SPEC, "num_draft_tokens", F_draft_tokens, 0},
    {SPEC, "num_accepted_draft_tokens", F_accepted_tokens, 0},
    {SPEC, "num_spec_steps", F_spec_steps, 0},
    {SGL_SPEC, "spec_draft_token_num", F_draft_tokens, 0},
    {SGL_SPEC, "spec_num_proposed_drafts", F_draft_tokens, 0},
    {SGL_SPEC, "spec_accept_token_num", F_accepted_tokens, 0},
    {SGL_SPEC, "spec_num_correct_drafts", F_accepted_tokens, 0},
    {SGL_SPEC, "spec_verify_ct", F_spec_steps, 0},
    {TIMINGS, "prompt_ms", F_reported_prefill_ns, MS},
    {TIMINGS, "predicted_ms", F_reported_decode_ns, MS},
    {METRICS, "queue_time_ms", F_reported_queue_ns, MS},
    {METRICS, "time_to_first_token_ms", F_reported_ttft_ns, MS},
    {METRICS, "generation_time_ms", F_reported_decode_ns, MS},
    {METRICS, "mean_itl_ms", F_reported_itl_ns, MS},
    {PREFIX, "prefill_time_ms", F_reported_prefill_ns, MS},
    {USAGE, "queue_time", F_reported_queue_ns, NS},
    {USAGE, "prompt_time", F_reported_prefill_ns, NS},
    {USAGE, "completion_time", F_reported_decode_ns, NS},
    {USAGE, "total_time", F_reported_total_ns, NS},
    {GROQ, "queue_time", F_reported_queue_ns, NS},
    {GROQ, "prompt_time", F_reported_prefill_ns, NS},
    {GROQ, "completion_time", F_reported_decode_ns, NS},
    {GROQ, "total_time", F_reported_total_ns, NS},
    {TIME_INFO, "queue_time", F_reported_queue_ns, NS},
    {TIME_INFO, "prompt_time", F_reported_prefill_ns, NS},
    {TIME_INFO, "completion_time", F_reported_decode_ns, NS},
    {TIME_INFO, "total_time", F_reported_total_ns, NS},
    {NVEXT, "prefill_wait_time_ms", F_reported_queue_ns, MS},
    {NVEXT, "prefill_time_ms", F_reported_prefill_ns, MS},
    {NVEXT, "ttft_ms", F_reported_ttft_ns, MS},
    {NVEXT, "total_time_ms", F_reported_total_ns, MS},
    {STATS, "time_to_first_token", F_reported_ttft_ns, NS},
    {STATS, "generation_time", F_reported_decode_ns, NS},
    {STATS, "model_load_time_seconds", F_reported_load_ns, NS},
};

/* A total of a usage object; some servers write zeros on every event but one, so a zero does not replace a
 * count. */
static void total(struct answer *a, enum fact f, const struct json *v, bool running) {
    int64_t n;
    if (!json_int(v, &n) || n < 0) return;
    if (n > 0 || !a->has[f]) (running ? answer_keep_running : answer_keep)(a, f, n);
    a->has[f] |= ANSWER_BY_USAGE;
}

static void totals(struct answer *a, const struct json *usage, bool running) {
    total(a, F_prompt_tokens, json_get(usage, "prompt_tokens"), false);
    total(a, F_output_tokens_told, json_get(usage, "completion_tokens"), running);
}

/* What counts only while no usage object told it. */
static void unless_by_usage(struct answer *a, enum fact f, int64_t v) {
    if (!(a->has[f] & ANSWER_BY_USAGE)) answer_keep(a, f, v);
}

/* llama.cpp's timings tell totals where usage does not, the prompt without its cached part. */
static void timings_totals(struct answer *a, const struct json *timings) {
    int64_t prompt, cached = 0, output;
    bool has_cache = json_int(json_get(timings, "cache_n"), &cached) && cached >= 0;
    if (!has_cache) cached = 0;
    if (json_int(json_get(timings, "prompt_n"), &prompt) && prompt >= 0 && cached <= INT64_MAX - prompt)
        unless_by_usage(a, F_prompt_tokens, prompt + cached);
    if (json_int(json_get(timings, "predicted_n"), &output)) unless_by_usage(a, F_output_tokens_told, output);
    if (has_cache) unless_by_usage(a, F_cached_tokens, cached);
}

void openai_histogram(struct answer *a, const struct json *list) {
    char text[512] = "";
    size_t n = 0;
    for (const struct json *v = json_first(list); v && n < sizeof text - 24; v = json_next(v)) {
        int64_t steps;
        if (!json_int(v, &steps)) return;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", n ? "," : "", (long long)steps);
    }
    if (n > 0) a->templates.version++;
    answer_text(a, F_spec_histogram, text, n);
}

/* SGLang tells the cached tokens by where they were. */
static void cached_by_place(struct answer *a, const struct json *details) {
    static const char *const keys[] = {"device", "host", "storage"};
    int64_t sum = 0, v;
    bool any = false;
    for (int i = 0; i < 3; i++)
        if (json_int(json_get(details, keys[i]), &v) && v >= 0 && v < INT32_MAX) sum += v, any = true;
    if (any) unless_by_usage(a, F_cached_tokens, sum);
}

static void spec_details(struct answer *a, const struct json *spec) {
    answer_keep_real(a, F_reported_accept_length, json_get(spec, "mean_acceptance_length"));
    openai_histogram(a, json_get(spec, "acceptance_histogram"));
}

int64_t openai_usage(struct answer *a, const struct json *root) {
    const struct json *at[N_PLACES];
    bool any = false; /* most events have none of these */
    for (int i = 0; i < N_PLACES; i++) {
        const struct json *in = places[i].in < 0 ? root : at[places[i].in];
        at[i] = json_at(in, places[i].path);
        any = any || json_is_object(at[i]);
    }
    if (!any) return -1;
    totals(a, at[GROQ], false);
    totals(a, at[USAGE], true);
    timings_totals(a, at[TIMINGS]);
    cached_by_place(a, json_at(root, "sglext.cached_tokens_details"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!at[rows[i].place]) continue;
        const struct json *v = json_get(at[rows[i].place], rows[i].key);
        if (!v) continue;
        if (rows[i].unit_ns > 0)
            answer_keep_ns(a, rows[i].fact, v, rows[i].unit_ns);
        else
            answer_keep_count(a, rows[i].fact, v);
    }
    if (!json_is_null(json_get(at[PROMPT], "cached_tokens"))) a->has[F_cached_tokens] |= ANSWER_BY_USAGE;
    spec_details(a, at[SPEC]);
    int64_t running;
    if (json_int(json_get(at[USAGE], "completion_tokens"), &running)) return running;
    return json_int(json_get(at[TIMINGS], "predicted_n"), &running) ? running : -1;
}
