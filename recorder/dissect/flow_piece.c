/* What each piece of a flow means for its requests and its connection. */
#include "recorder/dissect/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static const int64_t LATE_NS = 1000000; /* a read this much after the kernel's is a fact */

static void tell(struct flow *f, enum fact fact, int64_t v) {
    trw_int(f->d->config.trw, f->id, fact, v);
}

/* -- loss */
static int64_t end_of(const struct piece *p) {
    return p->kind == PIECE_LOSS ? p->t2_ns : p->t_ns;
}

/* Tells a loss of one request; what is told once is not told again. */
static void lose_one(struct exchange *x, enum loss l, const struct piece *p, uint64_t *count,
                     uint64_t *bytes) {
    exchange_lost(x, l, p->t_ns, end_of(p), *count, *bytes);
    *count = *bytes = 0;
}

/* Tells a loss of everything that is open, or of no request. */
static void tell_loss(struct flow *f, enum loss l, const struct piece *p, uint64_t count, uint64_t bytes) {
    bool told = false;
    f->d->config.shared->counts.loss[l] += count;
    if (f->up && f->up->over) lose_one(f->up, l, p, &count, &bytes), told = true;
    for (struct exchange *x = flow_first_open(f); x; x = x->next) {
        if (x->over || (told && x->lost)) continue;
        lose_one(x, l, p, &count, &bytes);
        told = true;
    }
    if (!told) trw_loss(f->d->config.trw, l, p->t_ns, end_of(p), count, bytes, 0);
}

/* Bytes of p's direction are missing: everything open is marked, and nothing is read before the next head. */
static void lose(struct flow *f, enum loss l, const struct piece *p, uint64_t bytes) {
    struct half *s = &f->half[p->dir];
    struct loss_note *note = l == LOSS_queue_full ? &f->shed : &f->dropped;
    uint64_t ahead = bytes < note->ahead_bytes ? bytes : note->ahead_bytes, count = ahead < bytes;
    s->skipping = true;
    s->in_head = false;
    f->lossy = true;
    note->ahead_bytes -= ahead;
    note->count += count;
    note->bytes += bytes - ahead;
    tell_loss(f, l, p, count, bytes - ahead);
}

/* The next byte of p's direction is the one at off: those before it are missing. */
static void stand_at(struct flow *f, const struct piece *p, uint64_t off) {
    struct half *s = &f->half[p->dir];
    if (off <= s->off) return;
    if (!s->deaf && !s->skipping) lose(f, LOSS_pieces_dropped, p, off - s->off);
    s->off = off;
}

/* The forwarder's own sum: what was not found here is told now. */
static void on_loss(struct flow *f, const struct piece *p) {
    struct loss_note *note = p->value == LOSS_queue_full ? &f->shed : &f->dropped;
    uint64_t sum = (uint64_t)p->value2;
    uint64_t count = p->off > note->count ? p->off - note->count : 0;
    uint64_t bytes = sum > note->bytes ? sum - note->bytes : 0;
    *note = (struct loss_note){.ahead_bytes = note->ahead_bytes + bytes};
    if (p->value != LOSS_queue_full) f->lossy = true;
    if (count > 0) tell_loss(f, (enum loss)p->value, p, count, bytes);
}

static void wrote(struct flow *f, uint64_t off, int64_t t_ns) {
    struct exchange *first = flow_first_open(f), *x;
    for (; (x = f->place[PLACE_WRITE]) && x->up_done && x->up_end <= off; f->place[PLACE_WRITE] = x->next) {
        if (!x->up_end) continue; /* nobody saw where it ended */
        x->t_wrote = t_ns;
        exchange_forwarded(x, !first || x == first || x->over, 0);
    }
}

