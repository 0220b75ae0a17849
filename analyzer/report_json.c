/* A report as JSON: full precision, absent is null, and every metric present even when nothing has it, so
 * that a script need not ask first. */
#include "analyzer/jsonw.h"
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void trace(struct jsonw *j, const struct report *r) {
    int64_t first = 0, last = 0;
    jsonw_open(j, "trace", '{');
    jsonw_open(j, "files", '[');
    for (size_t i = 0; i < r->n_traces; i++) {
        const struct trace_row *t = &r->traces[i];
        jsonw_text(j, NULL, t->file);
        if (t->started_wall_ns && (!first || t->started_wall_ns < first)) first = t->started_wall_ns;
        if (t->ended_wall_ns > last) last = t->ended_wall_ns;
    }
    jsonw_close(j, '[');
    jsonw_wall(j, "started", first);
    jsonw_wall(j, "ended", last);
    jsonw_text(j, "source", r->n_traces ? r->traces[0].source : NULL);
    jsonw_text(j, "recorder", r->n_traces ? r->traces[0].version : NULL);
    jsonw_text(j, "name", r->n_traces ? r->traces[0].recorder : NULL);
    jsonw_open(j, "states", '[');
    for (size_t i = 0; i < r->n_traces; i++) jsonw_text(j, NULL, r->traces[i].state);
    jsonw_close(j, '[');
    jsonw_open(j, "models", '{');
    for (size_t i = 0; i < r->n_models; i++)
        jsonw_int(j, r->models[i].key, strtoll(r->models[i].value, NULL, 10));
    jsonw_close(j, '{');
    jsonw_open(j, "notes", '{');
    for (size_t i = 0; i < r->n_notes; i++) jsonw_text(j, r->notes[i].key, r->notes[i].value);
    jsonw_close(j, '{');
    jsonw_close(j, '{');
}

static void requests(struct jsonw *j, const struct report *r) {
    size_t failed = 0;
    for (int o = 0; o < N_OUTCOMES; o++) failed += report_failed((enum outcome)o) ? r->by_outcome[o] : 0;
    jsonw_open(j, "requests", '{');
    jsonw_int(j, "total", (int64_t)r->n);
    jsonw_int(j, "ok", (int64_t)r->by_outcome[OUTCOME_ok]);
    jsonw_int(j, "failed", (int64_t)failed);
    jsonw_int(j, "other", r->n_other);
    jsonw_open(j, "by_outcome", '{');
    for (int o = 0; o < N_OUTCOMES; o++) jsonw_int(j, outcome_names[o], (int64_t)r->by_outcome[o]);
    jsonw_close(j, '{');
    jsonw_int(j, "ok_streamed_with_tokens", (int64_t)r->with_tokens);
    jsonw_int(j, "ok_not_streamed", (int64_t)r->not_streamed);
    jsonw_int(j, "ok_without_token", (int64_t)r->without_token);
    jsonw_int(j, "ok_buffered", (int64_t)r->buffered);
    jsonw_int(j, "retries", (int64_t)r->retries);
    jsonw_close(j, '{');
}

/* 0.999 is p99.9 in keys: written as people write it. */
static const char *percentile_key(char *out, double p, const char *tail) {
    snprintf(out, SHOW_MAX, "p%g%s", 100 * p, tail);
    return out;
}

void report_json_summary(struct jsonw *j, const struct report *r, const char *key, const struct summary *s) {
    char name[SHOW_MAX];
    bool rate = strcmp(s->unit, "tps") == 0;
    size_t p99 = report_percentile(r, .99);
    jsonw_open(j, key, '{');
    jsonw_int(j, "n", (int64_t)s->n);
    jsonw_number(j, "mean", s->mean);
    jsonw_number(j, "sd", s->sd);
    jsonw_number(j, "min", s->min);
    jsonw_number(j, "max", s->max);
    for (size_t i = 0; i < r->n_percentiles; i++) {
        if (r->percentiles[i] < .5 && !rate) continue;
        jsonw_number(j, percentile_key(name, r->percentiles[i], ""), s->p[i]);
        jsonw_open(j, percentile_key(name, r->percentiles[i], "_ci95"), '[');
        jsonw_number(j, NULL, s->ci[i].lo);
        jsonw_number(j, NULL, s->ci[i].hi);
        jsonw_close(j, '[');
        if (s->has_all) jsonw_number(j, percentile_key(name, r->percentiles[i], "_all"), s->p_all[i]);
    }
    jsonw_bool(j, "few_samples", p99 == SIZE_MAX || s->ci[p99].few);
    if (s->grade >= 0) {
        jsonw_text(j, "grade", grade_names[s->grade]);
        jsonw_number(j, "grade_share", s->grade_share);
    }
    jsonw_close(j, '{');
}

