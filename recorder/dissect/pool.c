/* A buffer's charge follows from its capacity alone, so that it cannot be given back twice. */
#include "recorder/dissect/pool.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1024, KEPT_BYTES = 4096 };

bool pool_take(struct pool *pool, size_t n) {
    if (n > pool->limit - pool->used) return false;
    pool->used += n;
    return true;
}

void pool_give(struct pool *pool, size_t n) {
    pool->used -= n < pool->used ? n : pool->used;
}

static size_t charge(size_t cap) {
    return cap > BUF_FREE_BYTES ? cap : 0;
}

static bool grow(struct buf *b, struct pool *pool, size_t need) {
    size_t cap = b->cap ? b->cap : FIRST_BYTES;
    while (cap < need) cap *= 2;
    if (!pool_take(pool, charge(cap))) return false;
    char *p = realloc(b->p, cap);
    pool_give(pool, charge(p ? b->cap : cap));
    if (!p) return false;
    b->p = p, b->cap = cap;
    return true;
}

bool buf_add(struct buf *b, struct pool *pool, const void *p, size_t n) {
    if (n == 0) return true;
    if (n > BUF_MAX_BYTES - b->n) return false;
    if (b->n + n > b->cap && !grow(b, pool, b->n + n)) return false;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return true;
}

void buf_free(struct buf *b, struct pool *pool) {
    pool_give(pool, charge(b->cap));
    free(b->p);
    *b = (struct buf){0};
}

void buf_reset(struct buf *b, struct pool *pool) {
    if (b->cap > KEPT_BYTES) buf_free(b, pool);
    b->n = 0;
}
