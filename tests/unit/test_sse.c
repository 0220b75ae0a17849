/* Event streams: each case whole, in steps, and cut at every offset. */
#include "recorder/dissect/ndjson.h"
#include "recorder/dissect/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was seen, as text: "name|data|wire bytes" with a mark for a cut one, one event a line, then comments.
 */
struct seen {
    char text[1 << 16];
    size_t n;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->n +=
        (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%s|%.*s|%zu%s%s\n", e->name, (int)e->n_data,
                         e->data, e->wire_bytes, e->cut ? " cut" : "", e->unread ? " unread" : "");
}

/* Feeds an exact copy of n bytes, so that a sanitizer sees what is read beyond them. */
static void feed(struct sse *s, struct pool *pool, const char *p, size_t n, struct seen *seen) {
    char *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    sse_feed(s, pool, copy, n, on_event, seen);
    memset(copy, 'X', n);
    free(copy);
}

static void run(const char *p, size_t n, size_t step, size_t cut, struct seen *seen) {
    struct pool pool = {.limit = 1 << 20};
    struct sse s = {0};
    seen->n = 0;
    if (step)
        for (size_t i = 0; i < n; i += step) feed(&s, &pool, p + i, n - i < step ? n - i : step, seen);
    else {
        feed(&s, &pool, p, cut, seen);
        feed(&s, &pool, p + cut, n - cut, seen);
    }
    sse_end(&s, &pool, on_event, seen);
    snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "comments %d\n", (int)s.comments);
    assert_int_equal(pool.used, 0);
}

static const struct {
    const char *title, *stream, *right;
} cases[] = {
    {"LF", "data: a\n\ndata: b\n\n", "|a|9\n|b|9\ncomments 0\n"},
    {"CRLF: the LF behind the blank line's CR is counted nowhere", "data: a\r\n\r\ndata: b\r\n\r\n",
     "|a|10\n|b|10\ncomments 0\n"},
    {"CR", "data: a\r\rdata: b\r\r", "|a|9\n|b|9\ncomments 0\n"},
    {"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\rdata: d\n\r", "|a|10\n|b|9\n|c|10\n|d|9\ncomments 0\n"},
    {"one space is taken off", "data:a\n\ndata:  b\n\ndata:\tc\n\n", "|a|8\n| b|10\n|\tc|9\ncomments 0\n"},
    {"data lines are joined", "data: a\ndata: b\r\ndata:\rdata: c\n\n", "|a\nb\n\nc|32\ncomments 0\n"},
    {"a field without colon", "data\n\ndata\ndata\n\nfoo\ndata: x\n\n", "||6\n|\n|11\n|x|13\ncomments 0\n"},
    {"names", "event: error\ndata: a\n\nevent:x\n\ndata: b\n\n", "error|a|22\n|b|9\ncomments 0\n"},
    {"comments make no event", ": ping\n\n:\n\n: x\ndata: a\n\n", "|a|13\ncomments 3\n"},
    {"nor do id and retry", "id: 1\nretry: 5\n\nid: 2\n\n", "comments 0\n"},
    {"byte order mark",
     "\xef\xbb\xbf"
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\ndata: c\n\n",
     "|a|9\n|c|9\ncomments 0\n"},
    {"half a byte order mark",
     "\xef\xbb"
     "data: a\n\ndata: b\n\n",
     "|b|9\ncomments 0\n"},
    {"cut inside a line", "data: a\n\ndata: {\"x", "|a|9\n|{\"x|9 cut\ncomments 0\n"},
    {"cut before the blank line", "data: a\n\ndata: [DONE]\n", "|a|9\n|[DONE]|13 cut\ncomments 0\n"},
    {"no data at the end", "data: a\n\n: bye", "|a|9\ncomments 1\n"},
    {"U+2028 is no line end",
     "data: a\xe2\x80\xa8"
     "b\n\n",
     "|a\xe2\x80\xa8"
     "b|13\ncomments 0\n"},
    {"bare JSON", "data: a\n\n{\n:\"error\": {}\r\n}\n\ndata: b\n{\n\n{\"c",
     "|a|9\n|{\n:\"error\": {}\n}|19\n|b|11\n|{\"c|3 cut\ncomments 0\n"},
    {"blank lines only", "\n\n\r\n\r\r\n\n", "comments 0\n"},
    {"nothing", "", "comments 0\n"},
};

static void cuts_change_nothing(void **state) {
    static struct seen seen;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].stream;
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

