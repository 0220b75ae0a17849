/* HTTP/1 framing: each stream whole, in steps, and cut at every offset. */
#include "recorder/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was seen, as text. */
struct seen {
    char text[8192];
    size_t n;
    char last;      /* of what kind the last piece was, so that pieces of one thing are joined */
    bool head_only; /* answers are to HEAD */
};

static void put(struct seen *s, char kind, const char *p, size_t n) {
    if (s->last != kind) s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, " %c:", kind);
    s->last = kind;
    s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%.*s", (int)n, p);
}
static void begin(void *ctx, uint64_t off) {
    char text[32];
    put(ctx, '<', text, (size_t)snprintf(text, sizeof text, "%d", (int)off));
}
static void target(void *ctx, const char *p, size_t n) {
    put(ctx, 't', p, n);
}
static void field(void *ctx, const char *p, size_t n) {
    put(ctx, 'f', p, n);
}
static void value(void *ctx, const char *p, size_t n) {
    put(ctx, 'v', p, n);
}
static enum http1_follows head(void *ctx, const struct http1_head *h) {
    struct seen *s = ctx;
    char text[64];
    put(s, 'h', text,
        (size_t)snprintf(text, sizeof text, "%s%d.%d%s", h->method ? h->method : "", (int)h->status,
                         (int)h->minor, h->chunked ? " chunked" : ""));
    if (h->method) return HTTP1_BODY;
    if (h->status == 101) return HTTP1_TUNNEL;
    return s->head_only || h->status < 200 || h->status == 204 || h->status == 304 ? HTTP1_NO_BODY
                                                                                   : HTTP1_BODY;
}
static void body(void *ctx, const char *p, size_t n) {
    put(ctx, 'b', p, n);
}
static void end(void *ctx, uint64_t off) {
    char text[32];
    put(ctx, '>', text, (size_t)snprintf(text, sizeof text, "%d", (int)off));
}
static const struct http1_ops ops = {begin, target, field, value, head, body, end};

static const struct {
    const char *title;
    enum http1_kind kind;
    const char *stream,
        *right; /* right: what is seen, then how it ended: "| eof" whole, "| cut", "| opaque" */
    bool head_only;
} cases[] = {
    {"a request with a length", HTTP1_REQUEST, "POST /a?b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
     " <:0 t:/a?b f:Content-Length v:3 h:POST0.1 b:abc >:44 | eof", false},
    {"two requests", HTTP1_REQUEST, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
     " <:0 t:/a h:GET0.1 >:19 <:19 t:/b h:GET0.0 >:38 | eof", false},
    {"line ends between requests belong to none", HTTP1_REQUEST, "\r\nGET /a HTTP/1.1\r\n\r\n\r\n\n",
     " <:2 t:/a h:GET0.1 >:21 | eof", false},
    {"a request after Connection: close", HTTP1_REQUEST,
     "GET /a HTTP/1.1\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
     " <:0 t:/a f:Connection v:close h:GET0.1 >:38 <:38 t:/b h:GET0.1 >:57 | eof", false},
    {"chunks, an extension, a trailer", HTTP1_REQUEST,
     "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0003;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: "
     "v\r\n\r\n",
     " <:0 t:/ f:Transfer-Encoding v:chunked h:POST0.1 chunked b:abc0123456789 f:T v:v >:89 | eof", false},
    {"both length and chunks: chunks hold", HTTP1_RESPONSE,
     "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
     " <:0 f:Content-Length v:99 f:Transfer-Encoding v:chunked h:200.1 chunked b:a >:78 | eof", false},
    {"Upgrade: h2c with a plain request", HTTP1_REQUEST,
     "POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nxGET / "
     "HTTP/1.1\r\n\r\n",
     " <:0 t:/ f:Connection v:Upgrade f:Upgrade v:h2c f:Content-Length v:1 h:POST0.1 b:x >:74 <:74 t:/ "
     "h:GET0.1 >:92 | eof",
     false},
    {"a 101 opens a tunnel", HTTP1_RESPONSE,
     "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nHTTP/1.1 200",
     " <:0 f:Upgrade v:websocket f:Connection v:upgrade h:101.1 >:59 | opaque", false},
    {"an interim answer, then the answer", HTTP1_RESPONSE,
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 X\r\n\r\nHTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nx",
     " <:0 h:100.1 >:25 <:25 h:204.1 >:43 <:43 f:Content-Length v:1 h:200.1 b:x >:81 | eof", false},
    {"answers to HEAD", HTTP1_RESPONSE,
     "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n",
     " <:0 f:Content-Length v:5 h:200.1 >:37 <:37 f:Transfer-Encoding v:chunked h:200.1 chunked >:83 | eof",
     true},
    {"a body until the end", HTTP1_RESPONSE, "HTTP/1.0 200 X\r\n\r\nabc", " <:0 h:200.0 b:abc >:21 | eof",
     false},
    {"cut in a length", HTTP1_RESPONSE, "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nab",
     " <:0 f:Content-Length v:5 h:200.1 b:ab | cut", false},
    {"cut in chunks", HTTP1_RESPONSE, "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
     " <:0 f:Transfer-Encoding v:chunked h:200.1 chunked b:ab | cut", false},
    {"cut in a head", HTTP1_REQUEST, "GET / HTTP/1.1\r\n", " <:0 t:/ | cut", false},
    {"a PROXY header, version 1", HTTP1_REQUEST, "PROXY TCP4 1.1.1.1 2.2.2.2 3 4\r\nGET / HTTP/1.1\r\n\r\n",
     " <:32 t:/ h:GET0.1 >:50 | eof proxy 1", false},
    {"what only begins like one", HTTP1_REQUEST, "PROPFIND / HTTP/1.1\r\n\r\n",
     " <:0 t:/ h:PROPFIND0.1 >:23 | eof", false},
    {"no HTTP", HTTP1_REQUEST, "\x16\x03\x01", " <:0 | opaque", false},
    {"HTTP/2", HTTP1_REQUEST, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", " <:0 | opaque", false},
    {"nothing", HTTP1_REQUEST, "", " | eof", false},
};

/* Feeds exact copies; then the end of input. */
static void run(size_t i, size_t step, size_t cut, struct seen *s) {
    const char *p = cases[i].stream;
    size_t n = strlen(p);
    bool more = true;
    *s = (struct seen){.head_only = cases[i].head_only};
    struct http1 *h = http1_new(cases[i].kind, &ops, s);
    for (size_t at = 0, len; at < n; at += len) {
        len = step ? step : at == 0 && cut > 0 ? cut : n - at;
        if (len > n - at) len = n - at;
        char *copy = malloc(len);
        memcpy(copy, p + at, len);
        more = http1_feed(h, copy, len);
        free(copy);
    }
    bool whole = more && http1_eof(h);
    s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, " | %s",
                             !more   ? "opaque"
                             : whole ? "eof"
                                     : "cut");
    if (http1_proxy_version(h))
        snprintf(s->text + s->n, sizeof s->text - s->n, " proxy %d", http1_proxy_version(h));
    http1_free(h);
}

