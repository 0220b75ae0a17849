/* AWS event stream frames: whole, in steps, cut at every offset, torn, damaged in every byte, and too large.
 */
#include "tests/unit/kit_aws.h"

#include "recorder/dissect/awsstream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was seen, as text: "name|data|wire bytes", marks, and the type of an error, one event a line. */
struct seen {
    char text[1 << 16];
    size_t n;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%s|%.*s|%zu%s%s%s%s\n", e->name,
                             (int)e->n_data, e->data, e->wire_bytes, e->cut ? " cut" : "",
                             e->unread ? " unread" : "", e->error_type ? " error " : "",
                             e->error_type ? e->error_type : "");
}

/* Feeds an exact copy of n bytes, so that a sanitizer sees what is read beyond them. */
static void feed(struct awsstream *s, struct pool *pool, const char *p, size_t n, struct seen *seen) {
    char *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    awsstream_feed(s, pool, copy, n, on_event, seen);
    memset(copy, 'X', n);
    free(copy);
}

static void run(const char *p, size_t n, size_t step, size_t cut, struct seen *seen) {
    struct pool pool = {.limit = 1 << 20};
    struct awsstream s = {0};
    seen->n = 0, seen->text[0] = 0;
    if (step)
        for (size_t i = 0; i < n; i += step) feed(&s, &pool, p + i, n - i < step ? n - i : step, seen);
    else {
        feed(&s, &pool, p, cut, seen);
        feed(&s, &pool, p + cut, n - cut, seen);
    }
    awsstream_end(&s, &pool, on_event, seen);
    assert_int_equal(pool.used, 0);
}

/* Held in any cut of the bytes. */
static void hold(const struct aws_bytes *b, const char *right) {
    static struct seen seen;
    for (size_t step = 1; step <= b->n; step++) {
        run(b->p, b->n, step, 0, &seen);
        if (strcmp(seen.text, right) != 0)
            fail_msg("in steps of %zu:\n%s\nright is:\n%s", step, seen.text, right);
    }
    for (size_t cut = 0; cut <= b->n; cut++) {
        run(b->p, b->n, 0, cut, &seen);
        if (strcmp(seen.text, right) != 0) fail_msg("cut at %zu:\n%s\nright is:\n%s", cut, seen.text, right);
    }
}

static void cuts_change_nothing(void **state) {
    struct aws_bytes b = {0}, headers = {0};
    char right[1024];
    size_t one = aws_event(&b, "messageStart", "{\"role\":\"assistant\"}");
    size_t two = aws_event(&b, "contentBlockDelta", "");
    size_t three = aws_exception(&b, "throttlingException", "{\"message\":\"slow\"}");
    aws_header(&headers, ":message-type", "error");
    aws_header(&headers, ":error-code", "InternalError");
    aws_header(&headers, ":error-message", "no");
    size_t four = aws_frame(&b, headers.p, headers.n, "", 0), five = aws_frame(&b, "", 0, "{}", 2);
    snprintf(right, sizeof right,
             "messageStart|{\"role\":\"assistant\"}|%zu\ncontentBlockDelta||%zu\n"
             "error|{\"message\":\"slow\"}|%zu error throttlingException\nerror||%zu error InternalError\n"
             "|{}|%zu\n",
             one, two, three, four, five);
    hold(&b, right);
    free(headers.p);
    free(b.p);
}

static void nothing_is_no_event(void **state) {
    static struct seen seen;
    run("", 0, 1, 0, &seen);
    assert_string_equal(seen.text, "");
}

static const char *where;
static void remember(void *ctx, const struct event *e) {
    where = e->data;
}

static void a_whole_frame_is_not_copied(void **state) {
    struct pool pool = {.limit = 1 << 20};
    struct awsstream s = {0};
    struct aws_bytes b = {0};
    size_t n = aws_event(&b, "chunk", "{}");
    awsstream_feed(&s, &pool, b.p, b.n, remember, NULL);
    assert_ptr_equal(where, b.p + n - 6);
    assert_null(s.frame.p);
    free(b.p);
}

/* Headers of all types stand beside those that are of interest. */
static void headers_of_every_type_are_passed(void **state) {
    static const char odd[] = "\1t\0"
                              "\1f\1"
                              "\1b\2x"
                              "\1s\3xx"
                              "\1i\4xxxx"
                              "\1l\5xxxxxxxx"
                              "\1y\6\0\3abc"
                              "\0\7\0\0"
                              "\1d\10xxxxxxxx"
                              "\1u\11xxxxxxxxxxxxxxxx";
    struct aws_bytes b = {0}, headers = {0};
    char right[128];
    headers.p = malloc(sizeof odd - 1);
    memcpy(headers.p, odd, sizeof odd - 1);
    headers.n = sizeof odd - 1;
    aws_header(&headers, ":event-type", "found");
    size_t n = aws_frame(&b, headers.p, headers.n, "{}", 2);
    snprintf(right, sizeof right, "found|{}|%zu\n", n);
    hold(&b, right);
    free(headers.p);
    free(b.p);
}

