/* The writer's own parts, shared by the trw_*.c files and nobody else.
 *
 *   caller's thread                      writer's thread
 *   trw.c: rows of the block under  ->   trw_thread.c: takes blocks from the queue, encodes,
 *   construction; trw_subjects.c:        trw_file.c: writes, cuts back, syncs, seals
 *   what is open, for lines and snapshots
 *
 * A block changes hands as a pointer, through a bounded queue under one mutex that is never held over a
 * system call. */
#ifndef SCHEMA_TRW_PARTS_H
#define SCHEMA_TRW_PARTS_H

#include "schema/block.h"
#include "schema/trw.h"

#include <pthread.h>

/* ---- trw_file.c: one part of a recording on disk. Writer's thread, or the caller's while that one rests. */

struct trw_file {
    int fd;
    struct trw_state *state;
    uint64_t min_free_bytes;
    uint32_t salt;
    uint64_t good_bytes, next_seq;
    int64_t free_checked_ns; /* when the free space was looked at last */
    bool dirty;              /* written since the last sync */
    bool unsynced_loss;      /* a sync failed: nothing may be written here any more */
};

/* Writes the head of a new part; sets state. 0, or -1 with errno set. */
int trw_file_begin(struct trw_file *f, const char *const *pairs);
/* f becomes the part begun in next, and the shared state speaks of that one. */
void trw_file_take_over(struct trw_file *f, const struct trw_file *next);
/* Goes on in a file that a killed writer left: cuts it behind its last whole block. 0, or -1 with a reason.
 */
int trw_file_resume(struct trw_file *f, char *err, size_t err_size);
/* Writes a whole block (its sequence number is set here) or, when that fails, leaves the file as it was and
 * returns errno. now_ns decides whether the free space is looked at. */
int trw_file_write(struct trw_file *f, uint8_t *block, size_t n, int64_t now_ns);
int trw_file_seal(struct trw_file *f, int64_t t_ns);
/* fdatasync when there is something new; errno when it failed, and then the file is given up. */
int trw_file_sync(struct trw_file *f);

/* ---- trw_subjects.c: requests and connections that are open. Caller's thread. */

struct subject_entry {
    uint64_t id;
    enum subject subject;
    bool begun, ended;
    uint64_t events;    /* of all blocks */
    int64_t last_ns;    /* of the last event */
    uint64_t run_block; /* number of the block in which `run` is its run, 0 none */
    uint32_t run;
    struct bytes facts; /* for a snapshot, see subject_keep */
};
struct subjects {
    struct subject_entry *at; /* in the order of beginning */
    size_t n, cap;
    uint32_t *slot; /* index + 1 by hash of subject and id; 0 free */
    size_t slots;   /* a power of two */
};
void subjects_free(struct subjects *s);
/* Finds or adds; NULL when memory ran out. The pointer holds until the next add or sweep. */
struct subject_entry *subjects_get(struct subjects *s, enum subject subject, uint64_t id);
struct subject_entry *subjects_find(struct subjects *s, enum subject subject, uint64_t id);
/* Drops those that ended or never began. */
void subjects_sweep(struct subjects *s);
/* Keeps a fact for the snapshot; the later one of a name holds, spans add up to a bound. */
void subject_keep(struct subject_entry *e, const struct block_fact *f, const char *text);
void subject_keep_span(struct subject_entry *e, const struct block_span *s);
/* Tells what is kept of e into rows of b. */
void subject_retell(const struct subject_entry *e, struct block *b);

/* ---- trw_thread.c: the queue and the thread behind it. */

#define QUEUE_BLOCKS 64
#define QUEUE_BYTES  (32 << 20) /* in memory, where a block is larger than on disk */
#define QUEUE_SPARE  4          /* empty blocks kept for use again */

/* What was lost and is not said in the file yet, one sum for each kind of loss: blocks that could not be
 * written, and the losses which those blocks would have told. */
struct trw_lost {
    struct block_loss sum[N_LOSSES];
    bool any[N_LOSSES];
};
/* Adds a block that is dropped for reason `why`. Returns what is counted: its events and requests, at
 * least 1. */
uint64_t trw_lost_add(struct trw_lost *lost, const struct block *b, enum loss why);
/* Loss rows of it into b. */
void trw_lost_tell(const struct trw_lost *lost, struct block *b);

enum trw_order { ORDER_NONE, ORDER_SYNC, ORDER_ROTATE, ORDER_END };

struct trw_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct block *queue[QUEUE_BLOCKS];        /* lock */
    size_t first, n, bytes;                   /* lock */
    struct block *spare[QUEUE_SPARE];         /* lock: blocks to use again */
    size_t n_spare;                           /* lock */
    enum trw_order order;                     /* lock: to do once the queue is empty */
    struct trw_file next;                     /* lock: the file of ORDER_ROTATE, its head written */
    int result;                               /* lock: of the order */
    char change[2][256];                      /* lock: lines for on_change not yet told */
    unsigned n_changes;                       /* lock */
    bool retell;                              /* lock: blocks were lost, a snapshot is due */
    uint64_t file_bytes, blocks, lost_blocks; /* lock: totals */
    uint64_t lost_total[N_LOSSES];            /* lock: likewise, by the reason */
    bool new_file_needed;                     /* lock */
    /* the thread's own */
    struct trw_file file;
    struct encoder encoder;
    struct trw_lost lost;
    int failing;       /* errno of the last write, 0: writing works */
    int64_t retry_ns;  /* when to try again */
    int64_t synced_ns; /* last sync */
    int64_t flush_interval_ns;
};
/* Starts the thread over t->file. 0 or errno. */
int trw_thread_start(struct trw_thread *t);
/* Room for one more block. Only this side fills the queue: room once seen stays. */
bool trw_thread_has_room(struct trw_thread *t);
/* Queues b, which then belongs to the thread; there must be room. */
void trw_thread_push(struct trw_thread *t, struct block *b);
/* Waits until the queue has room; for the calls that may wait. */
void trw_thread_wait_room(struct trw_thread *t);
/* A cleared block to fill; NULL when memory ran out. */
struct block *trw_thread_block(struct trw_thread *t);
/* Gives an order and waits for it; returns its result. */
int trw_thread_order(struct trw_thread *t, enum trw_order order);
/* Takes a line for on_change out, false when there is none. */
bool trw_thread_change(struct trw_thread *t, char line[256]);
/* Whether blocks were lost since the last question: what is open is to be told again. */
bool trw_thread_retell(struct trw_thread *t);
/* Joins (after ORDER_END) and frees. */
void trw_thread_end(struct trw_thread *t);

int64_t trw_now_ns(void);

#endif
