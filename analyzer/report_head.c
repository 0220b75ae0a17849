/* The upper half of the text report: what was recorded, what was lost and how wrong the recorder can be, what
 * failed, and when. */
#include "analyzer/report_page.h"
#include "analyzer/requests_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 15 };

static void put_files(struct para *w, const struct report *r) {
    const char *first = r->traces[0].file;
    if (r->n_traces == 1)
        para_item(w, "%s", first);
    else
        para_item(w, "%s and %zu more", first, r->n_traces - 1);
}

/* "2027-01-14 02:55:00 to 03:37:00 UTC, 42 min"; the second date only when it is another one. */
static void put_span(struct para *w, const struct report *r) {
    const struct show_mode *m = w->p->m;
    char d0[SHOW_MAX], d1[SHOW_MAX], t0[SHOW_MAX], t1[SHOW_MAX], took[SHOW_MAX];
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (size_t i = 0; i < r->n_traces; i++) {
        if (!r->traces[i].started_wall_ns) continue;
        if (r->traces[i].started_wall_ns < from) from = r->traces[i].started_wall_ns;
        if (r->traces[i].ended_wall_ns > to) to = r->traces[i].ended_wall_ns;
    }
    if (from > to) return;
    bool same_day = strcmp(show_date(d0, from, m), show_date(d1, to, m)) == 0;
    show_duration(took, (double)(to - from) / 1e9, true);
    para_item(w, "%s %s to %s%s%s %s, %s", d0, show_time(t0, from, 0, m), same_day ? "" : d1,
              same_day ? "" : " ", show_time(t1, to, 0, m), m->zone, took);
}

/* One word when all files share it, else "2 sealed, 1 growing". */
static void put_state(struct para *w, const struct report *r) {
    char all[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < r->n_traces; i++) {
        size_t same = 0, before = 0;
        for (size_t k = 0; k < r->n_traces; k++)
            if (strcmp(r->traces[k].state, r->traces[i].state) == 0) {
                same++;
                before += k < i;
            }
        if (before || n >= sizeof all) continue;
        if (same == r->n_traces)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s", r->traces[i].state);
        else
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%zu %s", n ? ", " : "", same,
                                  r->traces[i].state);
    }
    para_item(w, "%s", all);
}

