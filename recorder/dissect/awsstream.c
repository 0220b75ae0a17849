/* A frame's first 12 bytes have a checksum of their own. While it holds, the length is right, and one bad
 * frame costs no other; once it does not, nothing says where the next frame begins, and the rest is only
 * counted. */
#include "recorder/dissect/awsstream.h"

#include <string.h>
#include <zlib.h>

enum { PRELUDE_BYTES = 12, CRC_BYTES = 4, FRAME_MIN_BYTES = PRELUDE_BYTES + CRC_BYTES };

static uint32_t u32(const char *p) {
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool crc_holds(const char *p, size_t n) {
    return crc32(0, (const Bytef *)p, (uInt)n) == u32(p + n);
}

/* Length of the frame whose first 12 bytes are at p; 0: it cannot be right. */
static uint32_t frame_length(const char *p) {
    uint32_t total = u32(p), headers = u32(p + 4);
    bool fits = total >= FRAME_MIN_BYTES && headers <= total - FRAME_MIN_BYTES;
    return fits && crc_holds(p, 8) ? total : 0;
}

/* What a frame's headers say. */
struct headers {
    char message[64], event[64], exception[64], code[64];
};

static void keep_header(struct headers *h, const char *name, size_t n_name, const char *value, size_t n) {
    const struct {
        const char *name;
        char *to;
    } kept[] = {{":message-type", h->message},
                {":event-type", h->event},
                {":exception-type", h->exception},
                {":error-code", h->code}};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (n_name != strlen(kept[i].name) || memcmp(name, kept[i].name, n_name) != 0) continue;
        size_t len = n < sizeof h->event - 1 ? n : sizeof h->event - 1;
        memcpy(kept[i].to, value, len);
        kept[i].to[len] = 0;
    }
}

/* Bytes of a header's value, those of its length included; 0 for a type that is none. */
static size_t value_bytes(unsigned type, const char *p, size_t n) {
    static const size_t fixed[] = {[2] = 1, [3] = 2, [4] = 4, [5] = 8, [8] = 8, [9] = 16};
    if ((type == 6 || type == 7) && n >= 2) return 2u + ((unsigned char)p[0] << 8 | (unsigned char)p[1]);
    return type < sizeof fixed / sizeof *fixed ? fixed[type] : 0;
}

/* False: they are not what their length says. */
static bool read_headers(const char *p, size_t n, struct headers *h) {
    enum { TRUE_TYPE = 0, FALSE_TYPE = 1, STRING_TYPE = 7 };
    while (n > 0) {
        const char *name = p + 1;
        size_t n_name = (unsigned char)*p;
        if (n < 2 + n_name) return false;
        unsigned type = (unsigned char)name[n_name];
        const char *value = name + n_name + 1;
        n -= 2 + n_name;
        size_t len = value_bytes(type, value, n);
        if (len > n || (len == 0 && type > FALSE_TYPE)) return false;
        if (type == STRING_TYPE) keep_header(h, name, n_name, value + 2, len - 2);
        p = value + len, n -= len;
    }
    return true;
}

static void tell_unread(size_t wire_bytes, bool cut, event_fn *event, void *ctx) {
    event(ctx, &(struct event){.data = "", .name = "", .wire_bytes = wire_bytes, .cut = cut, .unread = true});
}

/* A whole frame of n bytes. */
static void take_frame(const char *p, size_t n, event_fn *event, void *ctx) {
    struct headers h = {.message = ""};
    size_t n_headers = u32(p + 4);
    if (!crc_holds(p, n - CRC_BYTES) || !read_headers(p + PRELUDE_BYTES, n_headers, &h)) {
        tell_unread(n, false, event, ctx);
        return;
    }
    bool exception = strcmp(h.message, "exception") == 0, error = strcmp(h.message, "error") == 0;
    event(ctx, &(struct event){.data = p + PRELUDE_BYTES + n_headers,
                               .n_data = n - n_headers - FRAME_MIN_BYTES,
                               .name = exception || error ? "error" : h.event,
                               .wire_bytes = n,
                               .error_type = exception ? h.exception
                                             : error   ? h.code
                                                       : NULL});
}

static void be_damaged(struct awsstream *s, struct pool *pool) {
    s->damaged = true;
    s->wire_bytes = s->frame.n;
    buf_free(&s->frame, pool);
}

/* Frames that lie whole in these bytes; returns what is behind the last one. */
static const char *take_whole(const char *p, const char *end, event_fn *event, void *ctx) {
    while (end - p >= FRAME_MIN_BYTES) {
        uint32_t total = frame_length(p);
        if (total == 0 || total > (size_t)(end - p)) break;
        take_frame(p, total, event, ctx);
        p += total;
    }
    return p;
}

/* Skips bytes of a frame that is not kept. */
static const char *skip(struct awsstream *s, const char *p, const char *end, event_fn *event, void *ctx) {
    size_t n = s->skip < (size_t)(end - p) ? s->skip : (size_t)(end - p);
    s->skip -= n;
    s->wire_bytes += n;
    if (s->skip == 0) tell_unread(s->wire_bytes, false, event, ctx);
    return p + n;
}

/* From here on the frame is not kept: it is too large, or there is no room. */
static void begin_skip(struct awsstream *s, struct pool *pool, uint32_t total) {
    s->wire_bytes = s->frame.n;
    s->skip = total - s->frame.n;
    buf_free(&s->frame, pool);
}

/* Puts bytes to the beginning of a frame that is kept: up to its first 12, then up to its end. */
static const char *gather(struct awsstream *s, struct pool *pool, const char *p, const char *end,
                          event_fn *event, void *ctx) {
    uint32_t total = s->frame.n >= PRELUDE_BYTES ? frame_length(s->frame.p) : 0;
    size_t want = (total ? total : PRELUDE_BYTES) - s->frame.n;
    size_t n = want < (size_t)(end - p) ? want : (size_t)(end - p);
    if (!buf_add(&s->frame, pool, p, n)) {
        total ? begin_skip(s, pool, total) : be_damaged(s, pool);
        return p;
    }
    if (total > 0 && n == want) {
        take_frame(s->frame.p, total, event, ctx);
        buf_reset(&s->frame, pool);
    } else if (total == 0 && n == want) {
        total = frame_length(s->frame.p);
        if (total == 0)
            be_damaged(s, pool);
        else if (total > BUF_MAX_BYTES)
            begin_skip(s, pool, total);
    }
    return p + n;
}

void awsstream_feed(struct awsstream *s, struct pool *pool, const char *p, size_t n, event_fn *event,
                    void *ctx) {
    const char *end = p + n;
    while (p < end && !s->damaged) {
        if (s->skip > 0) {
            p = skip(s, p, end, event, ctx);
            continue;
        }
        if (s->frame.n == 0) p = take_whole(p, end, event, ctx);
        if (p < end) p = gather(s, pool, p, end, event, ctx);
    }
    if (s->damaged) s->wire_bytes += (size_t)(end - p);
}

bool awsstream_end(struct awsstream *s, struct pool *pool, event_fn *event, void *ctx) {
    bool lost = s->damaged || s->skip > 0, cut = lost || s->frame.n > 0;
    if (lost)
        tell_unread(s->wire_bytes, true, event, ctx);
    else if (cut)
        event(ctx, &(struct event){.data = "", .name = "", .wire_bytes = s->frame.n, .cut = true});
    awsstream_free(s, pool);
    return cut;
}

void awsstream_free(struct awsstream *s, struct pool *pool) {
    buf_free(&s->frame, pool);
}
