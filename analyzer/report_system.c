/* The text report's blocks over all requests: caches, throughput, speculation, the foot. */
#include "analyzer/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 15 };

static double at(const struct report *r, const struct summary *s, double p) {
    size_t i = report_percentile(r, p);
    return s && s->n && i != SIZE_MAX ? s->p[i] : NAN;
}

static bool few(const struct report *r, const struct summary *s, double p) {
    size_t i = report_percentile(r, p);
    return s->n && i != SIZE_MAX && s->ci[i].few;
}

static const char *marked(char *out, const struct report *r, const struct summary *s, double p, bool hang) {
    show_ms(out, at(r, s, p));
    return strcat(out, few(r, s, p) ? "?" : hang ? " " : "");
}

struct grid *cache_grid(const struct page *p, bool narrow) {
    static const struct grid_column all[] = {{{"CACHE", NULL}, GRID_LEFT, 0},
                                             {{"n", NULL}, GRID_RIGHT, 2},
                                             {{"share", NULL}, GRID_RIGHT, 2},
                                             {{"hit_ratio", NULL}, GRID_RIGHT, 2},
                                             {{"prompt p50", NULL}, GRID_RIGHT, 2},
                                             {{"uncached p50", NULL}, GRID_RIGHT, 2},
                                             {{"ttft_server p50", NULL}, GRID_RIGHT, 2},
                                             {{"p90", NULL}, GRID_RIGHT, 2},
                                             {{"p99", NULL}, GRID_RIGHT, 2}};
    const struct report *r = p->r;
    struct grid_column columns[9];
    size_t n_columns = 0, total = 0;
    bool hang[3] = {false};
    static const double shown[] = {.5, .9, .99};
    for (int c = 0; c < N_CACHE; c++) {
        total += r->cache[c].n;
        for (int i = 0; i < 3; i++) hang[i] |= few(r, &r->cache[c].ttft, shown[i]);
    }
    for (int i = 0; i < 9; i++)
        if (!narrow || (i != 3 && i != 5)) columns[n_columns++] = all[i];
    for (int i = 0; i < 3; i++) /* heads stand over the digits, not over the marks */
        if (hang[i])
            columns[n_columns - 3 + (size_t)i].head[0] =
                (const char *[]){"ttft_server p50 ", "p90 ", "p99 "}[i];
    struct grid *g = grid_new(columns, n_columns);
    for (int c = 0; g && c < N_CACHE; c++) {
        const struct cache_row *row = &r->cache[c];
        char b[9][SHOW_MAX];
        const char *cells[9];
        size_t n = 0;
        if (row->n == 0) continue;
        snprintf(b[0], SHOW_MAX, " %s", cache_names[c]);
        show_count(b[1], (double)row->n);
        show_share(b[2], (double)row->n / (double)total);
        strcat(b[2], " %");
        show_ratio(b[3],
                   row->prompt_of_cached > 0 && row->cached > 0 ? row->cached / row->prompt_of_cached : NAN);
        show_count(b[4], round(at(r, &row->prompt, .5)));
        show_count(b[5], round(at(r, &row->uncached, .5)));
        for (int i = 0; i < 3; i++) marked(b[6 + i], r, &row->ttft, shown[i], hang[i]);
        for (int i = 0; i < 9; i++)
            if (!narrow || (i != 3 && i != 5)) cells[n++] = b[i];
        grid_row(g, cells);
    }
    return g;
}

static void put_empty_classes(const struct page *p) {
    char none[128] = "";
    for (int c = 0; c < N_CACHE; c++) {
        if (p->r->cache[c].n) continue;
        if (*none) strcat(none, ", ");
        strcat(none, cache_names[c]);
    }
    if (*none) fprintf(p->f, " %s: none\n", none);
}

