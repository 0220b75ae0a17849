/* Distributions: every duration falls into the bucket that holds it, and quantiles are right to a bucket. */
#include "schema/hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void buckets_hold_their_durations(void **unused) {
    for (unsigned b = 0; b < HIST_BUCKETS; b++) {
        uint64_t low = hist_lowest(b), next = hist_lowest(b + 1);
        assert_true(low < next);
        assert_int_equal(hist_bucket(low), b);
        assert_int_equal(hist_bucket(next - 1), b);
        if (low >= HIST_SUB) assert_true((next - low) * HIST_SUB <= low); /* no wider than a sixteenth */
    }
}

static void the_largest_durations_share_the_last_bucket(void **unused) {
    assert_int_equal(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
    assert_int_equal(hist_bucket(hist_lowest(HIST_BUCKETS)), HIST_BUCKETS - 1);
}

static void adding_keeps_count_sum_and_largest(void **unused) {
    struct hist *h = calloc(1, sizeof *h);
    hist_add(h, 100, 1);
    hist_add(h, 5000, 2);
    hist_add(h, 300, 3);
    hist_add(h, -7, 4);
    assert_int_equal(h->count, 4);
    assert_int_equal(h->sum_ns, 5400);
    assert_int_equal(h->max_ns, 5000);
    assert_int_equal(h->t_max_ns, 2);
    assert_int_equal(h->bucket[0], 1); /* the negative one */
    free(h);
}

static void quantiles_are_right_to_a_bucket(void **unused) {
    struct hist *h = calloc(1, sizeof *h);
    assert_int_equal(hist_quantile(h, 0.5), 0);
    for (int i = 1; i <= 100000; i++) hist_add(h, i * 10, i);
    static const double p[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        double exact = p[i] * 1e6 + 10, got = (double)hist_quantile(h, p[i]);
        assert_true(got >= exact - 10 && got <= exact * (1 + 1.0 / HIST_SUB) + 1);
    }
    assert_int_equal(hist_quantile(h, 1), 1000000);
    free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_hold_their_durations),
        cmocka_unit_test(the_largest_durations_share_the_last_bucket),
        cmocka_unit_test(adding_keeps_count_sum_and_largest),
        cmocka_unit_test(quantiles_are_right_to_a_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
