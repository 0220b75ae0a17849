/*
 * Lets the engine's steps take their time on the event loop. It does not know what a step does.
 * Its one hard idea: a step begins where the one before was due, not where its pay-out ended, so that the
 * cost of writing to many sockets does not stretch the step time, as in an engine whose output runs beside
 * its GPU.
 */
#ifndef SAMPLES_SIMSERVE_PACER_H
#define SAMPLES_SIMSERVE_PACER_H

#include "samples/simserve/engine.h"

#include <uv.h>

struct pacer;

/* NULL, errno set: no memory or no timer descriptor. The engine is borrowed. */
struct pacer *pacer_new(uv_loop_t *loop, struct engine *engine);

/* To be called after every engine_submit: starts the engine when it idles. */
void pacer_wake(struct pacer *p);

/* Closes the handle; the memory is freed by the loop's next turn. */
void pacer_close(struct pacer *p);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t pacer_now_ns(void);

#endif
