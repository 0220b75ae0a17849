/* A recorder that dies is started again: what the ring still holds is its to read, what was open is told
 * anew. When it died of a fault of its own, the piece it was at is taken out first, since the next one would
 * die of it as well. At most one start a second. */
#include "recorder/serve.h"
#include "recorder/clocks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { SECOND_MS = 1000 };
#define SEAL_NS      (30 * NS_PER_S)
#define UNWRITTEN_NS (100 * NS_PER_MS) /* what a recorder had not written when it died is no older */

/* -- the recorder */

static void on_restart(uv_timer_t *timer);

static void tell_restarted(struct serve *s) {
    if (!s->died_ns) return;
    struct tap_gap gap = {.from_ns = s->died_ns - UNWRITTEN_NS, .to_ns = clocks_mono(), .pieces = 1};
    tap_loss(&s->tap, LOSS_recorder_restarted, gap, 0);
    s->died_ns = 0;
}

static void start_child(struct serve *s) {
    bool was_gone = s->tap.gone;
    s->child_ns = clocks_mono();
    if (!child_start(&s->child)) {
        if (!was_gone)
            status_say(&s->status, "LOST no recorder can be started (%s); forwarding goes on",
                       strerror(errno));
        tap_set_gone(&s->tap, true);
        uv_timer_start(&s->restart, on_restart, SECOND_MS, 0);
        return;
    }
    tap_set_gone(&s->tap, false);
    tell_restarted(s);
    relays_resume(&s->relays);
}

static void on_restart(uv_timer_t *timer) {
    start_child(timer->data);
}

/* The piece at which the recorder died; no one else reads the ring now. */
static void skip_piece(struct serve *s, int64_t now) {
    const struct piece *p = ring_peek(s->ring);
    if (!p) return;
    uint64_t flow = p->flow, bytes = p->kind == PIECE_DATA ? (uint64_t)p->n_bytes + p->n_shed : 0;
    struct tap_gap gap = {.from_ns = now, .to_ns = now, .pieces = 1, .bytes = bytes};
    ring_pop(s->ring);
    tap_loss(&s->tap, LOSS_pieces_dropped, gap, flow);
}

static void on_child(uv_signal_t *signal, int signum) {
    struct serve *s = signal->data;
    int status;
    if (!child_reap(&s->child, &status)) return;
    int64_t now = clocks_mono(), since = now - s->child_ns;
    s->died_ns = now;
    if (child_died_of_fault(status)) skip_piece(s, now);
    status_say(&s->status, "LOST what was open: the recorder died and is started again");
    if (since >= NS_PER_S)
        start_child(s);
    else
        uv_timer_start(&s->restart, on_restart, (uint64_t)((NS_PER_S - since) / NS_PER_MS) + 1, 0);
}

/* -- signals */

static void leave_or_close(struct serve *s, bool close) {
    size_t n = relays_running(&s->relays);
    char limit[32] = "for ever";
    if (s->front.state != FRONT_RUNNING) {
        front_stop(&s->front);
        return;
    }
    if (s->opts->drain_ns < INT64_MAX)
        snprintf(limit, sizeof limit, "up to %.3g s", (double)s->opts->drain_ns / 1e9);
    if (n && !s->opts->quiet)
        status_note(&s->status, "tracerec: waiting %s for %zu running request%s (again to stop at once)",
                    limit, n, n == 1 ? "" : "s");
    if (close)
        front_close(&s->front);
    else
        front_leave(&s->front);
}

static void on_signal(uv_signal_t *signal, int signum) {
    struct serve *s = signal->data;
    int64_t now = clocks_mono();
    switch (signum) {
    case SIGINT: leave_or_close(s, true); break;
    case SIGTERM: leave_or_close(s, false); break;
    case SIGHUP: tap_push(&s->tap, NULL, (struct piece){.kind = PIECE_ROTATE, .t_ns = now}); break;
    case SIGUSR1:
        tap_push(&s->tap, NULL, (struct piece){.kind = PIECE_MARK, .t_ns = now, .value = ++s->n_marks});
        break;
    default: break;
    }
}

/* -- each second */

static void tell_clock(struct serve *s) {
    struct clocks_pair p = clocks_pair(3);
    tap_push(&s->tap, NULL,
             (struct piece){
                 .kind = PIECE_CLOCK, .t_ns = p.mono_ns, .t2_ns = p.wall_ns, .value = p.uncertainty_ns});
}

