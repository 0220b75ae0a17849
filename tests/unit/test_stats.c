/* Percentiles, intervals and the product limit: the worked examples 2 and 11 to 13 of the definitions, then
 * each against a second, slow computation on random samples. */
#include "analyzer/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double seen, double right, double tolerance) {
    if (!(fabs(seen - right) <= tolerance)) fail_msg("%.9g, right is %.9g", seen, right);
}

static uint64_t state = 88172645463325252u;
static uint64_t rnd(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static struct dist *hundreds(size_t n) {
    struct sample s[16];
    for (size_t i = 0; i < n; i++) s[i] = (struct sample){100.0 * (double)(i + 1), 1, 0};
    return dist_new(s, n);
}

static void percentiles_are_linear_or_by_nearest_rank(void **unused) {
    struct dist *d = hundreds(10); /* example 11 */
    near(dist_quantile(d, .5, STATS_LINEAR), 550, 1e-9);
    near(dist_quantile(d, .9, STATS_LINEAR), 910, 1e-9);
    near(dist_quantile(d, .9, STATS_NEAREST_RANK), 900, 0);
    near(dist_quantile(d, .5, STATS_NEAREST_RANK), 500, 0);
    near(dist_quantile(d, .901, STATS_NEAREST_RANK), 1000, 0);
    dist_free(d);
    d = hundreds(8); /* example 12: over the 8 that are ok */
    near(dist_quantile(d, .9, STATS_LINEAR), 730, 1e-9);
    dist_free(d);
    d = hundreds(1);
    near(dist_quantile(d, .99, STATS_LINEAR), 100, 0);
    assert_true(isnan(dist_sd(d)));
    dist_free(d);
    d = hundreds(0);
    assert_true(isnan(dist_quantile(d, .5, STATS_LINEAR)) && isnan(dist_mean(d)) && isnan(dist_max(d)));
    dist_free(d);
}

/* Example 2: arrivals of 3 tokens after 50 ms and of 2 after 50 ms. */
static void a_gap_of_k_tokens_is_k_samples(void **unused) {
    const struct sample itl[] = {{50.0 / 3, 3, 0}, {25, 2, 0}};
    const struct sample burst[] = {{50, 1, 0}, {0, 2, 0}, {50, 1, 0}, {0, 1, 0}};
    struct dist *d = dist_new(itl, 2);
    assert_int_equal(dist_count(d), 5);
    near(dist_mean(d), 20, 1e-9);
    near(dist_quantile(d, .5, STATS_LINEAR), 50.0 / 3, 1e-9);
    dist_free(d);
    d = dist_new(burst, 4);
    near(dist_mean(d), 20, 1e-9);
    near(dist_quantile(d, .5, STATS_LINEAR), 0, 0);
    near(dist_max(d), 50, 0);
    dist_free(d);
}

static void failures_count_as_never(void **unused) {
    struct life l[10];
    for (int i = 0; i < 10; i++) l[i] = (struct life){100 * (i + 1), i < 8 ? FATE_SEEN : FATE_NEVER};
    near(stats_product_limit(l, 10, .8), 800, 0); /* example 12 */
    assert_true(isinf(stats_product_limit(l, 10, .9)));
    near(stats_product_limit(l, 10, .5), 500, 0);
}

static void leavers_are_censored_at_their_wait(void **unused) {
    struct life l[10];
    for (int i = 0; i < 8; i++) l[i] = (struct life){100 * (i + 1), FATE_SEEN};
    l[8] = (struct life){150, FATE_CENSORED};
    l[9] = (struct life){450, FATE_CENSORED};
    near(stats_product_limit(l, 10, .5), 500, 0); /* example 13 */
    near(stats_product_limit(l, 10, .9), 800, 0);
    near(stats_product_limit(l, 10, .1), 100, 0);  /* S(100) = .9 */
    near(stats_product_limit(l, 10, .2), 200, 0);  /* S(200) = .7875 */
    near(stats_product_limit(l, 10, .58), 600, 0); /* S(500) = .4219, S(600) = .2813 */
    near(stats_product_limit(l, 10, .578), 500, 0);
    l[0] = l[1] = (struct life){10, FATE_CENSORED};
    assert_true(isnan(stats_product_limit(l, 2, .5))); /* nothing was seen at all */
}

static int by_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The definition read aloud: expand the weights, sort, interpolate at (n - 1) p. */
static double slow_quantile(const double *sorted, size_t n, double p) {
    double h = (double)(n - 1) * p;
    size_t i = (size_t)h;
    return i + 1 < n ? sorted[i] + (h - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static void compare_random(size_t n, uint64_t values, double offset) {
    struct sample *s = calloc(n, sizeof *s);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        s[i] =
            (struct sample){offset + (double)rnd(values) / 7, 1 + (uint32_t)rnd(4), (uint32_t)(i * 20 / n)};
        total += s[i].k;
    }
    double *x = calloc(total, sizeof *x);
    for (size_t i = 0, at = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].k; k++) x[at++] = s[i].v;
    qsort(x, total, sizeof *x, by_double);
    struct dist *d = dist_new(s, n);
    assert_int_equal(dist_count(d), total);
    for (double p = .01; p < 1; p += .01)
        near(dist_quantile(d, p, STATS_LINEAR), slow_quantile(x, total, p), 1e-6);
    for (size_t r = 0; r < total; r += 1 + total / 999) near(dist_at(d, r), x[r], 0);
    near(dist_min(d), x[0], 0);
    near(dist_max(d), x[total - 1], 0);
    near(stats_median(x, total), dist_quantile(d, .5, STATS_LINEAR), 1e-9);
    dist_free(d);
    free(x);
    free(s);
}

static void quantiles_of_random_samples_are_those_of_the_sorted_ones(void **unused) {
    static const size_t sizes[] = {1, 2, 3, 10, 999, 4095, 4096, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        compare_random(sizes[i], 1000000, 0);
        compare_random(sizes[i], 5, 0);      /* many ties */
        compare_random(sizes[i], 100, 1000); /* one bucket */
        compare_random(sizes[i], 1000, -50); /* a clock that went wrong */
    }
}

/* G/(G-1) sum of squares over n squared, the ends at p -+ 2.093 se: as metrics.md 8 has it, without weights.
 */
static void intervals_come_from_clusters(void **unused) {
    enum { N = 400, G = 20 };
    struct sample s[N];
    double sorted[N], d[G] = {0}, sum = 0;
    for (int i = 0; i < N; i++) {
        s[i] = (struct sample){(double)rnd(1000) + (i / 20 == 7 ? 300 : 0), 1, (uint32_t)(i / 20)};
        sorted[i] = s[i].v;
    }
    qsort(sorted, N, sizeof sorted[0], by_double);
    double p = .9, q = slow_quantile(sorted, N, p);
    for (int i = 0; i < N; i++) d[i / 20] += (s[i].v <= q) - p;
    for (int j = 0; j < G; j++) sum += d[j] * d[j];
    double reach = 2.093024 * sqrt(20.0 / 19 * sum) / N;
    struct dist *x = dist_new(s, N);
    struct interval i = stats_interval_clusters(x, s, N, G, p, STATS_LINEAR);
    near(i.lo, slow_quantile(sorted, N, p - reach), 1e-2);
    near(i.hi, slow_quantile(sorted, N, p + reach), 1e-2);
    assert_false(i.few);
    i = stats_interval_clusters(x, s, N, G, .999, STATS_LINEAR);
    assert_true(isnan(i.hi) && i.few); /* beyond the data */
    dist_free(x);
}

/* n = 100, p = .5: P(B <= 39) = .0176, P(B <= 40) = .0284, so the 40th; by symmetry the 61st. */
static void few_samples_take_order_statistics_by_the_binomial(void **unused) {
    struct sample s[400];
    for (int i = 0; i < 400; i++) s[i] = (struct sample){i + 1, 1, 0};
    struct dist *d = dist_new(s, 100);
    struct interval i = stats_interval_iid(d, .5);
    near(i.lo, 40, 0);
    near(i.hi, 61, 0);
    assert_false(i.few);
    i = stats_interval_iid(d, .99);
    assert_true(isnan(i.hi) && !isnan(i.lo) && i.few);
    dist_free(d);
    static const struct {
        double p;
        uint64_t least;
    } limits[] = {{.5, 6}, {.9, 36}, {.95, 72}, {.99, 368}};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(stats_least(limits[k].p), limits[k].least);
        for (uint64_t n = limits[k].least - 1; n <= limits[k].least; n++) {
            d = dist_new(s, n);
            assert_int_equal(stats_interval_iid(d, limits[k].p).few, n < limits[k].least);
            dist_free(d);
        }
    }
    assert_int_equal(stats_least(.999), 3688);
    assert_int_equal(stats_least(.01), 368);
}