void page_cache(const struct page *p) {
    const struct report *r = p->r;
    size_t total = 0;
    for (int c = 0; c < N_CACHE; c++) total += r->cache[c].n;
    if (total == 0) return; /* no request has a first token: the line below LATENCY says why */
    fputc('\n', p->f);
    if (r->cache[CACHE_unreported].n == total) {
        fprintf(p->f, "%-*s%s\n", LABEL, "CACHE", "not reported by this engine; no sign of a cold start");
        return;
    }
    struct grid *g = cache_grid(p, false);
    if (g && grid_width(g) > (size_t)p->m->columns) {
        grid_free(g);
        g = cache_grid(p, true);
    }
    if (!g) return;
    grid_print(g, p->f, 0);
    grid_free(g);
    put_empty_classes(p);
}

/* A rate over the window; nothing when it is not known. */
static void put_rate(struct para *w, double sum, double seconds, const char *unit) {
    char b[SHOW_MAX];
    if (!isnan(sum) && seconds > 0) para_item(w, "%s %s", show_rate(b, sum / seconds), unit);
}

static void put_system(const struct page *p) {
    const struct throughput *t = &p->r->through;
    char a[SHOW_MAX], b[SHOW_MAX];
    struct para w;
    para_begin(&w, p, " system", LABEL, 4);
    put_rate(&w, t->output, t->window_s, "output tok/s");
    put_rate(&w, t->prompt, t->window_s, "prompt tok/s");
    w.gap = 1;
    if (!isnan(t->uncached) && t->window_s > 0)
        para_item(&w, "(%s uncached)", show_rate(a, t->uncached / t->window_s));
    w.gap = 4;
    put_rate(&w, t->completed, t->window_s, "completed /s");
    para_item(&w, "in flight mean %s, most %s", show_rate(a, t->mean_concurrency),
              show_count(b, (double)t->highest_concurrency));
    para_end(&w);
}

static void put_per_user(const struct page *p) {
    const struct report *r = p->r;
    static const char *const names[] = {"decode_tps", "decode_tps_prorated", "decode_tps_events", "e2e_tps"};
    char a[SHOW_MAX], b[SHOW_MAX];
    struct para w;
    bool any = false;
    for (int i = 0; i < 4; i++) {
        const struct summary *s = report_find(r, names[i]);
        if (!s || !s->n) continue;
        if (!any) para_begin(&w, p, " per user", LABEL, 4);
        any = true;
        para_item(&w, "%s p50 %s, p10 %s", names[i], show_rate(a, at(r, s, .5)), show_rate(b, at(r, s, .1)));
    }
    if (!any) return;
    para_item(&w, "(p10 is the slow tail)");
    para_end(&w);
}

void page_throughput(const struct page *p) {
    const struct report *r = p->r;
    const struct summary *prefill = report_find(r, "prefill_tps");
    char a[SHOW_MAX];
    fputc('\n', p->f);
    if (!(r->through.window_s > 0)) {
        fprintf(p->f, "%-*snone: no end of a request was seen\n", LABEL, "THROUGHPUT");
        return;
    }
    fprintf(p->f, "%-*s%s from first arrival to last end, failures included\n", LABEL, "THROUGHPUT",
            show_duration(a, r->through.window_s, true));
    put_system(p);
    if (prefill && prefill->n)
        fprintf(p->f, "%-*s%s%s p50 over the misses, queueing inside\n", LABEL, " prefill_tps",
                p->m->utf8 ? "≥" : ">=", show_rate(a, at(r, prefill, .5)));
    put_per_user(p);
}

void page_speculation(const struct page *p) {
    const struct speculation *s = &p->r->spec;
    char a[SHOW_MAX], b[SHOW_MAX];
    struct para w;
    if (s->n == 0) return;
    para_begin(&w, p, "SPECULATION", LABEL, 4);
    if (!isnan(s->rate_pooled))
        para_item(&w, "accept_rate %s %% pooled, %s %% median", show_share(a, s->rate_pooled),
                  show_share(b, s->rate_median));
    if (!isnan(s->length_pooled))
        para_item(&w, "accept_length %.2f pooled, %.2f median", s->length_pooled, s->length_median);
    para_end(&w);
}

