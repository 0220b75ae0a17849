/* AWS event stream frames (application/vnd.amazon.eventstream) out of any cut of their bytes.
 *
 * A frame, big-endian: its length u32, length of its headers u32, CRC32 of these 8 bytes; headers; payload;
 * CRC32 of all before. An event's name is its :event-type, "error" for exceptions and errors; its data is the
 * payload. A frame that lies whole in one read is handed on without a copy. Pure: knows neither JSON nor
 * time. */
#ifndef RECORDER_DISSECT_AWSSTREAM_H
#define RECORDER_DISSECT_AWSSTREAM_H

#include "recorder/dissect/sse.h"

struct awsstream {
    struct buf frame;  /* beginning of a frame that the end of a read cut */
    size_t skip;       /* bytes still to come of a frame that is too large to be kept */
    size_t wire_bytes; /* of such a frame, or of all from the damaged one on */
    bool damaged;      /* a length was wrong: where the next frame begins is not known */
};

/* Zeroed is a stream's beginning. Calls event for each frame that ends in these bytes; a frame whose checksum
 * or headers are wrong is called unread. */
void awsstream_feed(struct awsstream *s, struct pool *pool, const char *p, size_t n, event_fn *event,
                    void *ctx);
/* The stream ended: an unfinished frame is handed on as cut, without data, and so is all that followed a
 * wrong length, as one unread event. Frees the memory. True: there was one. */
bool awsstream_end(struct awsstream *s, struct pool *pool, event_fn *event, void *ctx);
void awsstream_free(struct awsstream *s, struct pool *pool);

#endif
