/* The parser library is made to stop at the end of each message and starts afresh for the next, since only
 * then is the message's place in the stream known, and since it would refuse what follows "Connection:
 * close". Its idea of upgrades is not taken: clients send "Upgrade: h2c" with plain requests, so only the
 * caller, who sees the answer, can tell a tunnel. */
#include "recorder/http1.h"

#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX_BYTES (4u << 20)

static const char PROXY_V1[] = "PROXY ";
static const char PROXY_V2[] = "\r\n\r\n\0\r\nQUIT\n";
enum { V2_HEAD = 16, V1_MAX = 107 };

enum state { PREFACE, BETWEEN, INSIDE, OPAQUE };

struct http1 {
    http_parser parser;
    const struct http1_ops *ops;
    void *ctx;
    enum http1_kind kind;
    enum state state;
    uint64_t off;       /* stream offset of the next byte to be fed */
    bool ended, tunnel; /* set by the library's callbacks, taken up after it returned */
    const char *why;
    int proxy_version;
    unsigned char pre[V2_HEAD]; /* first bytes, while they may be a PROXY header */
    size_t n_pre, pre_left;     /* of them seen; bytes of a version 2 header still to skip */
};

static struct http1 *self(http_parser *p) {
    return p->data;
}

static int on_url(http_parser *p, const char *at, size_t n) {
    struct http1 *h = self(p);
    if (h->ops->target) h->ops->target(h->ctx, at, n);
    return 0;
}
static int on_field(http_parser *p, const char *at, size_t n) {
    struct http1 *h = self(p);
    if (h->ops->field) h->ops->field(h->ctx, at, n);
    return 0;
}
static int on_value(http_parser *p, const char *at, size_t n) {
    struct http1 *h = self(p);
    if (h->ops->value) h->ops->value(h->ctx, at, n);
    return 0;
}
static int on_body(http_parser *p, const char *at, size_t n) {
    struct http1 *h = self(p);
    if (h->ops->body) h->ops->body(h->ctx, at, n);
    return 0;
}

static int on_head(http_parser *p) {
    struct http1 *h = self(p);
    struct http1_head head = {
        .method = h->kind == HTTP1_REQUEST ? http_method_str(p->method) : NULL,
        .status = p->status_code,
        .minor = p->http_minor,
        .chunked = (p->flags & F_CHUNKED) != 0,
        .keep_alive = http_should_keep_alive(p) != 0,
        .has_length = p->content_length != UINT64_MAX && (p->flags & F_CONTENTLENGTH),
        .content_length = p->content_length,
    };
    enum http1_follows follows = h->ops->head(h->ctx, &head);
    p->upgrade = 0;
    h->tunnel = follows == HTTP1_TUNNEL;
    return follows == HTTP1_BODY ? 0 : 1;
}

static int on_end(http_parser *p) {
    self(p)->ended = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_end,
};

static void restart(struct http1 *h) {
    http_parser_init(&h->parser, h->kind == HTTP1_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE);
    h->parser.data = h;
    h->parser.lenient_http_headers = 1;
    h->parser.allow_chunked_length = 1;
    h->ended = h->tunnel = false;
}

struct http1 *http1_new(enum http1_kind kind, const struct http1_ops *ops, void *ctx) {
    struct http1 *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->kind = kind, h->ops = ops, h->ctx = ctx;
    h->state = kind == HTTP1_REQUEST ? PREFACE : BETWEEN;
    http_parser_set_max_header_size(HEAD_MAX_BYTES);
    restart(h);
    return h;
}

void http1_free(struct http1 *h) {
    free(h);
}

static bool opaque(struct http1 *h, const char *why) {
    h->state = OPAQUE;
    h->why = why;
    return false;
}

/* Ends the message at h->off. False when a tunnel begins there. */
static bool finish(struct http1 *h) {
    bool tunnel = h->tunnel;
    h->state = BETWEEN;
    restart(h);
    if (h->ops->end) h->ops->end(h->ctx, h->off);
    return tunnel ? opaque(h, "tunnel") : true;
}

