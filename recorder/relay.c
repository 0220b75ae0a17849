/* The data path: read once, write at once, then look. What cannot be written waits in a bounded queue; a
 * queue that is nearly full stops the reading of the other side.
 *
 * The one hard idea: which events a side needs is derived afresh from its state after every callback
 * (side_wants), so no path has to remember to arm or disarm anything. In the steady state the answer does not
 * change and costs no system call. A side that needs none still watches for errors, so that a client that
 * resets while its reading is paused is seen. */
#include "recorder/relay_in.h"

#include <errno.h>
#include <stdlib.h>

/* libuv needs some event; errors and hang-ups come with any. */
#define ERRORS_ONLY UV_PRIORITIZED
#define STALL_NS    (10 * NS_PER_MS)

static void side_read(struct side *s);

void relay_tell(struct relay *r, struct piece p) {
    tap_push(r->all->tap, &r->flow, p);
}

/* -- events */

static int side_wants(const struct side *s) {
    const struct relay *r = s->relay;
    if (s->fd < 0 || s->hung) return 0;
    bool client = s->dir == DIR_UP, reads = !s->fin_in && !s->paused && !s->reset_due;
    int wants = 0;
    if (r->phase == CONNECTING && !client) return UV_WRITABLE;
    if (reads) wants |= UV_READABLE;
    if (outq_len(&s->out) > 0) wants |= UV_WRITABLE;
    if (wants == 0 && !s->blind && !(s->fin_in && s->fin_out)) wants = ERRORS_ONLY;
    return wants;
}

static void on_event(uv_poll_t *poll, int status, int events) {
    struct side *s = ((struct watch *)poll->data)->side;
    if (!s) return;
    struct relay *r = s->relay;
    if (!(events & UV_READABLE)) relays_awake(r->all, clocks_mono());
    if (status < 0) s->armed = 0;
    if (r->phase == CONNECTING && s->dir == DIR_DOWN) {
        relay_on_connect(r);
    } else if (status < 0 || (events & UV_PRIORITIZED)) {
        relay_hung(s);
    } else {
        if (events & UV_READABLE) side_read(s);
        if ((events & UV_WRITABLE) && s->fd >= 0) relay_flush(s);
    }
    if (r->phase != ENDED) relay_quiet(r);
    relay_arm(r);
}

static void side_arm(struct side *s) {
    int wants = side_wants(s);
    if (wants == s->armed || !s->watch) return;
    s->armed = wants;
    if (wants)
        uv_poll_start(&s->watch->poll, wants, on_event);
    else
        uv_poll_stop(&s->watch->poll);
}

void relay_arm(struct relay *r) {
    if (r->phase == ENDED) return;
    side_arm(&r->side[DIR_UP]);
    side_arm(&r->side[DIR_DOWN]);
}

bool relay_attach(struct side *s, int fd) {
    struct watch *w = calloc(1, sizeof *w);
    if (!w) return false;
    if (uv_poll_init(s->relay->all->loop, &w->poll, fd) != 0) {
        free(w);
        return false;
    }
    w->poll.data = w;
    w->side = s;
    s->watch = w, s->fd = fd, s->armed = 0;
    return true;
}

/* -- backpressure */

static void pause_reading(struct side *s, int64_t now_ns) {
    if (s->paused) return;
    s->paused = true;
    s->paused_ns = now_ns;
    relay_tell(s->relay, (struct piece){.kind = PIECE_PAUSE,
                                        .dir = s->dir,
                                        .t_ns = now_ns,
                                        .off = s->n_read,
                                        .value = (int64_t)outq_len(&relay_other(s)->out)});
}

void relay_unpause(struct side *s) {
    if (!s->paused) return;
    s->paused = false;
    relay_tell(s->relay, (struct piece){.kind = PIECE_RESUME,
                                        .dir = s->dir,
                                        .t_ns = clocks_mono(),
                                        .t2_ns = s->paused_ns,
                                        .off = s->n_read});
    if (s->hung) relay_pump(s);
}

/* -- writing */

static bool writable_phase(const struct side *s) {
    const struct relay *r = s->relay;
    return r->phase == OPEN || (r->phase == LINGERING && s->dir == DIR_UP);
}

