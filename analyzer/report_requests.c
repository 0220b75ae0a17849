/* The generations of a selection, one struct each, and what is counted over them. */
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const outcome_names[N_OUTCOMES] = {
#define X(name) #name,
    REPORT_OUTCOMES(X)
#undef X
};
const char *const cache_names[N_CACHE] = {
#define X(name) #name,
    REPORT_CACHE_CLASSES(X)
#undef X
};
const char *const grade_names[N_GRADES] = {"exact", "prorated", "events"};

bool report_failed(enum outcome o) {
    return o != OUTCOME_ok && o != OUTCOME_lost && o != OUTCOME_in_flight;
}

/* A stream is asked for, or is what the API gives when nothing is said (Ollama). */
static const char query[] =
    "SELECT arrived_wall_ns, t_arrive_mono_ns, coalesce(t_done_ns, 0), coalesce(t_end_ns, 0), recording, "
    "outcome, status,"
    " coalesce(attempt, 0), coalesce(stream, streamed, api LIKE 'ollama%%'), streamed, buffered,"
    " coalesce(reasoning_bytes, 0) > 0 OR t_first_answer_ns > t_first_token_ns, grade, cache_class, model,"
    " t_intended_ns, t_forwarded_ns, prompt_tokens, cached_tokens, output_tokens, draft_tokens, "
    "accepted_tokens, verify_steps,"
    " accept_rate, accept_length, request"
#define X(name, sql, unit, wait) ", " sql
    REPORT_METRICS(X)
#undef X
        " FROM selected WHERE generation = 1 ORDER BY arrived_wall_ns, recording, request";
enum { FIRST_METRIC = 26 };

static double number(sqlite3_stmt *s, int i) {
    return sqlite3_column_type(s, i) == SQLITE_NULL ? NAN : sqlite3_column_double(s, i);
}

/* Index of column i's text among names; fallback when it is none of them. */
static int index_of(sqlite3_stmt *s, int i, const char *const *names, int n, int fallback) {
    const char *t = (const char *)sqlite3_column_text(s, i);
    for (int k = 0; t && k < n; k++)
        if (strcmp(names[k], t) == 0) return k;
    return fallback;
}

static int recording_of(const struct report *r, sqlite3_stmt *s) {
    const char *t = (const char *)sqlite3_column_text(s, 4);
    for (size_t i = 0; t && i < r->n_traces; i++)
        if (r->traces[i].recording && strcmp(r->traces[i].recording, t) == 0) return (int)i;
    return 0;
}

static int model_of(const struct report *r, sqlite3_stmt *s) {
    const char *t = (const char *)sqlite3_column_text(s, 14);
    for (size_t i = 0; i < r->n_models; i++)
        if (r->models[i].key && strcmp(r->models[i].key, t ? t : "-") == 0) return (int)i;
    return 0;
}

/* Latest instant of a recording, for those still in flight. */
static int64_t last_ns(const struct report *r, int recording) {
    int64_t last = 0;
    for (size_t i = 0; i < r->n_traces; i++)
        if (strcmp(r->traces[i].recording, r->traces[recording].recording) == 0 &&
            r->traces[i].last_ns > last)
            last = r->traces[i].last_ns;
    return last;
}

static void read_waits(const struct report *r, struct generation *g, sqlite3_stmt *s) {
    int64_t end = g->done_ns                                       ? g->done_ns
                  : g->outcome == OUTCOME_in_flight && r->n_traces ? last_ns(r, g->recording)
                                                                   : 0;
    g->end_seen_ns = end > g->arrive_ns ? end : sqlite3_column_int64(s, 3);
    const double from[3] = {number(s, 15), (double)g->arrive_ns, number(s, 16)};
    for (int i = 0; i < 3; i++) g->wait[i] = end ? ((double)end - from[i]) / 1e6 : NAN;
}

static void read_row(const struct report *r, struct generation *g, sqlite3_stmt *s) {
    g->wall_ns = sqlite3_column_int64(s, 0);
    g->request = sqlite3_column_int64(s, 25);
    g->itl_p99 = NAN;
    g->arrive_ns = sqlite3_column_int64(s, 1);
    g->done_ns = sqlite3_column_int64(s, 2);
    g->recording = recording_of(r, s);
    g->outcome = (enum outcome)index_of(s, 5, outcome_names, N_OUTCOMES, OUTCOME_truncated);
    g->status = sqlite3_column_int(s, 6);
    g->attempt = sqlite3_column_int(s, 7);
    g->could_stream = sqlite3_column_int(s, 8) != 0;
    g->streamed = sqlite3_column_int(s, 9) != 0;
    g->buffered = sqlite3_column_int(s, 10) != 0;
    g->reasons = sqlite3_column_int(s, 11) != 0;
    g->grade = index_of(s, 12, grade_names, N_GRADES, -1);
    g->cache = (enum cache_class)index_of(s, 13, cache_names, N_CACHE, CACHE_unreported);
    g->model = model_of(r, s);
    double *const counts[] = {&g->prompt,   &g->cached, &g->output,      &g->drafted,
                              &g->accepted, &g->steps,  &g->accept_rate, &g->accept_length};
    for (int i = 0; i < 8; i++) *counts[i] = number(s, 17 + i);
    for (int i = 0; i < N_METRICS; i++) g->v[i] = number(s, FIRST_METRIC + i);
    read_waits(r, g, s);
}

