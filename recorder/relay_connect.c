/* Reaching the upstream, and what becomes of the client when that fails.
 *
 * The connect begins when the client is accepted, so that it costs no time later; what the client sends
 * meanwhile is queued. When no address answers: a client whose request's head is whole gets a 502, one that
 * speaks something else a reset, and one that has not said anything yet is kept: its first byte tries again.
 */
#include "recorder/refusal.h"
#include "recorder/relay_in.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_NS           (10 * NS_PER_S)
#define ANSWER_DISCARD_BYTES (1u << 20)

static void try_next(struct relay *r);

static void note_error(struct relay *r, int err) {
    if (!r->connect_err) r->connect_err = err;
}

static const char *reason(const struct relay *r) {
    return r->upstream->list.n == 0 ? "its name does not resolve" : strerror(r->connect_err);
}

/* err: it was established and is reset already; what it sent before can still be read. */
static void established(struct relay *r, int err) {
    struct side *u = relay_upstream(r);
    int64_t now = clocks_mono();
    r->phase = OPEN;
    relay_tell(r, (struct piece){.kind = PIECE_CONNECTED, .t_ns = now, .t2_ns = r->connect_ns});
    if (r->upstream->down && r->all->on_upstream) r->all->on_upstream(r->all->ctx, r->upstream, true);
    if (err)
        relay_write_failed(u, err);
    else if (outq_len(&u->out) > 0)
        relay_flush(u);
    else
        relay_drained(u);
}

static void failed(struct relay *r) {
    struct side *c = relay_client(r);
    r->phase = REFUSED;
    if (!r->upstream->down) {
        r->upstream->down_err = r->connect_err;
        if (r->all->on_upstream) r->all->on_upstream(r->all->ctx, r->upstream, false);
    }
    outq_clear(&relay_upstream(r)->out);
    relay_unpause(c);
    relay_answer(r);
}

static void on_name(void *ctx) {
    struct relay *r = ctx;
    r->waits_name = false;
    r->next_addr = 0;
    try_next(r);
    relay_arm(r);
}

/* Begins to connect to x. True: it is on its way, or done. */
static bool attempt(struct relay *r, const union addr_any *x) {
    struct side *u = relay_upstream(r);
    int fd = net_socket(x->sa.sa_family);
    if (fd < 0) {
        note_error(r, errno);
        return false;
    }
    net_tune(fd);
    int rc = connect(fd, &x->sa, addr_len(x)), err = rc < 0 ? errno : 0;
    bool busy = err == EAGAIN; /* a Unix socket whose backlog is full: tried again by the tick */
    if (err && err != EINPROGRESS) {
        close(fd);
        if (!busy) note_error(r, err);
        return busy;
    }
    if (!relay_attach(u, fd)) {
        close(fd);
        note_error(r, ENOMEM);
        return false;
    }
    if (!err) established(r, 0);
    return true;
}

static void try_next(struct relay *r) {
    const struct addr_list *list = &r->upstream->list;
    while (r->next_addr < list->n) {
        const union addr_any *x = &list->at[r->next_addr++];
        r->connect_limit_ns = clocks_mono() + CONNECT_NS;
        relay_tick_on(r);
        if (attempt(r, x)) return;
    }
    r->wait = (struct upstream_wait){.done = on_name, .ctx = r};
    if (!r->resolved_again && upstream_again(r->upstream, &r->wait, clocks_mono())) {
        r->resolved_again = r->waits_name = true;
        r->connect_limit_ns = INT64_MAX;
        return;
    }
    if (list->n == 0) note_error(r, EHOSTUNREACH);
    failed(r);
}

void relay_connect(struct relay *r) {
    r->phase = CONNECTING;
    r->next_addr = 0;
    r->connect_err = 0;
    r->resolved_again = false;
    r->connect_ns = clocks_mono();
    try_next(r);
}

void relay_on_connect(struct relay *r) {
    struct side *u = relay_upstream(r);
    int err = net_error(u->fd);
    if (err == 0 || err == ECONNRESET || err == EPIPE) { /* who refuses a SYN makes it ECONNREFUSED */
        established(r, err);
        return;
    }
    note_error(r, err);
    relay_detach(u, false);
    try_next(r);
}

void relay_connect_tick(struct relay *r, int64_t now_ns) {
    struct side *u = relay_upstream(r);
    bool late = now_ns >= r->connect_limit_ns;
    if (u->fd >= 0 && late) {
        note_error(r, ETIMEDOUT);
        relay_detach(u, false);
        try_next(r);
    } else if (u->fd < 0 && !r->waits_name) { /* the Unix socket that was busy */
        int64_t limit = r->connect_limit_ns;
        if (late)
            note_error(r, EAGAIN);
        else
            r->next_addr--;
        try_next(r);
        if (r->phase == CONNECTING && !late) r->connect_limit_ns = limit;
    }
}

/* -- no upstream */

static void tell_unconnected(struct relay *r) {
    relay_tell(r, (struct piece){.kind = PIECE_CONNECTED,
                                 .t_ns = clocks_mono(),
                                 .t2_ns = r->connect_ns,
                                 .value = r->connect_err});
}

static void tell_answered(struct relay *r, int status) {
    bool as_said = (status == 0) == r->all->unreachable_reset; /* in the status line */
    if (as_said) r->upstream->n_refused++;
    relay_tell(r,
               (struct piece){
                   .kind = PIECE_ANSWERED, .t_ns = clocks_mono(), .value = status, .value2 = r->connect_err});
}

static void refuse(struct relay *r) {
    tell_answered(r, 0);
    relay_detach(relay_client(r), true);
    relay_end(r, false);
}

static void answer_502(struct relay *r) {
    struct side *c = relay_client(r);
    char text[2048];
    size_t n = refusal_502(text, sizeof text, r->upstream->addr.shown, reason(r),
                           framer_is_head_request(&r->framer));
    ssize_t w = net_write(c->fd, text, n);
    if (w < 0 && errno != EAGAIN && errno != EINTR) {
        relay_reset(c, errno);
        return;
    }
    if (w < 0) w = 0;
    c->n_written += (uint64_t)w;
    if (!outq_put(&c->out, text + w, n - (size_t)w)) {
        refuse(r);
        return;
    }
    tell_answered(r, 502);
    relay_linger(r, ANSWER_DISCARD_BYTES);
}

void relay_answer(struct relay *r) {
    struct side *c = relay_client(r);
    bool resets = r->all->unreachable_reset || r->framer.opaque;
    if (resets || r->framer.heads > 0) tell_unconnected(r);
    if (resets)
        refuse(r);
    else if (r->framer.heads > 0)
        answer_502(r);
    else if (c->fin_in)
        relay_end(r, false);
}
