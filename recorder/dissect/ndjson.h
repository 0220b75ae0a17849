/* JSON lines out of any cut of their bytes: a line that is not blank is an event. Pure. */
#ifndef RECORDER_DISSECT_NDJSON_H
#define RECORDER_DISSECT_NDJSON_H

#include "recorder/dissect/sse.h"

struct ndjson {
    struct buf line;   /* a line that the end of a read cut */
    size_t wire_bytes; /* of the current line and blank ones before it */
    bool in_line, overflow;
};

/* Zeroed is a stream's beginning. Calls event for each line that ends in these bytes. */
void ndjson_feed(struct ndjson *s, struct pool *pool, const char *p, size_t n, event_fn *event, void *ctx);
/* The stream ended: what follows the last line end is an event, too; it is called cut when the stream was.
 * Frees the memory. True: there was one. */
bool ndjson_end(struct ndjson *s, struct pool *pool, bool cut, event_fn *event, void *ctx);
void ndjson_free(struct ndjson *s, struct pool *pool);

#endif
