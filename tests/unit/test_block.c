/* A block's header and body by themselves: what the bytes are, and what does not pass. */
#include "schema/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define SALT 0x1234567

/* A block with one fact, framed. */
static void make(struct encoder *e) {
    struct block b = {0};
    block_clear(&b);
    block_time(&b, 1000);
    block_time(&b, 2000);
    *(struct block_fact *)ROWS_ADD(&b.facts) = (struct block_fact){.id = 1, .fact = F_status, .i = 200};
    assert_true(block_encode(e, &b));
    assert_true(block_seal_up(e, SALT, 7, b.first_ns, b.last_ns));
    block_free(&b);
}

static void the_header_lies_as_documented(void **unused) {
    struct encoder e = {0};
    make(&e);
    const uint8_t *p = e.out.p;
    assert_memory_equal(p, "\xe5TB\xb7\x67\x45\x23\x01\x07\0\0\0\0\0\0\0", 16);
    assert_int_equal(load_u32(p + 16), e.raw.n);
    assert_int_equal(load_u32(p + 20), e.out.n - 48);
    assert_int_equal(load_u64(p + 24), 1000);
    assert_int_equal(load_u64(p + 32), 2000);
    assert_int_equal(load_u32(p + 40), crc32(0, p + 48, (uInt)e.out.n - 48));
    assert_int_equal(load_u32(p + 44), crc32(0, p, 44));
    assert_int_equal(load_u32(p + 48), ZSTD_MAGICNUMBER);
    encoder_free(&e);
}

static void the_body_lies_as_documented(void **unused) {
    struct encoder e = {0};
    make(&e);
    /* base - first = 10 ticks; section facts of 8 bytes: 1 fact; id column; key column (status, INT); 200 */
    const uint8_t want[] = {20,
                            SECTION_FACTS,
                            8,
                            0,
                            0,
                            1,
                            0,
                            2,
                            0,
                            ((F_status << 3 | VALUE_INT) & 127) | 128,
                            (F_status << 3 | VALUE_INT) >> 7,
                            0x90,
                            3};
    assert_int_equal(e.raw.n, sizeof want);
    assert_memory_equal(e.raw.p, want, sizeof want);
    encoder_free(&e);
}

static const char *header_of(struct encoder *e, size_t at, uint32_t value, bool fix) {
    struct block_header h;
    make(e);
    store_u32(e->out.p + at, value);
    if (fix) block_header_finish(e->out.p, 7);
    return block_header_get(&h, e->out.p, SALT);
}

static void conditions_on_the_header_are_checked(void **unused) {
    struct encoder e = {0};
    assert_null(header_of(&e, 4, SALT, true));
    assert_string_equal(header_of(&e, 0, 0, true), "no block begins here");        /* B1 */
    assert_string_equal(header_of(&e, 4, SALT + 1, true), "no block begins here"); /* B1 */
    assert_non_null(strstr(header_of(&e, 8, 8, false), "checksum"));               /* B2 */
    assert_non_null(strstr(header_of(&e, 16, 0, true), "impossible"));             /* B3 */
    assert_non_null(strstr(header_of(&e, 16, BLOCK_RAW_MAX + 1, true), "impossible"));
    assert_non_null(strstr(header_of(&e, 20, 0, true), "impossible"));
    assert_non_null(strstr(header_of(&e, 20, BLOCK_BODY_MAX + 1, true), "impossible"));
    assert_null(header_of(&e, 16, BLOCK_RAW_MAX, true));
    encoder_free(&e);
}

static void zeros_are_never_a_header(void **unused) {
    static const uint8_t zeros[BLOCK_HEADER];
    struct block_header h;
    assert_non_null(block_header_get(&h, zeros, SALT));
    assert_non_null(block_header_get(&h, zeros, 0));
}

static void a_seal_is_a_header_without_a_body(void **unused) {
    uint8_t p[BLOCK_HEADER];
    struct block_header h;
    block_put_seal(p, SALT, 9, 555);
    assert_null(block_header_get(&h, p, SALT));
    assert_int_equal(h.raw_bytes + h.body_bytes, 0);
    assert_int_equal(h.seq, 9);
    assert_int_equal(h.last_ns, 555);
}

/* A frame that inflates to another length than the header says, or has bytes behind it, is refused. */
static void a_body_inflates_to_its_length_exactly(void **unused) {
    struct encoder e = {0};
    uint8_t raw[100];
    ZSTD_DCtx *z = ZSTD_createDCtx();
    make(&e);
    const uint8_t *body = e.out.p + BLOCK_HEADER;
    size_t n = e.out.n - BLOCK_HEADER;
    assert_true(block_inflate(z, raw, e.raw.n, body, n));
    assert_memory_equal(raw, e.raw.p, e.raw.n);
    assert_false(block_inflate(z, raw, e.raw.n + 1, body, n));
    assert_false(block_inflate(z, raw, e.raw.n - 1, body, n));
    assert_false(block_inflate(z, raw, e.raw.n, body, n - 1));
    bytes_put_u8(&e.out, 0);
    assert_false(block_inflate(z, raw, e.raw.n, e.out.p + BLOCK_HEADER, n + 1));
    ZSTD_freeDCtx(z);
    encoder_free(&e);
}

