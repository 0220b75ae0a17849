/* A CR before the LF is white space to JSON and needs no care here. */
#include "recorder/dissect/ndjson.h"

#include <string.h>

static bool blank(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r') return false;
    return true;
}

static void end_line(struct ndjson *s, struct pool *pool, const char *p, size_t n, bool cut, event_fn *event,
                     void *ctx) {
    if (s->in_line && !s->overflow) {
        if (buf_add(&s->line, pool, p, n))
            p = s->line.p, n = s->line.n;
        else
            s->overflow = true;
    }
    struct event e = {.data = p, .n_data = n, .name = "", .wire_bytes = s->wire_bytes, .cut = cut};
    if (s->overflow) e.data = "", e.n_data = 0, e.unread = true;
    if (s->overflow || !blank(p, n)) {
        event(ctx, &e);
        s->wire_bytes = 0;
    }
    s->in_line = s->overflow = false;
    buf_reset(&s->line, pool);
}

void ndjson_feed(struct ndjson *s, struct pool *pool, const char *p, size_t n, event_fn *event, void *ctx) {
    const char *end = p + n;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        if (!lf) break;
        s->wire_bytes += (size_t)(lf - p) + 1;
        end_line(s, pool, p, (size_t)(lf - p), false, event, ctx);
        p = lf + 1;
    }
    if (p == end) return;
    s->wire_bytes += (size_t)(end - p);
    s->in_line = true;
    if (!s->overflow && !buf_add(&s->line, pool, p, (size_t)(end - p))) s->overflow = true;
}

bool ndjson_end(struct ndjson *s, struct pool *pool, bool cut, event_fn *event, void *ctx) {
    bool rest = s->in_line;
    if (rest) end_line(s, pool, "", 0, cut, event, ctx);
    ndjson_free(s, pool);
    return rest && cut;
}

void ndjson_free(struct ndjson *s, struct pool *pool) {
    buf_free(&s->line, pool);
}
