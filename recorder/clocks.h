/* The two clocks. Durations come from the monotonic one alone; the wall clock is an anchor beside it.
 *
 * All times are ns. Knows nothing of who asks. */
#ifndef RECORDER_CLOCKS_H
#define RECORDER_CLOCKS_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

static inline int64_t clocks_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}
static inline int64_t clocks_mono(void) {
    return clocks_ns(CLOCK_MONOTONIC);
}
static inline int64_t clocks_wall(void) {
    return clocks_ns(CLOCK_REALTIME);
}

/* The wall clock at a monotonic instant, right to within +- uncertainty_ns. */
struct clocks_pair {
    int64_t mono_ns, wall_ns, uncertainty_ns;
};

/* Reads both clocks together: the tightest of `tries` readings. */
struct clocks_pair clocks_pair(int tries);

#endif