static void put_models(struct para *w, const struct report *r) {
    char all[400] = "";
    size_t n = 0, named = 0;
    for (size_t i = 0; i < r->n_models; i++) {
        if (strcmp(r->models[i].key, "-") == 0) continue; /* those that name none */
        if (named < 3 && n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", named ? ", " : "", r->models[i].key);
        named++;
    }
    if (named > 3 && n < sizeof all) snprintf(all + n, sizeof all - n, " and %zu more", named - 3);
    if (named) para_item(w, "%s %s", named > 1 ? "models" : "model", all);
}

void page_head(const struct page *p) {
    const struct report *r = p->r;
    struct para w;
    if (r->n_traces == 0) return;
    para_begin(&w, p, "", 2, 2);
    put_files(&w, r);
    put_span(&w, r);
    if (r->traces[0].source) para_item(&w, "%s", r->traces[0].source);
    put_state(&w, r);
    if (r->traces[0].version)
        para_item(&w, "%s%s", strncmp(r->traces[0].version, "tracerec", 8) ? "tracerec " : "",
                  r->traces[0].version);
    para_end(&w);
    para_begin(&w, p, "", 2, 4);
    put_models(&w, r);
    if (r->traces[0].recorder) para_item(&w, "recorder %s", r->traces[0].recorder);
    size_t gap = 0;
    for (size_t i = 0; i < r->n_notes; i++) {
        if (gap) w.gap = gap;
        para_item(&w, "%s%s=%s", i ? "" : "notes ", r->notes[i].key, r->notes[i].value);
        gap = 1;
    }
    if (w.at) para_end(&w);
}

/* How many, in how many requests, when, why, what leaves them out, what to do. */
static void put_loss(const struct page *p, const struct loss_row *l) {
    struct para w;
    char count[SHOW_MAX], t0[SHOW_MAX], t1[SHOW_MAX];
    bool lost = strcmp(l->severity, "loss") == 0;
    para_begin(&w, p, lost ? "LOST" : strcmp(l->severity, "odd") == 0 ? "odd" : "note", 6, 1);
    para_words(&w, "%s, %s %s%s", l->loss, show_count(count, (double)(l->count ? l->count : 1)),
               l->count > 1 ? "times" : "time",
               l->requests       ? ""
               : l->from_wall_ns ? ","
                                 : ":");
    if (l->requests)
        para_words(&w, "in %s %s%s", show_count(count, (double)l->requests),
                   l->requests == 1 ? "request" : "requests", l->from_wall_ns ? "," : ":");
    if (l->from_wall_ns && l->from_wall_ns == l->to_wall_ns)
        para_words(&w, "at %s:", show_time(t0, l->from_wall_ns, 3, p->m));
    else if (l->from_wall_ns)
        para_words(&w, "%s to %s:", show_time(t0, l->from_wall_ns, 3, p->m),
                   show_time(t1, l->to_wall_ns, 3, p->m));
    para_words(&w, "%s.", l->meaning);
    if (lost) para_words(&w, "Requests it touches are left out of tpot, itl and chunk_gap.");
    if (l->remedy && strncmp(l->remedy, "none", 4) != 0) para_words(&w, "To do: %s.", l->remedy);
    para_end(&w);
}

static void put_recorder(const struct page *p, const char *label) {
    const struct report *r = p->r;
    struct para w;
    char a[SHOW_MAX], b[SHOW_MAX], c[SHOW_MAX], at[SHOW_MAX];
    para_begin(&w, p, label, 2, 1);
    bool told = false;
    for (size_t i = 0; i < r->n_delays; i++) {
        const struct delay_row *d = &r->delays[i];
        if (strcmp(d->name, "delay_down") != 0 || d->count == 0) continue;
        told = true;
        para_item(&w, "adds p50 %s, p99 %s, max %s%s%s;", show_span(a, d->p50_ns, p->m),
                  show_span(b, d->p99_ns, p->m), show_span(c, d->max_ns, p->m), d->max_wall_ns ? " at " : "",
                  d->max_wall_ns ? show_time(at, d->max_wall_ns, 0, p->m) : "");
    }
    if (!told) para_item(&w, "its own delay is not in this trace;");
    if (r->kernel_stamps > .99995)
        para_item(&w, "stamped by the kernel,");
    else if (!isnan(r->kernel_stamps))
        para_item(&w, "stamped by the kernel for %s %%,", show_share(a, r->kernel_stamps));
    if (r->late_reads == 0)
        para_item(&w, "late reads none");
    else
        para_item(&w, "late reads %s, at most %s", show_count(a, (double)r->late_reads),
                  show_span(b, (double)r->late_max_ns, p->m));
    para_end(&w);
}

void page_losses(const struct page *p) {
    const struct report *r = p->r;
    size_t lost = 0, told = 0;
    struct para w;
    fputc('\n', p->f);
    for (size_t i = 0; i < r->n_losses; i++) lost += strcmp(r->losses[i].severity, "loss") == 0;
    if (!lost) fputs("nothing lost\n", p->f);
    for (; told < r->n_losses && told < 6; told++) put_loss(p, &r->losses[told]);
    if (told < r->n_losses)
        fprintf(p->f, "      and %zu more kinds: traceanalyze check\n", r->n_losses - told);
    if (r->damaged)
        fprintf(p->f, "LOST  arrivals of %d requests are damaged and were read in part\n", r->damaged);
    if (r->protocols) {
        para_begin(&w, p, "note", 6, 1);
        para_words(&w, "connections that are not HTTP/1 (%s): times and sizes only", r->protocols);
        para_end(&w);
    }
    put_recorder(p, "recorder:");
}

void page_none(const struct page *p) {
    const struct report *r = p->r;
    char n[SHOW_MAX];
    struct para w;
    fputc('\n', p->f);
    para_begin(&w, p, "REQUESTS", LABEL, 1);
    if (r->n_other)
        para_words(&w, "0 generations: all %s requests are other (%s)", show_count(n, (double)r->n_other),
                   r->other_paths ? r->other_paths : "-");
    else if (r->n_all_rows)
        para_words(&w, "0 requests: --where, --from, --to or --last leave out all %s of the trace",
                   show_count(n, (double)r->n_all_rows));
    else if (r->protocols)
        para_words(&w, "0 requests: every connection was of a kind that is not read (%s)", r->protocols);
    else
        para_words(&w, "0 requests: nothing came in while this was recorded; do the clients use the "
                       "recorder's address?");
    para_end(&w);
}

static void put_others(struct para *w, const struct report *r) {
    char n[SHOW_MAX];
    if (r->n_other)
        para_item(w, "other %s (%s)", show_count(n, (double)r->n_other),
                  r->other_paths ? r->other_paths : "-");
}

static void put_ok_kinds(const struct page *p) {
    const struct report *r = p->r;
    char n[SHOW_MAX];
    struct para w;
    para_begin(&w, p, " of the ok:", 12, 1);
    para_item(&w, "%s streamed with tokens,", show_count(n, (double)r->with_tokens));
    para_item(&w, "%s not streamed,", show_count(n, (double)r->not_streamed));
    char without[SHOW_MAX];
    show_count(without, (double)r->without_token);
    if (r->buffered)
        para_item(&w, "%s buffered (one arrival: in no ttft and no gap),",
                  show_count(n, (double)r->buffered));
    para_item(&w, r->retries ? "%s without a token;" : "%s without a token", without);
    if (r->retries) para_item(&w, "%s of all were retries", show_count(n, (double)r->retries));
    para_end(&w);
}

void page_outcomes(const struct page *p) {
    const struct report *r = p->r;
    char n[SHOW_MAX], share[SHOW_MAX];
    struct para w;
    bool done[N_OUTCOMES] = {false};
    fputc('\n', p->f);
    para_begin(&w, p, "REQUESTS", LABEL, 4);
    show_rate(share, r->through.window_s > 0 ? (double)r->n / r->through.window_s : NAN);
    para_item(&w, "%s arrived, %s /s", show_count(n, (double)r->n), share);
    put_others(&w, r);
    para_end(&w);
    int a_row = p->m->columns >= 98 ? 3 : 2, in_row = 0;
    for (;;) {
        int most = -1;
        for (int o = 0; o < N_OUTCOMES; o++)
            if (!done[o] && r->by_outcome[o] && (most < 0 || r->by_outcome[o] > r->by_outcome[most]))
                most = o;
        if (most < 0) break;
        done[most] = true;
        fprintf(p->f, "%s%-16s%7s%6s %%", in_row ? "  " : " ", outcome_names[most],
                show_count(n, (double)r->by_outcome[most]),
                show_share(share, (double)r->by_outcome[most] / (double)r->n));
        if (++in_row == a_row) fputc('\n', p->f);
        in_row %= a_row;
    }
    if (in_row) fputc('\n', p->f);
    put_ok_kinds(p);
}

bool page_few(const struct page *p) {
    const struct report *r = p->r;
    char inputs[256];
    bool marked, cached = false;
    struct para w;
    fputc('\n', p->f);
    para_begin(&w, p, "REQUESTS", 10, 4);
    if (r->by_outcome[OUTCOME_ok] == r->n)
        para_item(&w, "%zu arrived, all ok", r->n);
    else
        para_item(&w, "%zu arrived, %zu ok", r->n, r->by_outcome[OUTCOME_ok]);
    put_others(&w, r);
    para_item(&w, "times in ms, rates in tok/s");
    para_end(&w);
    struct grid *g = requests_table(
        p->db, "WHERE generation = 1 ORDER BY arrived_wall_ns, recording, request", p->m, &marked);
    if (!g) return false;
    grid_print(g, p->f, 1);
    grid_free(g);
    for (size_t i = 0; i < r->n; i++) cached |= !isnan(r->g[i].cached);
    fputc('\n', p->f);
    if (!cached) fputs("cached: not reported by this engine\n", p->f);
    page_goodput(p);
    para_begin(&w, p, "", 2, 4);
    para_item(&w, "- not known");
    if (marked) para_item(&w, "r the engine's own figure");
    para_item(&w, "next  traceanalyze requests %s --format ndjson", page_inputs(p, inputs, sizeof inputs));
    para_end(&w);
    return true;
}
