/* How numbers, times and the text of others look: rule 3 of the screens, and nothing of a trace that acts. */
#include "analyzer/show.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct show_mode utf8 = {.utf8 = true, .columns = 100, .zone = "UTC"};
static const struct show_mode ascii = {.utf8 = false, .columns = 100, .zone = "UTC"};

struct number_case {
    double v;
    const char *right;
};

static void check(const char *(*format)(char *, double), const struct number_case *c, size_t n) {
    char out[SHOW_MAX];
    for (size_t i = 0; i < n; i++) assert_string_equal(format(out, c[i].v), c[i].right);
}

static void latency_has_three_digits_or_is_whole(void **unused) {
    static const struct number_case c[] = {
        {0, "0.00"},       {4.567, "4.57"},     {9.994, "9.99"},        {9.996, "10.0"},
        {23.94, "23.9"},   {99.94, "99.9"},     {99.96, "100"},         {110.4, "110"},
        {8286, "8,286"},   {164518, "164,518"}, {1234567, "1,234,567"}, {NAN, "-"},
        {INFINITY, "inf"}, {-3.5, "-3.50"},     {-0.001, "0.00"},       {1e300, "1e+300"}};
    check(show_ms, c, sizeof c / sizeof c[0]);
}

static void shares_have_one_decimal_and_two_below_one_percent(void **unused) {
    static const struct number_case c[] = {{.988, "98.8"}, {.0078, "0.78"}, {.00994, "0.99"}, {.00996, "1.0"},
                                           {0, "0.0"},     {1, "100.0"},    {.0001, "0.01"},  {NAN, "-"}};
    check(show_share, c, sizeof c / sizeof c[0]);
}

static void counts_are_short_from_a_million_on(void **unused) {
    static const struct number_case c[] = {{0, "0"},
                                           {12480, "12,480"},
                                           {999999, "999,999"},
                                           {4612345, "4.61M"},
                                           {46123456, "46.1M"},
                                           {999499999, "999M"},
                                           {999999999, "1.00G"},
                                           {NAN, "-"}};
    check(show_count, c, sizeof c / sizeof c[0]);
}

static void sizes_are_of_1000(void **unused) {
    static const struct number_case c[] = {
        {999, "999 B"}, {1000, "1.0 KB"}, {8300000, "8.3 MB"}, {497e6, "497 MB"}, {1.2e9, "1.2 GB"}};
    check(show_bytes, c, sizeof c / sizeof c[0]);
}

static void durations_have_two_units_at_most(void **unused) {
    char out[SHOW_MAX];
    assert_string_equal(show_duration(out, .048, true), "48 ms");
    assert_string_equal(show_duration(out, 14.8, true), "14.8 s");
    assert_string_equal(show_duration(out, 2520, true), "42 min");
    assert_string_equal(show_duration(out, 2520, false), "42 min 00 s");
    assert_string_equal(show_duration(out, 449, true), "7 min 29 s");
    assert_string_equal(show_duration(out, 12000, true), "3 h 20 min");
    assert_string_equal(show_duration(out, 300000, true), "3 days 11 h");
    assert_string_equal(show_span(out, 48000, &utf8), "48 µs");
    assert_string_equal(show_span(out, 3100000, &utf8), "3.1 ms");
    assert_string_equal(show_span(out, 48000, &ascii), "48 us");
}

/* 1799895300 s is 2027-01-14 02:55:00 UTC. Times are cut: 12.4996 s is 12.499. */
static void times_are_utc_and_never_later_than_they_were(void **unused) {
    char out[SHOW_MAX];
    int64_t t = 1799895312499600001;
    assert_string_equal(show_date(out, t, &utf8), "2027-01-14");
    assert_string_equal(show_time(out, t, 0, &utf8), "02:55:12");
    assert_string_equal(show_time(out, t, 3, &utf8), "02:55:12.499");
    assert_string_equal(show_rfc3339(out, t), "2027-01-14T02:55:12.499600001Z");
    assert_string_equal(show_rfc3339(out, -1), "1969-12-31T23:59:59.999999999Z");
}

