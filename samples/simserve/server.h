/* What the parts of the server share: one of it, made by main. */
#ifndef SAMPLES_SIMSERVE_SERVER_H
#define SAMPLES_SIMSERVE_SERVER_H

#include "samples/simserve/conn.h"
#include "samples/simserve/engine.h"
#include "samples/simserve/metrics.h"
#include "samples/simserve/opts.h"
#include "samples/simserve/pacer.h"
#include "samples/simserve/truth.h"

struct server {
    struct opts opts;
    struct engine *engine;
    struct pacer *pacer;
    struct conns *conns;
    struct truth *truth; /* NULL: no log wanted */
    struct metrics metrics;
    uint64_t n_requests, n_generations;
    uint64_t ready_ns; /* until then the model is loading */
    bool stopping;     /* open connections are being closed by us */
};

#endif
