/* Two positions that only grow, head (next to write) and tail (next to read), each on a cache line of its own
 * and stored by one process only. A piece never wraps: when it does not fit before the end, a PIECE_PAD
 * header (or, with less room than a header, nothing: both sides know) fills the rest. The head is stored with
 * release order after the piece's bytes, so that what the consumer sees is whole. */
#include "recorder/ring.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PREFETCH_LINES = 7 }; /* header and a usual event */

struct ring {
    size_t size; /* of data, a power of two */
    int wake_fd;
    _Atomic uint32_t closed;
    _Alignas(64) _Atomic uint64_t head;
    uint64_t known_tail; /* the producer's last look at tail: saves a shared cache line for each push */
    bool woken;          /* the consumer was woken since the ring was last below a quarter */
    _Alignas(64) _Atomic uint64_t tail;
    uint64_t peeked;             /* bytes to skip at ring_pop: padding and the piece */
    _Atomic uint64_t high_water; /* kept on this side, which sees the true length at each look */
    _Alignas(64) unsigned char data[];
};

struct ring *ring_new(size_t bytes) {
    size_t size = 64 << 10;
    while (size < bytes) size *= 2;
    int how = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE; /* else each page is a fault on the way of traffic */
    struct ring *r = mmap(NULL, sizeof *r + size, PROT_READ | PROT_WRITE, how, -1, 0);
    if (r == MAP_FAILED) return NULL;
    madvise(r, sizeof *r + size, MADV_DONTDUMP);
    r->size = size;
    r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (r->wake_fd < 0) {
        munmap(r, sizeof *r + size);
        return NULL;
    }
    return r;
}

void ring_free(struct ring *r) {
    if (!r) return;
    close(r->wake_fd);
    munmap(r, sizeof *r + r->size);
}

static void wake(struct ring *r, uint64_t head) {
    uint64_t used = head - r->known_tail;
    if (used * 4 >= r->size) { /* the known tail may be old: look again before believing that much waits */
        r->known_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        used = head - r->known_tail;
    }
    if (used * 4 < r->size) {
        r->woken = false;
    } else if (!r->woken) {
        r->woken = true;
        uint64_t one = 1;
        (void)!write(r->wake_fd, &one, sizeof one);
    }
}

bool ring_push(struct ring *r, struct piece *p, const void *bytes) {
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t at = head & (r->size - 1), to_end = r->size - at;
    p->size = (uint32_t)((sizeof *p + p->n_bytes + 7) & ~(size_t)7);
    size_t skip = p->size > to_end ? to_end : 0;
    if (head + skip + p->size - r->known_tail > r->size) {
        r->known_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head + skip + p->size - r->known_tail > r->size) return false;
    }
    if (skip >= sizeof *p) ((struct piece *)(r->data + at))->kind = PIECE_PAD;
    if (skip) at = 0;
    memcpy(r->data + at, p, sizeof *p);
    if (p->n_bytes) memcpy(r->data + at + sizeof *p, bytes, p->n_bytes);
    atomic_store_explicit(&r->head, head + skip + p->size, memory_order_release);
    wake(r, head + skip + p->size);
    return true;
}

void ring_close(struct ring *r) {
    atomic_store_explicit(&r->closed, 1, memory_order_release);
    uint64_t one = 1;
    (void)!write(r->wake_fd, &one, sizeof one);
}

int ring_wake_fd(const struct ring *r) {
    return r->wake_fd;
}

const struct piece *ring_peek(struct ring *r) {
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&r->head, memory_order_acquire) - tail;
    if (used == 0) return NULL;
    if (used > r->high_water) r->high_water = used;
    size_t at = tail & (r->size - 1), to_end = r->size - at, skip = 0;
    const struct piece *p = (const struct piece *)(r->data + at);
    if (to_end < sizeof *p || p->kind == PIECE_PAD) {
        skip = to_end;
        p = (const struct piece *)r->data;
    }
    r->peeked = skip + p->size;
    /* The bytes lie in the other processor's cache: the next piece comes over while this one is looked at. */
    const char *next = (const char *)p + p->size;
    for (int i = 0; i < PREFETCH_LINES; i++) __builtin_prefetch(next + 64 * i);
    return p;
}

void ring_pop(struct ring *r) {
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + r->peeked, memory_order_release);
}

bool ring_closed(const struct ring *r) {
    return atomic_load_explicit(&r->closed, memory_order_acquire);
}

size_t ring_used(const struct ring *r) {
    return (size_t)(atomic_load_explicit(&r->head, memory_order_acquire) -
                    atomic_load_explicit(&r->tail, memory_order_acquire));
}
size_t ring_size(const struct ring *r) {
    return r->size;
}
size_t ring_high_water(const struct ring *r) {
    return r->high_water;
}