static bool decodes(const struct bytes *raw) {
    struct block b = {0};
    block_clear(&b);
    bool ok = block_decode(&b, raw->p, raw->n, 1000);
    block_free(&b);
    return ok;
}

static void sections_must_ascend_and_be_used_up(void **unused) {
    struct encoder e = {0};
    make(&e);
    assert_true(decodes(&e.raw));
    size_t n = e.raw.n;
    bytes_put_u32(&e.raw, SECTION_FACTS); /* a second time */
    assert_false(decodes(&e.raw));
    e.raw.n = n;
    bytes_put_u32(&e.raw, 1 << 8 | SECTION_LOSSES); /* 0 losses */
    bytes_put_u8(&e.raw, 0);
    assert_true(decodes(&e.raw));
    store_u32(e.raw.p + n, 2 << 8 | SECTION_LOSSES); /* and a byte that nothing uses */
    bytes_put_u8(&e.raw, 0);
    assert_false(decodes(&e.raw));
    e.raw.n = n;
    bytes_put_u32(&e.raw, 1 << 8 | SECTION_LOSSES); /* longer than the body */
    assert_false(decodes(&e.raw));
    encoder_free(&e);
}

/* Few bytes cannot claim many events: constant columns take none. */
static void the_number_of_events_is_bounded(void **unused) {
    for (uint64_t n = BLOCK_ROWS_MAX; n <= BLOCK_ROWS_MAX + 1; n++) {
        struct bytes raw = {0};
        bytes_put_varint(&raw, 0);
        size_t start = raw.n + 4;
        bytes_put_u32(&raw, 0);
        bytes_put_varint(&raw, n);
        bytes_put_varint(&raw, 1); /* one run */
        bytes_put_u8(&raw, 0);
        bytes_put_varint(&raw, 0);
        bytes_put_varint(&raw, 0);
        uint64_t count = n - 1, zero = 0;
        for (int i = 0; i < EV_COLUMNS; i++) bytes_put_column(&raw, &zero, 1);
        bytes_put_column(&raw, &zero, 1);
        bytes_put_column(&raw, &count, 1);
        bytes_put_column(&raw, &zero, 1);
        store_u32(raw.p + start - 4, (uint32_t)(raw.n - start) << 8 | SECTION_EVENTS);
        assert_int_equal(decodes(&raw), n == BLOCK_ROWS_MAX);
        bytes_free(&raw);
    }
}

/* A body with one fact of that number and kind, its value eight zero bytes or as few as the kind takes. */
static struct bytes one_fact(uint64_t fact, enum value_kind kind) {
    struct bytes raw = {0};
    uint64_t id = 2, key = fact << 3 | kind;
    bytes_put_varint(&raw, 0);
    if (kind == VALUE_STR) {
        bytes_put_u32(&raw, 2 << 8 | SECTION_STRINGS); /* one text, empty */
        bytes_put_varint(&raw, 1);
        bytes_put_varint(&raw, 0);
    }
    size_t start = raw.n + 4;
    bytes_put_u32(&raw, 0);
    bytes_put_varint(&raw, 1);
    bytes_put_column(&raw, &id, 1);
    bytes_put_column(&raw, &key, 1);
    for (int i = kind == VALUE_REAL ? 8 : 1; i > 0; i--) bytes_put_u8(&raw, 0);
    store_u32(raw.p + start - 4, (uint32_t)(raw.n - start) << 8 | SECTION_FACTS);
    return raw;
}

/* The fuzzer found a span told as a fact of a later version's kind, which was taken for a number. */
static void a_fact_of_the_wrong_type_does_not_decode(void **unused) {
    static const int fits[] = {[FACT_TIME] = VALUE_TIME,
                               [FACT_INT] = VALUE_INT,
                               [FACT_REAL] = VALUE_REAL,
                               [FACT_STR] = VALUE_STR,
                               [FACT_SPAN] = -1};
    for (uint64_t f = 0; f <= N_FACTS; f++)
        for (unsigned kind = 0; kind < 8; kind++) {
            struct bytes raw = one_fact(f, (enum value_kind)kind);
            bool right = f == N_FACTS || fits[fact_infos[f].type] == (int)kind;
            if (decodes(&raw) != right) fail_msg("fact %d of kind %u", (int)f, kind);
            bytes_free(&raw);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_lies_as_documented),
        cmocka_unit_test(the_body_lies_as_documented),
        cmocka_unit_test(conditions_on_the_header_are_checked),
        cmocka_unit_test(zeros_are_never_a_header),
        cmocka_unit_test(a_seal_is_a_header_without_a_body),
        cmocka_unit_test(a_body_inflates_to_its_length_exactly),
        cmocka_unit_test(sections_must_ascend_and_be_used_up),
        cmocka_unit_test(the_number_of_events_is_bounded),
        cmocka_unit_test(a_fact_of_the_wrong_type_does_not_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
