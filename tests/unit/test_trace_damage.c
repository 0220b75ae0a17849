/* What is told of a file that was cut, flipped, overwritten, mixed up or forged: never a crash, never a row
 * that was not written, and every block that is whole. */
#include "tests/unit/test_trace_tools.h"

#include <fcntl.h>
#include <zlib.h>

#define BLOCKS 12

/* A small file with every kind of row in it, and what it tells. */
struct sample {
    struct image image;
    struct told told;
    size_t offset[BLOCKS + 2]; /* of block i at i - 1, the seal behind the last; then the end */
};

static void write_block(struct trw *w, int i) {
    int64_t t = INT64_C(1000000000) + i * INT64_C(100000000);
    uint64_t id = (uint64_t)i + 1;
    struct hist h = {0};
    trw_begin(w, SUBJECT_R, id);
    trw_begin(w, SUBJECT_C, id);
    trw_int(w, id, F_t_arrive_ns, t);
    trw_int(w, id, F_status, 200);
    trw_real(w, id, F_temperature, 0.5);
    trw_str(w, id, F_model, "llama", 5);
    trw_span(w, id, F_paused, t, t + 1000, 4);
    for (uint64_t k = 0; k < 40; k++) {
        struct tok_event e = tools_event(id - k % 3 % id, t + (int64_t)k * 1234567, k + 3);
        e.running = k % 3 ? -1 : (int64_t)k + 1;
        trw_event(w, &e);
    }
    if (i > 2) trw_end(w, SUBJECT_R, id - 2);
    trw_loss(w, LOSS_bad_json, t, t, 1, 10, id);
    trw_anchor(w, t, t + 1, 20);
    hist_add(&h, 1000 * i, t);
    trw_hist(w, HIST_late, &h);
    trw_flush(w);
}

static int make_sample(void **state) {
    static struct sample s;
    struct trw_state ws = {0};
    int fd = tools_file();
    struct trw *w = tools_open(fd, &ws);
    for (int i = 0; i < BLOCKS; i++) write_block(w, i);
    if (trw_close(w) != 0) return -1;
    s.image = image_of(fd);
    close(fd);
    s.offset[0] = image_head(&s.image);
    for (int i = 1; i <= BLOCKS + 1; i++) s.offset[i] = image_next(&s.image, s.offset[i - 1]);
    if (s.offset[BLOCKS + 1] != s.image.n) return -1;
    *state = &s;
    return told_mem(&s.told, s.image.p, s.image.n) == TRR_SEALED ? 0 : -1;
}

static int free_sample(void **state) {
    struct sample *s = *state;
    told_free(&s->told);
    free(s->image.p);
    return 0;
}

/* Whatever was told was in the original, block by block. Returns the number of blocks told. */
static uint64_t nothing_invented(const struct sample *s, const struct told *got) {
    for (int i = 0; i < TOLD_BLOCKS; i++)
        if (got->block[i]) {
            assert_non_null(s->told.block[i]);
            assert_string_equal(got->block[i], s->told.block[i]);
        }
    return got->n_blocks;
}

static void cut_at_every_length(void **state) {
    const struct sample *s = *state;
    struct told got;
    for (size_t n = 0; n <= s->image.n; n++) {
        uint8_t *p = malloc(n ? n : 1); /* of its own size, so that a sanitizer sees reads beyond */
        memcpy(p, s->image.p, n);
        enum trr_state st = told_mem(&got, p, n), want = TRR_TORN;
        uint64_t whole = 0;
        bool border = n == s->offset[0];
        for (int i = 1; i <= BLOCKS; i++) {
            whole += n >= s->offset[i];
            border |= n == s->offset[i];
        }
        if (n == 0) want = TRR_EMPTY;
        if (border) want = TRR_UNSEALED;
        if (n == s->image.n) want = TRR_SEALED;
        assert_int_equal(st, want);
        assert_int_equal(nothing_invented(s, &got), whole);
        assert_int_equal(got.n_damages + got.n_gaps, 0);
        told_free(&got);
        free(p);
    }
}

