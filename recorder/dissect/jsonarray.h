/* The elements of one JSON array that is the whole body, out of any cut of its bytes: each is an event when
 * its last byte comes.
 *
 * Pure: finds where elements end, whatever is in them; knows neither their meaning nor time. An element that
 * lies whole in one read is handed on without a copy. */
#ifndef RECORDER_DISSECT_JSONARRAY_H
#define RECORDER_DISSECT_JSONARRAY_H

#include "recorder/dissect/sse.h"

struct jsonarray {
    struct buf element; /* beginning of an element that the end of a read cut */
    enum { ARRAY_BEFORE, ARRAY_BETWEEN, ARRAY_INSIDE, ARRAY_BEHIND } where;
    size_t wire_bytes; /* since the last event, brackets, commas and white space included */
    size_t depth;      /* brackets open inside the element */
    size_t strange;    /* bytes behind the array that are no white space */
    bool in_string, escaped;
    bool overflow; /* the element is too large */
};

/* Zeroed is a body's beginning. Calls event for each element that ends in these bytes. A body whose first
 * byte that is no white space is another than '[' must not be fed. */
void jsonarray_feed(struct jsonarray *s, struct pool *pool, const char *p, size_t n, event_fn *event,
                    void *ctx);
/* The body ended: an element without its end is handed on as cut, what followed the array as unread. Frees
 * the memory. True: there was one. Whether the array was closed stays in s->where: ARRAY_BEHIND. */
bool jsonarray_end(struct jsonarray *s, struct pool *pool, event_fn *event, void *ctx);
void jsonarray_free(struct jsonarray *s, struct pool *pool);

#endif
