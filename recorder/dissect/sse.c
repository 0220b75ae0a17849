/* The one hard idea: a line is either a span of the current read, or `line`, where the pieces of a cut line
 * are put together; likewise an event's data is a span while it can be and moves to `kept` when a second data
 * line or the end of the read comes. A CR ends its line at once, since nothing says that more will come; an
 * LF that follows is swallowed later. The LF of a CRLF that ended an event is counted nowhere, so that an
 * event's size does not depend on where reads were cut. */
#include "recorder/dissect/sse.h"

#include <string.h>

static const unsigned char BOM[3] = {0xef, 0xbb, 0xbf};
enum { BOM_DONE = 255 };

static void fresh(struct sse *s, struct pool *pool) {
    s->where = SSE_NO_DATA;
    buf_reset(&s->kept, pool);
    s->kept_at = 0;
    s->name[0] = 0;
    s->wire_bytes = 0;
    s->overflow = s->bare = false;
}

static void dispatch(struct sse *s, struct pool *pool, bool cut, event_fn *event, void *ctx) {
    struct event e = {.data = "", .name = s->name, .wire_bytes = s->wire_bytes, .cut = cut};
    e.unread = s->overflow;
    if (s->where == SSE_SPAN && !s->overflow) e.data = s->span, e.n_data = s->n_span;
    if (s->where == SSE_KEPT && !s->overflow && s->kept.n > s->kept_at)
        e.data = s->kept.p + s->kept_at, e.n_data = s->kept.n - s->kept_at;
    if (s->where != SSE_NO_DATA || s->overflow) event(ctx, &e);
    fresh(s, pool);
}

/* Moves a span to `kept`: by exchanging buffers when it lies in `line`, which is not needed any more then. */
static void keep(struct sse *s, struct pool *pool) {
    if (s->where != SSE_SPAN) return;
    s->where = SSE_KEPT;
    s->kept.n = s->kept_at = 0;
    if (s->n_span == 0) return;
    if (s->line.n && s->span >= s->line.p && s->span < s->line.p + s->line.n) {
        struct buf b = s->kept;
        s->kept = s->line, s->line = b;
        s->kept_at = (size_t)(s->span - s->kept.p);
        s->kept.n = s->kept_at + s->n_span;
    } else if (!buf_add(&s->kept, pool, s->span, s->n_span)) {
        s->overflow = true;
    }
}

static void add_data(struct sse *s, struct pool *pool, const char *p, size_t n) {
    if (s->where == SSE_NO_DATA) {
        s->where = SSE_SPAN, s->span = p, s->n_span = n;
        return;
    }
    keep(s, pool);
    if (!buf_add(&s->kept, pool, "\n", 1) || !buf_add(&s->kept, pool, p, n)) s->overflow = true;
}

/* No field is called like this: an error whose JSON stands bare in the stream, over several lines (Gemini).
 */
static bool is_bare(struct sse *s, char first) {
    if (first == '{' && s->where == SSE_NO_DATA) s->bare = true;
    return s->bare;
}

static void take_line(struct sse *s, struct pool *pool, const char *p, size_t n) {
    if (is_bare(s, *p)) {
        add_data(s, pool, p, n);
        return;
    }
    const char *colon = memchr(p, ':', n);
    if (colon == p) {
        s->comments++;
        return;
    }
    size_t n_field = colon ? (size_t)(colon - p) : n, skip = colon ? n_field + 1 : n;
    if (skip < n && p[skip] == ' ') skip++;
    if (n_field == 4 && memcmp(p, "data", 4) == 0) {
        add_data(s, pool, p + skip, n - skip);
    } else if (n_field == 5 && memcmp(p, "event", 5) == 0) {
        size_t len = n - skip < sizeof s->name - 1 ? n - skip : sizeof s->name - 1;
        memcpy(s->name, p + skip, len);
        s->name[len] = 0;
    }
}

/* Skips a byte order mark at the stream's beginning, also a cut one. What only looked like one is a line's
 * beginning. */
static void skip_bom(struct sse *s, struct pool *pool, const char **p, size_t *n) {
    while (*n > 0 && s->n_bom < sizeof BOM) {
        if ((unsigned char)**p != BOM[s->n_bom]) {
            s->in_line = s->n_bom > 0;
            s->wire_bytes = s->n_bom;
            if (!buf_add(&s->line, pool, BOM, s->n_bom)) s->overflow = true;
            s->n_bom = BOM_DONE;
            return;
        }
        (*p)++, (*n)--;
        s->n_bom++;
    }
    if (s->n_bom == sizeof BOM) s->n_bom = BOM_DONE;
}

/* An LF that belongs to a CR of before. */
static void swallow_lf(struct sse *s, const char **p) {
    s->skip_lf = false;
    if (**p != '\n') return;
    (*p)++;
    if (s->count_lf) s->wire_bytes++;
}

/* The end of the line that begins at p: its LF or CR, or NULL. */
static const char *line_end(const char *p, const char *end) {
    const char *lf = memchr(p, '\n', (size_t)(end - p));
    const char *cr = memchr(p, '\r', (size_t)((lf ? lf : end) - p));
    return cr ? cr : lf;
}

/* A whole line: n bytes at p, after what `line` holds of it. */
static void end_line(struct sse *s, struct pool *pool, const char *p, size_t n, event_fn *event, void *ctx) {
    bool blank = n == 0 && !s->in_line;
    s->count_lf = !blank;
    if (s->in_line) {
        if (!buf_add(&s->line, pool, p, n)) s->overflow = true;
        p = s->line.p, n = s->line.n;
        s->in_line = false;
    }
    if (blank)
        dispatch(s, pool, false, event, ctx);
    else if (!s->overflow && n > 0)
        take_line(s, pool, p, n);
}

void sse_feed(struct sse *s, struct pool *pool, const char *p, size_t n, event_fn *event, void *ctx) {
    if (s->n_bom < sizeof BOM) skip_bom(s, pool, &p, &n);
    const char *end = p + n;
    while (p < end) {
        if (s->skip_lf) {
            swallow_lf(s, &p);
            continue;
        }
        const char *eol = line_end(p, end);
        if (!eol) break;
        s->wire_bytes += (size_t)(eol - p) + 1;
        s->skip_lf = *eol == '\r';
        end_line(s, pool, p, (size_t)(eol - p), event, ctx);
        p = eol + 1;
    }
    keep(s, pool);
    if (!s->in_line) buf_reset(&s->line, pool);
    if (p == end) return;
    s->in_line = true;
    s->wire_bytes += (size_t)(end - p);
    if (!s->overflow && !buf_add(&s->line, pool, p, (size_t)(end - p))) s->overflow = true;
}

bool sse_end(struct sse *s, struct pool *pool, event_fn *event, void *ctx) {
    if (s->in_line && s->line.n) end_line(s, pool, "", 0, event, ctx);
    bool cut = s->where != SSE_NO_DATA || s->overflow;
    dispatch(s, pool, true, event, ctx);
    sse_free(s, pool);
    return cut;
}

void sse_free(struct sse *s, struct pool *pool) {
    buf_free(&s->line, pool);
    buf_free(&s->kept, pool);
}