/* From tables of Student's t; Wilson's interval of 10,633 of 12,480 by its formula, worked with 20 digits. */
static void constants_are_those_of_the_tables(void **unused) {
    static const double t[][2] = {{1, 12.7062},   {2, 4.30265},   {5, 2.57058},
                                  {19, 2.093024}, {30, 2.042272}, {100, 1.983972}};
    for (int i = 0; i < 6; i++) near(stats_t975(t[i][0]), t[i][1], t[i][0] < 10 ? 2e-3 : 2e-6);
    struct interval w = stats_wilson(10633, 12480);
    near(w.lo, .845663, 1e-5);
    near(w.hi, .858121, 1e-5);
    near(stats_wilson(0, 10).lo, 0, 0);
    near(stats_wilson(0, 10).hi, .277533, 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_linear_or_by_nearest_rank),
        cmocka_unit_test(a_gap_of_k_tokens_is_k_samples),
        cmocka_unit_test(failures_count_as_never),
        cmocka_unit_test(leavers_are_censored_at_their_wait),
        cmocka_unit_test(quantiles_of_random_samples_are_those_of_the_sorted_ones),
        cmocka_unit_test(intervals_come_from_clusters),
        cmocka_unit_test(few_samples_take_order_statistics_by_the_binomial),
        cmocka_unit_test(constants_are_those_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
