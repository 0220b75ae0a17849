/* The series over arrivals: itl, itl_burst, chunk_gap, stalls, read from the blobs of the ok requests.
 *
 * Gaps are kept once, each with its tokens and its request; every series is made from them, summarised and
 * thrown away, so that memory holds one series at a time. */
#include "analyzer/arrivals.h"
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gaps {
    struct sample *x; /* v: gap in ms; k: tokens of the arrival; from: ordinal of the request that has gaps */
    size_t n, room;
    struct owner {
        int grade, model;
        size_t first, n; /* its gaps in x */
        size_t of;       /* its generation in the report */
    } * owners;
    size_t n_owners, owners_room;
    uint64_t tokens; /* of the arrivals in x */
};

static bool add_gap(struct gaps *g, double gap_ms, uint32_t tokens) {
    if (g->n == g->room) {
        size_t room = g->room ? 2 * g->room : 1 << 16;
        struct sample *grown = realloc(g->x, room * sizeof *grown);
        if (!grown) return false;
        g->x = grown;
        g->room = room;
    }
    g->x[g->n++] = (struct sample){gap_ms, tokens, (uint32_t)g->n_owners};
    g->tokens += tokens;
    return true;
}

/* Counts as a request of its own only when it has a gap. */
static bool end_owner(struct gaps *g, size_t first, size_t of, int grade, int model) {
    if (g->n == first) return true;
    if (g->n_owners == g->owners_room) {
        size_t room = g->owners_room ? 2 * g->owners_room : 1024;
        struct owner *grown = realloc(g->owners, room * sizeof *grown);
        if (!grown) return false;
        g->owners = grown;
        g->owners_room = room;
    }
    g->owners[g->n_owners++] = (struct owner){grade, model, first, g->n - first, of};
    return true;
}

/* Gaps of one request. A backpressured arrival ends a gap that is the client's, and begins the next. */
static bool read_blob(struct gaps *g, const void *blob, size_t bytes, int64_t base_ns, bool *damaged) {
    struct arrivals_reader reader;
    struct arrival a, before = {.choice = UINT32_MAX};
    bool first = true;
    arrivals_read(&reader, blob, bytes, base_ns);
    while (arrivals_next(&reader, &a)) {
        if (!first && a.choice == before.choice && !a.backpressured &&
            !add_gap(g, (double)(a.t_ns - before.t_ns) / 1e6, a.tokens ? a.tokens : 1))
            return false;
        before = a;
        first = false;
    }
    *damaged = reader.p == NULL;
    return true;
}

static const char query[] = "SELECT arrivals_blob, arrivals_base_ns, grade, model, request, arrived_wall_ns "
                            "FROM selected WHERE generation = 1"
                            " AND outcome = 'ok' AND itl_absent IS NULL AND arrivals_blob IS NOT NULL"
                            " ORDER BY arrived_wall_ns, recording, request";

static int find(const char *text, const char *const *names, int n) {
    for (int i = 0; text && i < n; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return -1;
}

static int model_of(const struct report *r, const char *text) {
    for (size_t i = 0; i < r->n_models; i++)
        if (strcmp(r->models[i].key, text ? text : "-") == 0) return (int)i;
    return 0;
}

/* The generation of a row. Both come in the same order, so the search goes on where the last one ended. */
static size_t generation_of(const struct report *r, size_t at, int64_t request, int64_t wall_ns) {
    while (at + 1 < r->n && (r->g[at].request != request || r->g[at].wall_ns != wall_ns)) at++;
    return at;
}

static bool read_gaps(struct report *r, sqlite3 *db, struct gaps *g) {
    size_t at = 0;
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, query, -1, &s, NULL);
    bool good = rc == SQLITE_OK;
    while (good && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        size_t first = g->n;
        bool damaged = false;
        at = generation_of(r, at, sqlite3_column_int64(s, 4), sqlite3_column_int64(s, 5));
        const void *blob = sqlite3_column_blob(s, 0);
        good = read_blob(g, blob, (size_t)sqlite3_column_bytes(s, 0), sqlite3_column_int64(s, 1), &damaged) &&
               end_owner(g, first, at, find((const char *)sqlite3_column_text(s, 2), grade_names, N_GRADES),
                         model_of(r, (const char *)sqlite3_column_text(s, 3)));
        r->damaged += damaged;
    }
    sqlite3_finalize(s);
    return good && rc == SQLITE_DONE;
}

enum series { SERIES_ITL, SERIES_BURST, SERIES_CHUNK };

