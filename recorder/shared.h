/* What the two processes of tracerec share beside the ring: one block of anonymous shared memory that
 * outlives a recorder process. Each field has one writer; readers may see a value that is a moment old. */
#ifndef RECORDER_SHARED_H
#define RECORDER_SHARED_H

#include "schema/hist.h"
#include "schema/trw.h"

#include <stdatomic.h>

/* Counts that the recorder process keeps for the status line and the summary. */
struct rec_counts {
    _Atomic uint64_t requests, ok, failed, other,
        running; /* generations that arrived, ended so; other requests; open now */
    _Atomic uint64_t output_tokens, token_events; /* told by servers, else counted; events seen */
    _Atomic uint64_t lost_requests;                        /* requests with a lost span */
    _Atomic uint64_t file_bytes;
    _Atomic uint64_t loss[N_LOSSES]; /* count by kind */
};

struct shared {
    int forwarder_pid;                /* set once, before any fork */
    struct trw_state trw;             /* recorder: where the file is whole */
    _Atomic uint64_t next_request;    /* recorder: the next ordinal, so that a restarted one goes on */
    struct hist hists[N_HISTS];       /* forwarder: late, delay_*, loop; recorder: drain */
    struct rec_counts counts;         /* recorder */
    _Atomic uint64_t forwarded_bytes; /* forwarder */
    _Atomic uint64_t recorder_starts; /* forwarder: 1 for the first recorder process */
    _Atomic int64_t forwarder_cpu_ns;
    _Atomic uint32_t trace_status; /* recorder: enum trace_status */
    char trace_path[2][4096]; /* recorder: file of an even and of an odd part; empty: the one it was given */
    char trace_error[256];    /* recorder: why, in words, when TRACE_FAILING */
};

enum trace_status { TRACE_STARTING, TRACE_WRITING, TRACE_FAILING };

/* Maps it, zeroed, never dumped. NULL: no memory. */
struct shared *shared_new(void);

#endif
