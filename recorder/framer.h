/* What the forwarder must know of HTTP/1 on a connection: is a request running, is its answer whole, where do
 * heads begin and messages end. It reads along; it never changes or delays a byte.
 *
 * Pairs responses with requests only as far as framing needs it (HEAD and CONNECT change what follows a
 * head). */
#ifndef RECORDER_FRAMER_H
#define RECORDER_FRAMER_H

#include "recorder/http1.h"
#include "recorder/piece.h"

enum { FRAMER_PIPELINE = 64 }; /* requests ahead of their answers whose method is remembered */

struct framer {
    struct http1 *http[2]; /* by enum dir; NULL: no memory, the connection counts as opaque */
    uint64_t begun, answered;
    uint64_t heads; /* request heads that were whole */
    bool opaque;    /* not HTTP/1 from some byte on, in either direction */
    bool tunnel;    /* opaque on purpose: 101, or 2xx to CONNECT */
    bool interim;   /* the response being read is a 1xx */
    bool in_head[2];
    unsigned char
        methods[FRAMER_PIPELINE]; /* of requests without an answer, the oldest at n_answers % size */
    uint64_t n_methods, n_answers;
    /* of the last framer_feed, as stream offsets: */
    uint64_t head_at;            /* where the first head that starts in it begins; NO_OFFSET: none does */
    uint64_t end_at;             /* behind the last message that ended in it, or NO_OFFSET */
    uint64_t head_from, head_to; /* the bytes that belong to heads lie in here; equal: none */
    bool answer_ended;           /* a final response ended in it */
    const char *base;            /* its bytes, during the call */
    uint64_t off;
};

/* In place; framer_fini frees what it holds. */
void framer_init(struct framer *f);
void framer_fini(struct framer *f);

/* Reads n bytes that stand at stream offset off of direction dir; sets the fields above. */
void framer_feed(struct framer *f, enum dir dir, uint64_t off, const char *bytes, size_t n);
/* The sender of dir closed its side: may end a response that lasts until then (answer_ended). */
void framer_eof(struct framer *f, enum dir dir);

/* A request was begun and its answer has not ended, or there is no telling. */
bool framer_running(const struct framer *f);
/* Every request that was begun has its whole answer, and there was one. */
bool framer_all_answered(const struct framer *f);
/* A request is begun and not yet whole. */
bool framer_request_open(const struct framer *f);
/* The request that waits for an answer first is a HEAD. */
bool framer_is_head_request(const struct framer *f);

#endif