bool report_read_requests(struct report *r, sqlite3 *db) {
    sqlite3_stmt *s = NULL;
    size_t room = 0;
    char *sql = sqlite3_mprintf(query);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &s, NULL) : SQLITE_NOMEM;
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (r->n == room) {
            room = room ? 2 * room : 1024;
            struct generation *grown = realloc(r->g, room * sizeof *grown);
            if (!grown) break;
            r->g = grown;
        }
        read_row(r, &r->g[r->n++], s);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(s);
    sqlite3_free(sql);
    return rc == SQLITE_DONE;
}

static int by_ns(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Mean and highest number in flight over the window, from arrivals and ends in order of time. */
static void count_concurrency(struct report *r, double window_ns) {
    int64_t *from = calloc(r->n + 1, sizeof *from), *to = calloc(r->n + 1, sizeof *to), now = 0;
    double busy = 0;
    for (size_t i = 0; from && to && i < r->n; i++) {
        from[i] = r->g[i].wall_ns;
        to[i] =
            from[i] + (r->g[i].end_seen_ns > r->g[i].arrive_ns ? r->g[i].end_seen_ns - r->g[i].arrive_ns : 0);
        busy += (double)(to[i] - from[i]);
    }
    if (from && to) {
        qsort(from, r->n, sizeof *from, by_ns);
        qsort(to, r->n, sizeof *to, by_ns);
        for (size_t a = 0, e = 0; a < r->n; a++) {
            for (now++; e < r->n && to[e] <= from[a]; e++) now--;
            if (now > r->through.highest_concurrency) r->through.highest_concurrency = now;
        }
    }
    r->through.mean_concurrency = window_ns > 0 ? busy / window_ns : NAN;
    free(from);
    free(to);
}

static double known(double sum, double v) {
    return isnan(v) ? sum : (isnan(sum) ? 0 : sum) + v;
}

/* Within one recording the wall clock of a request is its monotonic one plus an anchor, so that durations of
 * the window are taken on the monotonic clock there. */
static void count_window(struct report *r) {
    struct throughput *t = &r->through;
    int64_t first = INT64_MAX, last = INT64_MIN, first_end = INT64_MAX, last_end = INT64_MIN;
    size_t ends = 0;
    bool one = true;
    for (size_t i = 0; i < r->n; i++) one &= r->g[i].recording == r->g[0].recording;
    for (size_t i = 0; i < r->n; i++) {
        const struct generation *g = &r->g[i];
        int64_t a = one ? g->arrive_ns : g->wall_ns, e = a + (g->end_seen_ns - g->arrive_ns);
        if (a < first) first = a;
        if (a > last) last = a;
        if (g->end_seen_ns && e > last) last = e;
        if (g->outcome != OUTCOME_ok || !g->done_ns) continue;
        ends++;
        if (e < first_end) first_end = e;
        if (e > last_end) last_end = e;
    }
    t->window_s = r->n ? (double)(last - first) / 1e9 : NAN;
    t->completed = (double)ends;
    t->completion_rate =
        ends > 1 && last_end > first_end ? (double)(ends - 1) / ((double)(last_end - first_end) / 1e9) : NAN;
    count_concurrency(r, r->n ? (double)(last - first) : 0);
}

void report_count(struct report *r) {
    struct throughput *t = &r->through;
    t->output = t->prompt = t->uncached = NAN;
    for (size_t i = 0; i < r->n; i++) {
        const struct generation *g = &r->g[i];
        bool token = !isnan(g->v[M_ttft_client]);
        r->by_outcome[g->outcome]++;
        r->retries += g->attempt > 1;
        r->any_reasoning |= g->reasons;
        t->output = known(t->output, g->output);
        t->prompt = known(t->prompt, g->prompt);
        t->uncached = known(
            t->uncached, g->prompt - (isnan(g->cached) && g->cache == CACHE_miss_inferred ? 0 : g->cached));
        if (g->outcome != OUTCOME_ok) continue;
        r->with_tokens += token && g->streamed;
        r->buffered += g->buffered;
        bool none = isnan(g->output) || g->output == 0;
        r->without_token += none && !token;
        r->not_streamed += !g->streamed && !none;
    }
    count_window(r);
}
