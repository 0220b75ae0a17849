/* Quantiles of weighted samples: see stats.h. Intervals are in stats_interval.c.
 *
 * A bucket is the leading 20 bits of a double (sign, exponent, 8 bits of mantissa): order is kept, and a
 * bucket spans 0.4 % of its value, so a quantile sorts about that share of the samples near it. */
#include "analyzer/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 44, N_BUCKETS = 1 << 19 }; /* no sign bit: values are not negative after the offset below */
enum { FEW = 4096 }; /* fewer samples than this are one bucket: sorting them is cheaper */

struct pair {
    double v;
    uint64_t k;
};

struct dist {
    struct pair *pairs;   /* by bucket; in order inside it only if sorted */
    uint32_t *start;      /* index of the first pair of bucket b; start[b + 1] is its end */
    uint64_t *rank;       /* expanded samples before bucket b */
    uint32_t first, last; /* buckets in use */
    uint32_t *sorted;     /* pairs of a bucket once it is sorted and equal values are one pair; 0: not yet */
    size_t n;
    uint64_t weight;
    double sum, squares, min, max, offset;
    bool one_bucket;
};

/* Doubles that are not negative are ordered as their bits are. */
static uint32_t bucket_of(const struct dist *d, double value) {
    uint64_t bits;
    double v = value + d->offset;
    if (d->one_bucket) return 0;
    memcpy(&bits, &v, sizeof bits);
    return (uint32_t)(bits >> SHIFT) & (N_BUCKETS - 1);
}

static void measure(struct dist *d, const struct sample *s, size_t n) {
    d->min = INFINITY;
    d->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        d->weight += s[i].k;
        d->sum += s[i].v * s[i].k;
        if (s[i].v < d->min) d->min = s[i].v;
        if (s[i].v > d->max) d->max = s[i].v;
    }
    double mean = d->weight ? d->sum / (double)d->weight : 0;
    for (size_t i = 0; i < n; i++) d->squares += (s[i].v - mean) * (s[i].v - mean) * s[i].k;
    d->offset = d->min < 0 ? -d->min : 0; /* rare: a clock that went wrong; order is what counts */
}

static void deal(struct dist *d, const struct sample *s, size_t n) {
    size_t b = d->first, width = d->last - d->first + 1;
    for (size_t i = 0; i < n; i++) {
        size_t k = bucket_of(d, s[i].v) - b;
        d->start[k + 1]++;
        d->rank[k + 1] += s[i].k;
    }
    for (size_t k = 0; k < width; k++) {
        d->start[k + 1] += d->start[k];
        d->rank[k + 1] += d->rank[k];
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = bucket_of(d, s[i].v) - b;
        d->pairs[d->start[k]++] = (struct pair){s[i].v, s[i].k};
    }
    memmove(d->start + 1, d->start, width * sizeof *d->start); /* dealing moved each start to its end */
    d->start[0] = 0;
}

struct dist *dist_new(const struct sample *s, size_t n) {
    struct dist *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->n = n;
    d->one_bucket = n < FEW;
    measure(d, s, n);
    if (n == 0) return d;
    d->first = bucket_of(d, d->min);
    d->last = bucket_of(d, d->max);
    size_t width = d->last - d->first + 1;
    d->pairs = malloc(n * sizeof *d->pairs);
    d->start = calloc(width + 1, sizeof *d->start);
    d->rank = calloc(width + 1, sizeof *d->rank);
    d->sorted = calloc(width, sizeof *d->sorted);
    if (!d->pairs || !d->start || !d->rank || !d->sorted) {
        dist_free(d);
        return NULL;
    }
    deal(d, s, n);
    return d;
}

void dist_free(struct dist *d) {
    if (!d) return;
    free(d->pairs);
    free(d->start);
    free(d->rank);
    free(d->sorted);
    free(d);
}

static int by_value(const void *a, const void *b) {
    double x = ((const struct pair *)a)->v, y = ((const struct pair *)b)->v;
    return (x > y) - (x < y);
}

