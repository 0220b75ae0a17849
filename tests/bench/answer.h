/* One streamed answer as the benchmark's client reads it: HTTP head, chunks, SSE lines, each byte held
 * against event.h.
 *
 * It knows no sockets and no clock; the caller feeds it what a read brought. A proxy may cut and join chunks
 * as it likes, so framing is undone first and lines are put together again; what is left must be the source's
 * bytes exactly.
 */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include "tests/bench/event.h"

enum answer_part { PART_HEAD, PART_SIZE, PART_SIZE_REST, PART_DATA, PART_DATA_END, PART_LAST, PART_WHOLE };
enum answer_next { NEXT_ROLE, NEXT_TOKEN, NEXT_USAGE, NEXT_DONE, NEXT_NOTHING };

struct answer {
    struct event_stream stream;
    enum answer_part part; /* where the transfer is */
    enum answer_next next; /* which event is awaited */
    int in_event;          /* a line came and its blank line has not */
    uint32_t n_tokens;     /* token events so far */
    uint64_t body_bytes;   /* of SSE, framing excluded */
    uint64_t chunk_left;   /* of the chunk being read */
    size_t n_carried;      /* bytes in `carry`: the head so far, or a line cut by a read or a chunk */
    char carry[4096];
};

/* Called for each token with the sender's clock. */
typedef void answer_token_fn(uint64_t sent_ns);

void answer_init(struct answer *a, const char *request_id);

/* Reads `bytes` of the answer; answer->part is PART_WHOLE when it is complete. Returns NULL, or a sentence
 * saying what was wrong: a borrowed constant. */
const char *answer_feed(struct answer *a, const char *at, size_t bytes, answer_token_fn *on_token);

#endif
