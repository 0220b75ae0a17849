/*
 * One HTTP answer read from bytes: status, and of a generation the tokens as the client sees them come. It
 * does not know sockets or clocks: the caller says when the bytes were read.
 */
#ifndef SAMPLES_SIMLOAD_READER_H
#define SAMPLES_SIMLOAD_READER_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reader_st { READER_MORE, READER_DONE, READER_BAD };

struct reader {
    http_parser parser;
    bool stream; /* the body is an event stream */
    bool done, keep_alive;
    bool saw_marker;                    /* [DONE] */
    bool saw_error;                     /* an error object in the stream */
    uint64_t now_ns, first_ns, last_ns; /* of events with text; 0: none */
    uint64_t n_events;
    int64_t prompt_tokens, cached_tokens, answer_tokens; /* -1: not told */
    char *held;                                          /* the line, or the body, so far; owned */
    size_t held_len, held_cap;
};

void reader_init(struct reader *r);
void reader_fini(struct reader *r);

/* Reads bytes that came at now_ns. Bytes behind the answer are ignored (this client does not pipeline). */
enum reader_st reader_feed(struct reader *r, const char *data, size_t len, uint64_t now_ns);

/* The connection ended: whether that completes the answer. */
bool reader_end(struct reader *r);

unsigned reader_status(const struct reader *r); /* 0: no answer yet */

#endif