static void what_others_wrote_cannot_act(void **unused) {
    static const struct {
        const char *in, *utf8, *ascii;
    } c[] = {
        {"plain qwen3-32b", "plain qwen3-32b", "plain qwen3-32b"},
        {"\033[31mred", "\\x1b[31mred", "\\x1b[31mred"},
        {"a\r\nb\tc\x7f", "a\\x0d\\x0ab\\x09c\\x7f", "a\\x0d\\x0ab\\x09c\\x7f"},
        {"\xe2\x80\xae"
         "evil",
         "\\xe2\\x80\\xae"
         "evil",
         "\\xe2\\x80\\xae"
         "evil"},                                 /* right-to-left override */
        {"\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b"}, /* C1: CSI in one character */
        {"caf\xc3\xa9", "caf\xc3\xa9", "caf\\xc3\\xa9"},
        {"\xff\xc3(", "\\xff\\xc3(", "\\xff\\xc3("},            /* no UTF-8 */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"}, /* a surrogate is none either */
        {"a → b ≥ 2 µs", "a → b ≥ 2 µs", "a -> b >= 2 us"},
        {"▁▄█", "▁▄█", "148"},
    };
    char out[128];
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        assert_string_equal(show_safe(out, sizeof out, c[i].in, strlen(c[i].in), true), c[i].utf8);
        assert_string_equal(show_safe(out, sizeof out, c[i].in, strlen(c[i].in), false), c[i].ascii);
    }
    assert_string_equal(show_safe(out, 4, "ab→c", 6, true), "ab"); /* cut between characters */
    assert_string_equal(show_safe(out, 8, "ab\0cd", 5, true), "ab\\x00c");
}

static void width_counts_terminal_columns(void **unused) {
    assert_int_equal(show_width("abc"), 3);
    assert_int_equal(show_width("a → b"), 5);
    assert_int_equal(show_width("模型"), 4);
    assert_int_equal(show_width("e\xcc\x81"), 1); /* e and a combining accent */
}

static void bars_fall_back_to_digits(void **unused) {
    assert_string_equal(show_bar(0, &utf8), ".");
    assert_string_equal(show_bar(8, &utf8), "█");
    assert_string_equal(show_bar(8, &ascii), "8");
    assert_string_equal(show_bar(-1, &ascii), " ");
}

static void the_mode_follows_the_environment(void **unused) {
    struct show_mode m;
    FILE *f = tmpfile();
    setenv("COLUMNS", "76", 1);
    setenv("LC_ALL", "C", 1);
    assert_true(show_mode_of(&m, f, NULL));
    assert_int_equal(m.columns, 76);
    assert_false(m.utf8 || m.colour || m.local);
    setenv("COLUMNS", "300", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_true(show_mode_of(&m, f, "UTC"));
    assert_int_equal(m.columns, 100);
    assert_true(m.utf8);
    assert_false(show_mode_of(&m, f, "No/Such_Zone"));
    assert_false(show_mode_of(&m, f, "../../etc/passwd"));
    unsetenv("COLUMNS");
    unsetenv("LC_ALL");
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_has_three_digits_or_is_whole),
        cmocka_unit_test(shares_have_one_decimal_and_two_below_one_percent),
        cmocka_unit_test(counts_are_short_from_a_million_on),
        cmocka_unit_test(sizes_are_of_1000),
        cmocka_unit_test(durations_have_two_units_at_most),
        cmocka_unit_test(times_are_utc_and_never_later_than_they_were),
        cmocka_unit_test(what_others_wrote_cannot_act),
        cmocka_unit_test(width_counts_terminal_columns),
        cmocka_unit_test(bars_fall_back_to_digits),
        cmocka_unit_test(the_mode_follows_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
