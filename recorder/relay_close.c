/* How connections end. The rules, by what is seen:
 *
 *  1. FIN from s: shutdown(WR) of the other side once what is queued for it is written.
 *  2. Both shut down: close; the client's socket only once its kernel has the last answer (t_delivered).
 *  3. Reset by s, or a failed write to s: what s sent before is read and forwarded first; then the other side
 *     is reset, once its kernel has taken everything, at the latest after a second.
 *  4. But when the upstream went away with its answer whole and the request still coming (an early 413): the
 *     client is shut down, its input discarded for at most 2 s, then closed. A close with unread input would
 *     make our kernel send a reset that can overtake the answer.
 *  5. The other side of a Unix socket closing both ways looks like a hang-up, not an error: the client's
 *     means that nobody waits for the answer any more; the upstream's is no more than its FIN. */
#include "recorder/relay_in.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { TICK_MS = 10 };
#define RESET_NS  NS_PER_S
#define LINGER_NS (2 * NS_PER_S)
#define FRESH_NS  (200 * NS_PER_MS)

/* -- letting go */

static void free_watch(uv_handle_t *poll) {
    free(poll->data);
}

void relay_detach(struct side *s, bool reset) {
    if (s->watch) {
        s->watch->side = NULL;
        uv_poll_stop(&s->watch->poll);
        uv_close((uv_handle_t *)&s->watch->poll, free_watch);
    }
    if (s->fd >= 0 && reset)
        net_reset(s->fd);
    else if (s->fd >= 0)
        close(s->fd);
    s->watch = NULL, s->fd = -1, s->armed = 0;
}

static void tick_off(struct relay *r) {
    if (!r->ticks) return;
    struct relays *rs = r->all;
    if (r->tick_prev)
        r->tick_prev->tick_next = r->tick_next;
    else
        rs->ticking = r->tick_next;
    if (r->tick_next) r->tick_next->tick_prev = r->tick_prev;
    r->tick_prev = r->tick_next = NULL;
    r->ticks = false;
    if (!rs->ticking) uv_timer_stop(&rs->tick);
}

void relay_tick_on(struct relay *r) {
    if (r->ticks || r->phase == ENDED) return;
    struct relays *rs = r->all;
    if (!rs->ticking) uv_timer_start(&rs->tick, relays_on_tick, TICK_MS, TICK_MS);
    r->tick_prev = NULL, r->tick_next = rs->ticking;
    if (rs->ticking) rs->ticking->tick_prev = r;
    rs->ticking = r;
    r->ticks = true;
}

/* The memory goes at the end of this turn of the loop (relays_init): callers up the stack still look at the
 * phase. */
void relay_end(struct relay *r, bool cut) {
    if (r->phase == ENDED) return;
    struct relays *rs = r->all;
    if (r->waits_name) upstream_forget(r->upstream, &r->wait);
    tick_off(r);
    r->phase = ENDED;
    tap_flow_end(rs->tap, &r->flow, (struct piece){.kind = PIECE_CLOSE, .t_ns = clocks_mono(), .value = cut});
    framer_fini(&r->framer);
    for (int d = 0; d < 2; d++) {
        relay_detach(&r->side[d], cut);
        outq_clear(&r->side[d].out);
    }
    if (r->prev)
        r->prev->next = r->next;
    else
        rs->first = r->next;
    if (r->next) r->next->prev = r->prev;
    rs->n--;
    r->next = rs->dead;
    rs->dead = r;
    if (rs->on_end) rs->on_end(rs->ctx);
}

/* -- t_delivered */

static bool delivered(struct relay *r, int64_t now_ns) {
    struct side *c = relay_client(r);
    if (c->n_written < r->deliver_off) return false;
    uint64_t unacked = net_unacked(c->fd);
    if (c->fin_out && unacked > 0) unacked--; /* the FIN counts as a byte */
    if (unacked > c->n_written - r->deliver_off) return false;
    relay_tell(
        r, (struct piece){.kind = PIECE_DELIVERED, .dir = DIR_DOWN, .t_ns = now_ns, .off = r->deliver_off});
    r->deliver_off = 0;
    return true;
}

/* -- rules 1 and 2: ends of input */

