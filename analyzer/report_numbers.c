/* The lower half of the text report: latency, caches, throughput, speculation, and how to read them. */
#include "analyzer/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 15 };

/* A metric of the latency table; the last ones only when asked for. */
static const struct {
    const char *name;
    bool asked_only;
} rows[] = {
    {"ttft_queued", false},
    {"ttft_client", false},
    {"ttft_server", false},
    {"ttfa_server", false},
    {"ttfb_server", true},
    {"tpot", false},
    {"tpot_prorated", false},
    {"tpot_events", false},
    {"e2e_queued", false},
    {"e2e_client", false},
    {"e2e_server", false},
    {"client_queue", true},
    {"upload", true},
    {"forward_lag", true},
    {"upstream_connect", true},
    {"tail", true},
    {"delivery_lag", true},
    {"reported_queue", true},
    {"reported_load", true},
    {"reported_prefill", true},
    {"reported_ttft", true},
    {"reported_decode", true},
    {"itl", false},
    {"itl_prorated", false},
    {"itl_events", false},
    {"itl_burst", true},
    {"itl_burst_prorated", true},
    {"itl_burst_events", true},
    {"chunk_gap", false},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static bool is_shown(const struct page *p, int i, const struct summary *s) {
    if (!s || s->n == 0) return false;
    if (rows[i].asked_only && !page_asked(p, s->metric)) return false;
    return strcmp(s->name, "ttfa_server") != 0 || p->r->any_reasoning || page_asked(p, "ttfa_server");
}

/* The percentiles of the columns: as asked, else 50, 90, 99. */
static size_t shown_percentiles(const struct page *p, size_t *index) {
    static const double usual[] = {50, 90, 99};
    size_t n = p->o->n_percentiles ? p->o->n_percentiles : 3;
    for (size_t i = 0; i < n; i++)
        index[i] = report_percentile(p->r, (p->o->n_percentiles ? p->o->percentiles[i] : usual[i]) / 100);
    return n;
}

/* Of these the highest: it gets the interval and the estimate with failures. */
static size_t tail_of(const size_t *index, size_t n) {
    size_t most = index[0];
    for (size_t i = 1; i < n; i++)
        if (index[i] > most) most = index[i];
    return most;
}

static const char *interval_text(char *out, const struct interval *i, const struct show_mode *m) {
    char lo[SHOW_MAX], hi[SHOW_MAX];
    if (isnan(i->lo) && isnan(i->hi)) return "-";
    if (isnan(i->hi))
        snprintf(out, 2 * SHOW_MAX, "%s%s", m->utf8 ? "≥" : ">=", show_ms(lo, i->lo));
    else if (isnan(i->lo))
        snprintf(out, 2 * SHOW_MAX, "%s%s", m->utf8 ? "≤" : "<=", show_ms(hi, i->hi));
    else
        snprintf(out, 2 * SHOW_MAX, "%s-%s", show_ms(lo, i->lo), show_ms(hi, i->hi));
    return out;
}

enum { NAME, FROM_TO, COUNT, FIRST_P }; /* then the percentiles, the interval, p_all, max */
enum { MOST_COLUMNS = FIRST_P + ARGS_MAX_PERCENTILES + 3 };

struct layout {
    bool from_to, interval;
    size_t index[ARGS_MAX_PERCENTILES], n_p, tail;
    bool hang[ARGS_MAX_PERCENTILES]; /* some cell of the column has a mark: the others get a blank, so that
                                        digits align */
    char heads[ARGS_MAX_PERCENTILES + 2][32];
};

static void name_percentile(const struct page *p, char *out, size_t size, const char *before, size_t index,
                            const char *behind) {
    snprintf(out, size, "%sp%g%s", before, 100 * p->r->percentiles[index], behind);
}

static size_t columns_for(const struct page *p, struct layout *l, struct grid_column *c) {
    size_t n = 0;
    c[n++] = (struct grid_column){{"LATENCY ms", NULL}, GRID_LEFT, 0};
    if (l->from_to)
        c[n++] = (struct grid_column){{p->m->utf8 ? "from → to" : "from -> to", NULL}, GRID_LEFT, 2};
    c[n++] = (struct grid_column){{"n", NULL}, GRID_RIGHT, 2};
    for (size_t i = 0; i < l->n_p; i++) {
        name_percentile(p, l->heads[i], sizeof l->heads[i], "", l->index[i], l->hang[i] ? " " : "");
        c[n++] = (struct grid_column){{l->heads[i], NULL}, GRID_RIGHT, l->hang[i] ? 1 : 2};
    }
    name_percentile(p, l->heads[l->n_p], sizeof l->heads[0], "95 % of ", l->tail, "");
    name_percentile(p, l->heads[l->n_p + 1], sizeof l->heads[0], "", l->tail, "_all");
    if (l->interval) c[n++] = (struct grid_column){{l->heads[l->n_p], NULL}, GRID_RIGHT, 2};
    c[n++] = (struct grid_column){{l->heads[l->n_p + 1], NULL}, GRID_RIGHT, 1};
    c[n++] = (struct grid_column){{"max", NULL}, GRID_RIGHT, 2};
    return n;
}

static void add_row(const struct page *p, struct grid *g, const struct layout *l, const struct summary *s) {
    char name[80], from_to[64], n_text[SHOW_MAX], values[ARGS_MAX_PERCENTILES][SHOW_MAX + 2],
        ci[2 * SHOW_MAX], all[SHOW_MAX], max[SHOW_MAX], share[SHOW_MAX];
    const char *cells[MOST_COLUMNS];
    size_t n = 0;
    if (s->grade > 0)
        snprintf(name, sizeof name, " %s %s %%", s->name, show_share(share, s->grade_share));
    else
        snprintf(name, sizeof name, " %s", s->name);
    cells[n++] = name;
    if (l->from_to) cells[n++] = page_from_to(p, s->metric, from_to, sizeof from_to);
    cells[n++] = show_count(n_text, (double)s->n);
    for (size_t i = 0; i < l->n_p; i++) {
        show_ms(values[i], s->p[l->index[i]]);
        if (s->ci[l->index[i]].few)
            strcat(values[i], "?");
        else if (l->hang[i])
            strcat(values[i], " ");
        cells[n++] = values[i];
    }
    if (l->interval) cells[n++] = interval_text(ci, &s->ci[l->tail], p->m);
    cells[n++] = show_ms(all, s->p_all[l->tail]);
    cells[n++] = show_ms(max, s->max);
    grid_row(g, cells);
}

static struct grid *make_latency(const struct page *p, struct layout *l) {
    struct grid_column columns[MOST_COLUMNS];
    struct grid *g = grid_new(columns, columns_for(p, l, columns));
    for (int i = 0; g && i < N_ROWS; i++) {
        const struct summary *s = report_find(p->r, rows[i].name);
        if (is_shown(p, i, s)) add_row(p, g, l, s);
    }
    return g;
}

struct grid *latency_grid(const struct page *p, size_t width) {
    static const bool steps[][2] = {{true, true}, {false, true}, {false, false}};
    struct layout l = {0};
    struct grid *g = NULL;
    l.n_p = shown_percentiles(p, l.index);
    l.tail = tail_of(l.index, l.n_p);
    for (int i = 0; i < N_ROWS; i++) {
        const struct summary *s = report_find(p->r, rows[i].name);
        for (size_t k = 0; is_shown(p, i, s) && k < l.n_p; k++) l.hang[k] |= s->ci[l.index[k]].few;
    }
    for (int i = 0; i < 3; i++) {
        grid_free(g);
        l.from_to = steps[i][0];
        l.interval = steps[i][1];
        g = make_latency(p, &l);
        if (!g || width == 0 || grid_width(g) <= width) break;
    }
    return g;
}

/* Why a metric that the table would have is not in it. */
static const char *why_absent(const struct report *r, const char *name) {
    bool streamed = r->with_tokens > 0;
    if (strstr(name, "queue")) return "no X-Request-Start";
    if (strcmp(name, "ttfa_server") == 0 && streamed) return "no reasoning";
    if (r->by_outcome[OUTCOME_ok] == 0) return "no request was ok";
    if (!streamed && r->buffered) return "every stream came in one arrival";
    if (!streamed) return "nothing was streamed with tokens";
    if (strstr(name, "_server")) return "the response began before the request was sent";
    return "no request has a second arrival";
}

static bool in_any_grade(const struct page *p, const char *metric) {
    for (size_t i = 0; i < p->r->n_s; i++)
        if (strcmp(p->r->s[i].metric, metric) == 0 && p->r->s[i].n) return true;
    return false;
}

static void put_not_shown(const struct page *p) {
    static const char *const expected[] = {"client_queue", "ttft_queued", "e2e_queued", "ttfa_server",
                                           "ttft_client",  "ttft_server", "tpot",       "e2e_client",
                                           "e2e_server",   "itl",         "chunk_gap"};
    enum { N = sizeof expected / sizeof expected[0] };
    const char *why[N] = {NULL};
    struct para w;
    bool any = false;
    for (int i = 0; i < N; i++) {
        bool answer = strcmp(expected[i], "ttfa_server") == 0;
        if (!in_any_grade(p, expected[i]) || (answer && !p->r->any_reasoning && !page_asked(p, expected[i])))
            why[i] = why_absent(p->r, expected[i]);
        any |= why[i] != NULL;
    }
    if (!any) return;
    para_begin(&w, p, " not shown:", 12, 1);
    for (int i = 0; i < N; i++) {
        if (!why[i]) continue;
        para_words(&w, "%s", expected[i]);
        const char *reason = why[i];
        for (int k = i + 1; k < N; k++) {
            if (!why[k] || strcmp(why[k], reason) != 0) continue;
            fputc(',', p->f);
            w.at++;
            para_words(&w, "%s", expected[k]);
            why[k] = NULL;
        }
        bool more = false;
        for (int k = i + 1; k < N; k++) more |= why[k] != NULL;
        para_words(&w, "(%s)%s", reason, more ? ";" : "");
    }
    para_end(&w);
}

void page_latency(const struct page *p) {
    const struct report *r = p->r;
    char a[SHOW_MAX], b[SHOW_MAX];
    struct grid *g = latency_grid(p, (size_t)p->m->columns);
    struct para w;
    fputc('\n', p->f);
    if (!g) return;
    grid_print(g, p->f, 0);
    grid_free(g);
    if (!isnan(r->tokens_per_arrival) || r->token_sources) {
        para_begin(&w, p, " ", 1, 4);
        if (!isnan(r->tokens_per_arrival)) {
            para_item(&w, "tokens_per_arrival %.2f", r->tokens_per_arrival);
            if (r->stalls.gaps == 0)
                para_item(&w, "stalls none");
            else
                para_item(&w, "stalls %s %s in %s %s", show_count(a, (double)r->stalls.gaps),
                          r->stalls.gaps == 1 ? "gap" : "gaps", show_count(b, (double)r->stalls.requests),
                          r->stalls.requests == 1 ? "request" : "requests");
        }
        if (r->token_sources) para_item(&w, "token_source %s", r->token_sources);
        para_end(&w);
    }
    put_not_shown(p);
}
