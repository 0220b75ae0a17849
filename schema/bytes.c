/* The buffer doubles; planes are written and read one after the other, never number by number. */
#include "schema/bytes.h"

#include <stdlib.h>
#include <string.h>

void bytes_free(struct bytes *b) {
    free(b->p);
    *b = (struct bytes){0};
}

uint8_t *bytes_room(struct bytes *b, size_t n) {
    if (b->failed) return NULL;
    if (b->cap - b->n < n) {
        size_t cap = b->cap ? b->cap * 2 : 1024;
        while (cap - b->n < n) cap *= 2;
        uint8_t *p = realloc(b->p, cap);
        if (!p) {
            b->failed = true;
            return NULL;
        }
        b->p = p;
        b->cap = cap;
    }
    return b->p + b->n;
}

void bytes_put(struct bytes *b, const void *p, size_t n) {
    uint8_t *to = n ? bytes_room(b, n) : NULL;
    if (!to) return;
    memcpy(to, p, n);
    b->n += n;
}

void bytes_put_u8(struct bytes *b, uint8_t v) {
    bytes_put(b, &v, 1);
}

void bytes_put_u32(struct bytes *b, uint32_t v) {
    uint8_t *to = bytes_room(b, 4);
    if (!to) return;
    store_u32(to, v);
    b->n += 4;
}

void bytes_put_u64(struct bytes *b, uint64_t v) {
    uint8_t *to = bytes_room(b, 8);
    if (!to) return;
    store_u64(to, v);
    b->n += 8;
}

void bytes_put_varint(struct bytes *b, uint64_t v) {
    uint8_t *to = bytes_room(b, 10);
    if (!to) return;
    size_t n = 0;
    for (; v >= 128; v >>= 7) to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    b->n += n;
}

void bytes_put_zigzag(struct bytes *b, int64_t v) {
    bytes_put_varint(b, zigzag(v));
}

unsigned bytes_put_column(struct bytes *b, const uint64_t *v, size_t n) {
    uint64_t all = 0, differ = 0;
    for (size_t i = 0; i < n; i++) {
        all |= v[i];
        differ |= v[i] ^ v[0];
    }
    unsigned planes = differ ? (71u - (unsigned)__builtin_clzll(all)) / 8 : 0;
    bytes_put_u8(b, (uint8_t)planes);
    if (!planes) {
        bytes_put_varint(b, n ? v[0] : 0);
        return 0;
    }
    uint8_t *to = bytes_room(b, n * planes);
    if (!to) return planes;
    for (unsigned plane = 0; plane < planes; plane++)
        for (size_t i = 0; i < n; i++) *to++ = (uint8_t)(v[i] >> 8 * plane);
    b->n += n * planes;
    return planes;
}

const uint8_t *cursor_take(struct cursor *c, size_t n) {
    if (c->failed || cursor_left(c) < n) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

uint8_t cursor_u8(struct cursor *c) {
    const uint8_t *p = cursor_take(c, 1);
    return p ? *p : 0;
}

uint32_t cursor_u32(struct cursor *c) {
    const uint8_t *p = cursor_take(c, 4);
    return p ? load_u32(p) : 0;
}

uint64_t cursor_u64(struct cursor *c) {
    const uint8_t *p = cursor_take(c, 8);
    return p ? load_u64(p) : 0;
}

uint64_t cursor_varint(struct cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        if (shift == 63 && byte > 1) break; /* more than 64 bits */
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return c->failed ? 0 : v;
    }
    c->failed = true;
    return 0;
}

int64_t cursor_zigzag(struct cursor *c) {
    return unzigzag(cursor_varint(c));
}

struct column cursor_column(struct cursor *c, size_t n, unsigned max_planes) {
    struct column col = {.n = n, .planes = cursor_u8(c)};
    uint64_t most = max_planes < 8 ? ((uint64_t)1 << 8 * max_planes) - 1 : UINT64_MAX;
    if (col.planes > max_planes)
        c->failed = true;
    else if (col.planes == 0 && (col.value = cursor_varint(c)) > most)
        c->failed = true;
    else if (col.planes > 0 && n > cursor_left(c) / col.planes)
        c->failed = true;
    else if (col.planes > 0)
        col.plane = cursor_take(c, n * col.planes);
    return col;
}

void column_read(const struct column *col, size_t first, size_t n, uint64_t *out) {
    if (!col->planes) {
        for (size_t i = 0; i < n; i++) out[i] = col->value;
        return;
    }
    const uint8_t *p = col->plane + first, *q = p + col->n;
    if (col->planes == 1) {
        for (size_t i = 0; i < n; i++) out[i] = p[i];
        return;
    }
    for (size_t i = 0; i < n; i++) out[i] = p[i] | (uint64_t)q[i] << 8;
    for (unsigned plane = 2; plane < col->planes; plane++) {
        p = col->plane + first + plane * col->n;
        for (size_t i = 0; i < n; i++) out[i] |= (uint64_t)p[i] << 8 * plane;
    }
}

uint64_t column_at(const struct column *col, size_t i) {
    uint64_t v;
    column_read(col, i, 1, &v);
    return v;
}
