/* A line for each change, never one for each occurrence: a loss that goes on is told once, and again only
 * after a minute without it. stderr may be a pipe that nobody reads; so that it cannot stop the loop, lines
 * are dropped when it takes none. */
#include "recorder/status.h"
#include "recorder/clocks.h"
#include "recorder/text.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AGAIN_NS (60 * NS_PER_S)

static void put(const char *text, size_t n) {
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1) (void)!write(STDERR_FILENO, text, n);
}

void status_init(struct status *s) {
    s->terminal = isatty(STDERR_FILENO);
    s->told_trace = s->shared->trace_status; /* main has said it */
    s->started_ns = s->last_ns = clocks_mono();
    s->next_ns = s->started_ns + s->opts->status_interval_ns;
}

/* A line that stays; the status line below it is written anew at the next tick. */
static void put_line(struct status *s, const char *line) {
    char text[1024];
    const char *clear = s->line_open ? "\r\033[K" : "";
    int n = snprintf(text, sizeof text, "%s%s\n", clear, line);
    put(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    s->line_open = false;
}

void status_say(struct status *s, const char *form, ...) {
    char what[800], line[900], when[TEXT_MAX];
    if (s->opts->quiet) return;
    va_list args;
    va_start(args, form);
    vsnprintf(what, sizeof what, form, args);
    va_end(args);
    snprintf(line, sizeof line, "%s %s", text_time(when, clocks_wall(), !s->terminal, false), what);
    put_line(s, line);
}

void status_note(struct status *s, const char *form, ...) {
    char line[800];
    va_list args;
    va_start(args, form);
    vsnprintf(line, sizeof line, form, args);
    va_end(args);
    put_line(s, line);
}

void status_upstream(struct status *s, const struct upstream *u, bool up, int64_t down_for_ns) {
    const char *get = s->opts->unreachable_reset ? "a reset" : "502", *at = u->addr.shown;
    char cut[TEXT_MAX], refused[TEXT_MAX];
    if (up)
        status_say(s, "upstream %s answers again after %.1f s; %s streams reset, %s requests got %s", at,
                   (double)down_for_ns / 1e9, text_count(cut, u->n_cut), text_count(refused, u->n_refused),
                   get);
    else if (u->list.n == 0)
        status_say(s, "upstream %s does not resolve; clients get %s while it lasts", at, get);
    else if (u->down_err == ECONNREFUSED)
        status_say(s, "upstream %s refuses connections; clients get %s while it lasts", at, get);
    else
        status_say(s, "upstream %s cannot be reached (%s); clients get %s while it lasts", at,
                   strerror(u->down_err), get);
}

/* -- losses */

/* What the count of a loss counts. */
static const char *unit_of(int loss, uint64_t n) {
    static const char *const units[N_LOSSES][2] = {
        [LOSS_queue_full] = {"piece", "pieces"},
        [LOSS_pieces_dropped] = {"piece", "pieces"},
        [LOSS_recorder_restarted] = {"time", "times"},
        [LOSS_recorder_gone] = {"piece", "pieces"},
        [LOSS_not_recording] = {"piece", "pieces"},
        [LOSS_disk_full] = {"event or request", "events and requests"},
        [LOSS_write_failed] = {"event or request", "events and requests"},
        [LOSS_writer_behind] = {"event or request", "events and requests"},
        [LOSS_body_unread] = {"body or event", "bodies or events"},
        [LOSS_undecodable] = {"body", "bodies"},
    };
    const char *unit = units[loss][n != 1];
    return unit ? unit : n == 1 ? "time" : "times";
}

static bool is_loss(int loss) {
    return strcmp(loss_infos[loss].severity, "loss") == 0;
}

/* -- each second */

static void tell_losses(struct status *s, int64_t now) {
    for (int i = 0; i < N_LOSSES; i++) {
        uint64_t n = s->shared->counts.loss[i];
        char count[TEXT_MAX];
        if (n == s->told_loss[i]) continue;
        bool said_elsewhere =
            i == LOSS_not_recording || i == LOSS_recorder_restarted || i == LOSS_recorder_gone;
        bool fresh = s->told_loss_ns[i] == 0 || now - s->told_loss_ns[i] > AGAIN_NS;
        s->told_loss[i] = n;
        s->told_loss_ns[i] = now;
        if (fresh && !said_elsewhere && is_loss(i))
            status_say(s, "LOST %s %s so far (%s: %s)", text_count(count, n), unit_of(i, n),
                       loss_infos[i].name, loss_infos[i].meaning);
    }
}

static void tell_trace(struct status *s) {
    uint32_t now = s->shared->trace_status;
    if (now == s->told_trace) return;
    if (now == TRACE_FAILING)
        status_say(s, "%s: not recording: %s", s->path, s->shared->trace_error);
    else if (now == TRACE_WRITING && s->told_trace == TRACE_FAILING)
        status_say(s, "%s: recording again", s->path);
    s->told_trace = now;
}

/* What the status line says of losses: nothing, or of how many requests. Counts of different kinds have
 * different units and make no sum. */
static const char *lost_text(const struct status *s, char *out, size_t size) {
    char count[TEXT_MAX];
    uint64_t requests = s->shared->counts.lost_requests;
    bool any = false;
    for (int i = 0; i < N_LOSSES; i++) any |= is_loss(i) && s->shared->counts.loss[i] > 0;
    snprintf(out, size, any ? "  LOST" : "");
    if (any && requests)
        snprintf(out, size, "  LOST of %s request%s", text_count(count, requests), requests == 1 ? "" : "s");
    return out;
}

static void status_line(struct status *s, char *out, size_t size, size_t n_in_flight, int64_t now) {
    const struct rec_counts *c = &s->shared->counts;
    char a[TEXT_MAX], b[TEXT_MAX], d[TEXT_MAX], e[TEXT_MAX], l[TEXT_MAX + 32], f[TEXT_MAX];
    int64_t up = (now - s->started_ns) / NS_PER_S;
    uint64_t tokens = c->output_tokens, done = c->ok + c->failed;
    double rate = (double)(tokens - s->last_tokens) * 1e9 / (double)(now - s->last_ns);
    s->last_tokens = tokens, s->last_ns = now;
    snprintf(out, size, "%02d:%02d:%02d  in flight %zu  done %s (%s ok)  %s tok/s  %s  delay p99 %s%s",
             (int)(up / 3600), (int)(up / 60 % 60), (int)(up % 60), n_in_flight, text_count(a, done),
             text_count(b, c->ok), text_count(f, (uint64_t)rate), text_bytes(d, c->file_bytes),
             text_delay(e, hist_quantile(&s->shared->hists[HIST_delay_down], 0.99)),
             lost_text(s, l, sizeof l));
}

void status_tick(struct status *s, size_t n_in_flight) {
    int64_t now = clocks_mono();
    char line[300], text[320];
    tell_losses(s, now);
    tell_trace(s);
    if (s->opts->quiet) return;
    if (s->terminal) {
        status_line(s, line, sizeof line, n_in_flight, now);
        int n = snprintf(text, sizeof text, "\r\033[K %s", line);
        put(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
        s->line_open = true;
    } else if (s->opts->status_interval_ns && now >= s->next_ns) {
        s->next_ns = now + s->opts->status_interval_ns;
        status_line(s, line, sizeof line, n_in_flight, now);
        status_say(s, "%s", line);
    }
}

/* -- the end */

static void say_requests(const struct rec_counts *c) {
    char a[TEXT_MAX], b[TEXT_MAX], d[TEXT_MAX], e[TEXT_MAX], f[TEXT_MAX], g[TEXT_MAX];
    fprintf(stderr, "  requests   %s: %s ok, %s failed, %s still running; and %s other\n",
            text_count(a, c->requests), text_count(b, c->ok), text_count(d, c->failed),
            text_count(e, c->running), text_count(f, c->other));
    fprintf(stderr, "  tokens     %s out, in %s arrivals\n", text_count(a, c->output_tokens),
            text_count(g, c->token_events));
}

static void say_sizes(const struct status *s) {
    const struct hist *h = &s->shared->hists[HIST_delay_down];
    const struct rec_counts *c = &s->shared->counts;
    char a[TEXT_MAX], b[TEXT_MAX], d[TEXT_MAX], per[TEXT_MAX] = "";
    if (c->token_events)
        snprintf(per, sizeof per, " (%.1f B an arrival)", (double)c->file_bytes / (double)c->token_events);
    fprintf(stderr, "  bytes      %s forwarded, %s on disk%s\n", text_bytes(a, s->shared->forwarded_bytes),
            text_bytes(b, c->file_bytes), per);
    fprintf(stderr, "  delay      added by recording: p50 %s, p99 %s, max %s; queue high-water %.0f %%\n",
            text_delay(a, hist_quantile(h, 0.5)), text_delay(b, hist_quantile(h, 0.99)),
            text_delay(d, h->max_ns), 100.0 * (double)ring_high_water(s->ring) / (double)ring_size(s->ring));
}

/* What found no room in the queue: the forwarder's own sums, which know bytes and span as well. */
static const struct tap_gap *sum_of(const struct status *s, int loss) {
    return loss == LOSS_queue_full       ? &s->tap->total_shed
           : loss == LOSS_pieces_dropped ? &s->tap->total_dropped
                                         : NULL;
}

/* " (286 MB), 03:08:02.114 to 03:08:02.391" */
static void say_sum(const struct tap_gap *g) {
    char bytes[TEXT_MAX], from[TEXT_MAX], to[TEXT_MAX];
    int64_t offset = clocks_wall() - clocks_mono();
    if (g->bytes) fprintf(stderr, " (%s)", text_bytes(bytes, g->bytes));
    fprintf(stderr, ", %s to %s", text_time(from, g->from_ns + offset, false, true),
            text_time(to, g->to_ns + offset, false, true));
}

static void say_loss(const struct status *s, int loss) {
    const struct loss_info *l = &loss_infos[loss];
    const struct tap_gap *sum = sum_of(s, loss);
    uint64_t n = sum ? sum->pieces : s->shared->counts.loss[loss];
    char count[TEXT_MAX];
    if (n == 0 || !is_loss(loss)) return;
    fprintf(stderr, "  LOST       %s %s", text_count(count, n), unit_of(loss, n));
    if (sum) say_sum(sum);
    fprintf(stderr, ", %s: %s\n", l->name, l->meaning);
    fprintf(stderr, "             %s %s", text_utf8() ? "→" : "->", l->remedy);
    if (sum) fprintf(stderr, " (now %s)", text_bytes(count, s->opts->queue_bytes));
    fputc('\n', stderr);
}

static void say_losses(const struct status *s) {
    char count[TEXT_MAX];
    uint64_t requests = s->shared->counts.lost_requests;
    for (int i = 0; i < N_LOSSES; i++) say_loss(s, i);
    if (requests)
        fprintf(stderr, "  LOST       something of %s request%s in all\n", text_count(count, requests),
                requests == 1 ? "" : "s");
}

void status_summary(struct status *s, bool sealed) {
    char span[TEXT_MAX];
    const char *error = s->shared->trace_error, *why = *error ? error : "the recorder did not end in order";
    uint64_t ran = (uint64_t)(clocks_mono() - s->started_ns);
    if (s->line_open) put("\r\033[K", 4);
    if (!sealed && s->shared->trw.next_seq == 0) {
        const char *flag = s->opts->must_record ? "--must-record: " : "";
        fprintf(stderr, "tracerec: %s%s: nothing was recorded: %s\n", flag, s->path, why);
    } else if (!sealed) {
        fprintf(stderr, "tracerec: %s: not sealed: %s; what was written can be read\n", s->path, why);
    } else if (!s->opts->quiet) {
        fprintf(stderr, "tracerec: sealed %s after %s\n", s->path, text_span(span, ran));
    }
    if (!s->opts->quiet) say_requests(&s->shared->counts), say_sizes(s);
    say_losses(s);
    if (!s->opts->quiet && sealed) fprintf(stderr, "  next       traceanalyze report %s\n", s->path);
}
