/* Small pure pieces of the forwarder: the bounded queue, numbers as people read them, the 502, names of
 * parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/output.h"
#include "recorder/outq.h"
#include "recorder/refusal.h"
#include "recorder/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_queue_gives_back_what_was_put_in_order(void **state) {
    struct outq q = {0};
    unsigned char in = 0, out = 0, some[5000];
    srand(3);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)rand() % sizeof some;
        if (rand() % 2) {
            for (size_t k = 0; k < n; k++) some[k] = (unsigned char)(in + k);
            if (outq_put(&q, some, n))
                in = (unsigned char)(in + n);
            else
                assert_true(outq_len(&q) + n > OUTQ_MAX_BYTES);
        } else {
            if (n > outq_len(&q)) n = outq_len(&q);
            for (size_t k = 0; k < n; k++)
                assert_int_equal((unsigned char)outq_first(&q)[k], (unsigned char)(out + k));
            out = (unsigned char)(out + n);
            outq_drop(&q, n);
        }
        assert_true(q.size <= OUTQ_MAX_BYTES && (outq_len(&q) > 0 || !q.bytes));
    }
    outq_clear(&q);
}

static void a_queue_is_bounded(void **state) {
    struct outq q = {0};
    static char much[OUTQ_MAX_BYTES];
    assert_true(outq_put(&q, much, sizeof much));
    assert_false(outq_put(&q, much, 1));
    outq_drop(&q, 10);
    assert_true(outq_put(&q, much, 10));
    assert_int_equal(outq_len(&q), OUTQ_MAX_BYTES);
    outq_clear(&q);
    assert_null(q.bytes);
}

static void numbers_read_like_the_screens(void **state) {
    char out[TEXT_MAX];
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_string_equal(text_count(out, 0), "0");
    assert_string_equal(text_count(out, 999), "999");
    assert_string_equal(text_count(out, 12480), "12,480");
    assert_string_equal(text_count(out, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(text_bytes(out, 213), "213 B");
    assert_string_equal(text_bytes(out, 8300000), "8.3 MB");
    assert_string_equal(text_bytes(out, 497000000), "497 MB");
    assert_string_equal(text_bytes(out, 999999), "1.0 MB");
    assert_string_equal(text_delay(out, 48000), "48 µs");
    assert_string_equal(text_delay(out, 3100000), "3.1 ms");
    assert_string_equal(text_delay(out, 2000000000), "2.0 s");
    assert_string_equal(text_span(out, 2520000000000), "42 min 00 s");
    assert_string_equal(text_time(out, 1799895722114000000, false, true), "03:02:02.114");
    assert_string_equal(text_time(out, 0, true, false), "1970-01-01T00:00:00Z");
    setenv("LC_ALL", "C", 1);
    assert_string_equal(text_delay(out, 48000), "48 us");
}

static void the_502_is_whole_and_its_texts_are_escaped(void **state) {
    char out[2048];
    size_t n = refusal_502(out, sizeof out, "unix:/a\"\\\n", "why", false);
    assert_int_equal(n, strlen(out));
    char *body = strstr(out, "\r\n\r\n");
    assert_non_null(body);
    body += 4;
    char length[64];
    snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    assert_non_null(strstr(out, length));
    assert_non_null(strstr(body, "unix:/a\\\"\\\\\\u000a cannot be reached: why"));
    char host[5000];
    memset(host, '\x01', sizeof host - 1);
    host[sizeof host - 1] = 0;
    n = refusal_502(out, sizeof out, host, host, false);
    assert_true(n < sizeof out && strstr(out, "\"code\":502}}\n"));
    n = refusal_502(out, sizeof out, "a", "b", true);
    assert_string_equal(out + n - 4, "\r\n\r\n");
}

static void next_parts_have_names_of_their_own(void **state) {
    char path[200];
    assert_true(output_next_part("a.b/v.trc", NULL, 2, path, sizeof path));
    assert_string_equal(path, "a.b/v.2.trc");
    assert_true(output_next_part("a.b/v", "", 3, path, sizeof path));
    assert_string_equal(path, "a.b/v.3");
    assert_false(output_next_part("a.b/v", NULL, 3, path, 5));
    char dir[] = "/tmp/outputXXXXXX", slash[40], second[200], err[200];
    assert_non_null(mkdtemp(dir));
    snprintf(slash, sizeof slash, "%s/", dir);
    assert_true(output_next_part("x", slash, 1, path, sizeof path));
    int fd = output_open(path, err, sizeof err);
    assert_true(fd >= 0);
    assert_int_equal(output_open(path, err, sizeof err), -1);
    assert_non_null(strstr(err, "never overwritten"));
    assert_true(output_next_part("x", slash, 2, second, sizeof second));
    assert_string_not_equal(path, second); /* though it is the same second */
    close(fd);
    unlink(path);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_gives_back_what_was_put_in_order),
        cmocka_unit_test(a_queue_is_bounded),
        cmocka_unit_test(numbers_read_like_the_screens),
        cmocka_unit_test(the_502_is_whole_and_its_texts_are_escaped),
        cmocka_unit_test(next_parts_have_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
