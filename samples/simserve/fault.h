/* Failures on demand: which request fails, and how. It does not know how a failure is acted out. */
#ifndef SAMPLES_SIMSERVE_FAULT_H
#define SAMPLES_SIMSERVE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    FAULT_NONE,
    FAULT_HTTP_500,
    FAULT_HTTP_429,
    FAULT_ERROR,
    FAULT_CUT,
    FAULT_RESET,
    FAULT_STALL
};

struct fault {
    enum fault_kind kind;
    uint64_t stall_ms; /* of FAULT_STALL */
};

enum { FAULT_MAX_RULES = 16 };

struct fault_rules {
    struct {
        struct fault fault;
        double share;   /* of the requests, or */
        uint64_t every; /* every so many-th one when not 0 */
    } rule[FAULT_MAX_RULES];
    unsigned n;
};

/* Reads "KIND=N%", "KIND=/N", or for a stall "stall:MS=…" and appends it. NULL, or why it is refused. */
const char *fault_add_rule(const char *text, void *rules);

/* Reads "KIND" or "stall:MS" (the header of a single request). False: not understood. */
bool fault_parse(const char *text, struct fault *out);

/* The fault of the n-th generation request (from 1): the first rule that strikes. */
struct fault fault_pick(const struct fault_rules *rules, uint64_t seed, uint64_t n);

const char *fault_name(enum fault_kind kind);

#endif
