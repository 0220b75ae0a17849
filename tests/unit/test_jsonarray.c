/* A JSON array as a stream of its elements: each case whole, in steps, and cut at every offset. */
#include "recorder/dissect/body.h"
#include "recorder/dissect/jsonarray.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was seen, as text: "data|wire bytes" and marks, one event a line. */
struct seen {
    char text[1 << 16];
    size_t n;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%.*s|%zu%s%s\n", (int)e->n_data, e->data,
                             e->wire_bytes, e->cut ? " cut" : "", e->unread ? " unread" : "");
}

/* Feeds an exact copy of n bytes, so that a sanitizer sees what is read beyond them. */
static void feed(struct jsonarray *s, struct pool *pool, const char *p, size_t n, struct seen *seen) {
    char *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    jsonarray_feed(s, pool, copy, n, on_event, seen);
    memset(copy, 'X', n);
    free(copy);
}

static void run(const char *p, size_t n, size_t step, size_t cut, struct seen *seen) {
    struct pool pool = {.limit = 1 << 20};
    struct jsonarray s = {0};
    seen->n = 0, seen->text[0] = 0;
    if (step)
        for (size_t i = 0; i < n; i += step) feed(&s, &pool, p + i, n - i < step ? n - i : step, seen);
    else {
        feed(&s, &pool, p, cut, seen);
        feed(&s, &pool, p + cut, n - cut, seen);
    }
    jsonarray_end(&s, &pool, on_event, seen);
    snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "%s\n",
             s.where == ARRAY_BEHIND ? "closed" : "open");
    assert_int_equal(pool.used, 0);
}

static const struct {
    const char *title, *body, *right;
} cases[] = {
    {"objects", "[{\"a\":1},{\"b\":2}]", "{\"a\":1}|8\n{\"b\":2}|8\nclosed\n"},
    {"as Gemini writes them", "[{\n  \"a\": 1\n}\n,\r\n{\n  \"b\": 2\n}\n]\n",
     "{\n  \"a\": 1\n}|13\n{\n  \"b\": 2\n}|16\nclosed\n"},
    {"white space before", " \n[ {} ]", "{}|6\nclosed\n"},
    {"nested", "[{\"a\":[{\"b\":[]},[1]]},[[]]]", "{\"a\":[{\"b\":[]},[1]]}|21\n[[]]|5\nclosed\n"},
    {"brackets in texts", "[{\"a\":\"}]\"},{\"[\":\"{\"}]", "{\"a\":\"}]\"}|11\n{\"[\":\"{\"}|10\nclosed\n"},
    {"escapes", "[{\"a\":\"\\\"}\\\\\"},{\"\\\\\":\"\\\\\\\"]\"}]",
     "{\"a\":\"\\\"}\\\\\"}|14\n{\"\\\\\":\"\\\\\\\"]\"}|15\nclosed\n"},
    {"no objects", "[1,\"a,]\",true ,null]", "1|2\n\"a,]\"|6\ntrue|5\nnull|6\nclosed\n"},
    {"empty", "[]", "closed\n"},
    {"empty, with space", " [ \n ] ", "closed\n"},
    {"text of several bytes a character", "[{\"a\":\"\xe2\x80\xa8\xf0\x9f\x98\x80\"}]",
     "{\"a\":\"\xe2\x80\xa8\xf0\x9f\x98\x80\"}|16\nclosed\n"},
    {"torn inside an element", "[{\"a\":1},{\"b\":\"x", "{\"a\":1}|8\n{\"b\":\"x|8 cut\nopen\n"},
    {"torn inside a number", "[12", "12|3 cut\nopen\n"},
    {"torn between elements", "[{\"a\":1}\n,\n", "{\"a\":1}|8\nopen\n"},
    {"torn before the end", "[{\"a\":1}", "{\"a\":1}|8\nopen\n"},
    {"commas missing or too many", "[,{}{},,{},]", "{}|4\n{}|2\n{}|4\nclosed\n"},
    {"a closing brace too many", "[{}},{}]", "{}|3\n}|1\n{}|3\nclosed\n"},
    {"brackets that do not fit end where their number does", "[{]},{}]", "{]|3\n}|1\n{}|3\nclosed\n"},
    {"something behind it", "[{}]\n{\"a\":1}", "{}|3\n|9 cut unread\nclosed\n"},
};

