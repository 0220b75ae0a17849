/* The bounded queue between forwarder and recorder: one producer process, one consumer process, anonymous
 * shared memory.
 *
 * Pushing copies; it never waits, allocates, locks or calls the kernel, but for one eventfd write when the
 * ring passes a quarter full. A piece becomes visible whole or not at all, also when its producer is killed
 * halfway; it stays in the ring until it is popped, also when its consumer is killed and another one takes
 * over. */
#ifndef RECORDER_RING_H
#define RECORDER_RING_H

#include "recorder/piece.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct ring; /* lies in shared memory, the bytes behind it */

/* Maps a ring of about `bytes` (rounded up to a power of two, at least 64 KiB). Never dumped into a core.
 * NULL: no memory. */
struct ring *ring_new(size_t bytes);
void ring_free(struct ring *r);

/* -- producer */
/* Appends *p followed by n_bytes bytes; p->size is set here. false: no room, nothing was appended. */
bool ring_push(struct ring *r, struct piece *p, const void *bytes);
/* Says that nothing will follow. */
void ring_close(struct ring *r);
int ring_wake_fd(const struct ring *r); /* eventfd, readable after a wake */

/* -- consumer */
/* The oldest piece, its bytes right behind it, valid until ring_pop; NULL: none. */
const struct piece *ring_peek(struct ring *r);
void ring_pop(struct ring *r);
bool ring_closed(const struct ring *r); /* closed by the producer; peek once more after seeing it */

/* -- either */
size_t ring_used(const struct ring *r);
size_t ring_size(const struct ring *r);
size_t ring_high_water(const struct ring *r); /* most bytes ever waiting at a look of the consumer */

static inline const void *piece_bytes(const struct piece *p) {
    return p + 1;
}

#endif
