/* Three lines across the ring:
 *
 *     0 ──────────── 1/2 ──────────── 3/4 ─────────── 15/16 ─ 1
 *      all is queued  │ greedy flows   │ all flows     │ only pieces without
 *                     │ shed bytes     │ shed bytes    │ bytes of traffic
 *
 * Above 3/4 shedding lasts until 1/2 is reached again. A flow is greedy when it holds more than 1/8 of the
 * ring; as long as half of it is free that hurts nobody. How much a flow holds is known by epochs: an epoch
 * ends when the consumer has taken everything that was queued before it began, so a flow holds at most what
 * it queued in this epoch and the last.
 *
 * The ring is looked at only after a number of bytes that cannot carry it across the next line: the
 * consumer's position lies on a cache line that the consumer writes.
 *
 * What a flow lost is told before its CLOSE, also when both are late: the recorder finds gaps in a flow's
 * bytes by itself, and only while it knows the flow can it take what it found out of what it is told. */
#include "recorder/tap.h"
#include "recorder/clocks.h"

#include <string.h>

enum { LOOK_BYTES = 4096 };

void tap_init(struct tap *t, struct ring *ring) {
    memset(t, 0, sizeof *t);
    t->ring = ring;
}

void tap_flow_begin(struct tap_flow *f, uint64_t id) {
    *f = (struct tap_flow){.id = id};
}

static void look(struct tap *t) {
    size_t size = ring_size(t->ring);
    t->used = ring_used(t->ring);
    if (t->used > size / 4 * 3) t->congested = true;
    if (t->used < size / 2) t->congested = false;
    if (t->queued >= t->used && t->queued - t->used >= t->epoch_ends) {
        t->epoch++;
        t->epoch_ends = t->queued;
    }
    t->budget = t->used < size / 4 ? (int64_t)(size / 8) : LOOK_BYTES;
}

static bool push(struct tap *t, struct piece *p, const void *bytes) {
    if (!ring_push(t->ring, p, bytes)) return false;
    t->queued += p->size;
    t->budget -= p->size;
    return true;
}

/* -- late pieces */

static void tell_late(struct tap *t) {
    while (t->n_late > 0 && push(t, &t->late[t->late_first], NULL)) {
        t->late_first = (t->late_first + 1) % TAP_LATE_MAX;
        t->n_late--;
    }
}

/* Queues p now, or later behind those that wait already. False: too many wait. */
static bool push_or_keep(struct tap *t, const struct piece *p) {
    struct piece now = *p;
    if (!t->gone) tell_late(t);
    if (!t->gone && t->n_late == 0 && push(t, &now, NULL)) return true;
    if (t->n_late == TAP_LATE_MAX) return false;
    t->late[(t->late_first + t->n_late++) % TAP_LATE_MAX] = *p;
    return true;
}

/* Without these a request gets another outcome, or a flow stays open to the end of the recording. */
static bool tells_an_end(const struct piece *p) {
    return p->kind == PIECE_FIN || p->kind == PIECE_RESET || p->kind == PIECE_ANSWERED ||
           p->kind == PIECE_CLOSE;
}

/* -- what is left out, and telling it */

static void add(struct tap_gap *g, int64_t t_ns, uint64_t pieces, uint64_t bytes) {
    if (g->pieces == 0) g->from_ns = t_ns;
    g->to_ns = t_ns;
    g->pieces += pieces, g->bytes += bytes;
}

static void merge(struct tap_gap *into, const struct tap_gap *g) {
    if (g->pieces == 0) return;
    if (into->pieces == 0 || g->from_ns < into->from_ns) into->from_ns = g->from_ns;
    if (into->pieces == 0 || g->to_ns > into->to_ns) into->to_ns = g->to_ns;
    into->pieces += g->pieces, into->bytes += g->bytes;
}

static bool listed(const struct tap *t, const struct tap_flow *f) {
    return f->prev || f->next || t->untold == f;
}

static void list(struct tap *t, struct tap_flow *f) {
    if (listed(t, f)) return;
    f->next = t->untold;
    if (f->next) f->next->prev = f;
    t->untold = f;
}

static void unlist(struct tap *t, struct tap_flow *f) {
    if (!listed(t, f)) return;
    if (f->prev) f->prev->next = f->next;
    if (f->next) f->next->prev = f->prev;
    if (t->untold == f) t->untold = f->next;
    f->prev = f->next = NULL;
}

static struct piece loss_piece(enum loss l, const struct tap_gap *g, uint64_t flow) {
    return (struct piece){.kind = PIECE_LOSS,
                          .flow = flow,
                          .value = l,
                          .t_ns = g->from_ns,
                          .t2_ns = g->to_ns,
                          .off = g->pieces,
                          .value2 = (int64_t)g->bytes};
}

static void told(struct tap *t, struct tap_flow *f) {
    f->dropped = (struct tap_gap){0};
    unlist(t, f);
}

static bool tell_flow(struct tap *t, struct tap_flow *f) {
    struct piece p = loss_piece(LOSS_pieces_dropped, &f->dropped, f->id);
    if (f->dropped.pieces && (t->gone || !push(t, &p, NULL))) return false;
    told(t, f);
    return true;
}

static void tell_all(struct tap *t) {
    while (t->untold && tell_flow(t, t->untold)) {
    }
}

