/* The reader: walks from block to block, and from damage to the next block, as tracefile.h says. */
#include "schema/trr.h"
#include "schema/trr_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define SEARCH_BYTES (64 << 10)
#define DOUBT_MAX    (UINT64_C(1) << 30)

const char *trr_state_name(enum trr_state s) {
    static const char *const names[] = {"sealed", "growing", "unsealed", "torn",      "damaged",
                                        "empty",  "foreign", "newer",    "unreadable"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : "unknown";
}

/* ---- opening */

/* The first bytes of a foreign file, so that one sees what it is instead. */
static void show_first(struct trr *r, char *err, size_t err_size) {
    size_t n = 8, used = strlen(err);
    const uint8_t *p = source_some(&r->source, 0, &n);
    used += (size_t)snprintf(err + used, err_size - used, "; it begins");
    for (size_t i = 0; i < n && used + 4 < err_size; i++)
        used += (size_t)snprintf(err + used, err_size - used, " %02x", p[i]);
}

static struct trr *open_source(struct source s, enum trr_state *state, char *err, size_t err_size) {
    struct trr *r = calloc(1, sizeof *r);
    const char *why = "out of memory";
    *state = TRR_IO;
    if (r) {
        r->source = s;
        block_clear(&r->block);
        r->zstd = ZSTD_createDCtx();
        source_measure(&r->source);
        if (r->zstd) why = trr_head_read(r, state);
        if (!why) return r;
    } else if (s.fd >= 0) {
        close(s.fd);
    }
    snprintf(err, err_size, "%s", why);
    if (r && *state == TRR_FOREIGN) show_first(r, err, err_size);
    if (r) trr_close(r);
    return NULL;
}

struct trr *trr_open_mem(const void *p, size_t n, enum trr_state *state, char *err, size_t err_size) {
    struct source s = {.fd = -1, .buffer = (uint8_t *)(uintptr_t)p, .n = n};
    return open_source(s, state, err, err_size);
}

struct trr *trr_open_fd(int fd, enum trr_state *state, char *err, size_t err_size) {
    struct stat st;
    const char *why = NULL;
    if (fstat(fd, &st) != 0)
        why = strerror(errno);
    else if (S_ISDIR(st.st_mode))
        why = strerror(EISDIR);
    else if (!S_ISREG(st.st_mode))
        why = "not a file: a pipe, socket or device";
    if (!why) return open_source((struct source){.fd = fd}, state, err, err_size);
    snprintf(err, err_size, "%s", why);
    *state = TRR_IO;
    close(fd);
    return NULL;
}

struct trr *trr_open(const char *path, enum trr_state *state, char *err, size_t err_size) {
    /* Opening a FIFO would wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) return trr_open_fd(fd, state, err, err_size);
    *state = TRR_IO;
    snprintf(err, err_size, "%s", strerror(errno));
    return NULL;
}

const struct trr_head *trr_head(const struct trr *r) {
    return &r->told;
}

void trr_close(struct trr *r) {
    if (r->source.fd >= 0) {
        close(r->source.fd);
        free(r->source.buffer);
    }
    free((void *)(uintptr_t)r->told.pairs);
    free(r->pair_text);
    ZSTD_freeDCtx(r->zstd);
    bytes_free(&r->raw);
    block_free(&r->block);
    free(r);
}

void trr_totals(const struct trr *r, struct trr_totals *t) {
    *t = r->totals;
}

/* ---- reading */

struct reading {
    struct trr *r;
    const struct trr_ops *ops;
    void *ctx;
    int64_t from_ns, to_ns;
    uint64_t at;       /* offset */
    uint64_t expected; /* sequence number */
    int64_t last_ns;   /* last time of the block before */
    bool any_block;    /* last_ns is one */
    bool harmed;       /* damage or gaps */
    bool sealed;
    const char *why;  /* what is wrong at `at` */
    bool beyond;      /* the block at `at` ends beyond the file */
    uint64_t doubted; /* bytes of bodies checked in vain */
};

enum found { FOUND_BLOCK, FOUND_OUTSIDE, FOUND_SEAL, FOUND_NOTHING, FOUND_END };

static enum found no(struct reading *g, const char *why) {
    g->why = why;
    return FOUND_NOTHING;
}

/* Whether what is left of the file, shorter than a header, is how a block begins. */
static enum found short_tail(struct reading *g, const uint8_t *p, size_t n) {
    if (n == 0) return FOUND_END;
    uint8_t begin[8];
    memcpy(begin, BLOCK_MARK, 4);
    store_u32(begin + 4, g->r->head.salt);
    g->beyond = memcmp(p, begin, n < 8 ? n : 8) == 0;
    return no(g, "the file ends inside a block");
}

/* B1 to B5 at offset `at`; *body is its body. */
static enum found look(struct reading *g, uint64_t at, struct block_header *h, const uint8_t **body) {
    struct trr *r = g->r;
    size_t n = BLOCK_HEADER;
    g->beyond = false;
    const uint8_t *p = source_some(&r->source, at, &n);
    if (n < BLOCK_HEADER) return short_tail(g, p, n);
    const char *why = block_header_get(h, p, r->head.salt);
    if (why) return no(g, why);
    if (!h->raw_bytes) return FOUND_SEAL;
    p = source_get(&r->source, at, BLOCK_HEADER + (size_t)h->body_bytes);
    g->beyond = !p;
    if (!p) return no(g, "the file ends inside a block"); /* B4 */
    *body = p + BLOCK_HEADER;
    if ((uint32_t)crc32(0, *body, h->body_bytes) == h->body_crc) return FOUND_BLOCK;
    g->doubted += h->body_bytes;
    return no(g, "a block does not match its checksum"); /* B5 */
}

/* B6: r->block holds the block. */
static bool decode(struct trr *r, const struct block_header *h, const uint8_t *body) {
    r->raw.n = 0;
    block_clear(&r->block);
    uint8_t *raw = bytes_room(&r->raw, h->raw_bytes);
    return raw && block_inflate(r->zstd, raw, h->raw_bytes, body, h->body_bytes) &&
           block_decode(&r->block, raw, h->raw_bytes, h->first_ns);
}

/* What is at g->at. */
static enum found next(struct reading *g, struct block_header *h) {
    const uint8_t *body = NULL;
    enum found f = look(g, g->at, h, &body);
    if (f != FOUND_BLOCK) return f;
    if (h->last_ns < g->from_ns || h->first_ns > g->to_ns) return FOUND_OUTSIDE;
    return decode(g->r, h, body) ? f : no(g, "a block cannot be decoded");
}

/* How far to go on from a header whose body is bad: one byte. A file made of nothing but such headers would
 * take hours that way; beyond a limit that no honest damage reaches, bodies are stepped over. */
static uint64_t step(const struct reading *g, const struct block_header *h) {
    bool believe = g->doubted > DOUBT_MAX && h->body_bytes && !g->beyond;
    return believe ? BLOCK_HEADER + (uint64_t)h->body_bytes : 1;
}

/* The first offset after `at` where a block (or seal) is, or the end of the file. */
static uint64_t search(struct reading *g, uint64_t at) {
    uint8_t begin[8];
    memcpy(begin, BLOCK_MARK, 4);
    store_u32(begin + 4, g->r->head.salt);
    for (at++;;) {
        size_t n = SEARCH_BYTES;
        const uint8_t *p = source_some(&g->r->source, at, &n);
        if (n < sizeof begin) return at + n;
        const uint8_t *hit = memmem(p, n, begin, sizeof begin);
        if (!hit) {
            at += n - sizeof begin + 1;
            continue;
        }
        at += (uint64_t)(hit - p);
        struct block_header h = {0};
        const uint8_t *body;
        enum found f = look(g, at, &h, &body);
        if (f == FOUND_BLOCK || f == FOUND_SEAL) return at;
        at += step(g, &h);
    }
}

static void tell_damage(struct reading *g, uint64_t offset, uint64_t bytes, const char *why) {
    g->harmed = true;
    g->r->totals.damaged_bytes += bytes;
    if (g->ops->damage) g->ops->damage(g->ctx, offset, bytes, why);
}

static void tell_gap(struct reading *g, const struct block_header *h) {
    uint64_t missing = h->seq - g->expected;
    g->harmed = true;
    g->r->totals.missing_blocks += missing;
    int64_t before_ns = g->any_block ? g->last_ns : h->first_ns;
    if (g->ops->gap) g->ops->gap(g->ctx, g->expected, missing, before_ns, h->first_ns);
}

/* A block or seal stands at g->at: its sequence number, its telling, the way on. */
static void take(struct reading *g, enum found f, const struct block_header *h) {
    struct trr_totals *t = &g->r->totals;
    uint64_t bytes = BLOCK_HEADER + (uint64_t)h->body_bytes, at = g->at;
    g->at += bytes;
    if (h->seq < g->expected) { /* B7 */
        tell_damage(g, at, bytes, "a block stands here a second time");
        return;
    }
    if (h->seq > g->expected) tell_gap(g, h);
    g->expected = h->seq + 1;
    t->good_bytes += bytes;
    g->sealed = f == FOUND_SEAL;
    if (f == FOUND_SEAL) return;
    if (!t->blocks || h->first_ns < t->first_ns) t->first_ns = h->first_ns;
    if (!t->blocks || h->last_ns > t->last_ns) t->last_ns = h->last_ns;
    t->blocks++;
    g->last_ns = h->last_ns;
    g->any_block = true;
    if (f == FOUND_BLOCK) trr_tell(g->r, h->seq, h->first_ns, h->last_ns, g->ops, g->ctx);
}

/* Nothing stands at g->at: goes on to the next block, if there is one. True when the file is at its end, with
 * or without a tail. */
static bool skip(struct reading *g, enum trr_state *tail, bool locked) {
    const char *why = g->why;
    bool beyond = g->beyond;
    uint64_t to = search(g, g->at);
    bool end = !source_get(&g->r->source, to, 1);
    if (!end) {
        tell_damage(g, g->at, to - g->at, why);
    } else if (!locked && !beyond) {
        tell_damage(g, g->at, to - g->at, why);
    } else if (!locked) {
        *tail = TRR_TORN;
    }
    g->at = to;
    return end;
}

enum trr_state trr_read(struct trr *r, int64_t from_ns, int64_t to_ns, const struct trr_ops *ops, void *ctx) {
    struct reading g = {.r = r, .ops = ops, .ctx = ctx, .from_ns = from_ns, .to_ns = to_ns, .expected = 1};
    bool locked = source_locked(&r->source), end = false;
    enum trr_state state = TRR_UNSEALED;
    source_rewind(&r->source);
    g.at = r->head.header_size;
    r->totals = (struct trr_totals){.good_bytes = g.at};
    if (r->pairs_damaged) {
        tell_damage(&g, TRACE_HEAD_FIXED, g.at - TRACE_HEAD_FIXED, "the notes of the head are damaged");
        r->totals.good_bytes = TRACE_HEAD_FIXED;
    }
    while (!end) {
        struct block_header h;
        enum found f = next(&g, &h);
        if (f == FOUND_END) break;
        if (f == FOUND_NOTHING)
            end = skip(&g, &state, locked);
        else
            take(&g, f, &h);
    }
    source_measure(&r->source);
    r->totals.file_bytes = r->source.size;
    if (r->source.io_errno) return TRR_IO;
    if (g.harmed) return TRR_DAMAGED;
    if (g.sealed) return TRR_SEALED;
    return locked && state == TRR_UNSEALED ? TRR_GROWING : state;
}
