/* What became of the requests: counts, the client's latencies, the log of single requests, the summary line.
 */
#ifndef SAMPLES_SIMLOAD_TALLY_H
#define SAMPLES_SIMLOAD_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum tally_outcome {
    TALLY_OK,
    TALLY_ABORTED,      /* by us, on purpose */
    TALLY_HTTP_ERROR,   /* status 400 and above */
    TALLY_STREAM_ERROR, /* an error object after status 200 */
    TALLY_CUT,          /* the connection ended first */
    TALLY_REFUSED,      /* no connection */
    TALLY_UNFINISHED,   /* still running at the end of the run */
    TALLY_N
};

/* One request; times are CLOCK_MONOTONIC in nanoseconds, 0: it did not happen; counts -1: not told. */
struct tally_row {
    uint64_t n;
    const char *request_id, *api, *path;
    bool generation, stream;
    uint64_t due_ns, sent_ns, first_ns, last_ns, end_ns, events;
    int64_t prompt_tokens, cached_tokens, answer_tokens;
    unsigned status;
    enum tally_outcome outcome;
};

struct tally {
    FILE *log; /* NULL: not wanted */
    uint64_t generations[TALLY_N], others[TALLY_N];
    uint64_t answer_tokens;
    uint64_t *ttft_ns; /* owned; of ok streams, from the planned instant */
    uint64_t n_ttft, cap_ttft;
};

/* Opens the log (path may be NULL), which must not exist. False: errno says why. */
bool tally_init(struct tally *t, const char *log_path);

/* False: the log is not whole. */
bool tally_fini(struct tally *t);

void tally_add(struct tally *t, const struct tally_row *row);

/* One line on stdout. */
void tally_print(struct tally *t, double seconds);

#endif
