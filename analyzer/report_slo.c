/* See report_slo.h. */
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *unit;
    enum metric_wait wait;
} metrics[N_METRICS] = {
#define X(name, sql, unit, wait) {#name, unit, WAIT_##wait},
    REPORT_METRICS(X)
#undef X
};

static const char *full_name(const char *word, bool queued) {
    if (strcmp(word, "ttft") == 0) return queued ? "ttft_queued" : "ttft_client";
    if (strcmp(word, "e2e") == 0) return queued ? "e2e_queued" : "e2e_client";
    return word;
}

static int unknown(const char *word) {
    const char *names[N_METRICS + 3];
    size_t n = 0;
    for (int i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].unit, "ms") == 0) names[n++] = metrics[i].name;
    names[n++] = "itl";
    names[n++] = "ttft";
    names[n++] = "e2e";
    const char *near = args_near(word, names, n);
    fprintf(stderr, "traceanalyze: --slo %s: no such metric in ms%s%s%s All: traceanalyze definitions\n",
            word, near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
    return 2;
}

/* One NAME=DURATION. */
static int parse_limit(struct slo *s, const char *text, bool queued) {
    const char *equals = strchr(text, '=');
    int64_t ns = equals ? args_duration_ns(equals + 1) : -1;
    char word[32];
    if (!equals || equals - text >= (long)sizeof word || ns <= 0) {
        fprintf(stderr, "traceanalyze: --slo %s: not a limit, as in ttft=500ms,tpot=50ms,e2e=10s\n", text);
        return 2;
    }
    snprintf(word, sizeof word, "%.*s", (int)(equals - text), text);
    struct slo_limit *l = &s->v[s->n++];
    *l = (struct slo_limit){.metric = N_METRICS, .ms = (double)ns / 1e6};
    snprintf(l->name, sizeof l->name, "%s", full_name(word, queued));
    if (strcmp(word, "itl") == 0) l->metric = SLO_ITL;
    for (int i = 0; i < N_METRICS; i++)
        if (strcmp(metrics[i].name, l->name) == 0 && strcmp(metrics[i].unit, "ms") == 0) l->metric = i;
    return l->metric == N_METRICS ? unknown(word) : 0;
}

int slo_parse(struct slo *s, const char *text, bool queued) {
    memset(s, 0, sizeof *s);
    for (size_t n; *text; text += n + (text[n] == ',')) {
        char one[80];
        n = strcspn(text, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, text);
        if (s->n == SLO_MOST) {
            fprintf(stderr, "traceanalyze: --slo: more than %d limits\n", SLO_MOST);
            return 2;
        }
        int status = parse_limit(s, one, queued);
        if (status) return status;
    }
    return 0;
}

bool slo_has_itl(const struct slo *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].metric == SLO_ITL) return true;
    return false;
}

static double value_of(const struct generation *g, const struct slo_limit *l) {
    return l->metric == SLO_ITL ? g->itl_p99 : g->v[l->metric];
}

/* Limits on arrivals: a request that shows none cannot be held against them. */
static bool on_arrivals(const struct slo_limit *l) {
    return l->metric == SLO_ITL || l->metric == M_tpot || strncmp(l->name, "ttf", 3) == 0;
}

/* Was the limit broken already by one that has no end: seen above it, or waited longer than it. */
static bool broken(const struct generation *g, const struct slo_limit *l) {
    static const int base[] = {[WAIT_QUEUED] = 1,       [WAIT_CLIENT] = 2,       [WAIT_SERVER] = 3,
                               [WAIT_WHOLE_QUEUED] = 1, [WAIT_WHOLE_CLIENT] = 2, [WAIT_WHOLE_SERVER] = 3};
    double v = value_of(g, l);
    enum metric_wait w = l->metric == SLO_ITL ? WAIT_NONE : metrics[l->metric].wait;
    bool whole = w >= WAIT_WHOLE_QUEUED;
    if (!isnan(v) && !whole) return v > l->ms;
    int from = (size_t)w < sizeof base / sizeof base[0] ? base[w] : 0;
    return from && g->wait[from - 1] > l->ms;
}

static void judge_ok(struct slo *s, const struct generation *g) {
    bool arrivals = false;
    size_t missed = 0;
    for (size_t i = 0; i < s->n; i++) arrivals |= on_arrivals(&s->v[i]);
    if (arrivals && isnan(g->v[M_ttft_client])) {
        s->without_tokens++;
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        bool miss = value_of(g, &s->v[i]) > s->v[i].ms; /* absent passes: tpot of a single arrival */
        s->v[i].missed += miss;
        missed += miss;
    }
    s->several += missed > 1;
    s->decided++;
    s->good += missed == 0;
}

static void judge_open(struct slo *s, const struct generation *g) {
    for (size_t i = 0; i < s->n; i++) {
        if (!broken(g, &s->v[i])) continue;
        s->gone++;
        s->decided++;
        return;
    }
    s->undecided++;
}

void slo_judge(struct slo *s, const struct report *r) {
    for (size_t i = 0; i < r->n; i++) {
        const struct generation *g = &r->g[i];
        if (g->outcome == OUTCOME_ok) {
            judge_ok(s, g);
        } else if (report_failed(g->outcome) && g->outcome != OUTCOME_client_abort) {
            s->failed++;
            s->decided++;
        } else {
            judge_open(s, g);
        }
    }
    s->share = stats_wilson((double)s->good, (double)s->decided);
}
