/* One --upstream: its addresses, and whether it answers. Knows no connections. */
#ifndef RECORDER_UPSTREAM_H
#define RECORDER_UPSTREAM_H

#include "recorder/addr.h"

#include <uv.h>

/* Someone who waits for a name to be looked up again. Called once, from the loop. */
struct upstream_wait {
    void (*done)(void *ctx);
    void *ctx;
    struct upstream_wait *next;
};

struct upstream {
    struct addr addr;
    struct addr_list list; /* empty while its name does not resolve */
    uv_loop_t *loop;
    uv_getaddrinfo_t request;
    bool resolving;
    int64_t resolved_ns; /* when the last look-up ended, monotonic */
    struct upstream_wait *waiting;
    bool down;
    int down_err; /* errno of the connect that found it down */
    int64_t down_ns;
    uint64_t n_cut, n_refused; /* streams reset around that time, clients turned away since */
    int64_t cut_ns;            /* the last of those resets */
};

/* Begins to look its name up again; w->done is called when that ended. False: not a name, or looked up less
 * than a second ago: w is not kept. */
bool upstream_again(struct upstream *u, struct upstream_wait *w, int64_t now_ns);
/* w waits no longer. */
void upstream_forget(struct upstream *u, struct upstream_wait *w);

/* It reset a stream with a running request. */
void upstream_cut(struct upstream *u, int64_t now_ns);

#endif
