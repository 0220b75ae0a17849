/* Members left out of a text before it is parsed. */
#include "recorder/dissect/jsonwalk.h"

#include "recorder/dissect/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static const char *const keys[] = {"context", "tokens", NULL};

/* The text without those members, from a copy of exactly its size. */
static void hold(const char *text, size_t n, const char *right) {
    char *in = malloc(n ? n : 1), *out = malloc(n ? n : 1);
    memcpy(in, text, n);
    size_t kept = jsonwalk_without(in, n, keys, out);
    if (kept != strlen(right) || memcmp(out, right, kept) != 0)
        fail_msg("%.*s\ngives %.*s\nright is %s", (int)n, text, (int)kept, out, right);
    free(in);
    free(out);
}

static void long_values_become_null(void **state) {
    static const struct {
        const char *text, *right;
    } rows[] = {
        {"{\"context\":[" LONG "],\"a\":1}", "{\"context\":null,\"a\":1}"},
        {" { \"a\" : 1 , \"tokens\" : \"" LONG "\\\"],}\" , \"context\":{\"b\":[\"]" LONG "\"]} } ",
         " { \"a\" : 1 , \"tokens\" : null , \"context\":null } "},
        {"{\"context\":[1,2],\"a\":{\"context\":\"" LONG "\"}}",
         "{\"context\":[1,2],\"a\":{\"context\":\"" LONG "\"}}"}, /* short; another object's */
        {"{\"contexts\":\"" LONG "\",\"conte\\u0078t\":\"" LONG "\"}",
         "{\"contexts\":\"" LONG "\",\"conte\\u0078t\":\"" LONG "\"}"},
        {"{\"context\":\"" LONG "\",\"context\":\"" LONG "\"}", "{\"context\":null,\"context\":null}"},
        {"[1]", ""},
        {"", ""},
        {"   ", ""},
        {"{}", ""},
        {"{7:1}", ""},
        {"{\"a\" 1}", ""},
        {"{\"a", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hold(rows[i].text, strlen(rows[i].text), rows[i].right);
}

/* A text cut anywhere is never read or written beyond its end, and never looks whole. */
static void cut_texts_stay_cut(void **state) {
    static const char text[] = "{\"a\":\"x\\\"\",\"context\":[{\"b\":\"" LONG "\"}],\"c\":[1,{\"d\":2}]}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *in = malloc(n ? n : 1), *out = malloc(n ? n : 1);
        memcpy(in, text, n);
        size_t kept = jsonwalk_without(in, n, keys, out);
        assert_true(kept <= n);
        struct json_doc d = json_open(out, kept);
        assert_int_not_equal(d.verdict, JSON_OK);
        json_close(&d);
        free(in);
        free(out);
    }
    char whole[sizeof text];
    struct json_doc d = json_open(whole, jsonwalk_without(text, sizeof text - 1, keys, whole));
    assert_int_equal(d.verdict, JSON_OK);
    assert_true(json_is_null(json_get(d.root, "context")));
    json_close(&d);
}

static void values_end_where_they_end(void **state) {
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {{"12,3", 2},
                {"\"a,\\\"b\",", 7},
                {"[1,[2],\"]\"],", 11},
                {"{\"a\":{}}}", 8},
                {"true}", 4},
                {"[1", 2},
                {"\"x", 2},
                {"", 0},
                {"]", 0},
                {"-1.5e3]", 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(jsonwalk_value(rows[i].text, rows[i].text + strlen(rows[i].text)) - rows[i].text,
                         rows[i].n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_values_become_null),
        cmocka_unit_test(cut_texts_stay_cut),
        cmocka_unit_test(values_end_where_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