static void flip_every_byte(void **state) {
    const struct sample *s = *state;
    static const uint8_t masks[] = {0xff, 1, 0x80};
    struct told got;
    for (size_t at = 0; at < s->image.n; at++)
        for (int m = 0; m < 3; m++) {
            s->image.p[at] ^= masks[m];
            enum trr_state st = told_mem(&got, s->image.p, s->image.n);
            uint64_t blocks = nothing_invented(s, &got);
            if (at < TRACE_HEAD_FIXED)
                assert_int_equal(st, at < 8 ? TRR_FOREIGN : TRR_DAMAGED);
            else
                assert_int_equal(st, TRR_DAMAGED);
            if (at >= s->offset[0] && at < s->offset[BLOCKS]) {
                assert_int_equal(blocks, BLOCKS - 1); /* all but the one hit */
                assert_int_equal(got.n_missing, 1);
            } else if (at >= TRACE_HEAD_FIXED) {
                assert_int_equal(blocks, BLOCKS);
            }
            told_free(&got);
            s->image.p[at] ^= masks[m];
        }
}

/* The image with n bytes at `at` replaced by m others. */
static struct image respliced(const struct sample *s, size_t at, size_t n, const void *with, size_t m) {
    struct image i = {malloc(s->image.n - n + m + 1), s->image.n - n + m};
    memcpy(i.p, s->image.p, at);
    if (m) memcpy(i.p + at, with, m);
    memcpy(i.p + at + m, s->image.p + at + n, s->image.n - at - n);
    return i;
}

static void a_missing_block_is_a_gap(void **state) {
    const struct sample *s = *state;
    struct told got;
    struct image i = respliced(s, s->offset[4], s->offset[6] - s->offset[4], NULL, 0);
    assert_int_equal(told_mem(&got, i.p, i.n), TRR_DAMAGED);
    assert_int_equal(nothing_invented(s, &got), BLOCKS - 2);
    assert_int_equal(got.n_gaps, 1);
    assert_int_equal(got.n_missing, 2);
    assert_int_equal(got.n_damages, 0);
    told_free(&got);
    free(i.p);
}

static void a_block_is_not_told_twice(void **state) {
    const struct sample *s = *state;
    struct told got;
    size_t n = s->offset[6] - s->offset[4];
    struct image i = respliced(s, s->offset[8], 0, s->image.p + s->offset[4], n);
    assert_int_equal(told_mem(&got, i.p, i.n), TRR_DAMAGED);
    assert_int_equal(nothing_invented(s, &got), BLOCKS);
    assert_int_equal(got.n_gaps, 0);
    assert_int_equal(got.n_damages, 2);
    told_free(&got);
    free(i.p);
}

/* Garbage of every length up to more than a header between two blocks, and zeros. */
static void garbage_between_blocks_is_stepped_over(void **state) {
    const struct sample *s = *state;
    struct told got;
    uint8_t garbage[200];
    for (size_t n = 1; n <= sizeof garbage; n++) {
        for (size_t k = 0; k < n; k++) garbage[k] = (uint8_t)(n % 2 ? 0 : s->image.p[s->offset[2] + k % 40]);
        struct image i = respliced(s, s->offset[5], 0, garbage, n);
        assert_int_equal(told_mem(&got, i.p, i.n), TRR_DAMAGED);
        assert_int_equal(nothing_invented(s, &got), BLOCKS);
        assert_int_equal(got.n_damages, 1);
        assert_int_equal(got.n_gaps, 0);
        told_free(&got);
        free(i.p);
    }
}

