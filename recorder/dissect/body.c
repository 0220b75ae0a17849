/* A body that outgrows its buffer keeps its beginning, for the scanner. */
#include "recorder/dissect/body.h"

#include <stdio.h>
#include <string.h>

void body_begin(struct body *b, enum body_mode mode, const char *encoding, struct pool *pool, event_fn *event,
                void *ctx) {
    *b = (struct body){.mode = mode, .pool = pool, .event = event, .ctx = ctx};
    if (mode == BODY_COUNTED || coding_is_identity(encoding)) return;
    b->coding = coding_new(encoding, pool);
    if (!b->coding) snprintf(b->why, sizeof b->why, "%.47s", encoding);
}

/* The reader for a body whose head did not say: JSON begins with a bracket, an event stream with a field. */
static enum body_mode sniff(const char *p, size_t n) {
    while (n > 0 && strchr(" \t\r\n", *p)) p++, n--;
    if (n == 0) return BODY_SNIFFED;
    if (*p == '{' || *p == '[') return BODY_WHOLE;
    return strchr("de:ir\xef", *p) ? BODY_SSE : BODY_COUNTED;
}

static void collect(struct body *b, const char *p, size_t n) {
    if (b->unread == 0 && buf_add(&b->whole, b->pool, p, n)) return;
    size_t room = b->whole.cap - b->whole.n;
    size_t part = b->unread > 0 ? 0 : n < room ? n : room;
    buf_add(&b->whole, b->pool, p, part);
    b->unread += n - part;
}

/* An array's elements are events; an object in its place is one answer, mostly an error. */
static enum body_mode array_or_whole(const struct body *b, const char *p, size_t n) {
    while (n > 0 && strchr(" \t\r\n", *p) && *p) p++, n--;
    return n == 0 || *p == '[' || b->array.where != ARRAY_BEFORE ? BODY_ARRAY : BODY_WHOLE;
}

static void decoded(void *ctx, const char *p, size_t n) {
    struct body *b = ctx;
    b->bytes += n;
    if (b->mode == BODY_SNIFFED) b->mode = sniff(p, n);
    if (b->mode == BODY_ARRAY) b->mode = array_or_whole(b, p, n);
    switch (b->mode) {
    case BODY_WHOLE: collect(b, p, n); break;
    case BODY_SSE: sse_feed(&b->sse, b->pool, p, n, b->event, b->ctx); break;
    case BODY_NDJSON: ndjson_feed(&b->ndjson, b->pool, p, n, b->event, b->ctx); break;
    case BODY_AWS: awsstream_feed(&b->aws, b->pool, p, n, b->event, b->ctx); break;
    case BODY_ARRAY: jsonarray_feed(&b->array, b->pool, p, n, b->event, b->ctx); break;
    case BODY_COUNTED:
    case BODY_SNIFFED: break;
    }
}

void body_feed(struct body *b, const char *p, size_t n) {
    b->wire_bytes += n;
    if (b->why[0]) {
        b->bytes += n;
        b->unread += n;
    } else if (!b->coding) {
        decoded(b, p, n);
    } else if (!coding_feed(b->coding, p, n, decoded, b)) {
        snprintf(b->why, sizeof b->why, "%s", coding_why(b->coding));
        b->unread += n;
    }
}

bool body_has_events(const struct body *b) {
    return b->mode == BODY_SSE || b->mode == BODY_NDJSON || b->mode == BODY_AWS ||
           (b->mode == BODY_ARRAY && b->array.where != ARRAY_BEFORE);
}

bool body_is_closed(const struct body *b) {
    return b->mode != BODY_ARRAY || b->array.where == ARRAY_BEHIND;
}

bool body_end(struct body *b, bool cut) {
    bool event_cut = false;
    if (b->mode == BODY_SSE) event_cut = sse_end(&b->sse, b->pool, b->event, b->ctx);
    if (b->mode == BODY_NDJSON) event_cut = ndjson_end(&b->ndjson, b->pool, cut, b->event, b->ctx);
    if (b->mode == BODY_AWS) event_cut = awsstream_end(&b->aws, b->pool, b->event, b->ctx);
    if (b->mode == BODY_ARRAY) event_cut = jsonarray_end(&b->array, b->pool, b->event, b->ctx);
    return event_cut;
}

void body_free(struct body *b) {
    if (!b->pool) return;
    coding_free(b->coding);
    buf_free(&b->whole, b->pool);
    sse_free(&b->sse, b->pool);
    ndjson_free(&b->ndjson, b->pool);
    awsstream_free(&b->aws, b->pool);
    jsonarray_free(&b->array, b->pool);
    *b = (struct body){0};
}