static void cuts_change_nothing(void **state) {
    static struct seen seen;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].body;
        size_t n = strlen(p);
        for (size_t step = 1; step <= n; step++) {
            run(p, n, step, 0, &seen);
            if (strcmp(seen.text, cases[i].right) != 0)
                fail_msg("%s in steps of %zu:\n%s", cases[i].title, step, seen.text);
        }
        for (size_t cut = 0; cut <= n; cut++) {
            run(p, n, 0, cut, &seen);
            if (strcmp(seen.text, cases[i].right) != 0)
                fail_msg("%s cut at %zu:\n%s", cases[i].title, cut, seen.text);
        }
    }
}

static const char *where;
static void remember(void *ctx, const struct event *e) {
    where = e->data;
}

static void a_whole_element_is_not_copied(void **state) {
    struct pool pool = {.limit = 1 << 20};
    struct jsonarray s = {0};
    const char *text = "[{\"a\":1}";
    jsonarray_feed(&s, &pool, text, strlen(text), remember, NULL);
    assert_ptr_equal(where, text + 1);
    assert_null(s.element.p);
}

/* An object completes with its own last byte: nothing behind it is waited for. */
static void an_element_completes_at_its_last_byte(void **state) {
    struct pool pool = {.limit = 1 << 20};
    struct jsonarray s = {0};
    static struct seen seen;
    seen.n = 0, seen.text[0] = 0;
    feed(&s, &pool, "[{\"a\":", 6, &seen);
    assert_string_equal(seen.text, "");
    feed(&s, &pool, "1}", 2, &seen);
    assert_string_equal(seen.text, "{\"a\":1}|8\n");
    jsonarray_free(&s, &pool);
}

static void an_element_beyond_the_limit_is_counted(void **state) {
    struct pool pool = {.limit = 40u << 20};
    struct jsonarray s = {0};
    static struct seen seen;
    size_t n = 1 << 20;
    char *part = malloc(n);
    memset(part, 'y', n);
    seen.n = 0;
    jsonarray_feed(&s, &pool, "[\"", 2, on_event, &seen);
    for (int i = 0; i < 20; i++) jsonarray_feed(&s, &pool, part, n, on_event, &seen);
    jsonarray_feed(&s, &pool, "\",{}]", 5, on_event, &seen);
    assert_string_equal(seen.text, "|20971523 unread\n{}|3\n");
    jsonarray_free(&s, &pool);
    assert_int_equal(pool.used, 0);
    free(part);
}

static void a_pool_that_is_empty_loses_only_elements(void **state) {
    struct pool pool = {.limit = 0};
    struct jsonarray s = {0};
    static struct seen seen;
    char part[40 << 10];
    memset(part, 'y', sizeof part);
    seen.n = 0;
    jsonarray_feed(&s, &pool, "[\"", 2, on_event, &seen);
    for (int i = 0; i < 2; i++) jsonarray_feed(&s, &pool, part, sizeof part, on_event, &seen);
    jsonarray_feed(&s, &pool, "\",{}]", 5, on_event, &seen);
    assert_string_equal(seen.text, "|81923 unread\n{}|3\n");
    jsonarray_free(&s, &pool);
}

/* A body that may be an array and is something else is collected whole. */
static void what_is_no_array_is_whole(void **state) {
    static const char *const bodies[] = {"{\"error\":{}}", " \n {\"error\":[1]}", "null", "\"[\"", ""};
    static struct seen seen;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        size_t n = strlen(bodies[i]), space = strspn(bodies[i], " \n");
        for (size_t step = 1; step <= n + 1; step++) {
            struct pool pool = {.limit = 1 << 20};
            struct body b;
            seen.n = 0, seen.text[0] = 0;
            body_begin(&b, BODY_ARRAY, "", &pool, on_event, &seen);
            for (size_t at = 0; at < n; at += step)
                body_feed(&b, bodies[i] + at, n - at < step ? n - at : step);
            assert_false(body_end(&b, false));
            assert_false(body_has_events(&b));
            assert_string_equal(seen.text, "");
            assert_int_equal(b.bytes, n);
            assert_true(n == 0 || b.whole.n >= n - space);
            if (n > 0) assert_memory_equal(b.whole.p + b.whole.n - (n - space), bodies[i] + space, n - space);
            body_free(&b);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(a_whole_element_is_not_copied),
        cmocka_unit_test(an_element_completes_at_its_last_byte),
        cmocka_unit_test(an_element_beyond_the_limit_is_counted),
        cmocka_unit_test(a_pool_that_is_empty_loses_only_elements),
        cmocka_unit_test(what_is_no_array_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
