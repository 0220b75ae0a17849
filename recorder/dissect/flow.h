/* A client's connection and its own upstream connection: two byte streams that are read as HTTP/1, and the
 * requests on them.
 *
 * Knows pieces and HTTP framing, not what bodies mean. */
#ifndef RECORDER_DISSECT_FLOW_H
#define RECORDER_DISSECT_FLOW_H

#include "recorder/dissect.h"
#include "recorder/dissect/exchange.h"
#include "recorder/keyhash.h"

struct dissect {
    struct dissect_config config;
    struct pool pool;
    struct flow **table; /* by ordinal, chained */
    size_t table_size, n_flows;
    struct exchange *oldest, *newest; /* over, and waiting for what may follow, in order of their ends */
    int64_t wall_ns, wall_at_ns;      /* the last clock piece; 0: none yet */
};

/* Losses of a kind are found here by what is missing, and told by the forwarder as a sum, before or after:
 * each byte must count once. */
struct loss_note {
    uint64_t count, bytes; /* found here and not yet told by the forwarder */
    uint64_t ahead_bytes;  /* told by the forwarder and not yet found here */
};

/* Requests of a flow that may wait for their answers; a client that sends more is read no further. */
#define FLOW_OPEN_MAX 1024

/* Places in a flow's list of exchanges, each behind all those of which no more is to be said: pieces look
 * from there on, so that what waits in the list costs them nothing. */
enum flow_place {
    PLACE_OPEN,   /* the first one that is not over */
    PLACE_WRITE,  /* the first one whose request may still be handed over */
    PLACE_ARRIVE, /* the first one whose answer's delivery may still be told */
    N_FLOW_PLACES
};

/* One direction of a flow. */
struct half {
    struct http1 *http;
    struct head head;
    uint64_t off;                    /* stream offset of the next byte */
    uint64_t begin;                  /* where the message at hand begins */
    int64_t t_begin;                 /* the read that brought its first byte */
    int64_t t_read_before;           /* the read before the current one */
    int64_t t_fin, t_reset, t_pause; /* 0: not yet, or not paused */
    int64_t paused_bytes;
    int error;     /* errno of the reset */
    bool in_head;  /* a head has begun and is not whole */
    bool skipping; /* bytes are missing: nothing is read before the next head */
    bool deaf;     /* nothing is read any more: a tunnel, no HTTP, or the client is gone */
};

struct flow {
    struct flow *chained; /* next in its bucket */
    struct dissect *d;
    uint64_t id;
    const char *upstream;                  /* NULL: not known */
    struct half half[2];                   /* by enum dir */
    struct exchange *first, *last;         /* in order of arrival, those that are over and wait included */
    struct exchange *place[N_FLOW_PLACES]; /* NULL: behind the last */
    size_t n_open;                         /* that are not over */
    struct exchange *up;                   /* whose request is being read */
    struct exchange *down;                 /* whose response is being read */
    char client[KEYHASH_CHARS];            /* keyed hash of the peer's address, or empty */
    const struct piece *now;               /* the piece at hand */
    uint64_t n_pieces;
    int64_t t_answer_after_fin; /* the first read of the upstream behind the client's FIN; 0: none */
    bool crowded;               /* more than FLOW_OPEN_MAX: there are requests without an exchange */
    bool lossy;                 /* pieces were lost: a response may belong to a request that was not seen */
    bool unsolicited;           /* the rest of this piece belongs to no request */
    uint64_t unsolicited_at;
    struct loss_note shed, dropped;
    bool told_protocol, told_proxy;
    char lead[16]; /* what the client sent first */
    size_t n_lead;
};

/* -- flow.c: the table */
struct flow *flow_find(struct dissect *d, uint64_t id);
struct flow *flow_open(struct dissect *d, uint64_t id); /* NULL: no memory */
void flow_close(struct flow *f);                        /* frees it; its exchanges must have been freed */

/* -- flow.c: exchanges of a flow */
/* The first one that is not over, NULL: none. */
struct exchange *flow_first_open(struct flow *f);
/* NULL: no memory, or the flow is crowded. */
struct exchange *flow_begin(struct flow *f, int64_t t_arrive, bool partial);
/* Ends an exchange and lets it linger for what may follow. */
void flow_end(struct flow *f, struct exchange *x, const struct exchange_end *end);
/* Ends all that are open. */
void flow_end_all(struct flow *f, const struct exchange_end *end);
/* Frees an exchange that is over. */
void flow_free_exchange(struct flow *f, struct exchange *x);
/* Frees those of all flows that have lingered long enough at now_ns. */
void flow_tidy(struct dissect *d, int64_t now_ns);

/* -- flow_http.c */
extern const struct http1_ops flow_up_ops, flow_down_ops;
/* Reads n bytes of a direction that are the next ones of its stream. */
void flow_read(struct flow *f, enum dir dir, const char *p, size_t n);
void flow_protocol(struct flow *f, const char *protocol);

/* -- flow_end.c */
/* When the client had left, seen at t_ns, 0: it had not; by: how, when it had. */
int64_t flow_client_gone(const struct flow *f, int64_t t_ns, const char **by);
/* Whatever is open was cut at t_ns. A client that had left before is the reason. */
void flow_cut(struct flow *f, int64_t t_ns, const char *by, int error);

/* -- flow_piece.c */
void flow_piece(struct dissect *d, const struct piece *p, const void *bytes);
void flow_stop(struct flow *f, int64_t now_ns);

#endif
