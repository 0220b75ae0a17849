/* Both directions of HTTP/1: what is seen of a stream must not depend on how it was cut, and offsets must lie
 * in it. Of a stream that is refused somewhere only that must agree: the parser tells pieces of a field
 * before the byte that it refuses if they came in a read of their own. */
#include "recorder/http1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash, size;
    bool tunnels, refused;
};

static void mix(void *ctx, const char *p, size_t n) {
    struct seen *s = ctx;
    for (size_t i = 0; i < n; i++) s->hash = s->hash * 31 + (unsigned char)p[i];
}
static void at(void *ctx, uint64_t off) {
    struct seen *s = ctx;
    if (off > s->size) abort();
    s->hash = s->hash * 37 + off;
}
static enum http1_follows head(void *ctx, const struct http1_head *h) {
    struct seen *s = ctx;
    s->hash = s->hash * 41 + h->status + h->minor + h->chunked + h->has_length + h->content_length;
    if (h->method) return HTTP1_BODY;
    if (h->status == 101 && s->tunnels) return HTTP1_TUNNEL;
    return h->status < 200 || h->status == 204 || h->status == 304 ? HTTP1_NO_BODY : HTTP1_BODY;
}
static const struct http1_ops ops = {at, mix, mix, mix, head, mix, at};

static struct seen run(enum http1_kind kind, const uint8_t *p, size_t n, size_t step, bool tunnels) {
    struct seen s = {.size = n, .tunnels = tunnels};
    struct http1 *h = http1_new(kind, &ops, &s);
    bool more = true;
    for (size_t i = 0; i < n && more; i += step) {
        size_t len = n - i < step ? n - i : step;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        more = http1_feed(h, copy, len);
        if (more != (http1_why(h) == NULL)) abort();
        free(copy);
    }
    if (more) s.hash += http1_eof(h);
    http1_resync(h, n);
    http1_free(h);
    s.refused = !more;
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    enum http1_kind kind = data[0] & 1 ? HTTP1_RESPONSE : HTTP1_REQUEST;
    bool tunnels = data[0] & 2;
    struct seen whole = run(kind, data + 2, size - 2, size, tunnels);
    struct seen cut = run(kind, data + 2, size - 2, 1 + data[1] % 16u, tunnels);
    if (whole.refused != cut.refused || (!whole.refused && whole.hash != cut.hash)) abort();
    return 0;
}