/* As short as it can be written: 500, 24.5. */
static const char *plain(char *out, double v) {
    if (v == floor(v)) return show_decimals(out, v, 0);
    snprintf(out, SHOW_MAX, "%g", v);
    return out;
}

/* Limits in the words that they were taken for, then who missed them. */
void page_goodput(const struct page *p) {
    const struct slo *s = &p->r->slo;
    char a[SHOW_MAX], b[SHOW_MAX], c[SHOW_MAX];
    struct para w;
    if (s->n == 0) return;
    para_begin(&w, p, "GOODPUT", LABEL, 1);
    if (s->decided == 0)
        para_item(&w, "none: no generation could be judged;");
    else
        para_item(&w, "%s %% (%s to %s),", show_share(a, (double)s->good / (double)s->decided),
                  show_share(b, s->share.lo), show_share(c, s->share.hi));
    if (p->r->through.window_s > 0)
        para_item(&w, "%s /s,", show_rate(a, (double)s->good / p->r->through.window_s));
    for (size_t i = 0; i < s->n; i++)
        para_item(&w, "%s %s%s %s %s ms", i ? "and" : "with", s->v[i].metric == SLO_ITL ? "p99 of " : "",
                  s->v[i].name, p->m->utf8 ? "≤" : "<=", plain(a, s->v[i].ms));
    para_end(&w);
    para_begin(&w, p, " missed by", LABEL, 1);
    para_item(&w, "%s failed,", show_count(a, (double)s->failed));
    for (size_t i = 0; i < s->n; i++)
        para_item(&w, "%s %s%s", show_count(a, (double)s->v[i].missed), s->v[i].name,
                  i + 1 < s->n || s->gone ? "," : "");
    if (s->gone) para_item(&w, "%s left or running beyond a limit", show_count(a, (double)s->gone));
    if (s->several) para_item(&w, "(%s more than one)", show_count(a, (double)s->several));
    w.gap = 4;
    if (s->without_tokens + s->undecided)
        para_item(&w, "not judged: %s without tokens, %s left or running",
                  show_count(a, (double)s->without_tokens), show_count(b, (double)s->undecided));
    para_end(&w);
}

void page_foot(const struct page *p) {
    const struct report *r = p->r;
    char inputs[256];
    struct para w;
    bool any_few = false, any_iid = false, any_blocks = false;
    for (size_t i = 0; i < r->n_s; i++) {
        any_few |= r->s[i].n && few(r, &r->s[i], .99);
        any_iid |= r->s[i].n && r->s[i].n < 200;
        any_blocks |= r->s[i].n >= 200;
    }
    fputc('\n', p->f);
    para_begin(&w, p, "", 0, 2);
    para_item(&w, "- not known");
    para_item(&w, "%s lower bound", p->m->utf8 ? "≥" : ">=");
    if (any_few) para_item(&w, "? fewer samples than an interval needs (p99: 368)");
    para_item(&w, "p99_all: failures as never, leavers censored");
    para_item(&w, "%s;%s%s%s", r->rule == STATS_LINEAR ? "H-F 7" : "nearest rank",
              any_blocks ? " 20 time blocks" : "", any_blocks && any_iid ? "," : "",
              any_iid ? " iid below 200 requests" : "");
    para_end(&w);
    page_inputs(p, inputs, sizeof inputs);
    para_begin(&w, p, "next", 6, 8);
    para_item(&w, "traceanalyze requests %s --sort -ttft_server --limit 20", inputs);
    para_item(&w, "traceanalyze definitions ttft_server");
    if (r->token_sources && (strstr(r->token_sources, "prorated") || strstr(r->token_sources, "events")))
        para_item(&w, "traceanalyze definitions --dialects"); /* how to be told more */
    para_end(&w);
}