/* What a piece says of messages whose bytes were lost: where the last one ended. */
static void end_unseen(struct flow *f, const struct piece *p) {
    if (p->end_at == NO_OFFSET) return;
    if (p->dir == DIR_UP && f->up) {
        exchange_request_end(f->up, p->t_ns, p->end_at);
        f->up = NULL;
    }
    struct exchange *x = flow_first_open(f);
    if (p->dir != DIR_DOWN || !x || !x->lost || x->tunnel) return;
    x->down_end = x->down_head ? p->end_at : 0;
    flow_end(f, x, &(struct exchange_end){p->t_ns, "complete", 0, false});
}

/* Goes on with the first head that the piece holds. */
static void resync(struct flow *f, const struct piece *p, const char *bytes) {
    struct half *s = &f->half[p->dir];
    bool head = p->head_at != NO_OFFSET && p->head_at >= p->off && p->head_at - p->off < p->n_bytes;
    if (!head || p->end_at == NO_OFFSET || p->end_at <= p->head_at) end_unseen(f, p);
    if (!head) return;
    s->skipping = false;
    if (p->dir == DIR_UP && f->up) {
        exchange_request_cut(f->up);
        f->up = NULL;
    }
    struct exchange *x = flow_first_open(f);
    if (p->dir == DIR_DOWN && x && x->lost && x->down_head)
        flow_end(f, x, &(struct exchange_end){0, "lost", 0, false});
    if (p->dir == DIR_DOWN) f->down = NULL;
    http1_resync(s->http, p->head_at);
    flow_read(f, (enum dir)p->dir, bytes + (p->head_at - p->off), p->n_bytes - (p->head_at - p->off));
}

/* -- data */
static void stamp(struct exchange *x, const struct piece *p) {
    if (!x) return;
    if (p->flags & PIECE_KERNEL_TIME)
        x->n_kernel++;
    else
        x->n_clock++;
}

static void on_data(struct flow *f, const struct piece *p, const char *bytes) {
    struct half *s = &f->half[p->dir];
    if (p->late_ns > LATE_NS)
        trw_span(f->d->config.trw, f->id, F_late_read, p->t_ns, p->t_ns + p->late_ns, p->dir);
    if (p->dir == DIR_DOWN) stamp(flow_first_open(f), p);
    if (p->dir == DIR_DOWN && f->half[DIR_UP].t_fin && !f->t_answer_after_fin)
        f->t_answer_after_fin = p->t_ns;
    stand_at(f, p, p->off);
    s->off = p->off + p->n_bytes + p->n_shed;
    if (s->deaf) return;
    if (s->skipping)
        resync(f, p, bytes);
    else if (p->n_bytes > 0)
        flow_read(f, (enum dir)p->dir, bytes, p->n_bytes);
    if (p->n_shed > 0) {
        bool skipped = s->skipping;
        lose(f, LOSS_queue_full, p, p->n_shed);
        if (!skipped) end_unseen(f, p);
    }
    if (p->dir == DIR_UP) stamp(f->last && f->last->up_begin < s->off ? f->last : NULL, p);
    if (p->dir == DIR_UP && p->t2_ns) wrote(f, s->off, p->t2_ns);
}

/* -- ends */
static void on_fin(struct flow *f, const struct piece *p) {
    struct half *s = &f->half[p->dir];
    s->t_fin = p->t_ns;
    tell(f, p->dir == DIR_UP ? F_t_client_fin_ns : F_t_upstream_fin_ns, p->t_ns);
    if (p->dir == DIR_UP) return;
    if (!s->deaf && !s->skipping) http1_eof(s->http);
    flow_cut(f, p->t_ns, "upstream_fin", 0);
}

static void tell_after_end(struct flow *f, const char *what) {
    struct exchange *x = f->last;
    if (x && x->whole) answer_text(&x->a, F_after_end, what, strlen(what));
}