static void cuts_change_nothing(void **state) {
    static struct seen s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].stream);
        for (size_t step = 1; step <= n + 1; step++) {
            run(i, step, 0, &s);
            if (strcmp(s.text, cases[i].right) != 0)
                fail_msg("%s in steps of %zu:\n%s\nright:\n%s", cases[i].title, step, s.text, cases[i].right);
        }
        for (size_t cut = 0; cut <= n; cut++) {
            run(i, 0, cut, &s);
            if (strcmp(s.text, cases[i].right) != 0)
                fail_msg("%s cut at %zu:\n%s", cases[i].title, cut, s.text);
        }
    }
}

static void a_proxy_header_of_version_2(void **state) {
    static struct seen s;
    char text[128];
    memcpy(text, "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16);
    memset(text + 16, '\r', 12);
    memcpy(text + 28, "GET / HTTP/1.1\r\n\r\n", 18);
    for (size_t step = 1; step < 47; step++) {
        s = (struct seen){.n = 0};
        struct http1 *h = http1_new(HTTP1_REQUEST, &ops, &s);
        for (size_t i = 0; i < 46; i += step)
            assert_true(http1_feed(h, text + i, 46 - i < step ? 46 - i : step));
        assert_string_equal(s.text, " <:28 t:/ h:GET0.1 >:46");
        assert_int_equal(http1_proxy_version(h), 2);
        http1_free(h);
    }
}

static void a_long_head_is_read_and_a_huge_one_refused(void **state) {
    static struct seen s;
    char *text = malloc(8 << 20);
    for (size_t mib = 1; mib <= 6; mib += 5) {
        s = (struct seen){.n = 0};
        struct http1 *h = http1_new(HTTP1_REQUEST, &ops, NULL);
        http1_free(h);
        static const struct http1_ops few = {.head = head};
        h = http1_new(HTTP1_REQUEST, &few, &s);
        size_t n = (size_t)sprintf(text, "GET / HTTP/1.1\r\nX: ");
        memset(text + n, 'a', mib << 20);
        n += mib << 20;
        memcpy(text + n, "\r\n\r\n", 4);
        assert_int_equal(http1_feed(h, text, n + 4), mib == 1);
        http1_free(h);
    }
    free(text);
}

static void it_goes_on_with_a_head_after_a_loss(void **state) {
    static struct seen s;
    s = (struct seen){.n = 0};
    struct http1 *h = http1_new(HTTP1_RESPONSE, &ops, &s);
    http1_feed(h, "HTTP/1.1 200 X\r\nContent-Length: 500\r\n\r\nab", 41);
    assert_true(http1_in_message(h));
    http1_resync(h, 1000);
    assert_false(http1_in_message(h));
    assert_true(http1_feed(h, "HTTP/1.1 204 X\r\n\r\n", 18));
    assert_non_null(strstr(s.text, " <:1000 h:204.1 >:1018"));
    assert_false(http1_feed(h, "garbage", 7));
    assert_non_null(http1_why(h));
    http1_resync(h, 2000);
    assert_null(http1_why(h));
    assert_true(http1_feed(h, "HTTP/1.1 204 X\r\n\r\n", 18));
    http1_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_change_nothing),
        cmocka_unit_test(a_proxy_header_of_version_2),
        cmocka_unit_test(a_long_head_is_read_and_a_huge_one_refused),
        cmocka_unit_test(it_goes_on_with_a_head_after_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