static bool both_shut(const struct relay *r) {
    return r->side[DIR_UP].fin_out && r->side[DIR_DOWN].fin_out;
}

static void shut(struct side *s) {
    shutdown(s->fd, SHUT_WR);
    s->fin_out = true;
}

static void end_when_delivered(struct relay *r) {
    if (r->deliver_off)
        relay_tick_on(r);
    else
        relay_end(r, false);
}

static void try_reset(struct side *s) {
    struct relay *r = s->relay;
    int64_t now = clocks_mono();
    if (now < r->limit_ns && (outq_len(&s->out) > 0 || net_unacked(s->fd) > 0)) return;
    if (r->deliver_off && s->dir == DIR_UP) (void)delivered(r, now); /* asked now or never */
    relay_detach(s, true);
    relay_end(r, false);
}

void relay_drained(struct side *s) {
    struct relay *r = s->relay;
    if (s->reset_due) {
        try_reset(s);
    } else if (r->phase == LINGERING) {
        if (!s->fin_out) shut(s);
        if (s->fin_in) end_when_delivered(r);
    } else if (r->phase == OPEN && relay_other(s)->fin_in && !s->fin_out) {
        shut(s);
        if (both_shut(r)) end_when_delivered(r);
    }
}

void relay_fin(struct side *s) {
    struct relay *r = s->relay;
    struct side *o = relay_other(s);
    s->fin_in = true;
    relay_tell(r, (struct piece){.kind = PIECE_FIN, .dir = s->dir, .t_ns = clocks_mono(), .off = s->n_read});
    framer_eof(&r->framer, s->dir);
    if (s->dir == DIR_DOWN && r->framer.answer_ended) r->deliver_off = s->n_read, r->deliver_new = true;
    if (r->phase == REFUSED)
        relay_answer(r);
    else if (r->phase == LINGERING && outq_len(&s->out) == 0)
        relay_drained(s);
    else if (r->phase == OPEN && outq_len(&o->out) == 0)
        relay_drained(o);
}

/* -- rules 3 to 5: resets */

void relay_linger(struct relay *r, uint64_t discard_bytes) {
    struct side *c = relay_client(r);
    relay_detach(relay_upstream(r), false);
    outq_clear(&relay_upstream(r)->out);
    r->phase = LINGERING;
    r->limit_ns = clocks_mono() + LINGER_NS;
    r->discard_left = discard_bytes;
    c->reset_due = false;
    relay_unpause(c);
    relay_tick_on(r);
    if (r->phase == LINGERING && outq_len(&c->out) == 0) relay_drained(c);
}

/* The upstream is gone: had it answered before it had read everything? */
static bool answered_early(const struct relay *r, size_t unwritten) {
    const struct side *up = &r->side[DIR_DOWN];
    return framer_all_answered(&r->framer) &&
           (framer_request_open(&r->framer) || unwritten > 0 || up->write_err != 0);
}

void relay_reset(struct side *s, int err) {
    struct relay *r = s->relay;
    struct side *o = relay_other(s);
    size_t unwritten = outq_len(&s->out);
    int64_t now = clocks_mono();
    relay_tell(
        r, (struct piece){.kind = PIECE_RESET, .dir = s->dir, .t_ns = now, .off = s->n_read, .value = err});
    if (s->dir == DIR_DOWN && framer_running(&r->framer)) upstream_cut(r->upstream, now);
    relay_detach(s, true);
    outq_clear(&s->out);
    s->hung = false;
    if (r->phase != OPEN || o->fd < 0) {
        relay_end(r, false);
    } else if (s->dir == DIR_DOWN && answered_early(r, unwritten)) {
        relay_linger(r, UINT64_MAX);
    } else {
        o->reset_due = true;
        if (!r->limit_ns) r->limit_ns = now + RESET_NS;
        relay_tick_on(r);
        try_reset(o);
    }
}

static void hang(struct side *s) {
    struct relay *r = s->relay;
    s->hung = true;
    if (!r->limit_ns) r->limit_ns = clocks_mono() + RESET_NS;
    relay_tick_on(r);
    relay_pump(s);
}

void relay_write_failed(struct side *s, int err) {
    if (s->write_err || s->fd < 0) return;
    s->write_err = err;
    if (!s->hung) hang(s);
}