/* Feeds bytes of messages; line ends between messages belong to none. */
static bool messages(struct http1 *h, const char *p, size_t n) {
    while (n > 0) {
        if (h->state == BETWEEN) {
            if (*p == '\r' || *p == '\n') {
                p++, n--, h->off++;
                continue;
            }
            h->state = INSIDE;
            if (h->ops->begin) h->ops->begin(h->ctx, h->off);
        }
        size_t used = http_parser_execute(&h->parser, &settings, p, n);
        h->off += used, p += used, n -= used;
        if (h->ended) {
            if (!finish(h)) return false;
        } else if (HTTP_PARSER_ERRNO(&h->parser) != HPE_OK) {
            return opaque(h, http_errno_description(HTTP_PARSER_ERRNO(&h->parser)));
        }
    }
    return true;
}

/* The first bytes were no PROXY header after all: they are the beginning of a message. */
static bool give_back(struct http1 *h) {
    unsigned char pre[V2_HEAD];
    size_t n = h->n_pre;
    memcpy(pre, h->pre, n);
    h->state = BETWEEN;
    h->n_pre = 0;
    return messages(h, (const char *)pre, n);
}

/* Takes one byte while a PROXY header may stand first or goes on. h->off counts only bytes that are settled.
 */
static bool preface(struct http1 *h, unsigned char c) {
    if (h->pre_left > 0) {
        h->off++;
        if (--h->pre_left == 0) h->state = BETWEEN;
        return true;
    }
    if (h->proxy_version == 1) {
        h->off++;
        if (c == '\n' || h->off >= V1_MAX) h->state = BETWEEN;
        return true;
    }
    h->pre[h->n_pre++] = c;
    bool v1 = h->n_pre <= 6 && memcmp(h->pre, PROXY_V1, h->n_pre) == 0;
    bool v2 = memcmp(h->pre, PROXY_V2, h->n_pre < 12 ? h->n_pre : 12) == 0;
    if (!v1 && !v2) return give_back(h);
    if (v1 && h->n_pre == 6) {
        h->proxy_version = 1;
        h->off = 6;
    } else if (v2 && h->n_pre == V2_HEAD) {
        h->proxy_version = 2;
        h->off = V2_HEAD;
        h->pre_left = (size_t)h->pre[14] << 8 | h->pre[15];
        if (h->pre_left == 0) h->state = BETWEEN;
    }
    return true;
}

bool http1_feed(struct http1 *h, const char *p, size_t n) {
    if (h->state == OPAQUE) {
        h->off += n;
        return false;
    }
    while (n > 0 && h->state == PREFACE) {
        if (!preface(h, (unsigned char)*p)) return false;
        p++, n--;
    }
    return messages(h, p, n);
}

bool http1_eof(struct http1 *h) {
    if (h->state == PREFACE && h->n_pre > 0 && h->proxy_version == 0) give_back(h);
    if (h->state != INSIDE) return true;
    http_parser_execute(&h->parser, &settings, NULL, 0);
    if (!h->ended) return false;
    finish(h);
    return true;
}

void http1_resync(struct http1 *h, uint64_t off) {
    if (h->state == OPAQUE && h->why && strcmp(h->why, "tunnel") == 0) return;
    h->state = BETWEEN;
    h->why = NULL;
    h->off = off;
    restart(h);
}

bool http1_in_message(const struct http1 *h) {
    return h->state == INSIDE;
}
const char *http1_why(const struct http1 *h) {
    return h->state == OPAQUE ? h->why : NULL;
}
int http1_proxy_version(const struct http1 *h) {
    return h->proxy_version;
}

const char *http1_library(void) {
    static char text[32];
    unsigned long v = http_parser_version();
    snprintf(text, sizeof text, "%lu.%lu.%lu", v >> 16 & 255, v >> 8 & 255, v & 255);
    return text;
}
