/* A report for other programs and for posts: CSV rows and Markdown tables. */
#include "analyzer/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct cell text_cell(const char *s) {
    return (struct cell){.kind = CELL_TEXT, .s = s, .n = strlen(s)};
}
static struct cell real(double d) {
    return (struct cell){.kind = isnan(d) ? CELL_NULL : CELL_REAL, .d = d};
}

enum { FIXED = 9, MOST_CELLS = FIXED + 4 * REPORT_PERCENTILES };

static size_t csv_head(const struct report *r, struct cell *c, char heads[][32]) {
    static const char *const fixed[FIXED] = {"metric", "unit", "grade", "n",          "mean",
                                             "sd",     "min",  "max",   "few_samples"};
    static const char *const tails[4] = {"", "_lo95", "_hi95", "_all"};
    size_t n = 0;
    for (int i = 0; i < FIXED; i++) c[n++] = text_cell(fixed[i]);
    for (size_t i = 0; i < r->n_percentiles; i++)
        for (int t = 0; t < 4; t++, n++) {
            snprintf(heads[n], sizeof heads[n], "p%g%s", 100 * r->percentiles[i], tails[t]);
            c[n] = text_cell(heads[n]);
        }
    return n;
}

/* One row a metric; every metric has its row, so that the columns of two reports can be joined. */
int report_csv(const struct report *r, FILE *f) {
    struct cell c[MOST_CELLS];
    char heads[MOST_CELLS][32];
    table_csv(f, c, csv_head(r, c, heads));
    for (size_t i = 0; i < r->n_s; i++) {
        const struct summary *s = &r->s[i];
        size_t n = 0, p99 = report_percentile(r, .99);
        c[n++] = text_cell(s->name);
        c[n++] = text_cell(s->unit);
        c[n++] = s->grade < 0 ? (struct cell){.kind = CELL_NULL} : text_cell(grade_names[s->grade]);
        c[n++] = (struct cell){.kind = CELL_INT, .i = (int64_t)s->n};
        const double values[] = {s->mean, s->sd, s->min, s->max};
        for (int k = 0; k < 4; k++) c[n++] = real(values[k]);
        c[n++] = (struct cell){.kind = CELL_INT, .i = s->ci[p99].few};
        for (size_t k = 0; k < r->n_percentiles; k++) {
            const double cells[] = {s->p[k], s->ci[k].lo, s->ci[k].hi, s->p_all[k]};
            for (int t = 0; t < 4; t++) c[n++] = real(cells[t]);
        }
        table_csv(f, c, n);
    }
    return 0;
}

static void markdown_grid(struct grid *g, FILE *f) {
    if (g) grid_markdown(g, f);
    fputc('\n', f);
    grid_free(g);
}

static void markdown_outcomes(const struct report *r, FILE *f) {
    static const struct grid_column columns[] = {
        {{"outcome", NULL}, GRID_LEFT, 0}, {{"n", NULL}, GRID_RIGHT, 0}, {{"share", NULL}, GRID_RIGHT, 0}};
    struct grid *g = grid_new(columns, 3);
    for (int o = 0; g && o < N_OUTCOMES; o++) {
        char n[SHOW_MAX], share[SHOW_MAX + 4];
        if (r->by_outcome[o] == 0) continue;
        show_share(share, (double)r->by_outcome[o] / (double)r->n);
        strcat(share, " %");
        grid_row(g, (const char *const[]){outcome_names[o], show_count(n, (double)r->by_outcome[o]), share});
    }
    markdown_grid(g, f);
}

/* A block of the text report as it stands, without the blank line before it. */
static void markdown_text(void (*block)(const struct page *), struct page p) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = p.f;
    p.f = open_memstream(&text, &size);
    if (!p.f) return;
    block(&p);
    fclose(p.f);
    fprintf(f, "```\n%s```\n\n", text + (*text == '\n'));
    free(text);
}

int report_markdown(const struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *zone,
                    FILE *f) {
    struct show_mode m = {.utf8 = true,
                          .columns = 100,
                          .local = zone->local,
                          .zone = zone->zone}; /* a post is read elsewhere */
    struct page p = {r, db, o, &m, f};
    char inputs[256];
    markdown_text(page_head, p);
    markdown_text(page_losses, p);
    if (r->n == 0) {
        markdown_text(page_none, p);
    } else {
        markdown_outcomes(r, f);
        markdown_grid(latency_grid(&p, 0), f);
        if (r->cache[CACHE_unreported].n < r->with_tokens) markdown_grid(cache_grid(&p, false), f);
        markdown_text(page_throughput, p);
        if (r->slo.n) markdown_text(page_goodput, p);
    }
    fprintf(f, "traceanalyze %s, recording %s: `traceanalyze report %s --format markdown`\n",
            TRACEREC_VERSION, r->n_traces ? r->traces[0].recording : "-",
            page_inputs(&p, inputs, sizeof inputs));
    return 0;
}
