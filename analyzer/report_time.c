/* OVER TIME: the selection as rows of bars, so that a spike is seen before any number is read. */
#include "analyzer/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 15, RANGE = 25, MOST = 60 };

struct bars {
    size_t n;
    double seconds; /* of one bar */
    int64_t from_ns, to_ns;
    double arrived[MOST], failed[MOST], wait[MOST]; /* wait: NaN where nothing has it */
};

static size_t bar_of(const struct bars *b, int64_t wall_ns) {
    double at = (double)(wall_ns - b->from_ns) / 1e9 / b->seconds;
    return at < 0 ? 0 : at >= (double)b->n ? b->n - 1 : (size_t)at;
}

/* p90 of a metric over the ok requests that arrived within a bar. */
static double p90_of(const struct report *r, const struct bars *b, size_t bar, enum metric m,
                     struct sample *room) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->g[i].outcome == OUTCOME_ok && !isnan(r->g[i].v[m]) && bar_of(b, r->g[i].wall_ns) == bar)
            room[n++] = (struct sample){r->g[i].v[m], 1, 0};
    struct dist *d = dist_new(room, n);
    double v = d ? dist_quantile(d, .9, r->rule) : NAN;
    dist_free(d);
    return v;
}

static bool fill(const struct report *r, struct bars *b, size_t n, enum metric m) {
    struct sample *room = malloc((r->n + 1) * sizeof *room);
    b->from_ns = b->to_ns = r->g[0].wall_ns;
    for (size_t i = 0; i < r->n; i++)
        if (r->g[i].wall_ns + (r->g[i].end_seen_ns - r->g[i].arrive_ns) > b->to_ns && r->g[i].end_seen_ns)
            b->to_ns = r->g[i].wall_ns + (r->g[i].end_seen_ns - r->g[i].arrive_ns);
    b->n = n;
    b->seconds = (double)(b->to_ns - b->from_ns) / 1e9 / (double)n;
    bool good = room && b->seconds > 0;
    for (size_t i = 0; good && i < r->n; i++) {
        size_t at = bar_of(b, r->g[i].wall_ns);
        b->arrived[at] += 1 / b->seconds;
        b->failed[at] += report_failed(r->g[i].outcome);
    }
    for (size_t i = 0; good && i < n; i++) b->wait[i] = p90_of(r, b, i, m, room);
    free(room);
    return good;
}

static void put_row(const struct page *p, const char *label, const double *v, size_t n,
                    const char *(*text)(char *, double)) {
    char lo[SHOW_MAX], hi[SHOW_MAX];
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        least = fmin(least, v[i]);
        most = fmax(most, v[i]);
    }
    if (isinf(least)) return;
    fprintf(p->f, "%-*s", LABEL, label);
    for (size_t i = 0; i < n; i++)
        fputs(show_bar(isnan(v[i]) ? -1 : v[i] <= 0 ? 0 : (int)fmin(8, ceil(8 * v[i] / most)), p->m), p->f);
    fprintf(p->f, "   %s to %s\n", text(lo, least), text(hi, most));
}

/* Times above the bars: begin, end, and the bar of the longest wait where there is room for it between them.
 */
static void put_scale(const struct page *p, const struct bars *b) {
    char line[MOST + 16], t[SHOW_MAX], took[SHOW_MAX];
    size_t peak = 0, width = (double)(b->to_ns - b->from_ns) < 600e9 ? 8 : 5;
    for (size_t i = 0; i < b->n; i++)
        if (!isnan(b->wait[i]) && (isnan(b->wait[peak]) || b->wait[i] > b->wait[peak])) peak = i;
    memset(line, ' ', sizeof line);
    memcpy(line, show_time(t, b->from_ns, 0, p->m), width);
    if (peak > width + 1 && peak + width + 1 < b->n - width)
        memcpy(line + peak, show_time(t, b->from_ns + (int64_t)((double)peak * b->seconds * 1e9), 0, p->m),
               width);
    memcpy(line + b->n - width, show_time(t, b->to_ns, 0, p->m), width);
    line[b->n] = 0;
    fprintf(p->f, "%-*s%s   a bar is %s%s\n", LABEL, "OVER TIME", line, show_duration(took, b->seconds, true),
            p->m->utf8 ? ", . is 0" : "");
}

static const char *count(char *out, double v) {
    return show_count(out, v);
}

void page_over_time(const struct page *p) {
    struct bars b = {0};
    bool tokens = p->r->with_tokens > 0;
    size_t n = (size_t)(p->m->columns - LABEL - RANGE);
    if (!fill(p->r, &b, n > MOST ? MOST : n, tokens ? M_ttft_client : M_e2e_client)) return;
    fputc('\n', p->f);
    put_scale(p, &b);
    put_row(p, " arrived /s", b.arrived, b.n, show_rate);
    put_row(p, tokens ? " ttft p90 ms" : " e2e p90 ms", b.wait, b.n, show_ms);
    put_row(p, " failed", b.failed, b.n, count);
}