static void a_tail_of_zeros_is_no_block(void **state) {
    const struct sample *s = *state;
    struct told got;
    static const uint8_t zeros[5000];
    for (int b = 0; b <= BLOCKS; b++) {
        struct image i = respliced(s, s->offset[b], s->image.n - s->offset[b], zeros, sizeof zeros);
        assert_int_equal(told_mem(&got, i.p, i.n), TRR_DAMAGED);
        assert_int_equal(nothing_invented(s, &got), b);
        told_free(&got);
        free(i.p);
    }
}

/* A block overwritten by zeros in place, as after a power cut. */
static void a_hole_loses_its_block_only(void **state) {
    const struct sample *s = *state;
    struct told got;
    static const uint8_t zeros[100];
    struct image i = respliced(s, s->offset[3] + 20, sizeof zeros, zeros, sizeof zeros);
    assert_int_equal(told_mem(&got, i.p, i.n), TRR_DAMAGED);
    assert_int_equal(nothing_invented(s, &got), BLOCKS - 1);
    assert_int_equal(got.n_missing, 1);
    told_free(&got);
    free(i.p);
}

static void another_file_behind_it_is_damage(void **state) {
    const struct sample *s = *state;
    struct trw_state ws = {0};
    struct told got;
    int fd = tools_file();
    struct trw *w = tools_open(fd, &ws);
    write_block(w, 3);
    assert_int_equal(trw_close(w), 0);
    struct image other = image_of(fd), both = respliced(s, s->image.n, 0, other.p, other.n);
    close(fd);
    assert_int_equal(told_mem(&got, both.p, both.n), TRR_DAMAGED);
    assert_int_equal(nothing_invented(s, &got), BLOCKS);
    told_free(&got);
    free(other.p);
    free(both.p);
}

static enum trr_state with_head(const struct sample *s, size_t at, uint8_t value) {
    struct told got;
    struct image i = respliced(s, 0, 0, NULL, 0);
    i.p[at] = value;
    store_u32(i.p + 60, (uint32_t)crc32(0, i.p, 60));
    enum trr_state st = told_mem(&got, i.p, i.n);
    told_free(&got);
    free(i.p);
    return st;
}

static void what_is_newer_is_refused(void **state) {
    const struct sample *s = *state;
    assert_int_equal(with_head(s, 8, 2), TRR_NEWER);
    assert_int_equal(with_head(s, 16, 1), TRR_NEWER);
    assert_int_equal(with_head(s, 23, 0x80), TRR_NEWER);
    assert_int_equal(with_head(s, 24, 1), TRR_SEALED);  /* optional */
    assert_int_equal(with_head(s, 15, 1), TRR_DAMAGED); /* an impossible size */
}

/* A section, a fact, a loss and a distribution of a later version are stepped over; all else is told. */
static void later_rows_are_skipped(void **state) {
    struct encoder e = {0};
    struct block b = {0}, got = {0};
    block_clear(&b);
    block_clear(&got);
    block_time(&b, 5000);
    *(struct block_fact *)ROWS_ADD(&b.facts) = (struct block_fact){.id = 1, .fact = 5000, .i = 3};
    *(struct block_fact *)ROWS_ADD(&b.facts) = (struct block_fact){.id = 1, .fact = F_status, .i = 4};
    *(struct block_loss *)ROWS_ADD(&b.losses) = (struct block_loss){.loss = 5000, .count = 1};
    *(struct block_loss *)ROWS_ADD(&b.losses) = (struct block_loss){.loss = LOSS_bad_json, .count = 2};
    *(struct block_span *)ROWS_ADD(&b.spans) = (struct block_span){.id = 1, .fact = 5000};
    *(struct block_span *)ROWS_ADD(&b.spans) = (struct block_span){.id = 1, .fact = F_paused, .value = 9};
    assert_true(block_encode(&e, &b));
    bytes_put_u32(&e.raw, 3 << 8 | 99);
    bytes_put(&e.raw, "abc", 3);
    assert_true(block_decode(&got, e.raw.p, e.raw.n, b.first_ns));
    assert_int_equal(got.facts.n, 1);
    assert_int_equal(got.facts.at[0].i, 4);
    assert_int_equal(got.losses.n, 1);
    assert_int_equal(got.losses.at[0].count, 2);
    assert_int_equal(got.spans.n, 1);
    assert_int_equal(got.spans.at[0].value, 9);
    block_free(&b);
    block_free(&got);
    encoder_free(&e);
}

