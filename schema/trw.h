/* Writes a trace: takes facts, token events and losses, makes blocks, has a thread of its own compress, write
 * and sync.
 *
 * One caller thread. No call waits for the disk: when the writer thread is behind (bounded queue) or writing
 * fails, whole blocks are dropped and become a loss that is written as soon as writing works again. Knows no
 * sockets and no HTTP. Times are ns on CLOCK_MONOTONIC. The file format is described in tracefile.h. */
#ifndef SCHEMA_TRW_H
#define SCHEMA_TRW_H

#include "schema/facts.h"
#include "schema/hist.h"

struct trw;

/* What a process killed and restarted over the same file needs to go on where the file is whole. The caller
 * keeps it in memory that outlives the writer's process; all zero for a new file. Updated after each block is
 * written. */
struct trw_state {
    uint64_t good_bytes; /* length of the file up to its last whole block */
    uint64_t next_seq;   /* sequence number of the next block */
    uint64_t part;       /* number of the part this file is */
    uint32_t salt;       /* of the file that the numbers above speak of */
    uint8_t recording[16];
};

struct trw_config {
    int fd; /* open for reading and writing; the caller closes it, after trw_close. Locked by trw_open */
    struct trw_state *state; /* see above; shared memory in tracerec */
    const char *const
        *head; /* pairs KEY, VALUE, NULL at the end: host, kernel, recorder, upstream, notes … */
    int64_t flush_interval_ns; /* fsync at least this often while there is something new */
    uint64_t min_free_bytes;   /* pause writing below this free space on the file's disk; 0: never */
    /* From the caller's thread, in trw_tick: writing began to fail (line: why, in words) or works again
     * (NULL). */
    void (*on_change)(void *ctx, const char *line);
    void *ctx;
};

/* Writes the head (of a new, empty file; a recording of all zeros gets a UUID) or cuts the file to its last
 * whole block (state->next_seq > 0) and starts the thread. Returns NULL with a reason in err when the head
 * cannot be written. */
struct trw *trw_open(const struct trw_config *config, char *err, size_t err_size);

/* A request or connection begins and ends; between the two its facts are kept for the snapshot of a next
 * part, and a request has a line in every block. Ids are ordinals from 1, never used twice in a recording. */
void trw_begin(struct trw *w, enum subject s, uint64_t id);
void trw_end(struct trw *w, enum subject s, uint64_t id);

/* One fact of subject id (0 for SUBJECT_T); the fact's type in facts.def decides which call is right. */
void trw_int(struct trw *w, uint64_t id, enum fact f, int64_t value); /* INT and TIME */
void trw_real(struct trw *w, uint64_t id, enum fact f, double value);
void trw_str(struct trw *w, uint64_t id, enum fact f, const char *p, size_t n);
void trw_span(struct trw *w, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value);

/* Events of one request must come in the order of time; requests may interleave freely. */
void trw_event(struct trw *w, const struct tok_event *e);

void trw_loss(struct trw *w, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
              uint64_t request);
/* Wall clock (ns since the epoch) at a monotonic instant, with the uncertainty of the pair. */
void trw_anchor(struct trw *w, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns);
/* State of a distribution since the recording's start; the last one told holds. */
void trw_hist(struct trw *w, enum hist_name name, const struct hist *h);

/* To be called at least every 50 ms: sends out a block that is 90 ms old, tells of changes. */
void trw_tick(struct trw *w, int64_t now_ns);
/* Sends out what there is and waits until it is written and synced. For tests and for before a fork. */
void trw_flush(struct trw *w);
/* Continues in a new, empty file (rotation, SIGHUP): seals the old one, begins the next part in fd with a
 * snapshot of every open request and connection; waits for the disk. The old fd is the caller's to close
 * afterwards. -1 with a reason in err when the new head cannot be written: the old file is gone on with. */
int trw_rotate(struct trw *w, int fd, char *err, size_t err_size);
/* Writes what is left, seals the file, ends the thread, frees. Returns 0, or -1 when the file could not be
 * finished: its last losses or its seal are not in it. */
int trw_close(struct trw *w);

/* True once the disk failed to sync: nothing is written to this file any more (a second sync would lie),
 * blocks are dropped and counted until trw_rotate gives another one. */
bool trw_needs_new_file(struct trw *w);

/* Running totals, for the status line. */
struct trw_totals {
    uint64_t file_bytes, blocks, events, lost_blocks;
    uint64_t lost[N_LOSSES]; /* events and requests of blocks that were dropped, by the reason */
};
void trw_totals(const struct trw *w, struct trw_totals *t);

#endif
