/* How often do the intervals of a report hold the true value? Makes samples whose percentiles are known, has
 * the report's own code summarise them, and counts.
 *
 *   bench_coverage mm1 RHO REQUESTS TRIALS SEED         times in a queue: neighbours are alike
 *   bench_coverage gaps SHARE REQUESTS GAPS TRIALS SEED gaps between tokens, lognormal; SHARE of the variance
 * of their logarithm is the request's
 *
 * Prints a line for each of p50, p90 and p99: percentile, share of the intervals that hold the true value,
 * share with an end missing. A missing end is no bound, so the value is held on that side. */
#include "analyzer/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 20, N_P = 3 };
static const double percentiles[N_P] = {.5, .9, .99};
static const double z[N_P] = {0, 1.2815515655446004, 2.3263478740408408}; /* of the normal distribution */

static uint64_t state;

/* splitmix64, to (0, 1) */
static double uniform(void) {
    uint64_t x = (state += 0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return ((double)((x ^ (x >> 31)) >> 11) + .5) / 9007199254740992.0;
}

static double exponential(double rate) {
    return -log(uniform()) / rate;
}

static double normal(void) {
    double radius = sqrt(-2 * log(uniform()));
    return radius * cos(6.283185307179586 * uniform());
}

/* Times in the system of one server, first come first served; a mean service takes 1. The first one comes to
 * a queue that has run for long, whose times are exponential with 1 - rho. */
static void queue(struct sample *x, size_t n, double rho) {
    double t = exponential(1 - rho);
    for (size_t i = 0; i < n; i++) {
        x[i] = (struct sample){t, 1, (uint32_t)(i * BLOCKS / n)};
        t = fmax(0, t - exponential(rho)) + exponential(1);
    }
}

#define SIGMA .5
static void gaps(struct sample *x, size_t requests, size_t each, double share) {
    for (size_t i = 0; i < requests; i++) {
        double own = sqrt(share) * normal();
        for (size_t k = 0; k < each; k++, x++)
            *x = (struct sample){exp(SIGMA * (own + sqrt(1 - share) * normal())), 1, (uint32_t)i};
    }
}

struct tally {
    size_t held, open;
};

/* clusters: 0 for values of requests, which the report deals into blocks or not as it does. */
static void trial(struct report *r, const struct sample *x, size_t n, size_t clusters, const double *truth,
                  struct tally *of) {
    struct summary s = {0};
    if (!report_summary_of(r, &s, x, n, clusters)) exit(1);
    for (size_t i = 0; i < N_P; i++) {
        bool below = isnan(s.ci[i].lo) || s.ci[i].lo <= truth[i];
        bool above = isnan(s.ci[i].hi) || s.ci[i].hi >= truth[i];
        of[i].held += below && above;
        of[i].open += isnan(s.ci[i].lo) || isnan(s.ci[i].hi);
    }
}

static int usage(void) {
    fprintf(stderr, "bench_coverage mm1 RHO REQUESTS TRIALS SEED | gaps SHARE REQUESTS GAPS TRIALS SEED\n");
    return 2;
}

int main(int argc, char **argv) {
    bool mm1 = argc == 6 && strcmp(argv[1], "mm1") == 0;
    if (!mm1 && !(argc == 7 && strcmp(argv[1], "gaps") == 0)) return usage();
    double knob = atof(argv[2]), truth[N_P];
    size_t requests = (size_t)atol(argv[3]), each = mm1 ? 1 : (size_t)atol(argv[4]);
    size_t trials = (size_t)atol(argv[argc - 2]), n = requests * each;
    state = (uint64_t)atoll(argv[argc - 1]);
    struct sample *x = n ? malloc(n * sizeof *x) : NULL;
    struct tally tally[N_P] = {0};
    struct report r = {.rule = STATS_LINEAR, .n_percentiles = N_P};
    if (!x || !trials || knob < 0 || knob > 1 || (mm1 && knob == 1)) return usage();
    memcpy(r.percentiles, percentiles, sizeof percentiles);
    for (size_t i = 0; i < N_P; i++)
        truth[i] = mm1 ? -log(1 - percentiles[i]) / (1 - knob) : exp(SIGMA * z[i]);
    for (size_t i = 0; i < trials; i++) {
        if (mm1)
            queue(x, n, knob);
        else
            gaps(x, requests, each, knob);
        trial(&r, x, n, mm1 ? 0 : requests, truth, tally);
    }
    for (size_t i = 0; i < N_P; i++)
        printf("p%g %.4f %.4f\n", 100 * percentiles[i], (double)tally[i].held / (double)trials,
               (double)tally[i].open / (double)trials);
    free(x);
    return 0;
}
