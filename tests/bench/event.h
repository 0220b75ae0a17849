/* The streamed answer of the benchmark, as both of its ends know it.
 *
 * The source writes it and the sink computes the same bytes again, so that a byte too few, too many or of
 * another stream is seen. It knows neither sockets nor HTTP framing. The one idea: a token event is a fixed
 * beginning, the sender's clock in fixed width, a filler whose length differs from event to event (as that of
 * real tokens does: equal sizes would flatter a trace's size), and a fixed end; so writing and checking one
 * costs a few dozen nanoseconds.
 */
#ifndef BENCH_EVENT_H
#define BENCH_EVENT_H

#include <stddef.h>
#include <stdint.h>

#define EVENT_ID_BYTES     64 /* an X-Request-Id with its terminator; longer ones are cut */
#define EVENT_STAMP_DIGITS 17
#define EVENT_MAX_BYTES    512 /* no message of the stream is longer */

struct event_stream {
    char id[EVENT_ID_BYTES];         /* X-Request-Id of the request it answers */
    char begin[EVENT_MAX_BYTES / 2]; /* what each token event begins with */
    size_t begin_bytes;
    uint32_t seed; /* of the filler lengths */
};

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t event_now_ns(void);

/* Starts the answer to the request `id`. */
void event_stream_init(struct event_stream *s, const char *id);

/* Writes the SSE message of token `ordinal` (0, 1, ...) sent at sent_ns; returns its bytes, both line feeds
 * included. */
size_t event_token(const struct event_stream *s, uint32_t ordinal, uint64_t sent_ns,
                   char out[EVENT_MAX_BYTES]);

/* Reads one line (without its line feed) as token `ordinal`. Returns 1 and the sender's clock, or 0 if it is
 * anything else, be it by one byte. */
int event_token_read(const struct event_stream *s, uint32_t ordinal, const char *line, size_t bytes,
                     uint64_t *sent_ns);

/* The messages around the tokens, each returning its bytes: role first; finish, usage and the end mark last.
 */
size_t event_role(const struct event_stream *s, char out[EVENT_MAX_BYTES]);
size_t event_finish(const struct event_stream *s, char out[EVENT_MAX_BYTES]);
size_t event_usage(const struct event_stream *s, uint32_t n_tokens, char out[EVENT_MAX_BYTES]);
size_t event_done(char out[EVENT_MAX_BYTES]);

#endif
