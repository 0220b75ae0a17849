/* Summaries of the metrics of one request: percentiles over ok requests, intervals, and p_all over all that
 * could have had the metric. */
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 20, FEW_REQUESTS = 200 };

static const struct {
    const char *name, *unit;
    enum metric_wait wait;
} metrics[N_METRICS] = {
#define X(name, sql, unit, wait) {#name, unit, WAIT_##wait},
    REPORT_METRICS(X)
#undef X
};

struct summary *report_add(struct report *r, const char *metric, const char *unit, int grade) {
    struct summary *grown = realloc(r->s, (r->n_s + 1) * sizeof *grown), *s;
    if (!grown) return NULL;
    r->s = grown;
    s = &r->s[r->n_s++];
    memset(s, 0, sizeof *s);
    snprintf(s->metric, sizeof s->metric, "%s", metric);
    snprintf(s->name, sizeof s->name, grade > GRADE_EXACT ? "%s_%s" : "%s", metric,
             grade > 0 ? grade_names[grade] : "");
    s->unit = unit;
    s->grade = grade;
    for (size_t i = 0; i < REPORT_PERCENTILES; i++) s->p_all[i] = NAN;
    return s;
}

const struct summary *report_find(const struct report *r, const char *name) {
    for (size_t i = 0; i < r->n_s; i++)
        if (strcmp(r->s[i].name, name) == 0) return &r->s[i];
    return NULL;
}

size_t report_percentile(const struct report *r, double p) {
    for (size_t i = 0; i < r->n_percentiles; i++)
        if (fabs(r->percentiles[i] - p) < 1e-9) return i;
    return SIZE_MAX;
}

/* The interval of one percentile: by clusters of requests for series of tokens; else by blocks of time, or,
 * when requests are few, as if they were independent. */
static struct interval interval_of(const struct report *r, struct dist *d, const struct sample *x, size_t n,
                                   size_t clusters, double p) {
    struct interval none = {NAN, NAN, true};
    bool blocks = clusters == 0 && n >= FEW_REQUESTS;
    if (clusters == 0 && !blocks) return stats_interval_iid(d, p);
    if (clusters > 0 && clusters < BLOCKS) return none;
    struct interval i = stats_interval_clusters(d, x, n, blocks ? BLOCKS : clusters, p, r->rule);
    if (dist_count(d) < stats_least(p)) {
        i.few = true;
        if (p > .5)
            i.hi = NAN;
        else
            i.lo = NAN;
    }
    return i;
}

bool report_summary_of(struct report *r, struct summary *s, const struct sample *x, size_t n,
                       size_t clusters) {
    struct dist *d = dist_new(x, n);
    if (!d) return false;
    s->n = dist_count(d);
    s->requests = clusters ? clusters : n;
    s->mean = dist_mean(d);
    s->sd = dist_sd(d);
    s->min = dist_min(d);
    s->max = dist_max(d);
    for (size_t i = 0; i < r->n_percentiles; i++) {
        s->p[i] = dist_quantile(d, r->percentiles[i], r->rule);
        s->ci[i] =
            n ? interval_of(r, d, x, n, clusters, r->percentiles[i]) : (struct interval){NAN, NAN, true};
    }
    dist_free(d);
    return true;
}

static bool is_client_fault(const struct generation *g) {
    return g->outcome == OUTCOME_http_error && g->status != 408 && g->status != 429 && g->status < 500;
}

/* What a generation says of a metric's time; false: it could not have had it, or tells nothing. */
static bool life_of(const struct generation *g, enum metric m, struct life *l) {
    enum metric_wait w = metrics[m].wait;
    bool whole = w >= WAIT_WHOLE_QUEUED, streams = !whole;
    int base = w == WAIT_QUEUED || w == WAIT_WHOLE_QUEUED   ? 0
               : w == WAIT_CLIENT || w == WAIT_WHOLE_CLIENT ? 1
                                                            : 2;
    bool seen = !isnan(g->v[m]) && (!whole || g->outcome == OUTCOME_ok);
    *l = (struct life){g->v[m], FATE_SEEN};
    if (seen) return true;
    if (g->outcome == OUTCOME_ok || is_client_fault(g) || (streams && !g->could_stream)) return false;
    if (base == 0 && isnan(g->v[M_client_queue])) return false;
    if (g->outcome == OUTCOME_client_abort || g->outcome == OUTCOME_in_flight || g->outcome == OUTCOME_lost) {
        *l = (struct life){w == WAIT_NOWAIT ? NAN : g->wait[base], FATE_CENSORED};
        return !isnan(l->v);
    }
    *l = (struct life){0, FATE_NEVER};
    return true;
}

