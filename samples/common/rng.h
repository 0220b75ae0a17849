/*
 * Deterministic chance. Every decision is a hash of the seed and of what is decided about, never a draw
 * from a running generator: so it does not depend on the order in which requests happen to arrive.
 */
#ifndef SAMPLES_COMMON_RNG_H
#define SAMPLES_COMMON_RNG_H

#include <math.h>
#include <stdint.h>

/* A well-mixed 64-bit hash of two numbers. */
static inline uint64_t rng_mix(uint64_t a, uint64_t b) {
    uint64_t x = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The hash as a number in [0, 1). */
static inline double rng_unit(uint64_t hash) {
    return (double)(hash >> 11) * 0x1.0p-53;
}

/* The hash as a draw from the exponential distribution with the given mean. */
static inline double rng_exponential(uint64_t hash, double mean) {
    return -mean * log(1.0 - rng_unit(hash));
}

#endif
