/* Content codings: whole, byte by byte, flushed by event, damaged, and growing without end. */
#include "recorder/dissect/coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

static char seen[1 << 16];
static size_t n_seen;
static uint64_t n_all;
static void out(void *ctx, const char *p, size_t n) {
    n_all += n;
    if (n_seen + n < sizeof seen) memcpy(seen + n_seen, p, n), n_seen += n;
}

static size_t deflated(int bits, const char *text, char *to, size_t room) {
    z_stream z = {0};
    deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (Bytef *)(uintptr_t)text, z.avail_in = (uInt)strlen(text);
    z.next_out = (Bytef *)to, z.avail_out = (uInt)room;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return room - z.avail_out;
}

static bool feed(struct coding *c, const char *p, size_t n, size_t step) {
    bool ok = true;
    n_seen = 0, n_all = 0;
    for (size_t i = 0; i < n; i += step) {
        size_t len = n - i < step ? n - i : step;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        ok = coding_feed(c, copy, len, out, NULL);
        free(copy);
    }
    return ok;
}

static void each_coding_is_undone(void **state) {
    const char *text = "data: hello hello hello\n\n";
    char coded[4][512];
    size_t n[4] = {deflated(15 + 16, text, coded[0], 512), deflated(15, text, coded[1], 512),
                   deflated(-15, text, coded[2], 512), ZSTD_compress(coded[3], 512, text, strlen(text), 3)};
    static const char *const names[] = {"gzip", "deflate", "Deflate", "zstd"};
    for (int i = 0; i < 4; i++)
        for (size_t step = 1; step <= n[i]; step++) {
            struct pool pool = {.limit = 64 << 20};
            struct coding *c = coding_new(names[i], &pool);
            assert_true(feed(c, coded[i], n[i], step));
            assert_int_equal(n_seen, strlen(text));
            assert_memory_equal(seen, text, n_seen);
            coding_free(c);
            assert_int_equal(pool.used, 0);
        }
}

static void members_and_frames_may_follow_each_other(void **state) {
    char coded[512];
    size_t n = deflated(15 + 16, "one", coded, 256);
    n += deflated(15 + 16, "two", coded + n, 256);
    struct pool pool = {.limit = 64 << 20};
    struct coding *c = coding_new("x-gzip", &pool);
    assert_true(feed(c, coded, n, 7));
    assert_memory_equal(seen, "onetwo", 6);
    coding_free(c);
}

/* gzip(1), too, takes zeros behind a member for padding. */
static void zeros_behind_a_member_are_padding(void **state) {
    char coded[512] = {0};
    size_t n = deflated(15 + 16, "one", coded, 256) + 20;
    n += deflated(15 + 16, "two", coded + n, 256) + 20;
    for (size_t step = 1; step <= n; step++) {
        struct pool pool = {.limit = 64 << 20};
        struct coding *c = coding_new("identity, gzip", &pool);
        assert_true(feed(c, coded, n, step));
        assert_int_equal(n_seen, 6);
        assert_memory_equal(seen, "onetwo", 6);
        coding_free(c);
    }
}

static void what_is_not_known_is_refused(void **state) {
    struct pool pool = {.limit = 1 << 20};
    assert_null(coding_new("br", &pool));
    assert_null(coding_new("gzip, br", &pool));
    assert_true(coding_is_identity("") && coding_is_identity("Identity") && !coding_is_identity("gzip"));
    assert_true(coding_is_identity("UTF-8") && coding_is_identity(" identity , utf-8") &&
                coding_is_identity(","));
    assert_false(coding_is_identity("br") || coding_is_identity("identity, br"));
    assert_null(coding_new("gzip, gzip", &pool));
}

static void damage_is_said(void **state) {
    static const char *const names[] = {"gzip", "deflate", "zstd"};
    for (int i = 0; i < 3; i++) {
        struct pool pool = {.limit = 64 << 20};
        struct coding *c = coding_new(names[i], &pool);
        assert_false(feed(c, "this is no coded text at all, is it", 35, 35));
        assert_true(strstr(coding_why(c), "damaged") != NULL);
        assert_false(coding_feed(c, "x", 1, out, NULL));
        coding_free(c);
    }
}

static void a_bomb_is_stopped(void **state) {
    size_t n = 400u << 20, room = 1 << 20;
    char *zeros = calloc(1, n), *coded = malloc(room);
    n = ZSTD_compress(coded, room, zeros, n, 1);
    assert_false(ZSTD_isError(n));
    free(zeros);
    struct pool pool = {.limit = 64 << 20};
    struct coding *c = coding_new("zstd", &pool);
    assert_false(feed(c, coded, n, n));
    assert_true(n_all < 80u << 20);
    coding_free(c);
    free(coded);
}

static void a_window_that_the_pool_cannot_hold_is_refused(void **state) {
    char coded[512];
    size_t n = ZSTD_compress(coded, sizeof coded, "hello", 5, 3);
    struct pool pool = {.limit = 1000};
    struct coding *c = coding_new("zstd", &pool);
    assert_false(feed(c, coded, n, n));
    assert_true(strstr(coding_why(c), "memory") != NULL);
    coding_free(c);
    assert_int_equal(pool.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_coding_is_undone),
        cmocka_unit_test(members_and_frames_may_follow_each_other),
        cmocka_unit_test(zeros_behind_a_member_are_padding),
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(damage_is_said),
        cmocka_unit_test(a_bomb_is_stopped),
        cmocka_unit_test(a_window_that_the_pool_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
