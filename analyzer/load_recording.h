/* One recording while it is loaded: takes what the reader tells, attributes requests that have ended, stores
 * rows.
 *
 * Knows no files: parts are fed to it in their order. Its one hard idea: a request is settled at the end of
 * the block in which it ended, since a block tells losses and anchors after ends. */
#ifndef ANALYZER_LOAD_RECORDING_H
#define ANALYZER_LOAD_RECORDING_H

#include "analyzer/load_work.h"

struct recording {
    struct store *store;
    int64_t window_ns;
    char id[37];    /* UUID as text */
    char *recorder; /* its name; owned */
    struct open_set requests, connections;
    struct open_subject **done; /* ended in the block at hand */
    size_t n_done, done_room;
    struct store_span *spans; /* told and not yet pushed */
    size_t n_spans;
    struct wall wall;
    struct work *work;           /* attributes what has ended, stores what is told */
    struct hist *hists[N_HISTS]; /* the last ones told */
    uint64_t block;              /* ordinal of the block at hand, over all parts; 0: none yet */
    bool check,
        check_next; /* open ones without a line in this block, or the next, ended where nothing was kept */
    bool no_memory;
    uint64_t last_part;
    const char *file;            /* the part at hand, for losses found in it */
    void (*on_block)(void *ctx); /* for a progress bar; NULL: none */
    void *ctx;
};

extern const struct trr_ops recording_ops; /* their ctx is a struct recording */

void recording_begin(struct recording *r, struct store *store, const uint8_t uuid[16], const char *recorder,
                     int64_t window_ns);
/* A part is about to be read. */
void recording_part(struct recording *r, uint64_t part, const char *file);
/* A part was read: until this returns, the store is in use. */
void recording_part_end(struct recording *r);
/* All parts were read: settles what is still open, frees everything. */
void recording_end(struct recording *r);

#endif
