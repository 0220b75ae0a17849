/*
 * The truth log: what the engine did and when, one JSON object a line, for comparison with what a recorder
 * saw. It does not know why anything happens. README.md documents every row and field. All functions accept
 * NULL (no log wanted); times are CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef SAMPLES_SIMSERVE_TRUTH_H
#define SAMPLES_SIMSERVE_TRUTH_H

#include "samples/simserve/conn.h"

#include <stdbool.h>
#include <stdint.h>

struct truth;

/* Creates the file, readable by its owner only; an existing one is an error (NULL, errno set). */
struct truth *truth_create(const char *path);

/* False: some row could not be written. */
bool truth_close(struct truth *t);

void truth_start(struct truth *t, const char *listen, const char *model);

/* A request that is no generation, or a generation refused before it began (api says which). */
struct truth_simple {
    uint64_t req, conn, first_byte_ns;
    struct conn_stamp sent;
    const char *api, *path, *x_request_id;
    unsigned status;
};
void truth_simple(struct truth *t, const struct truth_simple *row);

struct truth_request {
    uint64_t req, conn, first_byte_ns, received_ns, prompt_tokens, max_tokens, n;
    const char *api, *id, *x_request_id, *fault;
    bool stream;
};
void truth_request(struct truth *t, const struct truth_request *row);

/* event -1: not an event (head, body, end). */
struct truth_send {
    uint64_t req, step, tokens;
    int64_t event;
    unsigned choice;
    const char *kind;
    struct conn_stamp at;
};
void truth_send(struct truth *t, const struct truth_send *row);

struct truth_end {
    uint64_t req, ns, prompt_tokens, cached_tokens, answer_tokens, verify_steps, drafted, accepted, queue_ns;
    const char *why, *finish;
};
void truth_end(struct truth *t, const struct truth_end *row);

#endif