void relay_hung(struct side *s) {
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    if (s->fd < 0 || s->hung || poll(&p, 1, 0) < 0) return;
    bool client = s->dir == DIR_UP;
    if (p.revents & POLLERR)
        hang(s);
    else if (!(p.revents & POLLHUP))
        s->blind = true; /* urgent data, which nobody will read now */
    else if (client && s->fin_in && framer_running(&s->relay->framer))
        relay_reset(s, EPIPE);
    else if (client && !s->fin_in)
        hang(s);
    else
        s->blind = true;
}

/* -- the end of a request */

bool relay_running(const struct relay *r) {
    const struct side *c = &r->side[DIR_UP], *u = &r->side[DIR_DOWN];
    if (r->phase == LINGERING || c->reset_due || u->reset_due || both_shut(r)) return true;
    if (r->phase != OPEN) return c->n_read > 0;
    return framer_running(&r->framer) || outq_len(&c->out) > 0 || outq_len(&u->out) > 0;
}

static void end_idle(struct relay *r) {
    int fd = relay_client(r)->fd;
    if (net_unacked(fd) == 0 && net_unread(fd) == 0) {
        relay_end(r, false);
    } else {
        r->until_acked = true;
        relay_linger(r, UINT64_MAX);
    }
}

/* Was just accepted, or has sent what was not read yet: a request may be on its way. */
static bool fresh(const struct relay *r) {
    const struct side *c = &r->side[DIR_UP];
    return (c->n_read == 0 && clocks_mono() - r->active_ns < FRESH_NS) || net_unread(c->fd) > 0;
}

void relay_quiet(struct relay *r) {
    if (r->deliver_new) {
        r->deliver_new = false;
        if (r->deliver_off && relay_client(r)->fd >= 0 && !delivered(r, clocks_mono())) relay_tick_on(r);
    }
    if (r->all->draining && !relay_running(r) && (relay_client(r)->fin_in || !fresh(r))) end_idle(r);
}

/* -- each 10 ms, for relays that wait for something no event tells of */

static void tick_side(struct side *s, int64_t now_ns) {
    if (s->fd < 0) return;
    if (s->reset_due)
        try_reset(s);
    else if (s->hung && now_ns >= s->relay->limit_ns)
        relay_reset(s, s->write_err ? s->write_err : ECONNRESET);
}

static void tick_client(struct relay *r, int64_t now_ns) {
    struct side *c = relay_client(r);
    if (r->deliver_off) (void)delivered(r, now_ns);
    bool done =
        r->phase == LINGERING ? c->fin_in || (r->until_acked && net_unacked(c->fd) == 0) : both_shut(r);
    if (r->phase == LINGERING && now_ns >= r->limit_ns)
        relay_end(r, false);
    else if (done && outq_len(&c->out) == 0 && !r->deliver_off)
        relay_end(r, false);
    else if (done && c->fin_in && c->fin_out && net_error(c->fd))
        relay_reset(c, ECONNRESET);
}

static bool needs_ticks(const struct relay *r) {
    return r->phase == CONNECTING || r->phase == LINGERING || r->deliver_off || r->side[DIR_UP].reset_due ||
           r->side[DIR_DOWN].reset_due || r->side[DIR_UP].hung || r->side[DIR_DOWN].hung || both_shut(r);
}

static void tick(struct relay *r, int64_t now_ns) {
    if (r->phase == CONNECTING) relay_connect_tick(r, now_ns);
    tick_side(relay_client(r), now_ns);
    if (r->phase != ENDED) tick_side(relay_upstream(r), now_ns);
    if (r->phase != ENDED && relay_client(r)->fd >= 0) tick_client(r, now_ns);
    if (r->phase == ENDED) return;
    relay_quiet(r);
    if (r->phase != ENDED && !needs_ticks(r)) tick_off(r);
    relay_arm(r);
}

void relays_on_tick(uv_timer_t *timer) {
    struct relays *rs = timer->data;
    int64_t now = clocks_mono();
    relays_awake(rs, now);
    for (struct relay *r = rs->ticking, *next; r; r = next) {
        next = r->tick_next; /* a tick ends no other relay */
        tick(r, now);
    }
}
