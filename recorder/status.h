/* What tracerec says on stderr while it runs and at its end. Reads counts; changes nothing. */
#ifndef RECORDER_STATUS_H
#define RECORDER_STATUS_H

#include "recorder/front.h"
#include "recorder/opts.h"

struct status {
    const struct opts *opts;
    struct shared *shared;
    struct tap *tap;
    struct ring *ring;
    const char *path; /* of the trace */
    /* the rest is status's own */
    bool terminal, line_open; /* a status line stands there, to be written over */
    int64_t started_ns, next_ns;
    uint64_t last_tokens;
    int64_t last_ns;
    uint64_t told_loss[N_LOSSES]; /* counts at the last look */
    int64_t told_loss_ns[N_LOSSES];
    uint32_t told_trace;
};

void status_init(struct status *s);
/* One line, with the time of day before it; formatted like printf. Kept back by --quiet. */
__attribute__((format(printf, 2, 3))) void status_say(struct status *s, const char *form, ...);
/* Likewise, without the time and in spite of --quiet. */
__attribute__((format(printf, 2, 3))) void status_note(struct status *s, const char *form, ...);
/* To be called each second: the status line, and a line for each change. */
void status_tick(struct status *s, size_t n_in_flight);
void status_upstream(struct status *s, const struct upstream *u, bool up, int64_t down_for_ns);
/* The end. sealed: the recorder says that the trace is whole. */
void status_summary(struct status *s, bool sealed);

#endif