static void on_reset(struct flow *f, const struct piece *p) {
    struct half *s = &f->half[p->dir];
    bool client = p->dir == DIR_UP;
    s->t_reset = p->t_ns;
    tell(f, client ? F_t_client_reset_ns : F_t_upstream_reset_ns, p->t_ns);
    if (p->value) tell(f, client ? F_client_errno : F_upstream_errno, p->value);
    if (!flow_first_open(f)) tell_after_end(f, client ? "client_reset" : "upstream_reset");
    flow_cut(f, p->t_ns,
             client                  ? "client_reset"
             : p->value == ETIMEDOUT ? "upstream_timeout"
                                     : "upstream_reset",
             (int)p->value);
    if (client) f->half[DIR_UP].deaf = true;
    f->half[DIR_DOWN].deaf = true; /* what still comes reaches nobody */
}

static void on_answered(struct flow *f, const struct piece *p) {
    struct exchange *x;
    f->half[DIR_DOWN].deaf = true;
    while ((x = flow_first_open(f))) {
        if (p->value) answer_int(&x->a, F_sent_status, p->value);
        flow_end(f, x, &(struct exchange_end){p->t_ns, "refused", (int)p->value2, false});
    }
}

static void on_delivered(struct flow *f, const struct piece *p) {
    struct exchange *x;
    while ((x = f->place[PLACE_ARRIVE]) && x->over && (x->delivered || x->down_end <= p->off)) {
        f->place[PLACE_ARRIVE] = x->next;
        if (x->delivered) continue;
        x->delivered = true;
        answer_int(&x->a, F_t_delivered_ns, p->t_ns);
        if (!x->lingers && x->up_done) flow_free_exchange(f, x);
    }
}

/* -- pauses */
static void end_pause(struct flow *f, enum dir dir, int64_t from, int64_t to) {
    struct half *s = &f->half[dir];
    struct exchange *x = flow_first_open(f);
    trw_span(f->d->config.trw, f->id, F_c_paused, from, to, dir);
    if (dir == DIR_DOWN && x) trw_span(x->a.trw, x->a.id, F_paused, from, to, s->paused_bytes);
    s->t_pause = 0;
}

/* -- connection */
static void tell_text(struct flow *f, enum fact fact, const char *s) {
    if (s && *s) trw_str(f->d->config.trw, f->id, fact, s, strlen(s));
}

/* The address without its port, which differs between a client's connections. */
static void hash_peer(struct flow *f, const void *bytes, size_t n) {
    struct sockaddr_in6 in6;
    struct sockaddr_in in;
    sa_family_t family;
    if (n < sizeof family) return;
    memcpy(&family, bytes, sizeof family);
    if (family == AF_INET && n >= sizeof in) {
        memcpy(&in, bytes, sizeof in);
        keyhash(f->d->config.key, "client", &in.sin_addr, sizeof in.sin_addr, f->client);
    } else if (family == AF_INET6 && n >= sizeof in6) {
        memcpy(&in6, bytes, sizeof in6);
        keyhash(f->d->config.key, "client", &in6.sin6_addr, sizeof in6.sin6_addr, f->client);
    }
}

/* A flow whose beginning was not seen is read from the next head on. */
static void resume(struct flow *f) {
    f->lossy = true;
    f->half[DIR_UP].skipping = f->half[DIR_DOWN].skipping = true;
}

/* Where a flow stands whose beginning was told to a recorder before this one, or to none. */
static void on_resumed(struct flow *f, const struct piece *p) {
    struct piece at = *p;
    at.dir = DIR_UP;
    stand_at(f, &at, p->off);
    at.dir = DIR_DOWN;
    stand_at(f, &at, (uint64_t)p->value2);
}

static struct flow *new_flow(struct dissect *d, const struct piece *p) {
    struct flow *f = flow_open(d, p->flow);
    if (!f) return NULL;
    trw_begin(d->config.trw, SUBJECT_C, f->id);
    if (p->kind != PIECE_OPEN || (p->flags & PIECE_RESUMED)) resume(f);
    return f;
}

