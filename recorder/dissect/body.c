/* What a head says of a body is often wrong behind gateways, while the bodies themselves cannot be mistaken:
 * an event stream begins with a field, JSON with a bracket, and lines of JSON are an object that ends in a
 * line end before another begins. A body that outgrows its buffer keeps its beginning, for the scanner. */
#include "recorder/dissect/body.h"

#include <stdio.h>
#include <string.h>

void body_begin(struct body *b, enum body_mode mode, const char *encoding, struct pool *pool, event_fn *event,
                void *ctx) {
    *b = (struct body){.mode = mode, .said = BODY_COUNTED, .pool = pool, .event = event, .ctx = ctx};
    if (mode == BODY_COUNTED || coding_is_identity(encoding)) return;
    b->coding = coding_new(encoding, pool);
    if (!b->coding) snprintf(b->why, sizeof b->why, "%.47s", encoding);
}

void body_doubt(struct body *b, enum body_mode said) {
    b->mode = BODY_SNIFFED, b->said = said, b->doubted = true;
}

enum sniffed { SNIFFED_LITTLE, SNIFFED_SSE, SNIFFED_JSON, SNIFFED_OTHER };

static enum sniffed sniff(const char *p, size_t n) {
    static const char *const fields[] = {":", "data:", "event:", "id:", "retry:"}, bom[] = "\xef\xbb\xbf";
    size_t n_bom = n < 3 ? n : 3;
    if (memcmp(p, bom, n_bom) == 0) p += n_bom, n -= n_bom;
    if (n == 0) return SNIFFED_LITTLE;
    if (*p == '{' || *p == '[') return SNIFFED_JSON;
    enum sniffed is = SNIFFED_OTHER;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t len = strlen(fields[i]);
        if (memcmp(p, fields[i], n < len ? n : len) != 0) continue;
        if (n >= len) return SNIFFED_SSE;
        is = SNIFFED_LITTLE;
    }
    return is;
}

/* The reader for what was sniffed. */
static enum body_mode reader(const struct body *b, enum sniffed is) {
    if (is == SNIFFED_SSE) return BODY_SSE;
    if (is == SNIFFED_OTHER || b->said == BODY_NDJSON) return b->said;
    return b->doubted ? BODY_JSON : BODY_WHOLE;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
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
    while (n > 0 && is_blank(*p)) p++, n--;
    return n == 0 || *p == '[' || b->array.where != ARRAY_BEFORE ? BODY_ARRAY : BODY_WHOLE;
}

static void take_json(struct body *b, const char *p, size_t n);

static void take(struct body *b, const char *p, size_t n) {
    switch (b->mode) {
    case BODY_WHOLE: collect(b, p, n); break;
    case BODY_JSON: take_json(b, p, n); break;
    case BODY_SSE: sse_feed(&b->sse, b->pool, p, n, b->event, b->ctx); break;
    case BODY_NDJSON: ndjson_feed(&b->ndjson, b->pool, p, n, b->event, b->ctx); break;
    case BODY_AWS: awsstream_feed(&b->aws, b->pool, p, n, b->event, b->ctx); break;
    case BODY_ARRAY: jsonarray_feed(&b->array, b->pool, p, n, b->event, b->ctx); break;
    case BODY_COUNTED:
    case BODY_SNIFFED: break;
    }
}

/* Reads anew, in another mode, what was collected: its first `late` bytes came with earlier reads. */
static void become(struct body *b, enum body_mode mode, size_t late) {
    struct buf all = b->whole;
    b->whole = (struct buf){0};
    b->mode = mode;
    b->held = true;
    if (late > 0) take(b, all.p, late);
    b->held = false;
    if (all.n > late) take(b, all.p + late, all.n - late);
    buf_free(&all, b->pool);
}

/* n bytes are one object and white space, by their brackets. */
static bool is_object(const char *p, size_t n) {
    size_t depth = 0, i = 0;
    bool in_string = false, closed = false;
    const char *first = memchr(p, '{', n);
    for (i = first ? (size_t)(first - p) : n; i < n; i++) {
        if (closed && !is_blank(p[i])) return false;
        if (in_string && p[i] == '\\')
            i++;
        else if (p[i] == '"')
            in_string = !in_string;
        else if (!in_string && (p[i] == '{' || p[i] == '['))
            depth++;
        else if (!in_string && (p[i] == '}' || p[i] == ']'))
            closed = --depth == 0;
    }
    return closed;
}

/* What turned out to be no lines: an event stream may begin with bare JSON, anything else is whole. */
static void no_lines(struct body *b) {
    if (b->said == BODY_SSE)
        become(b, BODY_SSE, 0);
    else
        b->mode = BODY_WHOLE;
}

static void take_json(struct body *b, const char *p, size_t n) {
    bool held = b->n_line > 0;
    collect(b, p, n);
    if (b->unread > 0) b->mode = BODY_WHOLE;
    if (b->unread > 0) return;
    const char *all = b->whole.p, *lf = held ? all + b->n_line - 1 : NULL;
    if (!lf) lf = memchr(all + b->n_blank, '\n', b->whole.n - b->n_blank);
    b->n_blank = b->whole.n;
    if (!lf) return;
    size_t n_line = (size_t)(lf - all) + 1, next = n_line;
    if (!held && !is_object(all, n_line - 1)) {
        no_lines(b);
        return;
    }
    b->n_line = n_line;
    while (next < b->whole.n && is_blank(all[next])) next++;
    if (next == b->whole.n) return;
    if (all[next] == '{')
        become(b, BODY_NDJSON, held ? n_line : 0);
    else
        no_lines(b);
}

static void take_sniffed(struct body *b, const char *p, size_t n) {
    while (b->whole.n == 0 && n > 0 && is_blank(*p)) p++, n--;
    bool first = b->whole.n == 0;
    if (!first) collect(b, p, n);
    enum sniffed is = first ? sniff(p, n) : sniff(b->whole.p, b->whole.n);
    if (is == SNIFFED_LITTLE && first) collect(b, p, n);
    if (is == SNIFFED_LITTLE) return;
    if (!first) {
        become(b, reader(b, is), 0);
        return;
    }
    b->mode = reader(b, is);
    take(b, p, n);
}

static void decoded(void *ctx, const char *p, size_t n) {
    struct body *b = ctx;
    b->bytes += n;
    if (b->mode == BODY_ARRAY) b->mode = array_or_whole(b, p, n);
    if (b->mode == BODY_SNIFFED)
        take_sniffed(b, p, n);
    else
        take(b, p, n);
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

bool body_holds_line(const struct body *b) {
    return b->mode == BODY_JSON && b->n_line > 0;
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
    if (b->mode == BODY_SNIFFED && b->said != BODY_COUNTED) become(b, b->said, 0);
    if (b->mode == BODY_JSON && cut) no_lines(b); /* bare JSON in an event stream is read though it was cut */
    if (b->mode == BODY_JSON) b->mode = BODY_WHOLE;
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
