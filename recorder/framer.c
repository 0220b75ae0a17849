/* http1 calls back while it reads; the callbacks note places. The end of a head has no place of its own in
 * http1: the first body byte, the message's end, or the end of the read bounds it, which is near enough for
 * "keep the head, shed the body". */
#include "recorder/framer.h"

#include <string.h>

enum method { PLAIN, HEAD, CONNECT };

static void head_began(struct framer *f, enum dir dir, uint64_t off) {
    if (f->head_at == NO_OFFSET) f->head_at = off;
    if (f->head_from == f->head_to) f->head_from = off > f->off ? off : f->off;
    f->head_to = UINT64_MAX; /* open: settled by what comes next */
    f->in_head[dir] = true;
}
static void head_ended_before(struct framer *f, enum dir dir, uint64_t off) {
    if (!f->in_head[dir]) return;
    f->in_head[dir] = false;
    f->head_to = off;
}

static void request_begin(void *ctx, uint64_t off) {
    struct framer *f = ctx;
    f->begun++;
    head_began(f, DIR_UP, off);
}
static void response_begin(void *ctx, uint64_t off) {
    head_began(ctx, DIR_DOWN, off);
}

static enum http1_follows request_head(void *ctx, const struct http1_head *h) {
    struct framer *f = ctx;
    unsigned char m = strcmp(h->method, "HEAD") == 0      ? HEAD
                      : strcmp(h->method, "CONNECT") == 0 ? CONNECT
                                                          : PLAIN;
    if (f->n_methods - f->n_answers < FRAMER_PIPELINE) f->methods[f->n_methods % FRAMER_PIPELINE] = m;
    f->n_methods++;
    f->heads++;
    return HTTP1_BODY;
}

static enum method answered_method(const struct framer *f) {
    if (f->n_answers >= f->n_methods || f->n_methods - f->n_answers > FRAMER_PIPELINE) return PLAIN;
    return f->methods[f->n_answers % FRAMER_PIPELINE];
}

static enum http1_follows response_head(void *ctx, const struct http1_head *h) {
    struct framer *f = ctx;
    enum method m = answered_method(f);
    f->interim = h->status >= 100 && h->status < 200;
    f->tunnel = h->status == 101 || (m == CONNECT && h->status / 100 == 2);
    if (f->tunnel) return HTTP1_TUNNEL;
    bool none = f->interim || h->status == 204 || h->status == 304 || m == HEAD;
    return none ? HTTP1_NO_BODY : HTTP1_BODY;
}

static void body_at(struct framer *f, enum dir dir, const char *p, size_t n) {
    uint64_t at = f->off + (uint64_t)(p - f->base);
    head_ended_before(f, dir, at);
}
static void request_body(void *ctx, const char *p, size_t n) {
    body_at(ctx, DIR_UP, p, n);
}
static void response_body(void *ctx, const char *p, size_t n) {
    body_at(ctx, DIR_DOWN, p, n);
}

static void request_end(void *ctx, uint64_t off) {
    struct framer *f = ctx;
    f->end_at = off;
    head_ended_before(f, DIR_UP, off);
}
static void response_end(void *ctx, uint64_t off) {
    struct framer *f = ctx;
    f->end_at = off;
    head_ended_before(f, DIR_DOWN, off);
    if (f->interim || f->tunnel) return;
    f->answer_ended = true;
    if (f->answered < f->begun) f->answered++;
    if (f->n_answers < f->n_methods) f->n_answers++;
}

static const struct http1_ops request_ops = {
    .begin = request_begin, .head = request_head, .body = request_body, .end = request_end};
static const struct http1_ops response_ops = {
    .begin = response_begin, .head = response_head, .body = response_body, .end = response_end};

void framer_init(struct framer *f) {
    *f = (struct framer){.head_at = NO_OFFSET, .end_at = NO_OFFSET};
    f->http[DIR_UP] = http1_new(HTTP1_REQUEST, &request_ops, f);
    f->http[DIR_DOWN] = http1_new(HTTP1_RESPONSE, &response_ops, f);
    f->opaque = !f->http[DIR_UP] || !f->http[DIR_DOWN];
}

void framer_fini(struct framer *f) {
    http1_free(f->http[DIR_UP]);
    http1_free(f->http[DIR_DOWN]);
    f->http[DIR_UP] = f->http[DIR_DOWN] = NULL;
}

static void begin(struct framer *f, enum dir dir, uint64_t off, const char *bytes) {
    f->head_at = f->end_at = NO_OFFSET;
    f->head_from = f->head_to = off;
    f->answer_ended = false;
    f->base = bytes, f->off = off;
    if (f->in_head[dir]) f->head_to = UINT64_MAX;
}

void framer_feed(struct framer *f, enum dir dir, uint64_t off, const char *bytes, size_t n) {
    begin(f, dir, off, bytes);
    if (!f->opaque && !http1_feed(f->http[dir], bytes, n)) f->opaque = true;
    if (f->head_to > off + n) f->head_to = off + n;
}

void framer_eof(struct framer *f, enum dir dir) {
    begin(f, dir, f->off, f->base);
    if (!f->opaque) (void)http1_eof(f->http[dir]);
    f->head_to = f->head_from;
}

bool framer_running(const struct framer *f) {
    return f->opaque || f->begun > f->answered;
}
bool framer_all_answered(const struct framer *f) {
    return !f->opaque && f->begun > 0 && f->answered >= f->begun && !http1_in_message(f->http[DIR_DOWN]);
}
bool framer_request_open(const struct framer *f) {
    return !f->opaque && http1_in_message(f->http[DIR_UP]);
}
bool framer_is_head_request(const struct framer *f) {
    return answered_method(f) == HEAD;
}
