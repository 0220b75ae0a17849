/* Between attribute.c, which decides the tokens of events, and attribute_arrivals.c, which makes arrivals of
 * them. */
#ifndef ANALYZER_ATTRIBUTE_IMPL_H
#define ANALYZER_ATTRIBUTE_IMPL_H

#include "analyzer/attribute.h"

/* A bit of attribute_event.what that the log does not have: the event's only token is a stop token without
 * text. */
#define ATTRIBUTE_STOP_TOKEN 0x8000u

/* Differences and sums of instants wrap around, since a damaged trace may bring any two. */
static inline int64_t attribute_minus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t attribute_plus(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

struct attribute_choice {
    uint64_t texts;        /* events with text */
    uint32_t running;      /* highest count so far */
    bool running_missing;  /* an event with text did not carry a count */
    bool running_positive; /* it was above 0 on the first or second event with text */
    bool finished;
    /* the open arrival and the sums of the series */
    size_t open; /* index of the open arrival + 1 */
    uint32_t last_read;
    size_t arrivals;
};

/* Makes arrivals of the first n events, whose tokens are known, and the sums over them. False without memory.
 */
bool attribute_arrivals(struct attributor *a, const struct attribute_events *v, size_t n,
                        const struct attribute_facts *f, struct attribution *out);

#endif
