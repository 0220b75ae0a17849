/* Growing buffers whose memory is bounded: small ones are free, large ones are taken from one pool, and none
 * grows beyond a limit. What does not fit is refused, never waited for. */
#ifndef RECORDER_DISSECT_POOL_H
#define RECORDER_DISSECT_POOL_H

#include <stdbool.h>
#include <stddef.h>

#define POOL_BYTES     ((size_t)256 << 20) /* all large buffers together */
#define BUF_MAX_BYTES  ((size_t)16 << 20)  /* one buffer */
#define BUF_FREE_BYTES ((size_t)64 << 10)  /* a buffer up to this size is not charged to the pool */

struct pool {
    size_t used, limit; /* bytes */
};

/* Takes n bytes from the pool; false: there are not so many left. */
bool pool_take(struct pool *pool, size_t n);
void pool_give(struct pool *pool, size_t n);

/* Zeroed is empty. p is owned by the buffer. */
struct buf {
    char *p;
    size_t n, cap; /* bytes used, allocated */
};

/* Appends; false: the limit, the pool or the memory does not allow it, and nothing was appended. */
bool buf_add(struct buf *b, struct pool *pool, const void *p, size_t n);
/* Frees the memory, too. */
void buf_free(struct buf *b, struct pool *pool);
/* Empties; keeps memory only while it is small. */
void buf_reset(struct buf *b, struct pool *pool);

#endif
