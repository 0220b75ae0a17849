/* Numbers to bytes and back: a growing buffer to put into, a cursor to get from, columns of numbers.
 *
 * Both keep one sticky failed flag, so that callers put or get in a row and look once at the end; a failed
 * cursor answers zeros and never moves past its end. All fixed-size numbers are little-endian.
 *
 * A column is n numbers of one kind, kept as byte planes: the lowest bytes of all numbers, then the next
 * bytes of all, as many planes as the largest number needs. All numbers equal: no plane at all, just the
 * number. That makes a column's bounds one comparison, its decoding free of branches, and its bytes alike for
 * the compressor. Knows nothing of what the numbers mean. */
#ifndef SCHEMA_BYTES_H
#define SCHEMA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *p; /* owned; bytes_free */
    size_t n, cap;
    bool failed; /* memory ran out: what was put since is not there */
};

void bytes_free(struct bytes *b);
/* Room for n more bytes behind p + n; NULL when memory ran out. Does not count them in. */
uint8_t *bytes_room(struct bytes *b, size_t n);
void bytes_put(struct bytes *b, const void *p, size_t n);
void bytes_put_u8(struct bytes *b, uint8_t v);
void bytes_put_u32(struct bytes *b, uint32_t v);
void bytes_put_u64(struct bytes *b, uint64_t v);
/* 7 bits a byte, lowest first, at most 10 bytes. */
void bytes_put_varint(struct bytes *b, uint64_t v);
void bytes_put_zigzag(struct bytes *b, int64_t v);
/* Returns the number of planes, 0 when all numbers are equal. */
unsigned bytes_put_column(struct bytes *b, const uint64_t *v, size_t n);

struct cursor {
    const uint8_t *p, *end;
    bool failed;
};

static inline size_t cursor_left(const struct cursor *c) {
    return (size_t)(c->end - c->p);
}
/* The next n bytes, or NULL (and failed) when there are fewer. */
const uint8_t *cursor_take(struct cursor *c, size_t n);
uint8_t cursor_u8(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
uint64_t cursor_varint(struct cursor *c);
int64_t cursor_zigzag(struct cursor *c);

struct column {
    const uint8_t *plane; /* lowest bytes of all numbers; the next plane lies `n` bytes further */
    size_t n;
    unsigned planes;
    uint64_t value; /* of all numbers, when there are no planes */
};
/* Takes a column of n numbers of at most max_planes bytes each. Never reads the planes themselves. */
struct column cursor_column(struct cursor *c, size_t n, unsigned max_planes);
/* Numbers first .. first + n - 1 of the column; the caller keeps within its n. */
void column_read(const struct column *col, size_t first, size_t n, uint64_t *out);
uint64_t column_at(const struct column *col, size_t i);

/* Small magnitudes of either sign to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 … */
static inline uint64_t zigzag(int64_t v) {
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}
static inline int64_t unzigzag(uint64_t v) {
    return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}
/* a - b as the zigzag of their wrapped difference: right for every pair, small for near ones. */
static inline uint64_t zigzag_diff(uint64_t a, uint64_t b) {
    return zigzag((int64_t)(a - b));
}

static inline uint32_t load_u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t load_u64(const uint8_t *p) {
    return load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}
static inline void store_u32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}
static inline void store_u64(uint8_t *p, uint64_t v) {
    store_u32(p, (uint32_t)v);
    store_u32(p + 4, (uint32_t)(v >> 32));
}

#endif
