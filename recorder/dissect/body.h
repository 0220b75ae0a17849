/* The body of a message: its content coding undone, then cut into events or collected whole.
 *
 * Knows neither JSON nor HTTP framing. Whatever cannot be decoded or kept is still counted. */
#ifndef RECORDER_DISSECT_BODY_H
#define RECORDER_DISSECT_BODY_H

#include "recorder/dissect/awsstream.h"
#include "recorder/dissect/coding.h"
#include "recorder/dissect/jsonarray.h"
#include "recorder/dissect/ndjson.h"
#include "recorder/dissect/sse.h"

enum body_mode {
    BODY_COUNTED, /* nothing but its size is of interest */
    BODY_SNIFFED, /* its first bytes will tell: events or whole */
    BODY_JSON,    /* sniffed: whole, unless its first line is an object and another follows */
    BODY_WHOLE,
    BODY_SSE,
    BODY_NDJSON,
    BODY_AWS,
    BODY_ARRAY, /* events when it is a JSON array, else whole */
};

struct body {
    enum body_mode mode;
    enum body_mode said; /* as what it is read when its first bytes do not tell */
    bool doubted;
    struct pool *pool;
    struct coding *coding;
    event_fn *event; /* for modes with events */
    void *ctx;
    struct buf whole;
    size_t n_line;  /* of `whole`: its first line with its end, when that is an object; 0: it is not known */
    size_t n_blank; /* of `whole`: seen to have no line end */
    bool held;      /* the event at hand came with an earlier read: it was held until its framing was known */
    struct sse sse;
    struct ndjson ndjson;
    struct awsstream aws;
    struct jsonarray array;
    uint64_t wire_bytes; /* as fed */
    uint64_t bytes;      /* decoded */
    uint64_t unread;     /* of them neither collected nor read */
    char why[48];        /* why it cannot be decoded, or empty */
};

/* Zeroed may be ended and freed. encoding: value of Content-Encoding, "" without one. */
void body_begin(struct body *b, enum body_mode mode, const char *encoding, struct pool *pool, event_fn *event,
                void *ctx);
/* To be called before it is fed: heads say wrong things of this body. Its first bytes have the last word;
 * what they do not tell is read as `said`. */
void body_doubt(struct body *b, enum body_mode said);
void body_feed(struct body *b, const char *p, size_t n);
/* A first line is held that is an event if a second follows. */
bool body_holds_line(const struct body *b);
/* It is cut into events, as far as it has come. */
bool body_has_events(const struct body *b);
/* False: it is an array whose end has not come, whatever its framing says. */
bool body_is_closed(const struct body *b);
/* Hands on a last event; true: one was cut. What was collected stays in b->whole. cut: the body did not end
 * as its framing said. */
bool body_end(struct body *b, bool cut);
void body_free(struct body *b);

#endif
