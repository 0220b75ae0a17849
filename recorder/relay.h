/* Relays: one for each client, with an upstream connection of its own. Forwards bytes exactly as read, then
 * tells the tap.
 *
 * Owns the sockets and their life; knows HTTP only through the framer, and neither listeners nor signals. */
#ifndef RECORDER_RELAY_H
#define RECORDER_RELAY_H

#include "recorder/shared.h"
#include "recorder/tap.h"
#include "recorder/upstream.h"

enum { RELAY_READ_BYTES = 64 << 10 };

struct relay;

/* All relays of the process and what they share. */
struct relays {
    uv_loop_t *loop;
    struct tap *tap;
    struct shared *shared;
    bool unreachable_reset;    /* --unreachable reset */
    bool draining;             /* a relay ends as soon as no request runs on it */
    void (*on_end)(void *ctx); /* one has ended, its descriptors are closed */
    void (*on_upstream)(void *ctx, struct upstream *u, bool up); /* an upstream went down or answers again */
    void *ctx;
    /* the rest is the relays' own */
    struct relay *first, *dead; /* dead: ended in this turn of the loop, not yet freed */
    size_t n;
    struct relay *ticking;
    uv_timer_t tick;
    uv_prepare_t turn;
    uint64_t n_flows;
    int64_t turn_ns; /* when this turn of the loop began to work; 0: it did not yet */
    char scratch[RELAY_READ_BYTES];
};

/* The caller has set the upper half of *rs. */
void relays_init(struct relays *rs);

/* Takes over the accepted client socket fd. pair: which --proxy/--upstream pair. Closes fd when there is no
 * memory. */
void relay_new(struct relays *rs, int fd, const union addr_any *peer, size_t pair, struct upstream *u);

/* Requests running on all relays (tunnels and unknown protocols count as one each). */
size_t relays_running(const struct relays *rs);
/* No request runs and nothing was read for idle_ns on any relay. */
bool relays_idle(const struct relays *rs, int64_t idle_ns, int64_t now_ns);
/* Ends those on which no request runs, now and from now on; to be called again from time to time, since a
 * client that was just accepted has a moment to send its request. */
void relays_drain(struct relays *rs);
/* Ends all: those with a running request by a reset to both sides. */
void relays_stop(struct relays *rs);
/* Tells the tap of every flow that is open: for a recorder that was started anew. */
void relays_resume(struct relays *rs);
/* A callback begins to work at now_ns: for the measurement of the loop's turns. */
static inline void relays_awake(struct relays *rs, int64_t now_ns) {
    if (!rs->turn_ns) rs->turn_ns = now_ns;
}

#endif
