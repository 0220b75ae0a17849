/* The blob of a request's arrivals: varints, one record an arrival.
 *
 * A record is a head of six bits of flags, then what the flags say differs from the usual: one event, one
 * read, one token, no pause, the same series. The usual record of a stream is thus a head byte, the gap in
 * ticks of 100 ns, and the bytes on the wire. Times are differences to the arrival before, to the base at the
 * beginning of a series. */
#include "analyzer/arrivals.h"

#define TICK_NS 100

enum {
    HAS_CHOICE = 1,  /* a series begins: its choice follows, times count from the base again */
    HAS_TOKENS = 2,  /* tokens other than 1 */
    HAS_EVENTS = 4,  /* events other than 1 */
    HAS_READS = 8,   /* reads other than 1 */
    SAME_BYTES = 16, /* as many bytes as the arrival before */
    BACKPRESSURED = 32,
    ALL_FLAGS = 63,
    MAX_RECORD = 1 + 10 + 5 * 5 /* head, time, five numbers of 32 bits */
};

size_t arrivals_bound(size_t n) {
    return n * MAX_RECORD;
}

static inline unsigned char *put(unsigned char *p, uint64_t v) {
    while (v >= 0x80) {
        *p++ = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    *p++ = (unsigned char)v;
    return p;
}

static inline uint64_t zigzag(int64_t v) {
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline int64_t unzigzag(uint64_t v) {
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Ticks between two instants. In unsigned arithmetic, since a damaged trace may bring any two. */
static inline int64_t ticks(int64_t t_ns, int64_t from_ns) {
    return (int64_t)((uint64_t)t_ns - (uint64_t)from_ns) / TICK_NS;
}

size_t arrivals_encode(const struct arrival *a, size_t n, int64_t base_ns, unsigned char *out) {
    unsigned char *p = out;
    /* The reader adds whole ticks to what it has, so differences are taken to that, not to the true time. */
    struct arrival last = {.t_ns = base_ns, .choice = UINT32_MAX};
    for (size_t i = 0; i < n; i++) {
        const struct arrival *b = &a[i];
        bool first = i == 0 || b->choice != last.choice;
        if (first) last.t_ns = base_ns;
        unsigned head = (first ? HAS_CHOICE : 0) | (b->tokens != 1 ? HAS_TOKENS : 0) |
                        (b->events != 1 ? HAS_EVENTS : 0) | (b->reads != 1 ? HAS_READS : 0) |
                        (b->bytes == last.bytes ? SAME_BYTES : 0) | (b->backpressured ? BACKPRESSURED : 0);
        int64_t d = ticks(b->t_ns, last.t_ns);
        *p++ = (unsigned char)head;
        if (first) p = put(p, b->choice);
        p = put(p, zigzag(d));
        if (b->tokens != 1) p = put(p, b->tokens);
        if (b->events != 1) p = put(p, b->events);
        if (b->reads != 1) p = put(p, b->reads);
        if (b->bytes != last.bytes) p = put(p, b->bytes);
        last.t_ns = (int64_t)((uint64_t)last.t_ns + (uint64_t)d * TICK_NS);
        last.choice = b->choice;
        last.bytes = b->bytes;
    }
    return (size_t)(p - out);
}

void arrivals_read(struct arrivals_reader *r, const void *blob, size_t n_bytes, int64_t base_ns) {
    *r = (struct arrivals_reader){
        .p = blob, .base_ns = base_ns, .last = {.t_ns = base_ns, .choice = UINT32_MAX}};
    r->end = r->p ? r->p + n_bytes : NULL;
}

/* A varint of at most 64 bits; on damage *ok becomes false. */
static inline uint64_t get(struct arrivals_reader *r, bool *ok) {
    uint64_t v = 0;
    for (unsigned shift = 0; r->p < r->end && shift < 64; shift += 7) {
        unsigned char b = *r->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) return v;
    }
    *ok = false;
    return 0;
}

static inline uint32_t get32(struct arrivals_reader *r, bool *ok) {
    uint64_t v = get(r, ok);
    if (v > UINT32_MAX) *ok = false;
    return (uint32_t)v;
}

bool arrivals_next(struct arrivals_reader *r, struct arrival *a) {
    if (!r->p || r->p >= r->end) return false;
    bool ok = true;
    unsigned head = *r->p++;
    if (head & ~(unsigned)ALL_FLAGS) ok = false;
    if (head & HAS_CHOICE) {
        r->last.choice = get32(r, &ok);
        r->last.t_ns = r->base_ns;
    }
    uint64_t d = (uint64_t)unzigzag(get(r, &ok));
    r->last.t_ns = (int64_t)((uint64_t)r->last.t_ns + d * TICK_NS);
    r->last.tokens = head & HAS_TOKENS ? get32(r, &ok) : 1;
    r->last.events = head & HAS_EVENTS ? get32(r, &ok) : 1;
    r->last.reads = head & HAS_READS ? get32(r, &ok) : 1;
    if (!(head & SAME_BYTES)) r->last.bytes = get32(r, &ok);
    r->last.backpressured = head & BACKPRESSURED;
    if (!ok) {
        r->p = NULL;
        return false;
    }
    *a = r->last;
    return true;
}
