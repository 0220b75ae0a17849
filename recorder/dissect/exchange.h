/* One request and its response: their times, sizes, bodies and end.
 *
 * Told by a flow what happens on the wire; knows neither sockets nor HTTP framing. Each function tells the
 * facts that have become known. */
#ifndef RECORDER_DISSECT_EXCHANGE_H
#define RECORDER_DISSECT_EXCHANGE_H

#include "recorder/dissect/answer.h"
#include "recorder/dissect/body.h"
#include "recorder/dissect/heads.h"
#include "recorder/http1.h"

struct exchange {
    struct exchange *prev, *next;   /* of its flow, in order of arrival */
    struct exchange *older, *newer; /* among those that are over and wait for what may follow */
    struct flow *flow;
    struct answer a; /* a.id: ordinal of the request */
    struct body up, down;
    char method[24];
    char *path;                      /* NULL: not known */
    uint64_t up_length, down_length; /* of the bodies as their heads say; 0: not told */
    int64_t t_arrive, t_wrote, t_prev_end, t_first_byte, t_end; /* 0: not known */
    uint64_t up_begin, up_end, down_begin, down_end; /* stream offsets; ends are behind the message */
    uint64_t last_piece;        /* ordinal of the piece that brought the last read of the body */
    int64_t t_held;             /* of the read that brought a first line whose framing was not known */
    uint64_t held_read;         /* its ordinal in the body */
    uint64_t n_kernel, n_clock; /* reads by where their times come from */
    bool up_done, down_head, over,
        whole; /* the request is read; the response's head is; nothing more will be read */
    bool pipelined, tunnel, head_only, forwarded, delivered, lost, lingers, counted;
};

struct exchange_start {
    struct trw *trw;
    struct shared *shared;
    struct pool *pool;
    const uint8_t *key;
    uint64_t connection;
    const char *upstream;
    bool pipelined, partial; /* partial: its head was not seen */
    int64_t t_arrive;        /* when not partial */
};

/* NULL: no memory. */
struct exchange *exchange_new(const struct exchange_start *s);
/* Tells that nothing more will be said and frees it. */
void exchange_free(struct exchange *x);

/* -- request. client: keyed hash of the peer, used when the head has no credential. */
void exchange_request_head(struct exchange *x, const struct head *head, const struct http1_head *h,
                           const char *client);
void exchange_request_body(struct exchange *x, const char *p, size_t n);
void exchange_request_end(struct exchange *x, int64_t t_ns, uint64_t off);
/* No more of the request will be seen. */
void exchange_request_cut(struct exchange *x);
/* All of the request was handed to the upstream's socket; waits until first is true: no earlier response is
 * still to come. t_prev_end: when the previous one ended, or 0. */
void exchange_forwarded(struct exchange *x, bool first, int64_t t_prev_end);

/* -- response. read: the read that brings it. */
void exchange_response_head(struct exchange *x, const struct head *head, const struct http1_head *h);
void exchange_response_body(struct exchange *x, const char *p, size_t n, int64_t t_ns, uint64_t piece);
/* How it ended; whole: as its framing said. t_ns 0: not known. Says nothing the second time. */
struct exchange_end {
    int64_t t_ns;
    const char *by; /* value of end_by */
    int error;      /* errno or 0 */
    bool whole;
};
void exchange_over(struct exchange *x, const struct exchange_end *end);
/* Pieces of it are missing. */
void exchange_lost(struct exchange *x, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count,
                   uint64_t bytes);

#endif
