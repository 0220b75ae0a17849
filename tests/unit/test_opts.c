/* The command line: defaults, every option, and one line that helps for every mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/clocks.h"
#include "recorder/opts.h"

#include <string.h>

static struct opts o;
static char err[600];

/* Parses a list of at most 15 arguments, ended by NULL. */
static enum opts_result parse(const char *const *args) {
    char *argv[16] = {(char *)"tracerec"};
    int n = 1;
    for (; args[n - 1]; n++) argv[n] = (char *)args[n - 1];
    *err = 0;
    return opts_parse(&o, n, argv, err, sizeof err);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void defaults_are_the_documented_ones(void **state) {
    assert_int_equal(PARSE("--proxy", ":8001", "--upstream", ":8000"), OPTS_RUN);
    assert_int_equal(o.n_pairs, 1);
    assert_true(o.drain_ns == 25 * NS_PER_S);
    assert_int_equal(o.queue_bytes, 16000000);
    assert_true(o.flush_interval_ns == NS_PER_S);
    assert_true(o.status_interval_ns == 60 * NS_PER_S);
    assert_true(o.min_free_bytes == OPTS_MIN_FREE_DEFAULT);
    assert_null(o.output);
    assert_false(o.quiet || o.must_record || o.unreachable_reset);
}

static void every_option_is_read(void **state) {
    assert_int_equal(PARSE("--proxy=:1", "--upstream=:2", "-ox.trc", "--drain=inf", "--queue-size=64MB",
                           "--min-free=2GB", "--flush-interval=250ms", "--status-interval=0",
                           "--unreachable=reset", "--quiet", "--must-record", "--name=a", "--note=k=v=w"),
                     OPTS_RUN);
    assert_string_equal(o.output, "x.trc");
    assert_true(o.drain_ns == INT64_MAX);
    assert_int_equal(o.queue_bytes, 64000000);
    assert_true(o.min_free_bytes == 2000000000u);
    assert_true(o.flush_interval_ns == 250 * NS_PER_MS);
    assert_true(o.status_interval_ns == 0);
    assert_true(o.quiet && o.must_record && o.unreachable_reset);
    assert_string_equal(o.name, "a");
    assert_string_equal(o.notes[0].key, "k");
    assert_string_equal(o.notes[0].value, "v=w");
    assert_int_equal(PARSE("--proxy", ":1", "--upstream", ":2", "--drain", "1.5m"), OPTS_RUN);
    assert_true(o.drain_ns == 90 * NS_PER_S);
}

static void pairs_keep_their_order(void **state) {
    assert_int_equal(PARSE("--proxy", ":1", "--proxy", ":3", "--upstream", ":2", "--upstream", ":4"),
                     OPTS_RUN);
    assert_int_equal(o.n_pairs, 2);
    assert_int_equal(o.proxy[1].port, 3);
    assert_int_equal(o.upstream[1].port, 4);
}

#define WRONG(part, ...)                                                                                     \
    do {                                                                                                     \
        assert_int_equal(PARSE(__VA_ARGS__), OPTS_WRONG);                                                    \
        if (!strstr(err, part)) fail_msg("%s", err);                                                         \
        assert_null(strchr(err, '\n'));                                                                      \
    } while (0)

static void mistakes_are_named_with_what_to_do(void **state) {
    WRONG("--upstrem: no such option; did you mean --upstream?", "--upstrem", ":1");
    WRONG("--xyzzyplugh: no such option. All: --help", "--xyzzyplugh");
    WRONG("-q: no such option", "-q");
    WRONG("takes no such argument", "file.trc");
    WRONG("--proxy: its value is missing", "--proxy");
    WRONG("--quiet: takes no value", "--quiet=1");
    WRONG("--proxy is missing", "--upstream", ":1");
    WRONG("--upstream is missing", "--proxy", ":1");
    WRONG("2 --proxy and 1 --upstream", "--proxy", ":1", "--proxy", ":2", "--upstream", ":3");
    WRONG("--drain x: not a time", "--drain", "x");
    WRONG("--drain -1: not a time", "--drain", "-1");
    WRONG("--drain nan: not a time", "--drain", "nan");
    WRONG("--queue-size 1KB: the queue can have", "--queue-size", "1KB");
    WRONG("--queue-size 16mb: not a size", "--queue-size", "16mb");
    WRONG("--flush-interval 0: must be above 0", "--flush-interval", "0");
    WRONG("--unreachable 503: give 502 or reset", "--unreachable", "503");
    WRONG("--note =x: not KEY=VALUE", "--note", "=x");
    WRONG("--upstream .../v1: paths are passed on as they come; leave /v1 to the client's base URL",
          "--proxy", "8001", "--upstream", "http://localhost:11434/v1");
}

static void too_many_are_refused(void **state) {
    char *argv[2 * FRONT_PAIRS_MAX + 10] = {(char *)"tracerec"};
    int n = 1;
    for (int i = 0; i <= FRONT_PAIRS_MAX; i++) argv[n++] = (char *)"--proxy", argv[n++] = (char *)":1";
    assert_int_equal(opts_parse(&o, n, argv, err, sizeof err), OPTS_WRONG);
    assert_non_null(strstr(err, "more than 32 pairs"));
}

static void help_and_version_win_over_what_is_missing(void **state) {
    assert_int_equal(PARSE("--help"), OPTS_HELP);
    assert_int_equal(PARSE("--version"), OPTS_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_documented_ones),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(pairs_keep_their_order),
        cmocka_unit_test(mistakes_are_named_with_what_to_do),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(help_and_version_win_over_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
