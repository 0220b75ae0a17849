/* The recorder process: drains the ring into the dissector, and lets the trace writer breathe. */
#ifndef RECORDER_RECORD_H
#define RECORDER_RECORD_H

#include "recorder/ring.h"
#include "recorder/shared.h"

struct record_config {
    struct ring *ring;
    struct shared *shared;
    int trace_fd; /* open file, or -1: open trace_path when it becomes possible (loss not_recording) */
    const char *trace_path;
    const char
        *trace_dir; /* when -o names a folder: next parts are made in it; else NULL: beside it, numbered */
    const char *const *head; /* pairs for the trace's head, NULL-terminated */
    const char *const *upstreams, *const *listens;
    size_t n_pairs;
    int64_t flush_interval_ns;
    uint64_t min_free_bytes;
    bool must_record; /* give up with exit status 1 when the trace cannot be begun */
};

/* Runs until the ring is closed and drained, or its producer's process is gone; seals the trace. Returns the
 * exit status. Called in the forked child, after every descriptor that is not its own was closed. */
int record_run(const struct record_config *c);

#endif