static bool summarise_all(const struct report *r, struct summary *s, enum metric m) {
    struct life *l = malloc((r->n + 1) * sizeof *l);
    size_t n = 0;
    if (!l) return false;
    for (size_t i = 0; i < r->n; i++) n += life_of(&r->g[i], m, &l[n]);
    for (size_t i = 0; i < r->n_percentiles; i++) s->p_all[i] = stats_product_limit(l, n, r->percentiles[i]);
    s->has_all = true;
    free(l);
    return true;
}

/* For rates a failure is 0: the percentiles over all that could have had one. */
static bool summarise_rates(const struct report *r, struct summary *s, const struct sample *ok, size_t n_ok,
                            bool streams) {
    struct sample *x = malloc((r->n + 1) * sizeof *x);
    size_t n = n_ok;
    if (!x) return false;
    memcpy(x, ok, n_ok * sizeof *x);
    for (size_t i = 0; i < r->n; i++) {
        const struct generation *g = &r->g[i];
        bool censored = g->outcome == OUTCOME_client_abort || g->outcome == OUTCOME_in_flight ||
                        g->outcome == OUTCOME_lost;
        if (g->outcome == OUTCOME_ok || censored || is_client_fault(g) || (streams && !g->could_stream))
            continue;
        x[n++] = (struct sample){0, 1, 0};
    }
    struct dist *d = dist_new(x, n);
    for (size_t i = 0; d && i < r->n_percentiles; i++)
        s->p_all[i] = dist_quantile(d, r->percentiles[i], r->rule);
    s->has_all = d != NULL;
    free(x);
    dist_free(d);
    return s->has_all;
}

static bool by_grade(enum metric m) {
    return m == M_tpot || m == M_decode_tps;
}

/* Prefill is only what it says where the prompt was not cached (metrics.md 3). */
static bool counts(const struct generation *g, enum metric m) {
    return g->outcome == OUTCOME_ok && !isnan(g->v[m]) &&
           (m != M_prefill_tps || g->cache == CACHE_miss || g->cache == CACHE_miss_inferred);
}

static bool summarise_metric(struct report *r, enum metric m, int grade, size_t of_all) {
    struct sample *x = malloc((r->n + 1) * sizeof *x);
    size_t n = 0;
    struct summary *s = report_add(r, metrics[m].name, metrics[m].unit, grade);
    bool good = x && s;
    for (size_t i = 0; good && i < r->n; i++)
        if (counts(&r->g[i], m) && (grade < 0 || r->g[i].grade == grade))
            x[n++] = (struct sample){r->g[i].v[m], 1, 0};
    for (size_t i = 0; i < n; i++) x[i].from = (uint32_t)(i * BLOCKS / n);
    good = good && report_summary_of(r, s, x, n, 0);
    if (good) s->grade_share = of_all ? (double)n / (double)of_all : NAN;
    if (good && metrics[m].wait != WAIT_NONE && grade <= GRADE_EXACT) good = summarise_all(r, s, m);
    if (good && (m == M_decode_tps || m == M_e2e_tps) && grade <= GRADE_EXACT)
        good = summarise_rates(r, s, x, n, m == M_decode_tps);
    free(x);
    return good;
}