static void drop(struct tap *t, struct tap_flow *f, const struct piece *p) {
    uint64_t bytes = p->kind == PIECE_DATA ? (uint64_t)p->n_bytes + p->n_shed : 0;
    if (!f) f = &t->common;
    add(&f->dropped, p->t_ns, 1, bytes);
    add(&t->total_dropped, p->t_ns, 1, bytes);
    list(t, f);
}

void tap_loss(struct tap *t, enum loss l, struct tap_gap g, uint64_t flow) {
    struct piece p = loss_piece(l, &g, flow);
    if (l == LOSS_pieces_dropped) merge(&t->total_dropped, &g);
    if (g.pieces && !push_or_keep(t, &p)) drop(t, NULL, &p);
}

static void leave_out(struct tap *t, struct tap_flow *f, const struct piece *p) {
    if (t->gone)
        add(&t->without_recorder, p->t_ns, 1, p->kind == PIECE_DATA ? p->n_bytes : 0);
    else
        drop(t, f, p);
}

void tap_flow_end(struct tap *t, struct tap_flow *f, struct piece close) {
    struct piece loss = loss_piece(LOSS_pieces_dropped, &f->dropped, f->id);
    close.flow = f->id;
    if (f->dropped.pieces && !push_or_keep(t, &loss)) {
        merge(&t->common.dropped, &f->dropped);
        list(t, &t->common);
    }
    told(t, f);
    if (f->known ? !push_or_keep(t, &close) : t->gone) leave_out(t, NULL, &close);
}

/* -- pieces */

void tap_push_bytes(struct tap *t, struct tap_flow *f, struct piece p, const void *bytes) {
    if (f) p.flow = f->id;
    if (f && f->known && tells_an_end(&p)) {
        if (!push_or_keep(t, &p)) leave_out(t, f, &p);
        return;
    }
    bool pushed = !t->gone && push(t, &p, bytes);
    if (!pushed) leave_out(t, f, &p);
    if (f && p.kind == PIECE_OPEN) {
        f->unopened = !pushed;
        f->known |= pushed;
    }
}

void tap_push(struct tap *t, struct tap_flow *f, struct piece p) {
    tap_push_bytes(t, f, p, NULL);
}

/* Must this flow shed bytes now? If not, n more are counted as held by it. */
static bool greedy(struct tap *t, struct tap_flow *f, uint64_t n) {
    if (f->epoch != t->epoch) {
        f->in_last_epoch = f->epoch + 1 == t->epoch ? f->in_epoch : 0;
        f->in_epoch = 0;
        f->epoch = t->epoch;
    }
    size_t size = ring_size(t->ring);
    if (t->used >= size / 2 && f->in_epoch + f->in_last_epoch + n > size / 8) return true;
    f->in_epoch += n;
    return false;
}

static void push_data(struct tap *t, struct tap_flow *f, struct piece p, const char *bytes) {
    size_t size = ring_size(t->ring);
    bool room = t->used + sizeof p + p.n_bytes < size - size / 16;
    if (!room || !push(t, &p, bytes)) {
        drop(t, f, &p);
        return;
    }
    f->known = true;
    if (p.n_shed) add(&t->total_shed, p.t_ns, 1, p.n_shed);
}

/* Queues p without its bytes but for those in [from, to), which may need a piece of their own. */
static void push_shed(struct tap *t, struct tap_flow *f, struct piece p, const char *bytes, uint64_t from,
                      uint64_t to) {
    uint64_t end = p.off + p.n_bytes;
    size_t size = ring_size(t->ring);
    if (from >= to || t->used > size / 8 * 7) from = to = end;
    if (from > p.off) {
        struct piece first = p;
        first.n_bytes = 0, first.n_shed = (uint32_t)(from - p.off);
        if (from < end) { /* places behind it go with the second piece */
            if (p.head_at >= from) first.head_at = NO_OFFSET;
            if (p.end_at > from) first.end_at = NO_OFFSET;
        }
        push_data(t, f, first, NULL);
    }
    if (from < end) {
        bytes += from - p.off;
        if (p.head_at != NO_OFFSET && p.head_at < from) p.head_at = NO_OFFSET;
        if (p.end_at != NO_OFFSET && p.end_at <= from) p.end_at = NO_OFFSET;
        p.off = from;
        p.n_bytes = (uint32_t)(to - from), p.n_shed = (uint32_t)(end - to);
        push_data(t, f, p, bytes);
    }
}

void tap_data(struct tap *t, struct tap_flow *f, struct piece p, const char *bytes, uint64_t keep_from,
              uint64_t keep_to) {
    p.flow = f->id;
    if (t->gone) {
        leave_out(t, f, &p);
        return;
    }
    if (t->budget < (int64_t)(sizeof p + p.n_bytes)) look(t);
    if (t->congested || greedy(t, f, sizeof p + p.n_bytes)) {
        push_shed(t, f, p, bytes, keep_from, keep_to);
        return;
    }
    if (f->dropped.pieces) tell_flow(t, f);
    push_data(t, f, p, bytes);
}

void tap_tick(struct tap *t) {
    if (t->gone) return;
    look(t);
    tell_late(t);
    if (!t->congested && t->n_late == 0) tell_all(t);
}

void tap_set_gone(struct tap *t, bool gone) {
    t->gone = gone;
    if (gone) return;
    look(t);
    struct tap_gap missed = t->without_recorder;
    if (missed.pieces) tap_loss(t, LOSS_recorder_gone, missed, 0);
    t->without_recorder = (struct tap_gap){0};
}