/* A frame whose checksum holds but whose headers do not add up is not read; the next one is. */
static void headers_that_do_not_add_up_are_unread(void **state) {
    static const struct {
        const char *headers;
        size_t n;
    } rows[] = {
        {"\5ab", 3},           /* a name that is longer than the headers */
        {"\1a", 2},            /* no type */
        {"\1a\7\0", 4},        /* half a length */
        {"\1a\7\0\2x", 6},     /* a value that is longer than the headers */
        {"\1a\5xxx", 6},       /* a number cut short */
        {"\1a\12xxxxxxx", 10}, /* a type that is none */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct aws_bytes b = {0};
        char right[128];
        size_t n = aws_frame(&b, rows[i].headers, rows[i].n, "{}", 2), next = aws_event(&b, "a", "1");
        snprintf(right, sizeof right, "||%zu unread\na|1|%zu\n", n, next);
        hold(&b, right);
        free(b.p);
    }
}

/* Torn at every offset: frames before it are read, the rest is one cut event without data. */
static void a_torn_frame_is_cut(void **state) {
    static struct seen seen;
    struct aws_bytes b = {0};
    char right[128];
    size_t first = aws_event(&b, "a", "1"), second = aws_event(&b, "b", "2");
    for (size_t n = 1; n < second; n++) {
        snprintf(right, sizeof right, "a|1|%zu\n||%zu cut\n", first, n);
        run(b.p, first + n, 1, 0, &seen);
        assert_string_equal(seen.text, right);
        run(b.p, first + n, first + n, 0, &seen);
        assert_string_equal(seen.text, right);
    }
    free(b.p);
}

/* A wrong byte in the first 12 leaves no way to find the next frame: all from there on is counted. One behind
 * them costs that frame alone. */
static void each_damaged_byte_is_counted(void **state) {
    struct aws_bytes b = {0};
    char right[128];
    size_t first = aws_event(&b, "a", "1"), second = aws_event(&b, "b", "{\"x\":2}"),
           third = aws_event(&b, "c", "3");
    for (size_t i = 0; i < second; i++) {
        b.p[first + i] ^= 0x41;
        if (i < 12)
            snprintf(right, sizeof right, "a|1|%zu\n||%zu cut unread\n", first, second + third);
        else
            snprintf(right, sizeof right, "a|1|%zu\n||%zu unread\nc|3|%zu\n", first, second, third);
        static struct seen seen;
        run(b.p, b.n, b.n, 0, &seen);
        assert_string_equal(seen.text, right);
        run(b.p, b.n, 1, 0, &seen);
        assert_string_equal(seen.text, right);
        b.p[first + i] ^= 0x41;
    }
    free(b.p);
}

static void what_is_no_frame_is_counted(void **state) {
    static struct seen seen;
    static const char page[] = "<html><body>502 Bad Gateway</body></html>";
    char right[64];
    run(page, sizeof page - 1, 5, 0, &seen);
    snprintf(right, sizeof right, "||%zu cut unread\n", sizeof page - 1);
    assert_string_equal(seen.text, right);
}

static void a_frame_beyond_the_limit_is_counted(void **state) {
    struct pool pool = {.limit = 40u << 20};
    struct awsstream s = {0};
    static struct seen seen;
    struct aws_bytes b = {0};
    size_t n = 17u << 20;
    char *large = malloc(n), right[128];
    memset(large, 'y', n);
    size_t huge = aws_frame(&b, "", 0, large, n), next = aws_event(&b, "a", "1");
    seen.n = 0;
    for (size_t i = 0; i < b.n; i += 1 << 20)
        awsstream_feed(&s, &pool, b.p + i, b.n - i < 1 << 20 ? b.n - i : 1 << 20, on_event, &seen);
    assert_false(awsstream_end(&s, &pool, on_event, &seen));
    snprintf(right, sizeof right, "||%zu unread\na|1|%zu\n", huge, next);
    assert_string_equal(seen.text, right);
    assert_int_equal(pool.used, 0);

    seen.n = 0, s = (struct awsstream){0}; /* and torn */
    awsstream_feed(&s, &pool, b.p, 100, on_event, &seen);
    assert_true(awsstream_end(&s, &pool, on_event, &seen));
    assert_string_equal(seen.text, "||100 cut unread\n");
    free(large);
    free(b.p);
}

static void a_pool_that_is_empty_loses_only_frames(void **state) {
    struct pool pool = {.limit = 0};
    struct awsstream s = {0};
    static struct seen seen;
    struct aws_bytes b = {0};
    enum { LARGE = 100 << 10 };
    char *large = malloc(LARGE), right[128];
    memset(large, 'y', LARGE);
    size_t first = aws_frame(&b, "", 0, large, LARGE), next = aws_event(&b, "a", "1");
    seen.n = 0;
    for (size_t i = 0; i < b.n; i += 1000)
        awsstream_feed(&s, &pool, b.p + i, b.n - i < 1000 ? b.n - i : 1000, on_event, &seen);
    awsstream_end(&s, &pool, on_event, &seen);
    snprintf(right, sizeof right, "||%zu unread\na|1|%zu\n", first, next);
    assert_string_equal(seen.text, right);
    free(large);
    free(b.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(nothing_is_no_event),
        cmocka_unit_test(a_whole_frame_is_not_copied),
        cmocka_unit_test(headers_of_every_type_are_passed),
        cmocka_unit_test(headers_that_do_not_add_up_are_unread),
        cmocka_unit_test(a_torn_frame_is_cut),
        cmocka_unit_test(each_damaged_byte_is_counted),
        cmocka_unit_test(what_is_no_frame_is_counted),
        cmocka_unit_test(a_frame_beyond_the_limit_is_counted),
        cmocka_unit_test(a_pool_that_is_empty_loses_only_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
