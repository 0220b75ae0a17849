/* Summaries of samples: percentiles, their intervals, and estimates that keep failures in.
 *
 * Pure arithmetic (metrics.md 7 and 8); knows neither requests nor SQL. Its one hard idea: a sample has a
 * weight, since an arrival of k tokens is k samples, and five million of them must be summarised in 0.1 s. So
 * samples are dealt into buckets by the leading bits of their value once, and a bucket is sorted only when a
 * quantile falls into it. */
#ifndef ANALYZER_STATS_H
#define ANALYZER_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample {
    double v;      /* not NaN, not negative zero */
    uint32_t k;    /* weight: how many samples of this value, at least 1 */
    uint32_t from; /* cluster it belongs to, for intervals */
};

/* 1: linear between order statistics, Hyndman-Fan 7. 2: the smallest v with at least n p samples <= v. */
enum stats_rule { STATS_LINEAR, STATS_NEAREST_RANK };

struct dist;
/* Takes a copy of n samples (none kept if n is 0). NULL when memory is short. */
struct dist *dist_new(const struct sample *s, size_t n);
void dist_free(struct dist *d);
uint64_t dist_count(const struct dist *d);     /* samples, weights expanded */
double dist_at(struct dist *d, uint64_t rank); /* the rank-th (from 0) of the expanded samples in order */
/* p in 0..1; NaN when there is no sample. */
double dist_quantile(struct dist *d, double p, enum stats_rule rule);
double dist_mean(const struct dist *d);
double dist_sd(const struct dist *d); /* n - 1; NaN below 2 */
double dist_min(const struct dist *d);
double dist_max(const struct dist *d);

/* Median of n plain values; reorders them. NaN when there is none. */
double stats_median(double *v, size_t n);

/* A 95 % interval; NaN: that end lies outside the data. few: fewer samples than the interval needs. */
struct interval {
    double lo, hi;
    bool few;
};
/* Order statistics by the binomial (independent samples): for n < 200. */
struct interval stats_interval_iid(struct dist *d, double p);
/* Clusters: s are the samples of d with from in [0, clusters). */
struct interval stats_interval_clusters(struct dist *d, const struct sample *s, size_t n, size_t clusters,
                                        double p, enum stats_rule rule);
/* Fewest samples that give a percentile two ends by the binomial: 6 for .5, 368 for .99. */
uint64_t stats_least(double p);
/* Wilson's 95 % interval of a share, good of n. */
struct interval stats_wilson(double good, double n);

/* The two-sided 97.5 % quantile of Student's t; df >= 1. */
double stats_t975(double df);

enum fate {
    FATE_SEEN,     /* v is the metric */
    FATE_CENSORED, /* v is how long it was waited for in vain */
    FATE_NEVER     /* failed: it would never have come */
};
struct life {
    double v;
    enum fate fate;
};
/* Product-limit estimate of the p-quantile over all that could have had the metric: the smallest seen v with
 * S(v) <= 1 - p, else infinity; NaN when nothing was seen. Sorts l. */
double stats_product_limit(struct life *l, size_t n, double p);

#endif
