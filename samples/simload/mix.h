/*
 * The mixed load: what the n-th request of a run is. It does not know connections or clocks.
 * Its one hard idea: everything about request n follows from the seed and n, so two runs send the same
 * requests at the same planned instants, whatever the server does.
 */
#ifndef SAMPLES_SIMLOAD_MIX_H
#define SAMPLES_SIMLOAD_MIX_H

#include <stdbool.h>
#include <stdint.h>

struct mix {
    double rate;                                                  /* requests a second */
    double other, completions, streamed, shared, aborted, repeat; /* shares, 0 to 1 */
    uint64_t max_prompt_words;
    uint64_t max_tokens; /* highest limit that a request sets */
    uint64_t seed;
    const char *model;
};

struct shot {
    uint64_t due_ns; /* since the start of the run */
    const char *method, *path, *api;
    bool generation, stream;
    uint64_t abort_after_ms; /* after it was sent; 0: never */
    char *body;              /* NULL: none; owned, mix_fini_shot */
};

/* Request n (from 0); previous_due_ns is that of request n - 1. False: no memory. */
bool mix_shot(const struct mix *m, uint64_t n, uint64_t previous_due_ns, struct shot *out);

void mix_fini_shot(struct shot *shot);

#endif
