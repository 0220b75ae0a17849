/* Only brackets and strings are looked at: what is no JSON between them still ends somewhere, and the parser
 * says what it is. */
#include "recorder/dissect/jsonarray.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the closing quote of the string that goes on at p, or the end. */
static const char *string_end(struct jsonarray *s, const char *p, const char *end) {
    while (p < end) {
        char c = *p++;
        if (s->escaped) {
            s->escaped = false;
        } else if (c == '\\') {
            s->escaped = true;
        } else if (c == '"') {
            s->in_string = false;
            break;
        }
    }
    return p;
}

/* Behind the last byte of the element that goes on at p; NULL: it does not end here. */
static const char *element_end(struct jsonarray *s, const char *p, const char *end) {
    while (p < end) {
        if (s->in_string) {
            p = string_end(s, p, end);
            if (!s->in_string && s->depth == 0) return p;
            continue;
        }
        char c = *p;
        if (s->depth == 0 && (c == ',' || c == ']' || is_space(c))) return p; /* a number or a word ended */
        p++;
        if (c == '"')
            s->in_string = true;
        else if (c == '{' || c == '[')
            s->depth++;
        else if ((c == '}' || c == ']') && s->depth > 0 && --s->depth == 0)
            return p;
    }
    return NULL;
}

/* The element ends with n bytes at p, after what was kept of it. */
static void tell(struct jsonarray *s, struct pool *pool, const char *p, size_t n, bool cut, event_fn *event,
                 void *ctx) {
    if (s->element.n > 0 || s->overflow) {
        if (!s->overflow && !buf_add(&s->element, pool, p, n)) s->overflow = true;
        p = s->element.p, n = s->element.n;
    }
    struct event e = {.data = p, .n_data = n, .name = "", .wire_bytes = s->wire_bytes, .cut = cut};
    if (s->overflow) e.data = "", e.n_data = 0, e.unread = true;
    event(ctx, &e);
    buf_reset(&s->element, pool);
    s->wire_bytes = s->depth = 0;
    s->in_string = s->escaped = s->overflow = false;
    s->where = ARRAY_BETWEEN;
}

static const char *inside(struct jsonarray *s, struct pool *pool, const char *p, const char *end,
                          event_fn *event, void *ctx) {
    const char *behind = element_end(s, p, end);
    size_t n = (size_t)((behind ? behind : end) - p);
    s->wire_bytes += n;
    if (behind)
        tell(s, pool, p, n, false, event, ctx);
    else if (!s->overflow && !buf_add(&s->element, pool, p, n))
        s->overflow = true;
    return p + n;
}

/* A byte outside of elements. False: it is an element's first. */
static bool outside(struct jsonarray *s, char c) {
    if (s->where == ARRAY_BEFORE) {
        if (c == '[') s->where = ARRAY_BETWEEN;
    } else if (s->where == ARRAY_BEHIND) {
        s->strange += !is_space(c);
    } else if (c == ']') {
        s->where = ARRAY_BEHIND;
    } else if (c != ',' && !is_space(c)) {
        s->where = ARRAY_INSIDE;
        return false;
    }
    s->wire_bytes++;
    return true;
}

void jsonarray_feed(struct jsonarray *s, struct pool *pool, const char *p, size_t n, event_fn *event,
                    void *ctx) {
    const char *end = p + n;
    while (p < end) {
        if (s->where == ARRAY_INSIDE)
            p = inside(s, pool, p, end, event, ctx);
        else if (outside(s, *p))
            p++;
    }
}

bool jsonarray_end(struct jsonarray *s, struct pool *pool, event_fn *event, void *ctx) {
    bool cut = s->where == ARRAY_INSIDE;
    if (cut) tell(s, pool, "", 0, true, event, ctx);
    if (s->strange > 0)
        event(ctx, &(struct event){
                       .data = "", .name = "", .wire_bytes = s->wire_bytes, .cut = true, .unread = true});
    jsonarray_free(s, pool);
    return cut || s->strange > 0;
}

void jsonarray_free(struct jsonarray *s, struct pool *pool) {
    buf_free(&s->element, pool);
}
