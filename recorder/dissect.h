/* Turns pieces of flows into facts: HTTP/1 messages, bodies, events, and what their JSON says.
 *
 * Runs in the recorder process only; nothing here can touch traffic. Input is hostile: whatever it is, the
 * answer is facts or a named loss, in bounded memory. Emits through schema/trw.h. */
#ifndef RECORDER_DISSECT_H
#define RECORDER_DISSECT_H

#include "recorder/piece.h"
#include "recorder/shared.h"
#include "schema/trw.h"

struct dissect;

struct dissect_config {
    struct trw *trw;
    struct shared *shared;        /* counts and next_request */
    const char *const *upstreams; /* as given on the command line, one for each pair */
    const char *const *listens;   /* likewise */
    size_t n_pairs;
    const uint8_t *key; /* 32 bytes: the key of hashes */
};

struct dissect *dissect_new(const struct dissect_config *config);
/* Takes one piece; bytes are borrowed for the call. */
void dissect_piece(struct dissect *d, const struct piece *p, const void *bytes);
/* The recording stops at now_ns: ends every open request as still running and closes all flows. */
void dissect_stop(struct dissect *d, int64_t now_ns);
void dissect_free(struct dissect *d);

#endif
