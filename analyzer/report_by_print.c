/* Prints the groups of --by: a table for people, rows and objects for programs. */
#include "analyzer/jsonw.h"
#include "analyzer/report_by.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 40, FIXED = 8 };

static const struct grid_column fixed[FIXED] = {{{"n", NULL}, GRID_RIGHT, 2},
                                                {{"ok", NULL}, GRID_RIGHT, 2},
                                                {{"ttft_server p50", NULL}, GRID_RIGHT, 2},
                                                {{"p99", NULL}, GRID_RIGHT, 2},
                                                {{"tpot p50", NULL}, GRID_RIGHT, 2},
                                                {{"p99", NULL}, GRID_RIGHT, 2},
                                                {{"e2e_client p50", NULL}, GRID_RIGHT, 2},
                                                {{"hit", NULL}, GRID_RIGHT, 2}};
/* Which percentile of which metric stands in the fixed columns 2 to 6. */
static const struct {
    int metric;
    double p;
} shown[5] = {{GROUP_TTFT, .5}, {GROUP_TTFT, .99}, {GROUP_TPOT, .5}, {GROUP_TPOT, .99}, {GROUP_E2E, .5}};

static double value(const struct report *r, const struct group *g, int i) {
    return g->s[shown[i].metric].p[report_percentile(r, shown[i].p)];
}

static bool few(const struct report *r, const struct group *g, int i) {
    const struct summary *s = &g->s[shown[i].metric];
    return s->n && s->ci[report_percentile(r, shown[i].p)].few;
}

static const char *percent(char *out, double part, double whole) {
    show_share(out, whole > 0 ? part / whole : NAN);
    return strcmp(out, "-") == 0 ? out : strcat(out, " %");
}

static void add_row(const struct groups *g, struct grid *t, const struct group *x, const struct page *p,
                    const bool *hang) {
    const char **cells = calloc(g->n_columns + FIXED, sizeof *cells);
    char(*room)[64] = calloc(g->n_columns + 1, sizeof *room), b[FIXED][SHOW_MAX];
    size_t n = 0;
    for (size_t i = 0; cells && room && i < g->n_columns; i++) {
        const char *v = x->values[i] ? x->values[i] : "-";
        cells[n++] = show_safe(room[i], sizeof room[i], v, strlen(v), p->m->utf8);
    }
    if (cells && room) {
        cells[n++] = show_count(b[0], (double)x->n);
        cells[n++] = percent(b[1], (double)x->ok, (double)x->n);
        for (int i = 0; i < 5; i++) {
            show_ms(b[2 + i], value(p->r, x, i));
            cells[n++] = strcat(b[2 + i], few(p->r, x, i) ? "?" : hang[i] ? " " : "");
        }
        cells[n++] = percent(b[7], (double)x->hits, (double)x->classed);
        grid_row(t, cells);
    }
    free(cells);
    free(room);
}

/* With the first keep of the fixed columns. */
static struct grid *make_grid(const struct groups *g, const struct page *p, size_t rows, size_t keep,
                              bool *any_few) {
    struct grid_column *columns = calloc(g->n_columns + FIXED, sizeof *columns);
    bool hang[5] = {false};
    if (!columns) return NULL;
    for (size_t r = 0; r < rows; r++)
        for (int i = 0; i < 5; i++) hang[i] |= few(p->r, &g->v[r], i);
    for (int i = 0; i < 5; i++) *any_few |= hang[i];
    for (size_t i = 0; i < g->n_columns; i++)
        columns[i] = (struct grid_column){{g->columns[i], NULL}, GRID_LEFT, 2};
    memcpy(columns + g->n_columns, fixed, sizeof fixed);
    for (int i = 0; i < 5; i++) /* heads stand over the digits, not over the marks */
        if (hang[i])
            columns[g->n_columns + 2 + (size_t)i].head[0] =
                (const char *[]){"ttft_server p50 ", "p99 ", "tpot p50 ", "p99 ", "e2e_client p50 "}[i];
    struct grid *t = grid_new(columns, g->n_columns + keep);
    for (size_t r = 0; t && r < rows; r++) add_row(g, t, &g->v[r], p, hang);
    free(columns);
    return t;
}

static void put_foot(const struct groups *g, const struct page *p, size_t rows, bool any_few) {
    struct para w;
    if (rows < g->n) fprintf(p->f, " and %zu more groups: --format csv has them all\n", g->n - rows);
    para_begin(&w, p, "", 0, 2);
    if (any_few) para_item(&w, "? fewer samples than an interval needs: 6 for a p50, 368 for a p99");
    para_item(&w, "times in ms over ok requests, tpot of exact grade");
    para_item(&w, "hit: share of the ok whose cache class is known");
    para_end(&w);
}

