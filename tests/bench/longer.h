/* Makes a long answer of a short sample: its token events are repeated, each time with another text and other
 * numbers, as those of a real stream differ. */
#ifndef TESTS_BENCH_LONGER_H
#define TESTS_BENCH_LONGER_H

#include <stdbool.h>
#include <stddef.h>

struct sample {
    const char *framing; /* sse, ndjson, aws-eventstream */
    const char *bytes;
    size_t n;
    const int *token_events; /* ordinals among the framing's events, ascending */
    size_t n_token_events;
    size_t n_events; /* of the framing: another count means that the sample was not understood */
    size_t run;      /* repetitions of one event before the next one has its turn */
};

/* An answer as HTTP chunks, one for each event. */
struct longer {
    char *bytes;
    size_t n_bytes, room;
    size_t *ends; /* of each chunk in bytes */
    size_t n_chunks;
    size_t first, n; /* the chunks that are repeated events */
};

/* False: the sample cannot be taken apart, or memory is short. Repeated are the token events but the first
 * and the last, which may be special (a role, a finish); these and all other events stand once, where they
 * belong. */
bool longer_make(struct longer *l, const struct sample *s, size_t n_repeated);
void longer_free(struct longer *l);

#endif