/* Summary of one number a request over those of a cache class. */
static bool of_class(struct report *r, struct summary *s, enum cache_class c, const char *unit,
                     double (*value)(const struct generation *)) {
    struct sample *x = malloc((r->n + 1) * sizeof *x);
    size_t n = 0;
    for (size_t i = 0; x && i < r->n; i++)
        if (r->g[i].outcome == OUTCOME_ok && r->g[i].cache == c && !isnan(r->g[i].v[M_ttft_server]) &&
            !isnan(value(&r->g[i])))
            x[n++] = (struct sample){value(&r->g[i]), 1, 0};
    for (size_t i = 0; i < n; i++) x[i].from = (uint32_t)(i * BLOCKS / n);
    *s = (struct summary){.unit = unit, .grade = -1};
    bool good = x && report_summary_of(r, s, x, n, 0);
    free(x);
    return good;
}

static double hit_ratio(const struct generation *g) {
    return g->prompt > 0 ? g->cached / g->prompt : NAN;
}
static double prompt(const struct generation *g) {
    return g->prompt;
}
static double uncached(const struct generation *g) {
    return g->prompt - (isnan(g->cached) && g->cache == CACHE_miss_inferred ? 0 : g->cached);
}
static double ttft(const struct generation *g) {
    return g->v[M_ttft_server];
}
static double prefill(const struct generation *g) {
    return g->v[M_prefill_tps];
}

static bool summarise_cache(struct report *r) {
    bool good = true;
    for (int c = 0; good && c < N_CACHE; c++) {
        struct cache_row *row = &r->cache[c];
        enum cache_class k = (enum cache_class)c;
        good = of_class(r, &row->hit_ratio, k, "1", hit_ratio) &&
               of_class(r, &row->prompt, k, "tokens", prompt) &&
               of_class(r, &row->uncached, k, "tokens", uncached) && of_class(r, &row->ttft, k, "ms", ttft) &&
               of_class(r, &row->prefill, k, "tps", prefill);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct generation *g = &r->g[i];
        if (g->outcome != OUTCOME_ok || isnan(g->v[M_ttft_server])) continue;
        r->cache[g->cache].n++;
        if (isnan(g->cached) || isnan(g->prompt)) continue;
        r->cache[g->cache].cached += g->cached;
        r->cache[g->cache].prompt_of_cached += g->prompt;
    }
    return good;
}

/* Pooled (sum over sum) and as the distribution over requests: they differ, so both are kept. */
static bool summarise_speculation(struct report *r) {
    double *rate = malloc((r->n + 1) * sizeof *rate), *length = malloc((r->n + 1) * sizeof *length);
    size_t n_rate = 0, n_length = 0;
    double stepped = 0; /* accepted of the requests whose steps are known */
    for (size_t i = 0; rate && length && i < r->n; i++) {
        const struct generation *g = &r->g[i];
        if (g->outcome != OUTCOME_ok) continue;
        if (!isnan(g->accept_rate)) {
            rate[n_rate++] = g->accept_rate;
            r->spec.accepted += g->accepted;
            r->spec.drafted += g->drafted;
        }
        if (!isnan(g->accept_length) && !isnan(g->steps)) {
            length[n_length++] = g->accept_length;
            stepped += g->accepted;
            r->spec.steps += g->steps;
        }
    }
    bool good = rate && length;
    r->spec.n = n_rate > n_length ? n_rate : n_length;
    r->spec.rate_pooled = n_rate ? r->spec.accepted / r->spec.drafted : NAN;
    r->spec.rate_median = good ? stats_median(rate, n_rate) : NAN;
    r->spec.length_pooled = n_length ? 1 + stepped / r->spec.steps : NAN;
    r->spec.length_median = good ? stats_median(length, n_length) : NAN;
    free(rate);
    free(length);
    return good;
}

bool report_summarise(struct report *r) {
    bool good = true;
    for (int m = 0; good && m < N_METRICS; m++) {
        size_t all = 0;
        for (size_t i = 0; i < r->n; i++) all += counts(&r->g[i], (enum metric)m);
        if (by_grade((enum metric)m))
            for (int g = 0; good && g < N_GRADES; g++) good = summarise_metric(r, (enum metric)m, g, all);
        else
            good = summarise_metric(r, (enum metric)m, -1, all);
    }
    return good && summarise_cache(r) && summarise_speculation(r);
}
