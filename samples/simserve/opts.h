/* The settings of simserve, from its command line. */
#ifndef SAMPLES_SIMSERVE_OPTS_H
#define SAMPLES_SIMSERVE_OPTS_H

#include "samples/simserve/engine.h"
#include "samples/simserve/fault.h"

#include <sys/socket.h>

struct opts {
    struct sockaddr_storage listen;
    const char *model, *truth_path;
    struct engine_cfg engine;
    struct fault_rules faults;
    double mean_answer; /* tokens, when the request sets no smaller limit */
    uint64_t max_len, queue_limit, load_ms, fault_after, idle_ms, drain_ms, max_body_bytes;
    bool metrics_per_request, always_report_cache, half_close;
};

/* 0: go on; 1: help was printed; 2: wrong usage, said on stderr. */
int opts_read(struct opts *o, int argc, char **argv);

#endif
