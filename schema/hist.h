/* A distribution of durations in logarithmic buckets: 16 to a doubling, so a quantile is right to 4.4 %.
 *
 * Fixed size and plain integers, so that it may lie in memory shared by two processes: one writer, readers
 * see counts that only grow. Knows nothing of what it measures. */
#ifndef SCHEMA_HIST_H
#define SCHEMA_HIST_H

#include <stdint.h>

#define HIST_SUB     16
#define HIST_BUCKETS (48 * HIST_SUB) /* up to 2^48 ns, 78 hours */

struct hist {
    uint64_t count, sum_ns, max_ns;
    int64_t t_max_ns; /* when the largest was seen, monotonic */
    uint64_t bucket[HIST_BUCKETS];
};

/* Names of the distributions a recording carries about itself; the order is their number on disk. */
#define HIST_NAMES(X)                                                                                        \
    X(late, "read minus the kernel's receive time")                                                          \
    X(delay_down, "upstream to client: read returned to write accepted")                                     \
    X(delay_up, "client to upstream: read returned to write accepted")                                       \
    X(loop, "one turn of the forwarder's loop, waiting taken out")                                           \
    X(drain, "age of the oldest piece when the recorder took it from the queue")

enum hist_name {
#define X(name, sentence) HIST_##name,
    HIST_NAMES(X)
#undef X
        N_HISTS
};
extern const char *const hist_names[N_HISTS];

/* Adds one duration (negative counts as 0) seen at t_ns. */
void hist_add(struct hist *h, int64_t ns, int64_t t_ns);
/* The p-quantile (0..1) in ns: upper end of its bucket, at most max_ns; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, double p);
/* Bucket of a duration; lowest duration of a bucket. */
unsigned hist_bucket(uint64_t ns);
uint64_t hist_lowest(unsigned bucket);

#endif
