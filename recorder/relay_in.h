/* What relay.c, relay_close.c and relay_connect.c share. Nobody else includes it.
 *
 * A relay has two sides. Bytes read from side d go to side !d, so that side[DIR_UP] is the client and
 * side[DIR_DOWN] the upstream:
 *
 *     client ── side[DIR_UP] ──read──▶ side[DIR_DOWN].out ──write──▶ upstream     (and the same mirrored)
 */
#ifndef RECORDER_RELAY_IN_H
#define RECORDER_RELAY_IN_H

#include "recorder/clocks.h"
#include "recorder/framer.h"
#include "recorder/net.h"
#include "recorder/outq.h"
#include "recorder/relay.h"

enum phase {
    CONNECTING, /* to the upstream; the client is read until its queue is full */
    OPEN,
    REFUSED,   /* no upstream: waits for the client's head to answer it, or for its first byte to try again */
    LINGERING, /* the answer has left, the upstream is gone: the client's input is discarded */
    ENDED
};

/* A poll handle outlives its side until libuv has let go of it. */
struct watch {
    uv_poll_t poll;
    struct side *side; /* NULL: its side is gone */
};

struct side {
    struct relay *relay;
    struct watch *watch;
    int fd;    /* -1: not there */
    int armed; /* events asked for */
    enum dir dir;
    bool fin_in, fin_out; /* end of input was read from it; we have shut down writing to it */
    bool paused;          /* not read since the other side is slow */
    bool hung;      /* an error is pending: no more events, it is read to its end as the other side drains */
    bool blind;     /* its events tell nothing any more but would repeat for ever */
    bool reset_due; /* to be reset once what was queued is delivered */
    int write_err;  /* errno of the write that failed */
    int64_t paused_ns;
    uint64_t n_read, n_written; /* stream offsets: read from it, handed over to it */
    struct outq out;            /* to be written to it */
};

struct relay {
    struct relays *all;
    struct relay *prev, *next;
    struct relay *tick_prev, *tick_next;
    bool ticks;
    enum phase phase;
    struct side side[2];
    struct framer framer;
    struct tap_flow flow;
    size_t pair;
    struct upstream *upstream;
    union addr_any peer;
    int64_t active_ns; /* last read */
    /* connecting */
    size_t next_addr;
    int64_t connect_ns, connect_limit_ns; /* began; this attempt ends at the latest */
    int connect_err;                      /* of the first address */
    bool resolved_again, waits_name;
    struct upstream_wait wait;
    /* ending */
    int64_t limit_ns;      /* LINGERING, reset_due, hung: the end at the latest */
    uint64_t discard_left; /* LINGERING: bytes */
    bool until_acked;      /* LINGERING: ends as soon as the client's kernel has everything */
    uint64_t deliver_off;  /* t_delivered is looked for: client's n_written of the last answer's end; 0: no */
    bool deliver_new;      /* it was not looked at yet */
};

enum { OUT_HIGH_BYTES = OUTQ_MAX_BYTES - RELAY_READ_BYTES, OUT_LOW_BYTES = 64 << 10 };
_Static_assert(OUT_HIGH_BYTES > OUT_LOW_BYTES, "reading resumes before the queue is empty");

static inline struct side *relay_client(struct relay *r) {
    return &r->side[DIR_UP];
}
static inline struct side *relay_upstream(struct relay *r) {
    return &r->side[DIR_DOWN];
}
static inline struct side *relay_other(struct side *s) {
    return &s->relay->side[!s->dir];
}

/* -- relay.c: the data path */
/* Gives a side its socket; false: no memory or no more watches, the socket is the caller's. */
bool relay_attach(struct side *s, int fd);
/* Asks for the events that both sides need now; the last call of every callback. */
void relay_arm(struct relay *r);
/* Writes what waits for s. */
void relay_flush(struct side *s);
/* Reads s to its end, as far as the other side takes it: an error is pending. */
void relay_pump(struct side *s);
/* Reads s again after it was paused. */
void relay_unpause(struct side *s);
void relay_tell(struct relay *r, struct piece p);

/* -- relay_connect.c */
void relay_connect(struct relay *r);
void relay_on_connect(struct relay *r);
/* The client's bytes came, or its end, while there is no upstream: answers when it can. */
void relay_answer(struct relay *r);
void relay_connect_tick(struct relay *r, int64_t now_ns);

/* -- relay_close.c: how connections end */
void relay_fin(struct side *s);            /* end of input was read from s */
void relay_reset(struct side *s, int err); /* s's peer is gone */
void relay_hung(struct side *s);           /* the kernel reports an error or hang-up of s */
void relay_write_failed(struct side *s, int err);
void relay_drained(struct side *s); /* nothing waits to be written to s any more */
void relay_linger(struct relay *r, uint64_t discard_bytes);
void relay_quiet(struct relay *r); /* a request may have ended: is there something to do? */
void relay_end(struct relay *r, bool cut);
void relay_detach(struct side *s, bool reset); /* closes its socket; its queue stays */
bool relay_running(const struct relay *r);     /* closing it now would cut something */
void relay_tick_on(struct relay *r);           /* relay_tick is called each 10 ms until there is no need */
void relays_on_tick(uv_timer_t *timer);

#endif
