/* The framer: requests run until their answer is whole, places of heads and ends are right, whole and byte by
 * byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/framer.h"

#include <string.h>

static struct framer f;

static int begin(void **state) {
    framer_init(&f);
    return 0;
}
static int end(void **state) {
    framer_fini(&f);
    return 0;
}

static uint64_t offs[2];
static void feed(enum dir dir, const char *text) {
    size_t n = strlen(text);
    framer_feed(&f, dir, offs[dir], text, n);
    offs[dir] += n;
}
static int fresh(void **state) {
    offs[0] = offs[1] = 0;
    return begin(state);
}

#define GET  "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"
#define OK5  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void a_request_runs_until_its_answer_is_whole(void **state) {
    assert_false(framer_running(&f));
    feed(DIR_UP, POST);
    assert_true(framer_running(&f));
    assert_int_equal(f.heads, 1);
    assert_true(f.end_at == strlen(POST));
    feed(DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    assert_true(framer_running(&f) && !f.answer_ended && !framer_all_answered(&f));
    feed(DIR_DOWN, "lo");
    assert_true(f.answer_ended && f.end_at == offs[DIR_DOWN]);
    assert_false(framer_running(&f));
    assert_true(framer_all_answered(&f));
}

static void heads_are_found_in_the_middle_of_a_read(void **state) {
    feed(DIR_UP, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhe");
    assert_true(f.head_at == 0 && f.head_from == 0 && f.head_to == strlen(POST) - 5);
    feed(DIR_UP, "llo" GET);
    assert_true(f.head_at == strlen(POST));
    assert_true(f.end_at == offs[DIR_UP]);
    assert_true(f.head_from == strlen(POST) && f.head_to == offs[DIR_UP]);
    feed(DIR_DOWN, OK5);
    assert_true(framer_running(&f)); /* one of two */
}

static void a_head_over_several_reads_is_kept_in_each(void **state) {
    feed(DIR_UP, "POST / HTTP/1.1\r\nHo");
    assert_true(f.head_at == 0 && f.head_to == offs[DIR_UP]);
    uint64_t second = offs[DIR_UP];
    feed(DIR_UP, "st: x\r\nContent-Length: 9\r\n\r\nabc");
    assert_true(f.head_at == NO_OFFSET && f.end_at == NO_OFFSET);
    assert_true(f.head_from == second && f.head_to == offs[DIR_UP] - 3);
    feed(DIR_UP, "def");
    assert_true(f.head_from == f.head_to);
}

static void interim_answers_end_nothing(void **state) {
    feed(DIR_UP, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    feed(DIR_DOWN, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_false(f.answer_ended);
    assert_true(framer_running(&f) && framer_request_open(&f));
    feed(DIR_UP, "hello");
    feed(DIR_DOWN, "HTTP/1.1 103 Early Hints\r\n\r\n" OK5);
    assert_false(framer_running(&f));
}

static void answers_without_a_body_end_with_their_head(void **state) {
    feed(DIR_UP, "HEAD / HTTP/1.1\r\n\r\n" GET GET GET);
    assert_true(framer_is_head_request(&f));
    feed(DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_true(f.answer_ended && !framer_is_head_request(&f));
    feed(DIR_DOWN,
         "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n" OK5);
    assert_false(framer_running(&f));
}

static void an_answer_until_the_close_ends_with_it(void **state) {
    feed(DIR_UP, GET);
    feed(DIR_DOWN, "HTTP/1.1 200 OK\r\n\r\nwhatever");
    assert_true(framer_running(&f));
    framer_eof(&f, DIR_DOWN);
    assert_true(f.answer_ended && !framer_running(&f));
}

static void a_cut_answer_does_not_end(void **state) {
    feed(DIR_UP, GET);
    feed(DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nwhatever");
    framer_eof(&f, DIR_DOWN);
    assert_true(!f.answer_ended && framer_running(&f));
}

static void tunnels_and_garbage_are_opaque(void **state) {
    feed(DIR_UP, "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
    assert_false(f.opaque);
    feed(DIR_DOWN, "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello");
    assert_true(f.opaque && f.tunnel && framer_running(&f));
    end(state), fresh(state);
    feed(DIR_UP, "CONNECT h:1 HTTP/1.1\r\n\r\n");
    feed(DIR_DOWN, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
    assert_false(f.opaque);
    feed(DIR_UP, "CONNECT h:1 HTTP/1.1\r\n\r\n");
    feed(DIR_DOWN, "HTTP/1.1 200 OK\r\n\r\n");
    assert_true(f.opaque && f.tunnel);
    end(state), fresh(state);
    feed(DIR_UP, "\x16\x03\x01\x02");
    assert_true(f.opaque && !f.tunnel && f.heads == 0);
}

static void an_offered_upgrade_that_is_not_taken_stays_http(void **state) {
    feed(DIR_UP, "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n");
    feed(DIR_DOWN, OK5);
    feed(DIR_UP, GET);
    feed(DIR_DOWN, OK5);
    assert_true(!f.opaque && f.answered == 2);
}

static void unsolicited_answers_pay_for_no_later_request(void **state) {
    feed(DIR_DOWN, OK5);
    feed(DIR_UP, GET);
    assert_true(framer_running(&f));
}

static void a_long_pipeline_is_counted_right(void **state) {
    for (int i = 0; i < 3 * FRAMER_PIPELINE; i++) feed(DIR_UP, GET);
    for (int i = 0; i < 3 * FRAMER_PIPELINE; i++) {
        assert_true(framer_running(&f));
        feed(DIR_DOWN, OK5);
    }
    assert_false(framer_running(&f));
}

static void byte_by_byte_gives_the_same_places(void **state) {
    static const char text[] =
        POST GET "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" POST;
    uint64_t heads[8], ends[8];
    size_t n_heads = 0, n_ends = 0;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        framer_feed(&f, DIR_UP, i, text + i, 1);
        if (f.head_at != NO_OFFSET) heads[n_heads++] = f.head_at;
        if (f.end_at != NO_OFFSET) ends[n_ends++] = f.end_at;
    }
    assert_int_equal(n_heads, 4);
    assert_int_equal(n_ends, 4);
    for (size_t i = 0; i < 4; i++) assert_true(heads[i] == (i ? ends[i - 1] : 0));
    assert_true(ends[3] == sizeof text - 1 && f.heads == 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fresh, end)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_request_runs_until_its_answer_is_whole),
        T(heads_are_found_in_the_middle_of_a_read),
        T(a_head_over_several_reads_is_kept_in_each),
        T(interim_answers_end_nothing),
        T(answers_without_a_body_end_with_their_head),
        T(an_answer_until_the_close_ends_with_it),
        T(a_cut_answer_does_not_end),
        T(tunnels_and_garbage_are_opaque),
        T(an_offered_upgrade_that_is_not_taken_stays_http),
        T(unsolicited_answers_pay_for_no_later_request),
        T(a_long_pipeline_is_counted_right),
        T(byte_by_byte_gives_the_same_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
