/* Server-sent events out of any cut of their bytes: line ends LF, CRLF and CR, mixed; comments; several data
 * lines.
 *
 * Pure: knows neither JSON nor time. An event whose data is one line that lies whole in one read is handed on
 * without a copy. */
#ifndef RECORDER_DISSECT_SSE_H
#define RECORDER_DISSECT_SSE_H

#include "recorder/dissect/pool.h"

#include <stdint.h>

/* One event of a stream, whichever framing it came in. Borrowed for the call. */
struct event {
    const char *data;
    size_t n_data;
    const char *name; /* as the framing tells it (event: line); "" without one; cut at 63 bytes */
    size_t wire_bytes;
    bool cut;    /* the stream ended before the event did */
    bool unread; /* too large to be kept, or damaged: data is empty */
    /* The framing itself says that this is an error: its type, "" without one. NULL: it does not. */
    const char *error_type;
};
typedef void event_fn(void *ctx, const struct event *e);

struct sse {
    struct buf line; /* a line that the end of a read cut */
    struct buf kept; /* data of the event so far, from kept_at on, when it is not in the current read */
    size_t kept_at;
    const char *span; /* data of the event so far, when it is one line of the current read or of `line` */
    size_t n_span;
    enum { SSE_NO_DATA, SSE_SPAN, SSE_KEPT } where;
    char name[64];
    size_t wire_bytes;
    uint64_t comments;
    uint8_t n_bom;          /* bytes of a byte order mark seen; 255: no longer looked for */
    bool in_line;           /* the last read ended inside a line */
    bool skip_lf, count_lf; /* the last byte was a CR: an LF belongs to it; it counts to the current event */
    bool overflow;          /* the event is too large */
    bool bare;              /* its lines are JSON without a field's name */
};

/* Zeroed is a stream's beginning. Calls event for each event that ends in these bytes. */
void sse_feed(struct sse *s, struct pool *pool, const char *p, size_t n, event_fn *event, void *ctx);
/* The stream ended: an event without its blank line is handed on as cut. Frees the memory. True: there was
 * one.
 */
bool sse_end(struct sse *s, struct pool *pool, event_fn *event, void *ctx);
void sse_free(struct sse *s, struct pool *pool);

#endif