void relay_flush(struct side *s) {
    if (!writable_phase(s) || s->hung || outq_len(&s->out) == 0) return;
    int64_t now = clocks_mono();
    ssize_t n = net_write(s->fd, outq_first(&s->out), outq_len(&s->out));
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) relay_write_failed(s, errno);
        return;
    }
    outq_drop(&s->out, (size_t)n);
    s->n_written += (uint64_t)n;
    if (s->dir == DIR_DOWN)
        relay_tell(s->relay,
                   (struct piece){.kind = PIECE_WROTE, .dir = DIR_UP, .t_ns = now, .off = s->n_written});
    if (outq_len(&s->out) <= OUT_LOW_BYTES) relay_unpause(relay_other(s));
    if (s->fd >= 0 && outq_len(&s->out) == 0) relay_drained(s);
}

/* Writes to o what was just read from s, queues the rest. Returns errno when o cannot be written to. */
static int hand_over(struct side *o, const char *bytes, size_t n, const struct net_stamp *stamp,
                     bool *at_once) {
    struct relay *r = o->relay;
    ssize_t w = 0;
    if (r->phase == OPEN && outq_len(&o->out) == 0) {
        w = net_write(o->fd, bytes, n);
        if (w < 0 && errno != EAGAIN && errno != EINTR) return errno;
        if (w < 0) w = 0;
        o->n_written += (uint64_t)w;
    }
    if ((size_t)w < n) return outq_put(&o->out, bytes + w, n - (size_t)w) ? 0 : ENOMEM;
    *at_once = true;
    struct hist *delay = &r->all->shared->hists[o->dir == DIR_UP ? HIST_delay_down : HIST_delay_up];
    int64_t now = clocks_mono();
    hist_add(delay, now - stamp->after_ns, now);
    return 0;
}

/* -- reading */

static void tell_open(struct relay *r, uint8_t flags, int64_t now_ns) {
    struct piece p = {.kind = PIECE_OPEN, .flags = flags, .t_ns = now_ns, .value = (int64_t)r->pair};
    if (flags & PIECE_RESUMED) {
        p.off = r->side[DIR_UP].n_read;
        p.value2 = (int64_t)r->side[DIR_DOWN].n_read;
    }
    bool ip = r->peer.sa.sa_family == AF_INET || r->peer.sa.sa_family == AF_INET6;
    p.n_bytes = ip ? addr_len(&r->peer) : 0;
    tap_push_bytes(r->all->tap, &r->flow, p, &r->peer);
}

/* Frames and records what was forwarded. at_once: all of it was written right after the read. */
static void look(struct side *s, const char *bytes, size_t n, const struct net_stamp *stamp, bool at_once) {
    struct relay *r = s->relay;
    struct framer *f = &r->framer;
    if (r->flow.unopened && !r->all->tap->congested) tell_open(r, PIECE_RESUMED, stamp->after_ns);
    framer_feed(f, s->dir, s->n_read, bytes, n);
    struct piece p = {.kind = PIECE_DATA,
                      .dir = s->dir,
                      .flags = stamp->kernel ? PIECE_KERNEL_TIME : 0,
                      .t_ns = stamp->t_ns,
                      .t2_ns = at_once && s->dir == DIR_UP ? stamp->after_ns : 0,
                      .off = s->n_read,
                      .head_at = f->head_at,
                      .end_at = f->end_at,
                      .n_bytes = (uint32_t)n,
                      .late_ns = stamp->late_ns};
    tap_data(r->all->tap, &r->flow, p, bytes, f->head_from, f->head_to);
    s->n_read += n;
    if (s->dir == DIR_DOWN && f->answer_ended) r->deliver_off = f->end_at, r->deliver_new = true;
}

static void forward(struct side *s, const char *bytes, size_t n, const struct net_stamp *stamp) {
    struct relay *r = s->relay;
    struct side *o = relay_other(s);
    bool at_once = false, retry = r->phase == REFUSED && s->n_read == 0;
    bool takes = r->phase == OPEN || r->phase == CONNECTING || retry;
    int err = 0;
    if (takes && !o->write_err) err = hand_over(o, bytes, n, stamp, &at_once);
    look(s, bytes, n, stamp, at_once);
    atomic_fetch_add_explicit(&r->all->shared->forwarded_bytes, n, memory_order_relaxed);
    if (err) {
        relay_write_failed(o, err);
    } else if (retry) {
        relay_connect(r);
    } else if (r->phase == REFUSED) {
        relay_answer(r);
    } else if (r->phase == LINGERING) {
        r->discard_left -= n < r->discard_left ? n : r->discard_left;
        if (r->discard_left == 0) relay_end(r, false);
    } else if (outq_len(&o->out) > OUT_HIGH_BYTES) {
        pause_reading(s, stamp->after_ns);
    }
}

