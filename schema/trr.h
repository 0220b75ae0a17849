/* Reads a trace: block after block, each on its own, telling what it holds through a struct of functions.
 *
 * Never edits the file, never believes a length it has not checked, keeps every whole block of a damaged
 * file. Knows no SQL. One caller thread per reader. */
#ifndef SCHEMA_TRR_H
#define SCHEMA_TRR_H

#include "schema/facts.h"
#include "schema/hist.h"

enum trr_state {
    TRR_SEALED,   /* whole and closed */
    TRR_GROWING,  /* locked by a writer; read up to its last whole block */
    TRR_UNSEALED, /* whole, not closed: the recorder was killed */
    TRR_TORN,     /* ends inside a block */
    TRR_DAMAGED,  /* some blocks do not match their checksums or are missing */
    TRR_EMPTY,    /* no bytes */
    TRR_FOREIGN,  /* not a trace */
    TRR_NEWER,    /* a version or a required feature this reader does not have */
    TRR_IO        /* cannot be read */
};
/* One word for a state: "sealed", "growing", ... */
const char *trr_state_name(enum trr_state s);

struct trr;

struct trr_head {
    uint8_t recording[16]; /* UUID, the same in all parts */
    uint64_t part;
    uint32_t format;
    size_t n_pairs;
    const char *const *pairs; /* KEY, VALUE, KEY, VALUE ... as told by the recorder */
};

/* Called by trr_read in the order of the file; a NULL function is skipped. Pointers are valid during the
 * call. */
struct trr_ops {
    /* First of each block. lines tells of open requests follow. */
    void (*block)(void *ctx, uint64_t seq, int64_t first_ns, int64_t last_ns);
    /* A request that is open at the start of a block: events so far (in earlier blocks), time of the last of
     * them. */
    void (*open_line)(void *ctx, uint64_t request, uint64_t events, int64_t last_ns);
    void (*begin)(void *ctx, enum subject s, uint64_t id, bool snapshot);
    void (*fact_int)(void *ctx, uint64_t id, enum fact f, int64_t value); /* INT and TIME */
    void (*fact_real)(void *ctx, uint64_t id, enum fact f, double value);
    void (*fact_str)(void *ctx, uint64_t id, enum fact f, const char *p, size_t n);
    void (*fact_span)(void *ctx, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value);
    /* A run of events of one request, in order of time. A block's facts come before its events, ends after
     * them. */
    void (*events)(void *ctx, uint64_t request, const struct tok_event *e, size_t n);
    void (*end)(void *ctx, enum subject s, uint64_t id);
    void (*loss)(void *ctx, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
                 uint64_t request);
    void (*anchor)(void *ctx, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns);
    void (*hist)(void *ctx, enum hist_name name, const struct hist *h);
    /* Found by the reader itself: bytes at offset that are no block (damage), or blocks gone after a sequence
     * number. */
    void (*damage)(void *ctx, uint64_t offset, uint64_t bytes, const char *why);
    void (*gap)(void *ctx, uint64_t first_missing_seq, uint64_t n_missing, int64_t before_ns,
                int64_t after_ns);
};

/* Opens and reads the head. On failure returns NULL, *state says which of EMPTY, FOREIGN, NEWER, TORN,
 * DAMAGED or IO it is and err has the reason in words (with the file's first bytes when foreign). */
struct trr *trr_open(const char *path, enum trr_state *state, char *err, size_t err_size);
const struct trr_head *trr_head(const struct trr *r);

/* Reads all blocks that overlap [from_ns, to_ns] (INT64_MIN, INT64_MAX: all); blocks outside are not
 * decompressed, but their sequence is checked. Returns the file's state. A block is decoded whole before any
 * of it is told: no half blocks. */
enum trr_state trr_read(struct trr *r, int64_t from_ns, int64_t to_ns, const struct trr_ops *ops, void *ctx);

struct trr_totals {
    uint64_t file_bytes, good_bytes, blocks, damaged_bytes, missing_blocks;
    int64_t first_ns, last_ns;
};
void trr_totals(const struct trr *r, struct trr_totals *t);
void trr_close(struct trr *r);

#endif
