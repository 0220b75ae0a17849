/* Makes the groups of --by: see report_by.h. The generations of the report and the rows of the query come in
 * the same order, so that a row's values belong to the generation of the same ordinal. */
#include "analyzer/report_by.h"
#include "analyzer/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct member {
    char **values;
    const struct generation *g;
    size_t n_values;
};

static int compare_values(char *const *a, char *const *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int c = !a[i] || !b[i] ? (a[i] != NULL) - (b[i] != NULL) : strcmp(a[i], b[i]);
        if (c) return c;
    }
    return 0;
}

/* By values; equal ones stay in the order of arrival, which the blocks of an interval need. */
static int by_values(const void *a, const void *b) {
    const struct member *x = a, *y = b;
    int c = compare_values(x->values, y->values, x->n_values);
    return c ? c : (x->g > y->g) - (x->g < y->g);
}

static int by_size(const void *a, const void *b) {
    const struct group *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return 0;
}

static sqlite3_stmt *prepare(sqlite3 *db, const struct column **picked, size_t n) {
    sqlite3_stmt *s = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(sql, "%sCAST(\"%w\" AS TEXT)", i ? ", " : "SELECT ", picked[i]->source);
    sqlite3_str_appendall(sql,
                          " FROM selected WHERE generation = 1 ORDER BY arrived_wall_ns, recording, request");
    char *text = sqlite3_str_finish(sql);
    if (text) sqlite3_prepare_v2(db, text, -1, &s, NULL);
    sqlite3_free(text);
    return s;
}

/* One member a generation; false when the rows do not come. */
static bool read_members(struct member *m, const struct report *r, sqlite3_stmt *s, size_t n_values) {
    size_t n = 0;
    for (; n < r->n && sqlite3_step(s) == SQLITE_ROW; n++) {
        m[n] = (struct member){calloc(n_values + 1, sizeof *m[n].values), &r->g[n], n_values};
        if (!m[n].values) return false;
        for (size_t i = 0; i < n_values; i++) {
            const char *t = (const char *)sqlite3_column_text(s, (int)i);
            m[n].values[i] = t ? strdup(t) : NULL;
        }
    }
    return n == r->n;
}

static bool summarise(struct report *r, struct group *g, const struct member *m) {
    static const enum metric metrics[N_GROUP_METRICS] = {M_ttft_server, M_tpot, M_e2e_client};
    struct sample *x = malloc((g->n + 1) * sizeof *x);
    bool good = x != NULL;
    for (int k = 0; good && k < N_GROUP_METRICS; k++) {
        size_t n = 0;
        for (size_t i = 0; i < g->n; i++) {
            const struct generation *y = m[i].g;
            if (y->outcome != OUTCOME_ok || isnan(y->v[metrics[k]])) continue;
            if (k == GROUP_TPOT && y->grade != GRADE_EXACT) continue;
            x[n++] = (struct sample){y->v[metrics[k]], 1, 0};
        }
        for (size_t i = 0; i < n; i++) x[i].from = (uint32_t)(i * 20 / n);
        g->s[k] = (struct summary){.unit = "ms", .grade = k == GROUP_TPOT ? GRADE_EXACT : -1};
        good = report_summary_of(r, &g->s[k], x, n, 0);
    }
    free(x);
    return good;
}

/* The group of n equal members; it takes the values of the first. */
static bool make_group(struct report *r, struct group *g, struct member *m, size_t n) {
    g->values = m[0].values;
    m[0].values = NULL;
    g->n = n;
    for (size_t i = 0; i < n; i++) {
        if (m[i].g->outcome != OUTCOME_ok) continue;
        g->ok++;
        g->classed += m[i].g->cache != CACHE_unreported;
        g->hits += m[i].g->cache == CACHE_hit;
    }
    return summarise(r, g, m);
}

static bool make_groups(struct groups *g, struct report *r, struct member *m) {
    bool good = true;
    qsort(m, r->n, sizeof *m, by_values);
    g->v = calloc(r->n + 1, sizeof *g->v);
    for (size_t i = 0, end; good && g->v && i < r->n; i = end) {
        end = i + 1;
        while (end < r->n && compare_values(m[i].values, m[end].values, g->n_columns) == 0) end++;
        good = make_group(r, &g->v[g->n++], m + i, end - i);
    }
    if (g->v) qsort(g->v, g->n, sizeof *g->v, by_size);
    return good && g->v;
}

static void free_values(char **values, size_t n) {
    for (size_t i = 0; values && i < n; i++) free(values[i]);
    free(values);
}

static bool read_groups(struct groups *g, struct report *r, sqlite3 *db, const struct column **picked,
                        size_t n) {
    struct member *m = calloc(r->n + 1, sizeof *m);
    sqlite3_stmt *s = prepare(db, picked, n);
    g->columns = calloc(n + 1, sizeof *g->columns);
    g->n_columns = n;
    for (size_t i = 0; g->columns && i < n; i++) g->columns[i] = strdup(picked[i]->name);
    bool good = m && s && g->columns && read_members(m, r, s, n) && make_groups(g, r, m);
    if (!good) fprintf(stderr, "traceanalyze: report --by: %s\n", s ? "out of memory" : sqlite3_errmsg(db));
    sqlite3_finalize(s);
    for (size_t i = 0; m && i < r->n; i++) free_values(m[i].values, n);
    free(m);
    return good;
}

int groups_read(struct groups *g, struct report *r, sqlite3 *db, const char *by) {
    struct columns all;
    const struct column **picked = NULL;
    size_t n = 0;
    int status = 1;
    memset(g, 0, sizeof *g);
    if (!columns_of(&all, db, "selected"))
        fprintf(stderr, "traceanalyze: report --by: %s\n", sqlite3_errmsg(db));
    else if (!columns_pick(&all, "--by", by, &picked, &n))
        status = 2;
    else
        status = read_groups(g, r, db, picked, n) ? 0 : 1;
    free(picked);
    columns_free(&all);
    return status;
}

void groups_free(struct groups *g) {
    for (size_t i = 0; i < g->n; i++) free_values(g->v[i].values, g->n_columns);
    free_values(g->columns, g->n_columns);
    free(g->v);
    memset(g, 0, sizeof *g);
}