static void a_whole_event_is_not_copied(void **state) {
    struct pool pool = {.limit = 1 << 20};
    struct sse s = {0};
    const char *text = "data: hello\n\n";
    sse_feed(&s, &pool, text, strlen(text), remember, NULL);
    assert_ptr_equal(where, text + 6);
    assert_null(s.line.p);
    assert_null(s.kept.p);
    sse_free(&s, &pool);
}

/* An event completes when its last line end comes: a lone CR at the end of a read is one. */
static void a_cr_completes_an_event_at_once(void **state) {
    struct pool pool = {.limit = 1 << 20};
    struct sse s = {0};
    static struct seen seen;
    seen.n = 0, seen.text[0] = 0;
    sse_feed(&s, &pool, "data: a\r", 8, on_event, &seen);
    assert_int_equal(seen.n, 0);
    sse_feed(&s, &pool, "\n\n", 2, on_event, &seen); /* the CR's LF, then the blank line */
    assert_string_equal(seen.text, "|a|10\n");
    seen.n = 0;
    sse_feed(&s, &pool, "data: b\r\r", 9, on_event, &seen);
    assert_string_equal(seen.text, "|b|9\n");
    sse_free(&s, &pool);
}

static void an_event_beyond_the_limit_is_counted(void **state) {
    struct pool pool = {.limit = 40u << 20};
    struct sse s = {0};
    static struct seen seen;
    size_t n = 1 << 20;
    char *part = malloc(n);
    memset(part, 'y', n);
    seen.n = 0;
    sse_feed(&s, &pool, "data: ", 6, on_event, &seen);
    for (int i = 0; i < 20; i++) sse_feed(&s, &pool, part, n, on_event, &seen);
    sse_feed(&s, &pool, "\n\ndata: next\n\n", 14, on_event, &seen);
    assert_string_equal(seen.text, "||20971528 unread\n|next|12\n");
    sse_free(&s, &pool);
    assert_int_equal(pool.used, 0);
    free(part);
}

static void a_pool_that_is_empty_loses_only_events(void **state) {
    struct pool pool = {.limit = 0};
    struct sse s = {0};
    static struct seen seen;
    char part[40 << 10];
    memset(part, 'y', sizeof part);
    seen.n = 0;
    sse_feed(&s, &pool, "data: ", 6, on_event, &seen);
    sse_feed(&s, &pool, part, sizeof part, on_event, &seen);
    sse_feed(&s, &pool, part, sizeof part, on_event, &seen);
    sse_feed(&s, &pool, "\n", 1, on_event, &seen);
    sse_feed(&s, &pool, "\ndata: next\n\n", 13, on_event, &seen);
    assert_string_equal(seen.text, "||81928 unread\n|next|12\n");
    sse_free(&s, &pool);
}

/* -- JSON lines */
static void run_lines(const char *p, size_t n, size_t step, bool cut, struct seen *seen) {
    struct pool pool = {.limit = 1 << 20};
    struct ndjson s = {0};
    seen->n = 0, seen->text[0] = 0;
    for (size_t i = 0; i < n; i += step) {
        size_t len = n - i < step ? n - i : step;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        ndjson_feed(&s, &pool, copy, len, on_event, seen);
        free(copy);
    }
    ndjson_end(&s, &pool, cut, on_event, seen);
}

static void lines_are_events(void **state) {
    static const struct {
        const char *stream, *right;
        bool cut;
    } rows[] = {
        {"{\"a\":1}\n{\"b\":2}\n", "|{\"a\":1}|8\n|{\"b\":2}|8\n", false},
        {"{\"a\":1}\r\n\n \n{\"b\":2}", "|{\"a\":1}\r|9\n|{\"b\":2}|10\n", false},
        {"{\"a\":1}\n{\"b\":", "|{\"a\":1}|8\n|{\"b\":|5 cut\n", true},
        {"\n\n", "", false},
        {"  ", "", true},
    };
    static struct seen seen;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t step = 1; step <= strlen(rows[i].stream); step++) {
            run_lines(rows[i].stream, strlen(rows[i].stream), step, rows[i].cut, &seen);
            if (strcmp(seen.text, rows[i].right) != 0)
                fail_msg("row %zu in steps of %zu:\n%s", i, step, seen.text);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(a_whole_event_is_not_copied),
        cmocka_unit_test(a_cr_completes_an_event_at_once),
        cmocka_unit_test(an_event_beyond_the_limit_is_counted),
        cmocka_unit_test(a_pool_that_is_empty_loses_only_events),
        cmocka_unit_test(lines_are_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
