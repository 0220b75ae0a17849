/* The blob comes back as it went in, is small for a usual stream, and damage in it is noticed. */
#include "analyzer/arrivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 1234500

static void check(const struct arrival *a, size_t n, const void *blob, size_t size, int64_t base) {
    struct arrivals_reader r;
    struct arrival b;
    arrivals_read(&r, blob, size, base);
    for (size_t i = 0; i < n; i++) {
        assert_true(arrivals_next(&r, &b));
        assert_int_equal(b.t_ns, a[i].t_ns);
        assert_int_equal(b.choice, a[i].choice);
        assert_int_equal(b.tokens, a[i].tokens);
        assert_int_equal(b.events, a[i].events);
        assert_int_equal(b.reads, a[i].reads);
        assert_int_equal(b.bytes, a[i].bytes);
        assert_int_equal(b.backpressured, a[i].backpressured);
    }
    assert_false(arrivals_next(&r, &b));
    assert_non_null(r.p);
}

static void every_field_comes_back(void **state) {
    static const struct arrival a[] = {
        {BASE + 100, 0, 1, 1, 1, 90, false},
        {BASE + 5000, 0, 3, 2, 2, 270, true},
        {BASE + 5000, 0, 1, 0, 1, 0, false},
        {BASE - 7000, 4, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
         true}, /* before the base: an early response */
        {BASE + 900000000000, 4, 1, 1, 1, 90, false},
    };
    unsigned char blob[512];
    assert_true(arrivals_bound(5) <= sizeof blob);
    size_t n = arrivals_encode(a, 5, BASE, blob);
    check(a, 5, blob, n, BASE);
}

static void times_are_kept_to_a_tick_and_do_not_drift(void **state) {
    enum { N = 1000 };
    static struct arrival a[N];
    for (int i = 0; i < N; i++) a[i] = (struct arrival){BASE + (i + 1) * 2000099LL, 0, 1, 1, 1, 90, false};
    unsigned char *blob = malloc(arrivals_bound(N));
    size_t n = arrivals_encode(a, N, BASE, blob);
    struct arrivals_reader r;
    struct arrival b;
    arrivals_read(&r, blob, n, BASE);
    for (int i = 0; i < N; i++) {
        assert_true(arrivals_next(&r, &b));
        assert_in_range(a[i].t_ns - b.t_ns, 0, 99);
    }
    assert_in_range(n, 4 * N, 5 * N); /* head and three bytes of gap */
    free(blob);
}

static void random_series_come_back(void **state) {
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        struct arrival a[60];
        size_t n = rand_r(&seed) % 60;
        int64_t t = BASE;
        uint32_t choice = 0;
        for (size_t i = 0; i < n; i++) {
            if (i && rand_r(&seed) % 20 == 0) choice += 1 + rand_r(&seed) % 3, t = BASE;
            t += rand_r(&seed) % 1000000 * 100LL;
            a[i] = (struct arrival){t,
                                    choice,
                                    1 + rand_r(&seed) % 3,
                                    rand_r(&seed) % 3,
                                    1 + rand_r(&seed) % 2,
                                    rand_r(&seed) % 300,
                                    rand_r(&seed) % 5 == 0};
        }
        unsigned char blob[60 * 40];
        size_t size = arrivals_encode(a, n, BASE, blob);
        assert_true(size <= arrivals_bound(n));
        check(a, n, blob, size, BASE);
    }
}

static void a_cut_or_changed_blob_ends_and_never_reads_beyond(void **state) {
    struct arrival a[20], b;
    for (int i = 0; i < 20; i++)
        a[i] = (struct arrival){BASE + i * 20000000LL, 0, 1 + i % 4, 1, 1 + i % 2, 90 + i % 3, i % 7 == 0};
    unsigned char blob[20 * 40];
    size_t size = arrivals_encode(a, 20, BASE, blob);
    for (size_t cut = 0; cut <= size; cut++) {
        unsigned char *copy = malloc(cut + 1); /* the sanitizer sees a read beyond it */
        memcpy(copy, blob, cut);
        copy = realloc(copy, cut ? cut : 1);
        struct arrivals_reader r;
        size_t n = 0;
        arrivals_read(&r, copy, cut, BASE);
        while (arrivals_next(&r, &b)) n++;
        assert_true(n <= 20 && (cut < size || n == 20));
        free(copy);
    }
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit < 8; bit++) {
            blob[at] ^= (unsigned char)(1 << bit);
            struct arrivals_reader r;
            arrivals_read(&r, blob, size, BASE);
            size_t n = 0;
            while (arrivals_next(&r, &b)) n++;
            assert_true(n <= size);
            blob[at] ^= (unsigned char)(1 << bit);
        }
}

static void no_blob_has_no_arrivals(void **state) {
    struct arrivals_reader r;
    struct arrival b;
    arrivals_read(&r, NULL, 0, BASE);
    assert_false(arrivals_next(&r, &b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(times_are_kept_to_a_tick_and_do_not_drift),
        cmocka_unit_test(random_series_come_back),
        cmocka_unit_test(a_cut_or_changed_blob_ends_and_never_reads_beyond),
        cmocka_unit_test(no_blob_has_no_arrivals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
