/* Goodput of the busy trace, held against the rule that made it, and what --slo refuses. */
#include "tests/unit/fake_trace_db.h"

#include "analyzer/report.h"
#include "analyzer/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/test_report_slo_XXXXXX";

static struct slo judged(const char *limits) {
    struct args o = {.slo = limits, .source = {.arrival_window_ns = 1000000, .quiet = true}};
    struct source s;
    struct report r;
    char *input = path;
    assert_int_equal(source_open(&s, &input, 1, &o.source), 0);
    assert_int_equal(report_gather(&r, s.db, &o), 0);
    struct slo slo = r.slo;
    report_free(&r);
    source_close(&s);
    return slo;
}

/* The rules of fake_db_busy once more, as one request each. */
struct made {
    bool failed, left, runs, streamed;
    double ttft, gap, e2e;
};
static struct made make(int i) {
    struct made m = {.failed = i % 50 == 7, .left = i % 97 == 5, .runs = i == 400, .streamed = i % 20 != 3};
    m.ttft = 101 + 37 * i % 100 + (i > 200 && i <= 220 ? 2000 : 0);
    m.gap = 40 + i % 11;
    m.e2e = m.ttft + 31 * m.gap + 5;
    return m;
}

static void every_limit_must_hold(void **unused) {
    struct slo s = judged("ttft=500ms,tpot=24ms,itl=24.5ms");
    size_t good = 0, ttft = 0, tpot = 0, itl = 0, failed = 0, without = 0;
    for (int i = 1; i <= 400; i++) {
        struct made m = make(i);
        failed += m.failed;
        if (m.failed || m.left || m.runs) continue;
        without += !m.streamed;
        if (!m.streamed) continue;
        ttft += m.ttft > 500;
        tpot += m.gap / 2 > 24;
        itl += m.gap / 2 > 24.5;
        good += m.ttft <= 500 && m.gap / 2 <= 24;
    }
    assert_string_equal(s.v[0].name, "ttft_client");
    assert_int_equal(s.good, good);
    assert_int_equal(s.v[0].missed, ttft);
    assert_int_equal(s.v[1].missed, tpot);
    assert_int_equal(s.v[2].missed, itl);
    assert_int_equal(s.failed, failed);
    assert_int_equal(s.without_tokens, without);
    assert_int_equal(s.undecided, 5); /* they left after 31 ms: nothing was broken yet */
    assert_int_equal(s.gone, 1);      /* the last one ran beyond 500 ms without a token */
    assert_int_equal(s.decided + s.undecided + s.without_tokens, 400);
}

static void end_to_end_judges_what_was_not_streamed(void **unused) {
    struct slo s = judged("e2e=1.6s");
    size_t good = 0;
    for (int i = 1; i <= 400; i++) {
        struct made m = make(i);
        good += !m.failed && !m.left && !m.runs && m.e2e <= 1600;
    }
    assert_int_equal(s.good, good);
    assert_int_equal(s.without_tokens, 0);
}

/* Who left after 31 ms had already waited longer than 20. */
static void leaving_after_a_broken_limit_is_decided(void **unused) {
    struct slo s = judged("ttft=20ms");
    assert_int_equal(s.gone, 6);
    assert_int_equal(s.undecided, 0);
    assert_int_equal(s.good, 0);
}

static void limits_that_cannot_be_read_are_refused(void **unused) {
    struct slo s;
    static const char *const wrong[] = {
        "ttft",           "ttft=5",
        "ttft=-5ms",      "tftt=5ms",
        "decode_tps=5ms", "ttft=0",
        "a=1s,b=1s",      "ttft=1s,ttft=1s,ttft=1s,ttft=1s,ttft=1s,ttft=1s,ttft=1s,ttft=1s,ttft=1s"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(slo_parse(&s, wrong[i], false), 2);
    assert_int_equal(slo_parse(&s, "ttft=1s,e2e=10s", true), 0);
    assert_string_equal(s.v[0].name, "ttft_queued");
    assert_string_equal(s.v[1].name, "e2e_queued");
}

static int make_path(void **unused) {
    int fd = mkstemp(path);
    if (fd >= 0) fake_db_busy(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **unused) {
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_limit_must_hold),
        cmocka_unit_test(end_to_end_judges_what_was_not_streamed),
        cmocka_unit_test(leaving_after_a_broken_limit_is_decided),
        cmocka_unit_test(limits_that_cannot_be_read_are_refused),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
