/* HTTP/1 framing as an observer: where messages begin and end, their heads and bodies, in one direction of a
 * connection.
 *
 * The only file that knows the HTTP parser library. It never judges: what the library refuses is opaque from
 * there on, with a reason. It knows neither sockets nor what bodies mean. A PROXY v1/v2 header before the
 * first request is skipped. */
#ifndef RECORDER_HTTP1_H
#define RECORDER_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };
enum http1_follows { HTTP1_BODY, HTTP1_NO_BODY, HTTP1_TUNNEL }; /* what comes after a head */

struct http1_head {
    const char *method; /* requests: "POST" …; responses: NULL */
    unsigned status;    /* responses */
    unsigned minor;     /* HTTP/1.minor */
    bool chunked;       /* Transfer-Encoding: chunked */
    bool keep_alive;    /* the connection may carry another message */
    bool has_length;
    uint64_t content_length; /* when has_length */
};

/* All may be NULL but head. Offsets are those of the stream since its first byte. Spans are borrowed for the
 * call; targets, fields and values come in as many calls as the reads cut them into. Fields after the head
 * are trailers. */
struct http1_ops {
    void (*begin)(void *ctx, uint64_t off);
    void (*target)(void *ctx, const char *p, size_t n);
    void (*field)(void *ctx, const char *p, size_t n);
    void (*value)(void *ctx, const char *p, size_t n);
    enum http1_follows (*head)(
        void *ctx, const struct http1_head *h); /* HEAD, 1xx, 204, 304, 101 … are the caller's to know */
    void (*body)(void *ctx, const char *p, size_t n);
    void (*end)(void *ctx, uint64_t off); /* offset behind the message */
};

struct http1;

/* NULL: no memory. ops and ctx are borrowed until http1_free. */
struct http1 *http1_new(enum http1_kind kind, const struct http1_ops *ops, void *ctx);
void http1_free(struct http1 *h);

/* Reads n bytes. True: all is read as HTTP. False: the stream is opaque from some byte on, now and for ever:
 * a tunnel, or what the parser refused; http1_why tells which. */
bool http1_feed(struct http1 *h, const char *p, size_t n);
/* The sender closed its side: ends a body that lasts until then. False: it closed inside a message. */
bool http1_eof(struct http1 *h);
/* Forgets where it was and expects a message's head at stream offset off: after bytes were lost. */
void http1_resync(struct http1 *h, uint64_t off);

bool http1_in_message(const struct http1 *h);
/* Why the stream is opaque: "tunnel", or the parser's words. NULL while it is not. */
const char *http1_why(const struct http1 *h);
/* 1 or 2 when a PROXY header stood first, else 0. */
int http1_proxy_version(const struct http1 *h);

/* Version of the parser library in use, "2.9.4". Static. */
const char *http1_library(void);

#endif