/* Samples of one series of one grade (-1: all) into x; clusters are numbered anew. x holds 2 n. */
static size_t make_series(const struct gaps *g, enum series kind, int grade, struct sample *x,
                          size_t *clusters) {
    size_t n = 0;
    *clusters = 0;
    for (size_t o = 0; o < g->n_owners; o++) {
        const struct owner *w = &g->owners[o];
        if (grade >= 0 && w->grade != grade) continue;
        uint32_t from = (uint32_t)(*clusters)++;
        for (size_t i = w->first; i < w->first + w->n; i++) {
            double gap = g->x[i].v;
            uint32_t k = g->x[i].k;
            x[n++] = kind == SERIES_ITL ? (struct sample){gap / k, k, from} : (struct sample){gap, 1, from};
            if (kind == SERIES_BURST && k > 1) x[n++] = (struct sample){0, k - 1, from};
        }
    }
    return n;
}

static bool summarise_series(struct report *r, const struct gaps *g, enum series kind, int grade) {
    static const char *const names[] = {"itl", "itl_burst", "chunk_gap"};
    struct sample *x = malloc(((kind == SERIES_BURST ? 2 : 1) * g->n + 1) * sizeof *x);
    struct summary *s = report_add(r, names[kind], "ms", grade);
    size_t clusters = 0, n = x ? make_series(g, kind, grade, x, &clusters) : 0;
    bool good = x && s && report_summary_of(r, s, x, n, clusters);
    if (good) {
        s->requests = clusters;
        s->grade_share = g->n_owners ? (double)clusters / (double)g->n_owners : NAN;
    }
    free(x);
    return good;
}

static double median_gap(const struct sample *x, size_t n, double *room) {
    for (size_t i = 0; i < n; i++) room[i] = x[i].v;
    return stats_median(room, n);
}

/* The median of all gaps of a model: what requests of few gaps are held against. */
static double median_of_model(const struct gaps *g, int model, double *room) {
    size_t n = 0;
    for (size_t o = 0; o < g->n_owners; o++)
        if (g->owners[o].model == model)
            for (size_t i = 0; i < g->owners[o].n; i++) room[n++] = g->x[g->owners[o].first + i].v;
    return stats_median(room, n);
}

static bool count_stalls(struct report *r, const struct gaps *g) {
    enum { FEW_GAPS = 10 };
    double *room = malloc((g->n + 1) * sizeof *room);
    double *of_model = calloc(r->n_models + 1, sizeof *of_model);
    bool good = room && of_model;
    for (size_t o = 0; good && o < g->n_owners; o++) {
        const struct owner *w = &g->owners[o];
        double usual;
        uint64_t stalls = 0;
        if (w->n < FEW_GAPS) {
            if (of_model[w->model] == 0) of_model[w->model] = median_of_model(g, w->model, room);
            usual = of_model[w->model];
        } else {
            usual = median_gap(g->x + w->first, w->n, room);
        }
        for (size_t i = w->first; i < w->first + w->n; i++) stalls += g->x[i].v > fmax(200, 5 * usual);
        r->stalls.gaps += stalls;
        r->stalls.requests += stalls > 0;
    }
    free(room);
    free(of_model);
    return good;
}

/* The p99 of each request's own itl, for a limit on it. */
static bool read_itl_p99(struct report *r, const struct gaps *g) {
    struct sample *x = malloc((g->n + 1) * sizeof *x);
    bool good = x != NULL;
    for (size_t o = 0; good && o < g->n_owners; o++) {
        const struct owner *w = &g->owners[o];
        for (size_t i = 0; i < w->n; i++) {
            x[i] = g->x[w->first + i];
            x[i].v /= x[i].k;
        }
        struct dist *d = dist_new(x, w->n);
        good = d != NULL;
        if (good) r->g[w->of].itl_p99 = dist_quantile(d, .99, r->rule);
        dist_free(d);
    }
    free(x);
    return good;
}

bool report_read_series(struct report *r, sqlite3 *db) {
    struct gaps g = {0};
    bool good = read_gaps(r, db, &g);
    for (int grade = 0; good && grade < N_GRADES; grade++)
        good = summarise_series(r, &g, SERIES_ITL, grade) && summarise_series(r, &g, SERIES_BURST, grade);
    good = good && summarise_series(r, &g, SERIES_CHUNK, -1) && count_stalls(r, &g);
    if (good && slo_has_itl(&r->slo)) good = read_itl_p99(r, &g);
    r->tokens_per_arrival = g.n ? (double)g.tokens / (double)g.n : NAN;
    free(g.x);
    free(g.owners);
    return good;
}