/* One read of s; false when there is nothing more to do with it. */
static bool read_once(struct side *s) {
    struct relay *r = s->relay;
    struct net_stamp stamp;
    ssize_t n = net_read(s->fd, r->all->scratch, sizeof r->all->scratch, &stamp);
    relays_awake(r->all, stamp.after_ns);
    r->active_ns = stamp.after_ns;
    if (n > 0) {
        if (stamp.kernel) hist_add(&r->all->shared->hists[HIST_late], stamp.late_ns, stamp.after_ns);
        forward(s, r->all->scratch, (size_t)n, &stamp);
        return true;
    }
    if (n == 0 && s->write_err)
        relay_reset(s, s->write_err);
    else if (n == 0)
        relay_fin(s);
    else if (errno == EINTR)
        return true;
    else if (errno != EAGAIN)
        relay_reset(s, errno);
    return false;
}

static void side_read(struct side *s) {
    if (s->fd >= 0 && !s->fin_in && !s->reset_due) (void)read_once(s);
}

void relay_pump(struct side *s) {
    while (s->fd >= 0 && !s->fin_in && !s->paused && !s->reset_due)
        if (!read_once(s)) break;
    if (s->fd < 0 || s->paused) return;
    int err = s->write_err ? s->write_err : net_error(s->fd);
    if (err)
        relay_reset(s, err);
    else
        s->hung = false; /* nothing is wrong after all */
}

/* -- life */

static void init_side(struct relay *r, enum dir dir) {
    r->side[dir].relay = r;
    r->side[dir].dir = dir;
    r->side[dir].fd = -1;
}

void relay_new(struct relays *rs, int fd, const union addr_any *peer, size_t pair, struct upstream *u) {
    struct relay *r = calloc(1, sizeof *r);
    if (!r) {
        net_reset(fd);
        return;
    }
    r->all = rs;
    r->peer = *peer, r->pair = pair, r->upstream = u;
    init_side(r, DIR_UP);
    init_side(r, DIR_DOWN);
    if (!relay_attach(relay_client(r), fd)) {
        net_reset(fd);
        free(r);
        return;
    }
    framer_init(&r->framer);
    tap_flow_begin(&r->flow, ++rs->n_flows);
    r->next = rs->first;
    if (r->next) r->next->prev = r;
    rs->first = r;
    rs->n++;
    r->active_ns = clocks_mono();
    relays_awake(rs, r->active_ns);
    tell_open(r, 0, r->active_ns);
    relay_connect(r);
    relay_arm(r);
}

/* Before the loop waits: everything that was called in this turn has returned. */
static void on_turn(uv_prepare_t *turn) {
    struct relays *rs = turn->data;
    while (rs->dead) {
        struct relay *r = rs->dead;
        rs->dead = r->next;
        free(r);
    }
    if (!rs->turn_ns) return;
    int64_t now = clocks_mono(), took = now - rs->turn_ns;
    hist_add(&rs->shared->hists[HIST_loop], took, now);
    if (took > STALL_NS)
        tap_push(rs->tap, NULL, (struct piece){.kind = PIECE_STALL, .t_ns = rs->turn_ns, .t2_ns = now});
    rs->turn_ns = 0;
}

void relays_init(struct relays *rs) {
    uv_timer_init(rs->loop, &rs->tick);
    uv_prepare_init(rs->loop, &rs->turn);
    rs->tick.data = rs->turn.data = rs;
    uv_prepare_start(&rs->turn, on_turn);
}

size_t relays_running(const struct relays *rs) {
    size_t n = 0;
    for (const struct relay *r = rs->first; r; r = r->next) {
        uint64_t open = r->framer.opaque ? 1 : r->framer.begun - r->framer.answered;
        n += relay_running(r) ? (open ? open : 1) : 0;
    }
    return n;
}

bool relays_idle(const struct relays *rs, int64_t idle_ns, int64_t now_ns) {
    for (const struct relay *r = rs->first; r; r = r->next)
        if (relay_running(r) || now_ns - r->active_ns < idle_ns) return false;
    return true;
}

void relays_drain(struct relays *rs) {
    rs->draining = true;
    for (struct relay *r = rs->first, *next; r; r = next) {
        next = r->next;
        relay_quiet(r);
        relay_arm(r);
    }
}

void relays_stop(struct relays *rs) {
    while (rs->first) relay_end(rs->first, relay_running(rs->first));
}

void relays_resume(struct relays *rs) {
    int64_t now = clocks_mono();
    for (struct relay *r = rs->first; r; r = r->next) tell_open(r, PIECE_RESUMED, now);
}