/* Comes first, or behind pieces of a flow that a recorder before this one knew. */
static void on_open(struct flow *f, const struct piece *p, const void *bytes) {
    const struct dissect_config *c = &f->d->config;
    if (p->flags & PIECE_RESUMED)
        on_resumed(f, p);
    else
        tell(f, F_t_connect_ns, p->t_ns);
    if (p->value >= 0 && (uint64_t)p->value < c->n_pairs) {
        f->upstream = c->upstreams[p->value];
        tell_text(f, F_c_listen, c->listens[p->value]);
        tell_text(f, F_c_upstream, f->upstream);
    }
    for (struct exchange *x = flow_first_open(f); x && f->upstream; x = x->next)
        answer_text(&x->a, F_upstream, f->upstream, strlen(f->upstream));
    hash_peer(f, bytes, p->n_bytes);
    tell_text(f, F_c_client, f->client);
}

static void on_connected(struct flow *f, const struct piece *p) {
    tell(f, F_t_upstream_start_ns, p->t2_ns);
    tell(f, F_t_upstream_connected_ns, p->t_ns);
    if (p->value) tell(f, F_connect_errno, p->value);
}

static const char *close_reason(const struct flow *f, bool stopped) {
    if (stopped) return "stop";
    if (f->half[DIR_DOWN].t_fin) return "upstream_fin";
    return f->lossy ? "lost" : "stop";
}

static void end_flow(struct flow *f, int64_t t_ns, bool stopped) {
    for (int dir = 0; dir < 2; dir++)
        if (f->half[dir].t_pause) end_pause(f, (enum dir)dir, f->half[dir].t_pause, t_ns);
    if (stopped) flow_end_all(f, &(struct exchange_end){t_ns, "stop", 0, false});
    flow_cut(f, t_ns, close_reason(f, stopped), 0);
    flow_end_all(f, &(struct exchange_end){t_ns, "complete", 0, true}); /* tunnels */
    while (f->first) flow_free_exchange(f, f->first);
    tell(f, F_t_close_ns, t_ns);
    tell(f, F_bytes_up, (int64_t)f->half[DIR_UP].off);
    tell(f, F_bytes_down, (int64_t)f->half[DIR_DOWN].off);
    trw_end(f->d->config.trw, SUBJECT_C, f->id);
    flow_close(f);
}

void flow_stop(struct flow *f, int64_t now_ns) {
    static const struct piece none = {.kind = PIECE_CLOSE};
    f->now = &none;
    end_flow(f, now_ns, true);
}

void flow_piece(struct dissect *d, const struct piece *p, const void *bytes) {
    struct flow *f = flow_find(d, p->flow);
    if (p->dir > DIR_DOWN) return;
    if (!f && (p->kind == PIECE_OPEN || p->kind == PIECE_DATA)) f = new_flow(d, p);
    if (!f) return;
    f->now = p;
    f->n_pieces++;
    switch ((enum piece_kind)p->kind) {
    case PIECE_OPEN: on_open(f, p, bytes); break;
    case PIECE_CONNECTED: on_connected(f, p); break;
    case PIECE_DATA: on_data(f, p, bytes); break;
    case PIECE_WROTE:
        if (p->dir == DIR_UP) wrote(f, p->off, p->t_ns);
        break;
    case PIECE_FIN: on_fin(f, p); break;
    case PIECE_RESET: on_reset(f, p); break;
    case PIECE_PAUSE:
        f->half[p->dir].t_pause = p->t_ns;
        f->half[p->dir].paused_bytes = p->value;
        break;
    case PIECE_RESUME: end_pause(f, (enum dir)p->dir, p->t2_ns, p->t_ns); break;
    case PIECE_DELIVERED: on_delivered(f, p); break;
    case PIECE_ANSWERED: on_answered(f, p); break;
    case PIECE_CLOSE: end_flow(f, p->t_ns, p->value == 1); return;
    case PIECE_LOSS: on_loss(f, p); break;
    default: break;
    }
}
