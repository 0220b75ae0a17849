/* One linear buffer that doubles; what is left moves to its front when the end is reached. The move costs at
 * most one copy for each byte queued, since the buffer is only full when that much was put. */
#include "recorder/outq.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 16 << 10 };

static bool grow(struct outq *q, size_t need) {
    size_t size = q->size ? q->size : FIRST_BYTES;
    while (size < need) size *= 2;
    if (size == q->size) return true;
    char *bytes = realloc(q->bytes, size);
    if (!bytes) return false;
    q->bytes = bytes, q->size = size;
    return true;
}

bool outq_put(struct outq *q, const void *bytes, size_t n) {
    size_t len = outq_len(q);
    if (n == 0) return true;
    if (len + n > OUTQ_MAX_BYTES || !grow(q, len + n)) return false;
    if (q->to + n > q->size) {
        memmove(q->bytes, q->bytes + q->from, len);
        q->from = 0, q->to = len;
    }
    memcpy(q->bytes + q->to, bytes, n);
    q->to += n;
    return true;
}

void outq_drop(struct outq *q, size_t n) {
    q->from += n;
    if (q->from == q->to) outq_clear(q);
}

void outq_clear(struct outq *q) {
    free(q->bytes);
    *q = (struct outq){0};
}
