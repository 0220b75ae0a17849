/* The forwarder's loop, wired: clients, the recorder's process, signals, the clock, the status lines. */
#ifndef RECORDER_SERVE_H
#define RECORDER_SERVE_H

#include "recorder/child.h"
#include "recorder/front.h"
#include "recorder/status.h"

struct serve {
    const struct opts *opts;
    struct shared *shared;
    struct ring *ring;
    struct child child; /* started */
    struct front_pair *pairs;
    const char *path; /* of the trace */
    /* the rest is serve's own */
    uv_loop_t loop;
    struct tap tap;
    struct relays relays;
    struct front front;
    struct status status;
    uv_timer_t second, restart;
    uv_signal_t signals[5];
    int64_t n_marks, child_ns; /* SIGUSR1s; when the recorder was started */
    int64_t died_ns;           /* when it died, 0: one runs, or none ever did */
    bool fatal;                /* --must-record does not hold */
};

/* Prepares everything; the listeners are open, the child runs. False: no memory or descriptors. */
bool serve_init(struct serve *s);
/* Runs until a signal ends it, seals, prints the summary. Returns the exit status. */
int serve_run(struct serve *s);

#endif
