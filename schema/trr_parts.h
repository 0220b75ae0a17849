/* The reader's own parts, shared by the trr*.c files, and two more ways to open one, for tests and fuzzing.
 */
#ifndef SCHEMA_TRR_PARTS_H
#define SCHEMA_TRR_PARTS_H

#include "schema/block.h"
#include "schema/trr.h"

/* Bytes by offset: a file read through a buffer, or memory. Reading instead of mapping: a file that is cut
 * while it is read then ends early instead of killing the process. */
struct source {
    int fd; /* -1: memory */
    uint8_t *buffer;
    size_t cap, n;
    uint64_t at;   /* offset of the buffer */
    uint64_t size; /* of the file, as known last */
    int io_errno;  /* a read failed */
};
/* n bytes at offset, NULL when the file ends before (or cannot be read: io_errno). Valid until the next call.
 */
const uint8_t *source_get(struct source *s, uint64_t offset, size_t n);
/* As many as there are of up to n bytes at offset. */
const uint8_t *source_some(struct source *s, uint64_t offset, size_t *n);
/* Forgets what is buffered: the file may have changed. */
void source_rewind(struct source *s);
void source_measure(struct source *s);
/* A writer holds its lock. */
bool source_locked(const struct source *s);

struct trr {
    struct source source;
    struct trace_head head;
    struct trr_head told; /* pairs owned */
    char *pair_text;      /* owned: all pairs, each ended by 0 */
    bool pairs_damaged;
    struct trr_totals totals;
    void *zstd;       /* ZSTD_DCtx */
    struct bytes raw; /* the body of the block in hand */
    struct block block;
};

/* Opens a descriptor (then owned, closed also on failure) or bytes (not owned, to outlive the reader). */
struct trr *trr_open_fd(int fd, enum trr_state *state, char *err, size_t err_size);
struct trr *trr_open_mem(const void *p, size_t n, enum trr_state *state, char *err, size_t err_size);

/* trr_head.c: H1 .. H5. NULL when they hold; else why not, and *state. */
const char *trr_head_read(struct trr *r, enum trr_state *state);
/* trr_tell.c: tells all of r->block. */
void trr_tell(struct trr *r, uint64_t seq, int64_t first_ns, int64_t last_ns, const struct trr_ops *ops,
              void *ctx);

#endif
