/* The options that commands share: what is read, what is refused, and what is offered instead. */
#include "analyzer/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const formats[] = {"table", "csv", NULL};
static const struct args_spec spec = {"requests",
                                      OPT_SOURCE | OPT_FORMAT | OPT_SORT | OPT_LIMIT | OPT_PERCENTILES,
                                      formats, "help\n", "a trace"};

static char said[512];

/* Parses words; what stderr got is in said. */
static int parse(struct args *o, const char **words) {
    int n = 0, was = dup(2);
    FILE *caught = tmpfile();
    while (words[n]) n++;
    fflush(stderr);
    dup2(fileno(caught), 2);
    int status = args_parse(o, n, (char **)words, &spec);
    fflush(stderr);
    dup2(was, 2);
    close(was);
    rewind(caught);
    said[fread(said, 1, sizeof said - 1, caught)] = 0;
    fclose(caught);
    return status;
}
#define PARSE(...) parse(&o, (const char *[]){"requests", __VA_ARGS__, NULL})

static void options_and_inputs_may_mix(void **unused) {
    struct args o;
    assert_int_equal(
        PARSE("a.trc", "--sort", "-ttft_server", "b.trc", "--limit=20", "--from", "-10m", "--", "--odd"), -1);
    assert_int_equal(o.n_inputs, 3);
    assert_string_equal(o.inputs[0], "a.trc");
    assert_string_equal(o.inputs[1], "b.trc");
    assert_string_equal(o.inputs[2], "--odd");
    assert_true(o.descending && o.limit == 20);
    assert_string_equal(o.sort, "ttft_server");
    assert_string_equal(o.source.from, "-10m");
    assert_string_equal(o.format, "table");
    assert_int_equal(o.source.arrival_window_ns, 1000000);
}

static void percentiles_are_read(void **unused) {
    struct args o;
    assert_int_equal(PARSE("a", "--percentiles", "50,95,99.9"), -1);
    assert_int_equal(o.n_percentiles, 3);
    assert_true(o.percentiles[2] == 99.9);
}

static void wrong_usage_is_one_line_and_exit_2(void **unused) {
    struct args o;
    static const struct {
        const char *words[5];
        const char *said;
    } c[] = {
        {{"requests", "a", "--limt", "3", NULL},
         "traceanalyze: --limt: no such option of requests; did you mean --limit?\n"},
        {{"requests", "a", "--request", "3", NULL},
         "traceanalyze: --request: not an option of requests; all: traceanalyze requests --help\n"},
        {{"requests", "a", "--limit", "3x", NULL}, "traceanalyze: --limit 3x: not a whole number of rows\n"},
        {{"requests", "a", "--limit", NULL}, "traceanalyze: --limit: its value is missing\n"},
        {{"requests", "a", "--quiet=1", NULL}, "traceanalyze: --quiet: takes no value\n"},
        {{"requests", "a", "--format", "xml", NULL},
         "traceanalyze: --format xml: requests has the formats table, csv\n"},
        {{"requests", "a", "--percentiles", "50,100", NULL},
         "traceanalyze: --percentiles 50,100: not percentiles, as in 50,95,99.9\n"},
        {{"requests", "a", "--arrival-window", "1", NULL},
         "traceanalyze: --arrival-window 1: not a duration, as in 1ms, 500us or 0\n"},
        {{"requests", "a", "-n", NULL},
         "traceanalyze: -n: options begin with --; all: traceanalyze requests --help\n"},
        {{"requests", NULL}, "traceanalyze: requests: give a trace; more: traceanalyze requests --help\n"},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const char *words[5];
        memcpy(words, c[i].words, sizeof words);
        assert_int_equal(parse(&o, words), 2);
        assert_string_equal(said, c[i].said);
    }
}

static void durations_need_a_unit(void **unused) {
    assert_int_equal(args_duration_ns("1ms"), 1000000);
    assert_int_equal(args_duration_ns("1.5s"), 1500000000);
    assert_int_equal(args_duration_ns("250us"), 250000);
    assert_int_equal(args_duration_ns("0"), 0);
    assert_int_equal(args_duration_ns("5"), -1);
    assert_int_equal(args_duration_ns("-1ms"), -1);
    assert_int_equal(args_duration_ns("nan s"), -1);
    assert_int_equal(args_duration_ns("1e300h"), -1);
    assert_int_equal(args_duration_ns(""), -1);
}

static void near_words_are_found(void **unused) {
    static const char *const names[] = {"model", "ttft_server_ms", "path", "tpot"};
    assert_string_equal(args_near("modle", names, 4), "model");
    assert_string_equal(args_near("tpto", names, 4), "tpot");
    assert_string_equal(args_near("ttft_srver_ms", names, 4), "ttft_server_ms");
    assert_string_equal(args_near("ttft", names, 4), "ttft_server_ms"); /* a beginning */
    assert_null(args_near("zebra", names, 4));
    assert_null(args_near("", names, 4));
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_null(args_near(longest, names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_inputs_may_mix),
        cmocka_unit_test(percentiles_are_read),
        cmocka_unit_test(wrong_usage_is_one_line_and_exit_2),
        cmocka_unit_test(durations_need_a_unit),
        cmocka_unit_test(near_words_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
