/*
 * Calls over kept connections: sends a request, reads its answer, reports once. It does not know the mix.
 * Its one hard idea: open loop. A call never waits for another; when no idle connection is at hand it opens
 * one.
 */
#ifndef SAMPLES_SIMLOAD_CALL_H
#define SAMPLES_SIMLOAD_CALL_H

#include "samples/simload/mix.h"
#include "samples/simload/tally.h"

#include <uv.h>

/* The pool of connections to one server. */
struct calls {
    uv_loop_t *loop;
    struct sockaddr_storage server;
    char host[96]; /* for the Host header */
    struct tally *tally;
    uint64_t run; /* a number that tells runs apart in request ids */
    uint64_t start_mono_ns,
        start_wall_ns; /* both clocks read together: the planned instants count from here */
    struct link *first;
    unsigned n_running;
};

/* Sends the shot now. False: no memory or no socket; nothing was reported. */
bool call_send(struct calls *all, uint64_t n, const struct shot *shot);

/* Ends everything; running calls are reported as unfinished. */
void calls_close(struct calls *all);

uint64_t call_now_ns(void); /* CLOCK_MONOTONIC */

#endif
