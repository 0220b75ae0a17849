/* Bytes that wait to be written to one side of a connection: a queue with a bound.
 *
 * Holds no memory while it is empty, so an unhindered connection never allocates. */
#ifndef RECORDER_OUTQ_H
#define RECORDER_OUTQ_H

#include <stdbool.h>
#include <stddef.h>

/* The most a queue holds, bytes; put never takes more. */
#define OUTQ_MAX_BYTES (256u << 10)

/* All zero is empty. */
struct outq {
    char *bytes;
    size_t size, from, to; /* allocated; the waiting bytes are [from, to) */
};

static inline size_t outq_len(const struct outq *q) {
    return q->to - q->from;
}
static inline const char *outq_first(const struct outq *q) {
    return q->bytes + q->from;
}

/* Appends n bytes. False: no memory, or more than OUTQ_MAX_BYTES would wait; the queue is as before. */
bool outq_put(struct outq *q, const void *bytes, size_t n);
/* Forgets the first n bytes, n <= outq_len. Frees the memory when nothing is left. */
void outq_drop(struct outq *q, size_t n);
void outq_clear(struct outq *q);

#endif