/* A body with every byte changed in every way, its checksums made right again: it decodes or it does not, but
 * nothing is read beyond it and nothing of half a block is told. */
static void forged_bodies_are_survived(void **state) {
    const struct sample *s = *state;
    struct image one = {s->image.p + s->offset[4], s->offset[5] - s->offset[4]};
    struct block_header h;
    assert_null(block_header_get(&h, one.p, load_u32(s->image.p + 56)));
    struct encoder e = {0};
    for (size_t at = 0; at < h.raw_bytes; at++)
        for (int v = 0; v < 256; v += at % 16 ? 15 : 1) {
            struct image i = respliced(s, s->offset[0], s->image.n - s->offset[0], NULL, 0);
            struct told got;
            e.raw.n = 0;
            uint8_t *raw = bytes_room(&e.raw, h.raw_bytes);
            enum trr_state st;
            char err[200];
            struct trr *r = trr_open_mem(i.p, i.n, &st, err, sizeof err);
            assert_true(block_inflate(r->zstd, raw, h.raw_bytes, one.p + BLOCK_HEADER, h.body_bytes));
            trr_close(r);
            raw[at] = (uint8_t)v;
            e.raw.n = h.raw_bytes;
            e.n_splits = 0;
            assert_true(block_seal_up(&e, load_u32(s->image.p + 56), 1, h.first_ns, h.last_ns));
            i.p = realloc(i.p, i.n + e.out.n);
            memcpy(i.p + i.n, e.out.p, e.out.n);
            i.n += e.out.n;
            st = told_mem(&got, i.p, i.n);
            assert_true((st == TRR_UNSEALED && got.n_blocks == 1) ||
                        (st == TRR_DAMAGED && got.n_blocks == 0));
            told_free(&got);
            free(i.p);
        }
    encoder_free(&e);
}

/* A file of nothing but headers that each claim a large body: read in bounded time. */
static void a_file_of_lying_headers_ends(void **state) {
    const struct sample *s = *state;
    size_t n = 512 << 10, at = s->offset[0];
    struct image i = respliced(s, at, s->image.n - at, NULL, 0);
    struct told got;
    i.p = realloc(i.p, n);
    uint8_t header[BLOCK_HEADER];
    memcpy(header, s->image.p + at, sizeof header);
    store_u32(header + 20, 400 << 10);
    block_header_finish(header, 1);
    for (; at + BLOCK_HEADER <= n; at += BLOCK_HEADER) memcpy(i.p + at, header, BLOCK_HEADER);
    assert_int_equal(told_mem(&got, i.p, at), TRR_DAMAGED);
    assert_int_equal(got.n_blocks, 0);
    told_free(&got);
    free(i.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_length),
        cmocka_unit_test(flip_every_byte),
        cmocka_unit_test(a_missing_block_is_a_gap),
        cmocka_unit_test(a_block_is_not_told_twice),
        cmocka_unit_test(garbage_between_blocks_is_stepped_over),
        cmocka_unit_test(a_tail_of_zeros_is_no_block),
        cmocka_unit_test(a_hole_loses_its_block_only),
        cmocka_unit_test(another_file_behind_it_is_damage),
        cmocka_unit_test(what_is_newer_is_refused),
        cmocka_unit_test(later_rows_are_skipped),
        cmocka_unit_test(forged_bodies_are_survived),
        cmocka_unit_test(a_file_of_lying_headers_ends),
    };
    return cmocka_run_group_tests(tests, make_sample, free_sample);
}