/* Sorts by the bits that a bucket leaves open, 11 at a time. Without memory for it: false. */
static bool radix_sort(struct pair *a, size_t n) {
    enum { DIGIT = 11, RADIX = 1 << DIGIT };
    struct pair *b = malloc(n * sizeof *b), *from = a, *to = b;
    if (!b) return false;
    for (int shift = 0; shift < SHIFT; shift += DIGIT) {
        uint32_t at[RADIX + 1] = {0};
        uint64_t bits;
        for (size_t i = 0; i < n; i++) {
            memcpy(&bits, &from[i].v, sizeof bits);
            at[(bits >> shift & (RADIX - 1)) + 1]++;
        }
        for (int i = 0; i < RADIX; i++) at[i + 1] += at[i];
        for (size_t i = 0; i < n; i++) {
            memcpy(&bits, &from[i].v, sizeof bits);
            to[at[bits >> shift & (RADIX - 1)]++] = from[i];
        }
        struct pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != a) memcpy(a, from, n * sizeof *a);
    free(b);
    return true;
}

static void sort_bucket(struct dist *d, size_t b) {
    struct pair *a = d->pairs + d->start[b];
    size_t n = d->start[b + 1] - d->start[b], used = 0;
    if (n < FEW || d->offset > 0 || !radix_sort(a, n)) qsort(a, n, sizeof *a, by_value);
    for (size_t i = 1; i < n; i++) {
        if (a[i].v == a[used].v)
            a[used].k += a[i].k;
        else
            a[++used] = a[i];
    }
    d->sorted[b] = (uint32_t)used + 1;
}

/* The last bucket that begins at or before rank. */
static size_t bucket_at(const struct dist *d, uint64_t rank) {
    size_t lo = 0, hi = d->last - d->first;
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (d->rank[mid] <= rank)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

uint64_t dist_count(const struct dist *d) {
    return d->weight;
}

double dist_at(struct dist *d, uint64_t rank) {
    if (d->n == 0) return NAN;
    if (rank >= d->weight) return d->max;
    size_t b = bucket_at(d, rank), i = d->start[b];
    if (!d->sorted[b]) sort_bucket(d, b);
    size_t end = i + d->sorted[b];
    for (uint64_t at = d->rank[b]; i + 1 < end && at + d->pairs[i].k <= rank; i++) at += d->pairs[i].k;
    return d->pairs[i].v;
}

double dist_quantile(struct dist *d, double p, enum stats_rule rule) {
    if (d->n == 0) return NAN;
    if (rule == STATS_NEAREST_RANK) {
        double rank = ceil((double)d->weight * p - 1e-9); /* .9 of 10 is 9, whatever the rounding */
        return dist_at(d, rank < 1 ? 0 : (uint64_t)rank - 1);
    }
    double h = (double)(d->weight - 1) * p, whole = floor(h + 1e-9), part = h - whole;
    double v = dist_at(d, (uint64_t)whole);
    return part > 1e-9 ? v + part * (dist_at(d, (uint64_t)whole + 1) - v) : v;
}

double dist_mean(const struct dist *d) {
    return d->weight ? d->sum / (double)d->weight : NAN;
}

double dist_sd(const struct dist *d) {
    return d->weight > 1 ? sqrt(d->squares / (double)(d->weight - 1)) : NAN;
}

double dist_min(const struct dist *d) {
    return d->n ? d->min : NAN;
}

double dist_max(const struct dist *d) {
    return d->n ? d->max : NAN;
}

/* The k-th smallest (from 0) of n values, by partition around a middle value; reorders them. */
static double select_kth(double *v, size_t n, size_t k) {
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        double pivot = v[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i > j) break;
            double swap = v[i];
            v[i++] = v[j];
            v[j] = swap;
            if (j == 0) break;
            j--;
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            break;
    }
    return v[k];
}

double stats_median(double *v, size_t n) {
    if (n == 0) return NAN;
    double upper = select_kth(v, n, n / 2), lower = upper;
    if (n % 2) return upper;
    lower = v[0]; /* all below n / 2 are at most upper: the largest of them */
    for (size_t i = 1; i < n / 2; i++)
        if (v[i] > lower) lower = v[i];
    return lower + (upper - lower) / 2;
}
