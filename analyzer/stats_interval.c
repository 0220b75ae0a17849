/* Intervals and estimates under failures: see stats.h. */
#include "analyzer/stats.h"

#include <math.h>
#include <stdlib.h>

double stats_t975(double df) {
    /* Exact for 1 and 2; above, the expansion in 1/df around the normal quantile (right to 1e-3 at 3, 1e-6 at
     * 19). */
    const double z = 1.959963984540054, z2 = z * z;
    if (df < 1.5) return 12.706204736174698;
    if (df < 2.5) return 4.302652729749464;
    double g1 = z * (z2 + 1) / 4;
    double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df;
}

/* P(B = j) of the binomial (n, p). */
static double mass(uint64_t n, double p, uint64_t j) {
    double x = lgamma((double)n + 1) - lgamma((double)j + 1) - lgamma((double)(n - j) + 1);
    return exp(x + (double)j * log(p) + (double)(n - j) * log1p(-p));
}

uint64_t stats_least(double p) {
    double tail = p > .5 ? p : 1 - p; /* n such that P(all n on one side) <= 2.5 % */
    return (uint64_t)ceil(log(.025) / log(tail) - 1e-9);
}

struct interval stats_interval_iid(struct dist *d, double p) {
    uint64_t n = dist_count(d), l = 0, u = 0;
    struct interval out = {NAN, NAN, true};
    double below = 0; /* P(B <= j - 1) */
    for (uint64_t j = 1; j <= n; j++) {
        below += mass(n, p, j - 1);
        if (below <= .025) l = j;
        if (u == 0 && 1 - below <= .025 + 1e-12) u = j; /* P(B >= j) */
    }
    if (l) out.lo = dist_at(d, l - 1);
    if (u) out.hi = dist_at(d, u - 1);
    out.few = !l || !u;
    return out;
}

struct interval stats_interval_clusters(struct dist *d, const struct sample *s, size_t n, size_t clusters,
                                        double p, enum stats_rule rule) {
    struct interval out = {NAN, NAN, true};
    double q = dist_quantile(d, p, rule), total = (double)dist_count(d), sum = 0;
    double *excess = calloc(clusters + 1, sizeof *excess); /* #(x <= q) - p n of each cluster */
    if (!excess || clusters < 2 || n == 0) {
        free(excess);
        return out;
    }
    for (size_t i = 0; i < n; i++) excess[s[i].from] += s[i].v <= q ? s[i].k * (1 - p) : -(s[i].k * p);
    for (size_t j = 0; j < clusters; j++) sum += excess[j] * excess[j];
    free(excess);
    double g = (double)clusters, se = sqrt(g / (g - 1) * sum) / total, reach = stats_t975(g - 1) * se;
    if (p - reach > 0) out.lo = dist_quantile(d, p - reach, rule);
    if (p + reach < 1) out.hi = dist_quantile(d, p + reach, rule);
    out.few = isnan(out.lo) || isnan(out.hi);
    return out;
}

struct interval stats_wilson(double good, double n) {
    const double z = 1.959963984540054, z2 = z * z;
    if (!(n > 0)) return (struct interval){NAN, NAN, true};
    double p = good / n, mid = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
    return (struct interval){fmax(0, mid - half), fmin(1, mid + half), false};
}

/* Seen before censored at the same instant: who left then had waited as long. */
static int by_time(const void *a, const void *b) {
    const struct life *x = a, *y = b;
    if (x->v != y->v) return x->v < y->v ? -1 : 1;
    return (int)x->fate - (int)y->fate;
}

double stats_product_limit(struct life *l, size_t n, double p) {
    double survival = 1;
    size_t waiting = n, seen = 0; /* those that never come stay among the waiting */
    qsort(l, n, sizeof *l, by_time);
    for (size_t i = 0; i < n; i++) {
        if (l[i].fate == FATE_NEVER) continue;
        seen += l[i].fate == FATE_SEEN;
        if (l[i].fate == FATE_SEEN) survival *= 1 - 1.0 / (double)waiting;
        waiting--;
        bool last_of_tie = i + 1 == n || l[i + 1].v != l[i].v || l[i + 1].fate != FATE_SEEN;
        if (l[i].fate == FATE_SEEN && last_of_tie && survival <= 1 - p + 1e-9) return l[i].v;
    }
    return seen ? INFINITY : NAN;
}
