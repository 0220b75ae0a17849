/*
 * A running generation: from a request body through the engine's sequences to the events of its answer.
 * It does not know routes or how JSON is written. Its one hard idea: it lives exactly as long as its request
 * is open; whichever ends first (answer, client, failure on purpose, server) goes through one function.
 */
#ifndef SAMPLES_SIMSERVE_GEN_H
#define SAMPLES_SIMSERVE_GEN_H

#include "samples/simserve/body.h"
#include "samples/simserve/server.h"

struct gen;

/* One answer of n. `text` is all of it (NUL-terminated once it exists), of which `sent` bytes were streamed.
 */
struct gen_choice {
    struct seq seq;
    struct gen *gen;
    unsigned index;
    char *text;
    size_t len, cap, sent;
    bool done, has_eos;
    const char *finish, *stop_reason;
};

struct gen {
    struct server *srv;
    struct conn *conn;
    struct body body;
    uint64_t number, first_byte_ns, received_ns;
    int64_t created; /* seconds since the epoch */
    char id[160];
    struct fault fault;
    uint64_t n_token_events, next_event;
    unsigned n_done;
    bool role_sent;
    struct gen_choice choice[BODY_MAX_CHOICES];
};

/* Starts a generation that answers on c. Takes over body's contents. fault: what it shall suffer on the way.
 * False: no memory, nothing was taken or answered. */
bool gen_start(struct server *srv, struct conn *c, const struct http_in *req, uint64_t number,
               struct body *body, struct fault fault);

/* The engine's pay-out; to be given to engine_new. */
void gen_on_tokens(struct seq *s, unsigned n, bool last, uint64_t before_ns, uint64_t step);

/* The id of an output token. */
uint32_t gen_token(const struct gen_choice *ch, uint64_t position);

/* The client of this generation (a struct gen *) has left, or the server stops. */
void gen_on_gone(void *gen);

#endif
