/* JSON as servers write it: what must be repaired, what must be exact, what must be refused. */
#include "recorder/dissect/json.h"
#include "recorder/dissect/jsonscan.h"
#include "recorder/dissect/jsontext.h"
#include "recorder/dissect/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Opens an exact copy, so that a sanitizer sees what is read beyond it. */
static struct json_doc open_n(const char *p, size_t n) {
    char *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    struct json_doc d = json_open(copy, n);
    free(copy);
    return d;
}
static struct json_doc open_text(const char *text) {
    return open_n(text, strlen(text));
}

static void whole_numbers_are_exact(void **state) {
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
        unsigned too_large;
    } rows[] = {
        {"0", true, 0, 0},
        {"-7", true, -7, 0},
        {"5.0", true, 5, 0},
        {"1e3", true, 1000, 0},
        {"5.5", false, 0, 0},
        {"999999999999999", true, 999999999999999, 0},
        {"9007199254740993", true, 9007199254740993, 0},
        {"9223372036854775807", true, INT64_MAX, 0},
        {"-9223372036854775808", true, INT64_MIN, 0},
        {"9223372036854775808", false, 0, 1},
        {"123456789012345678901234567890", false, 0, 1},
        {"1e300", false, 0, 0},
        {"\"12\"", false, 0, 0},
        {"null", false, 0, 0},
        {"true", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        int64_t v = 0;
        snprintf(text, sizeof text, "{\"a\":%s}", rows[i].text);
        struct json_doc d = open_text(text);
        assert_int_equal(d.verdict, JSON_OK);
        bool ok = json_int(json_get(d.root, "a"), &v);
        if (ok != rows[i].ok || (ok && v != rows[i].value) || d.too_large != rows[i].too_large)
            fail_msg("%s", text);
        json_close(&d);
    }
}

static void texts_are_repaired_and_it_is_counted(void **state) {
    static const struct {
        const char *text, *right;
        unsigned repairs;
    } rows[] = {
        {"a", "a", 0},
        {"\\u00e9\\n\\\"", "\xc3\xa9\n\"", 0},
        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80", 0},
        {"x\\ud800y", "x\xef\xbf\xbdy", 1},
        {"\\udc00", "\xef\xbf\xbd", 1},
        {"\\ud800\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80", 1},
        {"\\ud800\\u0041",
         "\xef\xbf\xbd"
         "A",
         1},
        {"a\\u0000b", "a?b", 1},
        {"a\xff\xfe"
         "b",
         "a\xef\xbf\xbd\xef\xbf\xbd"
         "b",
         2},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", 2},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 3},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", 2},
        {"a\tb", "a\tb", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"t\":\"%s\"}", rows[i].text);
        struct json_doc d = open_text(text);
        assert_int_equal(d.verdict, JSON_OK);
        assert_string_equal(json_text(json_get(d.root, "t")), rows[i].right);
        assert_int_equal(d.repairs, rows[i].repairs);
        json_close(&d);
    }
}

static void what_is_no_number_is_null(void **state) {
    struct json_doc d = open_text("{\"a\":NaN,\"b\":-Infinity,\"c\":Infinity,\"d\":[NaN,1],\"e\":2}");
    int64_t v = 0;
    assert_int_equal(d.verdict, JSON_OK);
    assert_int_equal(d.repairs, 4);
    assert_true(json_is_null(json_get(d.root, "a")) && json_is_null(json_get(d.root, "b")));
    assert_int_equal(json_count(json_get(d.root, "d")), 2);
    assert_true(json_int(json_get(d.root, "e"), &v) && v == 2);
    json_close(&d);
}