static void metrics(struct jsonw *j, const struct report *r) {
    jsonw_open(j, "metrics", '{');
    for (size_t i = 0; i < r->n_s; i++) {
        const struct summary *s = &r->s[i];
        char key[80];
        bool named = strstr(s->name, "_tps") != NULL; /* the unit stands in the name already */
        snprintf(key, sizeof key, "%s%s%s", s->name, named ? "" : "_", named ? "" : s->unit);
        report_json_summary(j, r, key, s);
    }
    jsonw_number(j, "tokens_per_arrival", r->tokens_per_arrival);
    jsonw_open(j, "stall", '{');
    jsonw_int(j, "gaps", (int64_t)r->stalls.gaps);
    jsonw_int(j, "requests", (int64_t)r->stalls.requests);
    jsonw_close(j, '{');
    jsonw_close(j, '{');
}

static void throughput(struct jsonw *j, const struct report *r) {
    const struct throughput *t = &r->through;
    double w = t->window_s > 0 ? t->window_s : NAN;
    jsonw_open(j, "throughput", '{');
    jsonw_number(j, "output_tps_system", t->output / w);
    jsonw_number(j, "prompt_tps_system", t->prompt / w);
    jsonw_number(j, "prefill_tps_system", t->uncached / w);
    jsonw_number(j, "request_rate", t->completed / w);
    jsonw_number(j, "completion_rate", t->completion_rate);
    jsonw_number(j, "arrival_rate", (double)r->n / w);
    jsonw_number(j, "mean_concurrency", t->mean_concurrency);
    jsonw_int(j, "highest_concurrency", t->highest_concurrency);
    jsonw_number(j, "output_tokens", t->output);
    jsonw_number(j, "prompt_tokens", t->prompt);
    jsonw_close(j, '{');
}

static void goodput(struct jsonw *j, const struct report *r) {
    const struct slo *s = &r->slo;
    char name[48];
    jsonw_open(j, "goodput", '{');
    if (s->n) {
        jsonw_number(j, "share", s->decided ? (double)s->good / (double)s->decided : NAN);
        jsonw_open(j, "share_ci95", '[');
        jsonw_number(j, NULL, s->share.lo);
        jsonw_number(j, NULL, s->share.hi);
        jsonw_close(j, '[');
        jsonw_number(j, "per_s", r->through.window_s > 0 ? (double)s->good / r->through.window_s : NAN);
        jsonw_int(j, "good", (int64_t)s->good);
        jsonw_int(j, "decided", (int64_t)s->decided);
        jsonw_open(j, "limits", '{');
        for (size_t i = 0; i < s->n; i++) {
            snprintf(name, sizeof name, "%s_ms", s->v[i].name);
            jsonw_number(j, name, s->v[i].ms);
        }
        jsonw_close(j, '{');
        jsonw_open(j, "missed_by", '{');
        jsonw_int(j, "failed", (int64_t)s->failed);
        jsonw_int(j, "gone", (int64_t)s->gone);
        for (size_t i = 0; i < s->n; i++) jsonw_int(j, s->v[i].name, (int64_t)s->v[i].missed);
        jsonw_int(j, "several", (int64_t)s->several);
        jsonw_close(j, '{');
        jsonw_int(j, "without_tokens", (int64_t)s->without_tokens);
        jsonw_int(j, "undecided", (int64_t)s->undecided);
    }
    jsonw_close(j, '{');
}

