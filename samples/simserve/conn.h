/*
 * The server side of HTTP/1.1 connections on the event loop: accept, read a request, hand it over, write what
 * the handler says. It does not know routes, JSON or the engine. Its one hard idea: every write is one call
 * into the kernel with the clock read right before it, so that an event, a chunk, a send and a row of the
 * truth log are the same thing.
 */
#ifndef SAMPLES_SIMSERVE_CONN_H
#define SAMPLES_SIMSERVE_CONN_H

#include "samples/simserve/http_in.h"

#include <stdint.h>
#include <uv.h>

struct conn;

struct conn_ops {
    /* A whole request; the handler answers it now or later, by exactly one of: conn_reply, conn_stream_begin
     * with conn_stream_end, conn_cut, conn_reset. */
    void (*on_request)(struct conn *c, const struct http_in *req, void *arg);
    /* The client left before the answer was whole; user is what conn_set_user said. No call on c may follow.
     */
    void (*on_gone)(void *user);
    void *arg;
};

struct conn_limits {
    uint64_t idle_ms; /* an idle connection is closed after this */
    uint64_t max_body_bytes;
    bool half_close; /* a client that shut its side down still gets its answer */
};

/* Where and how far a write came: CLOCK_MONOTONIC right before it, and the bytes that earlier writes still
 * had in front of it because the client is slow (0: it went out at that instant). */
struct conn_stamp {
    uint64_t ns, behind_bytes;
};

struct conns;

/* Listens; *addr gets the port that the kernel chose. NULL, *err a libuv error. ops and limits are copied. */
struct conns *conns_listen(uv_loop_t *loop, struct sockaddr_storage *addr, const struct conn_ops *ops,
                           const struct conn_limits *limits, int *err);

/* Stops accepting and closes idle connections; busy ones close after their answer. */
void conns_drain(struct conns *all);

/* Closes everything; on_gone is called for busy ones. The loop frees the memory. */
void conns_close(struct conns *all);

/* Connections whose request is not answered yet. */
unsigned conns_busy(const struct conns *all);

void conn_set_user(struct conn *c, void *user);
uint64_t conn_number(const struct conn *c);
uint64_t conn_first_byte_ns(const struct conn *c); /* of the request being answered */

/* A whole answer. head: further header lines, each ended by CRLF, or "". */
struct conn_stamp conn_reply(struct conn *c, unsigned status, const char *type, const char *head,
                             const char *body, size_t len);

/* The head of an event stream; its events, "data: <text>" each in one chunk; its end. */
struct conn_stamp conn_stream_begin(struct conn *c, const char *head);
struct conn_stamp conn_event(struct conn *c, const char *text);
struct conn_stamp conn_stream_end(struct conn *c);

/* Part of a body that was promised longer, for a failure on purpose: conn_cut or conn_reset must follow. */
struct conn_stamp conn_reply_part(struct conn *c, const char *body, size_t len, size_t promised);

/* Ends the connection in the middle: by an orderly close without the body's end, or by a reset. */
void conn_cut(struct conn *c);
void conn_reset(struct conn *c);

#endif
