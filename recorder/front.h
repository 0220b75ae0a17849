/* The front: accepts clients on every listener, and stops in good order.
 *
 * Knows listeners, descriptors and the ways to end; how bytes move is relay's. */
#ifndef RECORDER_FRONT_H
#define RECORDER_FRONT_H

#include "recorder/listen.h"
#include "recorder/relay.h"

enum { FRONT_PAIRS_MAX = 32 };

/* How the end was asked for. FRONT_STOPPED: the loop is to end, every relay has. */
enum front_state { FRONT_RUNNING, FRONT_LEAVING /* SIGTERM */, FRONT_CLOSED /* SIGINT */, FRONT_STOPPED };

struct front_pair {
    struct listen listen;
    struct upstream upstream;
};

struct front {
    uv_loop_t *loop;
    struct relays *relays;
    struct front_pair *pairs;
    size_t n_pairs;
    int64_t drain_ns; /* INT64_MAX: for ever */
    void (*on_stopped)(void *ctx);
    void *ctx;
    /* the rest is the front's own */
    enum front_state state;
    int64_t limit_ns; /* when running requests are cut */
    struct front_door *doors;
    size_t n_doors;
    size_t fd_limit, fd_base; /* descriptors: allowed; open beside those of relays */
    bool paused;
    struct tap_gap pause; /* of accepting, for want of descriptors */
    uv_timer_t timer;
};

/* Starts to accept. The caller has set the upper half; the listeners are open. False: no memory. */
bool front_start(struct front *f);
/* SIGINT: accepts what is there, closes the listeners; running requests get drain_ns. */
void front_close(struct front *f);
/* SIGTERM: goes on accepting until no request runs and all was quiet for a second, at most drain_ns. */
void front_leave(struct front *f);
/* Ends everything now. */
void front_stop(struct front *f);
/* To be called when a relay has ended. */
void front_on_end(struct front *f);

#endif
