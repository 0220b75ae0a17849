/* Numbers to bytes and back, and what a cursor does at the end of its bytes. */
#include "schema/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t numbers[] = {
    0,         1, 127, 128, 16383, 16384, UINT32_MAX, (uint64_t)1 << 62, (uint64_t)1 << 63, UINT64_MAX - 1,
    UINT64_MAX};
#define N_NUMBERS (sizeof numbers / sizeof *numbers)

static void numbers_come_back(void **unused) {
    struct bytes b = {0};
    for (size_t i = 0; i < N_NUMBERS; i++) {
        bytes_put_varint(&b, numbers[i]);
        bytes_put_zigzag(&b, (int64_t)numbers[i]);
        bytes_put_u64(&b, numbers[i]);
        bytes_put_u32(&b, (uint32_t)numbers[i]);
        bytes_put_u8(&b, (uint8_t)numbers[i]);
    }
    struct cursor c = {b.p, b.p + b.n, false};
    for (size_t i = 0; i < N_NUMBERS; i++) {
        assert_true(cursor_varint(&c) == numbers[i]);
        assert_true(cursor_zigzag(&c) == (int64_t)numbers[i]);
        assert_true(cursor_u64(&c) == numbers[i]);
        assert_int_equal(cursor_u32(&c), (uint32_t)numbers[i]);
        assert_int_equal(cursor_u8(&c), (uint8_t)numbers[i]);
    }
    assert_false(c.failed);
    assert_int_equal(cursor_left(&c), 0);
    bytes_free(&b);
}

static void near_numbers_have_small_zigzags(void **unused) {
    assert_int_equal(zigzag(0), 0);
    assert_int_equal(zigzag(-1), 1);
    assert_int_equal(zigzag(1), 2);
    assert_true(zigzag(INT64_MIN) == UINT64_MAX);
    assert_int_equal(zigzag_diff(0, UINT64_MAX), 2); /* over the border */
    for (size_t i = 0; i < N_NUMBERS; i++) assert_true(zigzag(unzigzag(numbers[i])) == numbers[i]);
}

/* What is cut anywhere fails, answers 0 from then on, and stays within its bytes. */
static void a_cut_cursor_stays_failed(void **unused) {
    struct bytes b = {0};
    bytes_put_varint(&b, UINT64_MAX);
    for (size_t n = 0; n < b.n; n++) {
        uint8_t *p = malloc(n ? n : 1);
        memcpy(p, b.p, n);
        struct cursor c = {p, p + n, false};
        assert_true(cursor_varint(&c) == 0);
        assert_true(c.failed);
        assert_true(cursor_u64(&c) == 0);
        assert_null(cursor_take(&c, 0));
        free(p);
    }
    bytes_free(&b);
}

static void a_varint_of_more_than_64_bits_fails(void **unused) {
    uint8_t p[11];
    memset(p, 0xff, sizeof p);
    p[9] = 2; /* bit 64 */
    struct cursor c = {p, p + sizeof p, false};
    cursor_varint(&c);
    assert_true(c.failed);
    p[9] = 0x81; /* goes on after bit 63 */
    c = (struct cursor){p, p + sizeof p, false};
    cursor_varint(&c);
    assert_true(c.failed);
}

/* Columns of every width, and equal ones: their bytes are as few as promised. */
static void columns_come_back(void **unused) {
    uint64_t v[300], out[300];
    for (unsigned width = 0; width <= 64; width++) {
        struct bytes b = {0};
        uint64_t most = width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
        for (size_t i = 0; i < 300; i++) v[i] = most - (i * 0x9e3779b97f4a7c15u & most & (i % 3 ? 1 : ~0u));
        v[7] = most;
        unsigned planes = bytes_put_column(&b, v, 300);
        assert_int_equal(planes, (width + 7) / 8);
        struct cursor c = {b.p, b.p + b.n, false};
        struct column col = cursor_column(&c, 300, planes);
        assert_false(c.failed);
        assert_int_equal(cursor_left(&c), 0);
        column_read(&col, 0, 300, out);
        assert_memory_equal(v, out, sizeof v);
        column_read(&col, 100, 50, out);
        assert_memory_equal(v + 100, out, 50 * sizeof *v);
        assert_true(column_at(&col, 299) == v[299]);
        if (width) assert_int_equal(b.n, 1 + 300 * planes);
        if (planes) { /* too wide for its reader, or cut by a byte: fails */
            c = (struct cursor){b.p, b.p + b.n, false};
            cursor_column(&c, 300, planes - 1);
            assert_true(c.failed);
            c = (struct cursor){b.p, b.p + b.n - 1, false};
            cursor_column(&c, 300, planes);
            assert_true(c.failed);
        }
        bytes_free(&b);
    }
}

static void equal_numbers_take_no_plane(void **unused) {
    struct bytes b = {0};
    uint64_t v[1000];
    for (size_t i = 0; i < 1000; i++) v[i] = 300;
    assert_int_equal(bytes_put_column(&b, v, 1000), 0);
    assert_int_equal(b.n, 3);
    struct cursor c = {b.p, b.p + b.n, false};
    struct column col = cursor_column(&c, 1000, 2);
    assert_true(column_at(&col, 999) == 300);
    c = (struct cursor){b.p, b.p + b.n, false};
    cursor_column(&c, 1000, 1); /* 300 has two bytes */
    assert_true(c.failed);
    bytes_free(&b);
}

/* A count that would overflow the multiplication by planes. */
static void a_huge_count_fails(void **unused) {
    uint8_t p[] = {8, 1, 2, 3, 4, 5, 6, 7, 8};
    struct cursor c = {p, p + sizeof p, false};
    cursor_column(&c, SIZE_MAX / 4, 8);
    assert_true(c.failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back),         cmocka_unit_test(near_numbers_have_small_zigzags),
        cmocka_unit_test(a_cut_cursor_stays_failed), cmocka_unit_test(a_varint_of_more_than_64_bits_fails),
        cmocka_unit_test(columns_come_back),         cmocka_unit_test(equal_numbers_take_no_plane),
        cmocka_unit_test(a_huge_count_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