static void speculation(struct jsonw *j, const struct report *r) {
    const struct speculation *s = &r->spec;
    jsonw_open(j, "speculation", '{');
    jsonw_int(j, "requests", (int64_t)s->n);
    jsonw_number(j, "accept_rate_pooled", s->rate_pooled);
    jsonw_number(j, "accept_rate_median", s->rate_median);
    jsonw_number(j, "accept_length_pooled", s->length_pooled);
    jsonw_number(j, "accept_length_median", s->length_median);
    jsonw_close(j, '{');
}

static void cache(struct jsonw *j, const struct report *r) {
    size_t all = 0;
    for (int c = 0; c < N_CACHE; c++) all += r->cache[c].n;
    jsonw_open(j, "cache", '{');
    for (int c = 0; c < N_CACHE; c++) {
        const struct cache_row *row = &r->cache[c];
        jsonw_open(j, cache_names[c], '{');
        jsonw_int(j, "n", (int64_t)row->n);
        jsonw_number(j, "share", all ? (double)row->n / (double)all : NAN);
        jsonw_number(j, "hit_ratio_pooled",
                     row->prompt_of_cached > 0 ? row->cached / row->prompt_of_cached : NAN);
        if (row->n) {
            report_json_summary(j, r, "hit_ratio", &row->hit_ratio);
            report_json_summary(j, r, "prompt_tokens", &row->prompt);
            report_json_summary(j, r, "uncached_tokens", &row->uncached);
            report_json_summary(j, r, "ttft_server_ms", &row->ttft);
            report_json_summary(j, r, "prefill_tps", &row->prefill);
        }
        jsonw_close(j, '{');
    }
    jsonw_close(j, '{');
}

static void losses(struct jsonw *j, const struct report *r) {
    jsonw_open(j, "losses", '[');
    for (size_t i = 0; i < r->n_losses; i++) {
        const struct loss_row *l = &r->losses[i];
        jsonw_open(j, NULL, '{');
        jsonw_text(j, "loss", l->loss);
        jsonw_text(j, "severity", l->severity);
        jsonw_int(j, "count", l->count);
        jsonw_int(j, "bytes", l->bytes);
        jsonw_int(j, "requests", l->requests);
        jsonw_wall(j, "from", l->from_wall_ns);
        jsonw_wall(j, "to", l->to_wall_ns);
        jsonw_text(j, "meaning", l->meaning);
        jsonw_text(j, "remedy", l->remedy);
        jsonw_close(j, '{');
    }
    jsonw_close(j, '[');
}

static void delays(struct jsonw *j, const struct report *r) {
    jsonw_open(j, "recorder_delay_us", '{');
    for (size_t i = 0; i < r->n_delays; i++) {
        const struct delay_row *d = &r->delays[i];
        jsonw_open(j, d->name, '{');
        jsonw_number(j, "n", d->count);
        jsonw_number(j, "mean", d->count > 0 ? d->sum_ns / d->count / 1e3 : NAN);
        jsonw_number(j, "p50", d->p50_ns / 1e3);
        jsonw_number(j, "p90", d->p90_ns / 1e3);
        jsonw_number(j, "p99", d->p99_ns / 1e3);
        jsonw_number(j, "max", d->max_ns / 1e3);
        jsonw_wall(j, "max_at", d->max_wall_ns);
        jsonw_close(j, '{');
    }
    jsonw_int(j, "late_reads", r->late_reads);
    jsonw_number(j, "kernel_stamps_share", r->kernel_stamps);
    jsonw_close(j, '{');
}

void report_json_head(struct jsonw *j, const struct report *r) {
    trace(j, r);
    requests(j, r);
    jsonw_number(j, "window_s", r->through.window_s);
    jsonw_text(j, "quantile", r->rule == STATS_LINEAR ? "linear (Hyndman-Fan 7)" : "nearest-rank");
}

int report_json(const struct report *r, FILE *f) {
    struct jsonw j = {.f = f};
    jsonw_open(&j, NULL, '{');
    report_json_head(&j, r);
    metrics(&j, r);
    throughput(&j, r);
    goodput(&j, r);
    speculation(&j, r);
    cache(&j, r);
    losses(&j, r);
    delays(&j, r);
    jsonw_close(&j, '{');
    return 0;
}