/* The last columns go first where the terminal is too narrow for all. */
static struct grid *fit_grid(const struct groups *g, const struct page *p, size_t rows, bool *any_few) {
    struct grid *t = NULL;
    for (size_t keep = FIXED; keep >= 3; keep--) {
        grid_free(t);
        t = make_grid(g, p, rows, keep, any_few);
        if (!t || grid_width(t) < (size_t)p->m->columns) break;
    }
    return t;
}

int groups_text(const struct groups *g, const struct page *p) {
    size_t rows = g->n < MOST_ROWS ? g->n : MOST_ROWS;
    bool any_few = false;
    page_head(p);
    page_losses(p);
    if (p->r->n == 0) {
        page_none(p);
        return 0;
    }
    struct grid *t = fit_grid(g, p, rows, &any_few);
    if (!t) return 1;
    fputc('\n', p->f);
    grid_print(t, p->f, 1);
    grid_free(t);
    put_foot(g, p, rows, any_few);
    return 0;
}

int groups_markdown(const struct groups *g, const struct page *p) {
    bool any_few = false;
    struct grid *t = make_grid(g, p, g->n, FIXED, &any_few);
    char inputs[256];
    if (!t) return 1;
    grid_markdown(t, p->f);
    grid_free(t);
    fputc('\n', p->f);
    put_foot(g, p, g->n, any_few);
    fprintf(p->f, "\ntraceanalyze %s, recording %s: `traceanalyze report %s --by %s --format markdown`\n",
            TRACEREC_VERSION, p->r->n_traces ? p->r->traces[0].recording : "-",
            page_inputs(p, inputs, sizeof inputs), p->o->by);
    return 0;
}

static struct cell text_cell(const char *s) {
    return s ? (struct cell){.kind = CELL_TEXT, .s = s, .n = strlen(s)} : (struct cell){.kind = CELL_NULL};
}

static struct cell real(double d) {
    return (struct cell){.kind = isnan(d) ? CELL_NULL : CELL_REAL, .d = d};
}

int groups_csv(const struct groups *g, const struct report *r, FILE *f) {
    static const char *const heads[FIXED] = {
        "n",           "ok",          "ttft_server_p50_ms", "ttft_server_p99_ms",
        "tpot_p50_ms", "tpot_p99_ms", "e2e_client_p50_ms",  "hit_share"};
    struct cell *c = calloc(g->n_columns + FIXED, sizeof *c);
    size_t n = g->n_columns;
    if (!c) return 1;
    for (size_t i = 0; i < n; i++) c[i] = text_cell(g->columns[i]);
    for (size_t i = 0; i < FIXED; i++) c[n + i] = text_cell(heads[i]);
    table_csv(f, c, n + FIXED);
    for (size_t k = 0; k < g->n; k++) {
        const struct group *x = &g->v[k];
        for (size_t i = 0; i < n; i++) c[i] = text_cell(x->values[i]);
        c[n] = (struct cell){.kind = CELL_INT, .i = (int64_t)x->n};
        c[n + 1] = (struct cell){.kind = CELL_INT, .i = (int64_t)x->ok};
        for (int i = 0; i < 5; i++) c[n + 2 + (size_t)i] = real(value(r, x, i));
        c[n + 7] = real(x->classed ? (double)x->hits / (double)x->classed : NAN);
        table_csv(f, c, n + FIXED);
    }
    free(c);
    return 0;
}

int groups_json(const struct groups *g, const struct report *r, FILE *f) {
    static const char *const names[N_GROUP_METRICS] = {"ttft_server_ms", "tpot_ms", "e2e_client_ms"};
    struct jsonw j = {.f = f};
    jsonw_open(&j, NULL, '{');
    report_json_head(&j, r);
    jsonw_open(&j, "groups", '[');
    for (size_t k = 0; k < g->n; k++) {
        const struct group *x = &g->v[k];
        jsonw_open(&j, NULL, '{');
        jsonw_open(&j, "by", '{');
        for (size_t i = 0; i < g->n_columns; i++) jsonw_text(&j, g->columns[i], x->values[i]);
        jsonw_close(&j, '{');
        jsonw_int(&j, "n", (int64_t)x->n);
        jsonw_int(&j, "ok", (int64_t)x->ok);
        jsonw_number(&j, "hit_share", x->classed ? (double)x->hits / (double)x->classed : NAN);
        jsonw_open(&j, "metrics", '{');
        for (int i = 0; i < N_GROUP_METRICS; i++) report_json_summary(&j, r, names[i], &x->s[i]);
        jsonw_close(&j, '{');
        jsonw_close(&j, '{');
    }
    jsonw_close(&j, '[');
    jsonw_close(&j, '{');
    return 0;
}
