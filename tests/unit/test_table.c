/* Rows for programs and tables for people: absent, exact, escaped, aligned. */
#include "analyzer/jsonw.h"
#include "analyzer/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *text;
static size_t size;

static FILE *begin(void) {
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    return f;
}

static void expect(FILE *f, const char *right) {
    fclose(f);
    assert_string_equal(text, right);
    free(text);
    text = NULL;
}

static struct cell word(const char *s) {
    return (struct cell){.kind = CELL_TEXT, .s = s, .n = strlen(s)};
}

static void csv_quotes_and_disarms(void **unused) {
    FILE *f = begin();
    const struct cell c[] = {word("a,b"),
                             word("say \"x\""),
                             word("=1+1"),
                             word("-2"),
                             word("@x"),
                             word("two\nlines"),
                             {.kind = CELL_NULL},
                             {.kind = CELL_INT, .i = -5},
                             {.kind = CELL_REAL, .d = NAN},
                             {.kind = CELL_REAL, .d = INFINITY},
                             {.kind = CELL_NS_AS_MS, .i = 1234567},
                             {.kind = CELL_WALL, .i = 1}};
    table_csv(f, c, sizeof c / sizeof c[0]);
    expect(f, "\"a,b\",\"say "
              "\"\"x\"\"\",'=1+1,'-2,'@x,\"two\nlines\",,-5,,inf,1.234567,1970-01-01T00:00:00.000000001Z\n");
}

static void json_is_exact_and_legal(void **unused) {
    FILE *f = begin();
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    const struct cell c[] = {{.kind = CELL_INT, .i = INT64_C(9007199254740992)},
                             {.kind = CELL_INT, .i = INT64_C(9007199254740993)},
                             {.kind = CELL_REAL, .d = .1},
                             {.kind = CELL_REAL, .d = NAN},
                             {.kind = CELL_REAL, .d = INFINITY},
                             word("q\" \\ \n \x01 \xff é"),
                             {.kind = CELL_NULL}};
    table_ndjson(f, names, c, 7);
    expect(f, "{\"a\":9007199254740992,\"b\":\"9007199254740993\",\"c\":0.1,\"d\":null,\"e\":\"inf\","
              "\"f\":\"q\\\" \\\\ \\n \\u0001 \\ufffd é\",\"g\":null}\n");
}

static void ns_are_written_as_ms_without_loss(void **unused) {
    static const struct {
        int64_t ns;
        const char *ms;
    } c[] = {{0, "0"},
             {1, "0.000001"},
             {-1, "-0.000001"},
             {137000000, "137"},
             {1500000, "1.5"},
             {INT64_MAX, "9223372036854.775807"},
             {INT64_MIN, "-9223372036854.775808"}};
    char out[SHOW_MAX];
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        assert_string_equal(table_ns_as_ms(out, c[i].ns), c[i].ms);
}

static void doubles_read_back_as_they_were(void **unused) {
    static const double c[] = {0, .1, 1.0 / 3, 2e-300, 123456789.123456789, 1e22, -17.25};
    char out[SHOW_MAX];
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        assert_true(strtod(table_double(out, c[i]), NULL) == c[i]);
    assert_string_equal(table_double(out, .1), "0.1");
}

static void a_json_value_is_indented(void **unused) {
    FILE *f = begin();
    struct jsonw j = {.f = f};
    jsonw_open(&j, NULL, '{');
    jsonw_open(&j, "none", '{');
    jsonw_close(&j, '{');
    jsonw_open(&j, "list", '[');
    jsonw_number(&j, NULL, 1.5);
    jsonw_number(&j, NULL, NAN);
    jsonw_close(&j, '[');
    jsonw_bool(&j, "yes", true);
    jsonw_text(&j, "no", NULL);
    jsonw_close(&j, '{');
    expect(
        f,
        "{\n  \"none\": {},\n  \"list\": [\n    1.5,\n    null\n  ],\n  \"yes\": true,\n  \"no\": null\n}\n");
}

static struct grid *small_grid(void) {
    static const struct grid_column c[] = {{{NULL, "name"}, GRID_LEFT, 0},
                                           {{"out", "put"}, GRID_RIGHT, 0},
                                           {{NULL, "auto"}, GRID_AUTO, 1},
                                           {{NULL, "last"}, GRID_LEFT, 1}};
    struct grid *g = grid_new(c, 4);
    grid_row(g, (const char *const[]){"a", "1,234", "7", "x|y"});
    grid_row(g, (const char *const[]){"längere", "5", "12.5", ""});
    return g;
}

static void columns_align_and_nothing_trails(void **unused) {
    struct grid *g = small_grid();
    FILE *f = begin();
    grid_print(g, f, 1);
    expect(f, "            out\n name       put auto last\n a        1,234    7 x|y\n längere      5 12.5\n");
    assert_int_equal(grid_width(g), 7 + 2 + 5 + 1 + 4 + 1 + 4);
    f = begin();
    grid_markdown(g, f);
    expect(f, "| name | output | auto | last |\n|---|---:|---:|---|\n| a | 1,234 | 7 | x\\|y |\n| längere | "
              "5 | 12.5 |  |\n");
    grid_row(g, (const char *const[]){"b", "6", "word", "z"}); /* no number: the column is text */
    f = begin();
    grid_print(g, f, 0);
    expect(f, "           out\nname       put auto last\na        1,234 7    x|y\nlängere      5 12.5\nb     "
              "       6 word z\n");
    grid_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_quotes_and_disarms),
        cmocka_unit_test(json_is_exact_and_legal),
        cmocka_unit_test(ns_are_written_as_ms_without_loss),
        cmocka_unit_test(doubles_read_back_as_they_were),
        cmocka_unit_test(a_json_value_is_indented),
        cmocka_unit_test(columns_align_and_nothing_trails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