static void verdicts(void **state) {
    static const struct {
        const char *text;
        int verdict;
    } rows[] = {
        {"{}", JSON_OK},
        {" \r\n\t{} \n", JSON_OK},
        {"\xef\xbb\xbf{}", JSON_OK},
        {"[1,2]", JSON_OK},
        {"\"x\"", JSON_OK},
        {"7", JSON_OK},
        {"", JSON_BAD},
        {"  ", JSON_BAD},
        {"{", JSON_BAD},
        {"{}}", JSON_BAD},
        {"{} {}", JSON_BAD},
        {"{]", JSON_BAD},
        {"{\"a\":1,", JSON_BAD},
        {"{\"1\":1,}", JSON_BAD},
        {"{\"a\" 1}", JSON_BAD},
        {"{\"a\":tru}", JSON_BAD},
        {"{'a':1}", JSON_BAD},
        {"[1,,2]", JSON_BAD},
        {"{\"a\":\"\\x\"}", JSON_BAD},
        {"{\"a\":\"\\u12\"}", JSON_BAD},
        {"nope", JSON_BAD},
        {"[DONE]", JSON_BAD},
        {"\"", JSON_BAD},
        {"-", JSON_BAD},
        {"{\"a\":1}x", JSON_BAD},
        {"[1 2]", JSON_BAD},
        {",", JSON_BAD},
        {"\\", JSON_BAD},
        {"{\"a\":\"\\", JSON_BAD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json_doc d = open_text(rows[i].text);
        if ((int)d.verdict != rows[i].verdict) fail_msg("%s: verdict %d", rows[i].text, d.verdict);
        json_close(&d);
    }
}

/* A number that only a string can hold is no text, and no text is taken for one. */
static void a_large_number_is_no_text(void **state) {
    const char *text = "{\"n\":9007199254740993,\"t\":\"\\u00011\"}";
    struct json_doc d = open_n(text, strlen(text));
    int64_t n;
    assert_null(json_text(json_get(d.root, "n")));
    assert_int_equal(json_text_bytes(json_get(d.root, "n")), 0);
    assert_true(json_int(json_get(d.root, "n"), &n));
    assert_string_equal(json_text(json_get(d.root, "t")), "\0011");
    assert_false(json_int(json_get(d.root, "t"), &n));
    json_close(&d);
}

static void every_cut_of_a_text_is_bad(void **state) {
    const char *text =
        "{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\",{\"b\":null}],\"c\":true,\"d\":\"\xc3\xa9\"}";
    for (size_t n = 0; n <= strlen(text); n++) {
        struct json_doc d = open_n(text, n);
        assert_int_equal(d.verdict, n == strlen(text) ? JSON_OK : JSON_BAD);
        json_close(&d);
    }
}

static void deep_and_wide_texts_are_refused(void **state) {
    size_t n = 200000;
    char *deep = malloc(n), *wide = malloc(2 * n + 2);
    memset(deep, '[', n / 2);
    memset(deep + n / 2, ']', n / 2);
    struct json_doc d = open_n(deep, n);
    assert_int_equal(d.verdict, JSON_LARGE);
    d = open_n(deep + n / 2 - 500, 1000);
    assert_int_equal(d.verdict, JSON_OK);
    json_close(&d);
    wide[0] = '[';
    for (size_t i = 0; i < n; i++) memcpy(wide + 1 + 2 * i, i + 1 < n ? "1," : "1]", 2);
    d = open_n(wide, 2 * n + 1);
    assert_int_equal(d.verdict, JSON_LARGE);
    free(deep);
    free(wide);
}

static void look_ups(void **state) {
    struct json_doc d =
        open_text("{\"Ab\":1,\"ab\":2,\"abc\":3,\"ab\":4,\"o\":{\"p\":{\"q\":5}},\"l\":[1,2,3]}");
    int64_t v = 0;
    assert_true(json_int(json_get(d.root, "ab"), &v) && v == 4); /* the last one */
    assert_true(json_int(json_get(d.root, "Ab"), &v) && v == 1);
    assert_null(json_get(d.root, "AB"));
    assert_null(json_get(d.root, "a"));
    assert_true(json_int(json_at(d.root, "o.p.q"), &v) && v == 5);
    assert_null(json_at(d.root, "o.x.q"));
    assert_null(json_at(d.root, "ab.q"));
    assert_null(json_get(NULL, "a"));
    assert_int_equal(json_count(json_get(d.root, "l")), 3);
    assert_int_equal(json_count(json_get(d.root, "o")), -1);
    json_close(&d);
}

static void documents_nest(void **state) {
    struct json_doc a = open_text("{\"a\":\"first\"}"), b = open_text("{\"b\":\"second\"}");
    json_close(&b);
    struct json_doc c = open_text("{\"c\":\"third\"}");
    assert_string_equal(json_text(json_get(a.root, "a")), "first");
    assert_string_equal(json_text(json_get(c.root, "c")), "third");
    json_close(&c);
    json_close(&a);
}

static void documents_larger_than_the_arena(void **state) {
    char *text = malloc(1 << 20);
    size_t n = 1;
    text[0] = '[';
    for (int i = 0; i < 20000; i++) n += (size_t)sprintf(text + n, "\"item %d\",", i);
    text[n - 1] = ']';
    for (int i = 0; i < 3; i++) {
        struct json_doc d = open_n(text, n);
        assert_int_equal(d.verdict, JSON_OK);
        assert_int_equal(json_count(d.root), 20000);
        struct json_doc inner = open_text("{\"x\":1}");
        assert_non_null(inner.root);
        json_close(&inner);
        json_close(&d);
    }
    struct json_doc bad = open_n(text, n - 1);
    assert_int_equal(bad.verdict, JSON_BAD);
    text[n - 1] = ',', text[n] = ']'; /* balanced, but wrong at its end */
    bad = open_n(text, n + 1);
    assert_int_equal(bad.verdict, JSON_BAD);
    free(text);
}

static void the_scanner_takes_what_it_can(void **state) {
    const char *text =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"model\":\"no\"},{\"stream\":false,\"x\":[1,2]}],"
        "\"stream\":true,\"max_tokens\":12,\"tools\":[{},{},{}],\"prompt\":[\"a\",\"b\"]";
    struct jsonscan s = jsonscan(text, strlen(text));
    assert_int_equal(s.n_model, 1);
    assert_memory_equal(s.model, "m", 1);
    assert_int_equal(s.stream, 1);
    assert_int_equal(s.max_tokens, 12);
    assert_int_equal(s.messages, 2);
    assert_int_equal(s.tools, 3);
    assert_int_equal(s.prompts, 2);
    for (size_t n = 0; n < strlen(text); n++) {
        char *copy = malloc(n + !n);
        memcpy(copy, text, n);
        (void)jsonscan(copy, n);
        free(copy);
    }
    text = "{\"prompt\":[17, 4], \"max_output_tokens\":9";
    s = jsonscan(text, strlen(text));
    assert_int_equal(s.prompts, -1); /* token ids are one prompt */
    assert_int_equal(s.max_tokens, 9);
    s = jsonscan("{\"messages\":[]", 14);
    assert_int_equal(s.messages, -1);
}

static void cleaned_text_is_valid(void **state) {
    char out[16];
    unsigned bad = 0;
    size_t cut = 0;
    size_t n = utf8_clean("a\xff\xc3\xa9", 4, out, sizeof out, &bad, &cut);
    assert_int_equal(n, 6);
    assert_int_equal(utf8_valid(out, n), n);
    assert_int_equal(bad, 1);
    n = utf8_clean("abcdefghijklmn\xf0\x9f\x98\x80", 18, out, sizeof out, &bad, &cut);
    assert_int_equal(n, 14); /* never half a character */
    assert_int_equal(cut, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_exact),
        cmocka_unit_test(texts_are_repaired_and_it_is_counted),
        cmocka_unit_test(what_is_no_number_is_null),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(a_large_number_is_no_text),
        cmocka_unit_test(every_cut_of_a_text_is_bad),
        cmocka_unit_test(deep_and_wide_texts_are_refused),
        cmocka_unit_test(look_ups),
        cmocka_unit_test(documents_nest),
        cmocka_unit_test(documents_larger_than_the_arena),
        cmocka_unit_test(the_scanner_takes_what_it_can),
        cmocka_unit_test(cleaned_text_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
