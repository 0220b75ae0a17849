/* GET /metrics: counters in the Prometheus text format under vLLM's names. It does not know requests. */
#ifndef SAMPLES_SIMSERVE_METRICS_H
#define SAMPLES_SIMSERVE_METRICS_H

#include "samples/simserve/engine.h"

enum { METRICS_BUCKETS = 16 };

/* A histogram of seconds; bucket[i] counts what is at most its bound, the last one everything. */
struct metrics_hist {
    uint64_t bucket[METRICS_BUCKETS];
    double sum;
};

struct metrics {
    double start_time_s; /* wall clock, since the epoch */
    struct metrics_hist ttft, itl, e2e, queue;
    uint64_t success_stop, success_length, success_abort;
};

void metrics_init(struct metrics *m);
void metrics_observe(struct metrics_hist *h, uint64_t duration_ns);

/* The page, NUL-terminated, to be freed; *len its length. NULL: no memory. */
char *metrics_page(const struct metrics *m, const struct engine_stats *stats, const struct engine_cfg *cfg,
                   const char *model, size_t *len);

#endif
