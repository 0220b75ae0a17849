/* The JSON body of a generation request, read into what the engine needs. It does not know HTTP or the
 * engine. */
#ifndef SAMPLES_SIMSERVE_BODY_H
#define SAMPLES_SIMSERVE_BODY_H

#include "samples/simserve/tokens.h"

enum { BODY_MAX_STOPS = 4, BODY_STOP_BYTES = 64, BODY_MAX_CHOICES = 8 };

struct body {
    bool chat, stream, include_usage, continuous_usage, token_ids, ignore_eos;
    uint64_t max_tokens; /* 0: not said */
    uint64_t min_tokens;
    uint64_t n;
    uint64_t seed;
    char stop[BODY_MAX_STOPS][BODY_STOP_BYTES];
    unsigned n_stops;
    struct tokens prompt; /* owned; body_fini */
};

/* Reads a chat or completions body. NULL, or a sentence saying what is wrong (static storage); body_fini is
 * due in both cases. */
const char *body_read(struct body *b, const char *json, size_t len, bool chat);

/* Reads the body of /tokenize ("prompt" or "messages"); as above. */
const char *body_read_tokenize(struct body *b, const char *json, size_t len);

void body_fini(struct body *b);

#endif