static void tell_cpu(struct serve *s) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    s->shared->forwarder_cpu_ns = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
                                  (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void on_second(uv_timer_t *timer) {
    struct serve *s = timer->data;
    relays_awake(&s->relays, clocks_mono());
    tell_clock(s);
    tell_cpu(s);
    tap_tick(&s->tap);
    status_tick(&s->status, relays_running(&s->relays));
    if (!s->opts->must_record || s->shared->trace_status != TRACE_FAILING || s->shared->trw.next_seq > 0)
        return;
    s->fatal = true;
    front_stop(&s->front);
}

/* -- from below */

static void on_end(void *ctx) {
    front_on_end(&((struct serve *)ctx)->front);
}

static void on_stopped(void *ctx) {
    uv_stop(&((struct serve *)ctx)->loop);
}

static void on_upstream(void *ctx, struct upstream *u, bool up) {
    struct serve *s = ctx;
    int64_t now = clocks_mono();
    size_t pair = 0;
    while (&s->pairs[pair].upstream != u) pair++;
    if (up) {
        tap_push(
            &s->tap, NULL,
            (struct piece){.kind = PIECE_DOWN, .t_ns = u->down_ns, .t2_ns = now, .value = (int64_t)pair});
        status_upstream(&s->status, u, true, now - u->down_ns);
        u->n_cut = 0;
    } else {
        u->down_ns = now;
        u->n_refused = 0;
        status_upstream(&s->status, u, false, 0);
    }
    u->down = !up;
}

/* -- life */

static bool start_signals(struct serve *s) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (uv_signal_init(&s->loop, &s->signals[i]) != 0) return false;
        s->signals[i].data = s;
        uv_signal_cb cb = numbers[i] == SIGCHLD ? on_child : on_signal;
        if (uv_signal_start(&s->signals[i], cb, numbers[i]) != 0) return false;
    }
    return true;
}

static void wire(struct serve *s) {
    tap_init(&s->tap, s->ring);
    s->relays.loop = &s->loop, s->relays.tap = &s->tap, s->relays.shared = s->shared;
    s->relays.unreachable_reset = s->opts->unreachable_reset;
    s->relays.on_end = on_end, s->relays.on_upstream = on_upstream, s->relays.ctx = s;
    relays_init(&s->relays);
    s->front.loop = &s->loop, s->front.relays = &s->relays;
    s->front.pairs = s->pairs, s->front.n_pairs = s->opts->n_pairs;
    s->front.drain_ns = s->opts->drain_ns;
    s->front.on_stopped = on_stopped, s->front.ctx = s;
    for (size_t i = 0; i < s->opts->n_pairs; i++) s->pairs[i].upstream.loop = &s->loop;
    s->status.opts = s->opts, s->status.shared = s->shared, s->status.tap = &s->tap;
    s->status.ring = s->ring, s->status.path = s->path;
    status_init(&s->status);
}

bool serve_init(struct serve *s) {
    if (uv_loop_init(&s->loop) != 0) return false;
    s->child_ns = clocks_mono();
    wire(s);
    uv_timer_init(&s->loop, &s->second);
    uv_timer_init(&s->loop, &s->restart);
    s->second.data = s->restart.data = s;
    tell_clock(s);
    uv_timer_start(&s->second, on_second, SECOND_MS, SECOND_MS);
    return start_signals(s) && front_start(&s->front);
}

static void tell_down(struct serve *s) {
    for (size_t i = 0; i < s->opts->n_pairs; i++) {
        const struct upstream *u = &s->pairs[i].upstream;
        if (!u->down) continue;
        tap_push(&s->tap, NULL,
                 (struct piece){
                     .kind = PIECE_DOWN, .t_ns = u->down_ns, .t2_ns = clocks_mono(), .value = (int64_t)i});
    }
}

int serve_run(struct serve *s) {
    uv_run(&s->loop, UV_RUN_DEFAULT);
    tell_down(s);
    tell_clock(s);
    tell_cpu(s);
    tap_tick(&s->tap);
    if (s->child.pid == 0) start_child(s); /* it died a moment ago; the trace still wants its seal */
    ring_close(s->ring);
    bool sealed = child_wait(&s->child, SEAL_NS);
    status_summary(&s->status, sealed);
    return sealed && !s->fatal ? 0 : 1;
}
