/* Every sample of an engine's answer, held against what expected.json says of it; then read byte by byte, cut
 * at every offset, with CRLF line ends and gzip-coded: the facts must not change. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include "recorder/dissect/body.h"
#include "recorder/dissect/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

struct sample {
    char name[128];
    const struct json *expected;
    const struct json *ask; /* path and body of the request, from wire/asks.json */
    char *body;
    size_t n_body;
    const char *type;       /* Content-Type */
    bool sse, events, gzip; /* events: a framing of events, of which sse is one */
    unsigned status;
};

static struct json_doc document, asks; /* expected.json, asks.json */

static const char *str(const struct json *o, const char *key) {
    const char *s = json_text(json_get(o, key));
    return s ? s : "";
}
static int64_t num(const struct json *o, const char *key, int64_t absent) {
    json_int(json_get(o, key), &absent);
    return absent;
}

/* -- the response on the wire: chunked, one chunk to a cut of the body */
struct wire {
    char *p;
    size_t n;
    size_t *ends; /* offsets behind which reads are cut */
    size_t n_ends;
};

static void add(struct wire *w, const char *p, size_t n) {
    w->p = realloc(w->p, w->n + n + 1);
    memcpy(w->p + w->n, p, n);
    w->n += n;
}
static void end_read(struct wire *w) {
    w->ends = realloc(w->ends, (w->n_ends + 1) * sizeof *w->ends);
    w->ends[w->n_ends++] = w->n;
}

static void head_line(struct wire *w, const char *name, const char *value) {
    char text[512];
    add(w, text, (size_t)snprintf(text, sizeof text, "%s: %s\r\n", name, value));
}

static void head(struct wire *w, const struct sample *s) {
    char text[64];
    add(w, text, (size_t)snprintf(text, sizeof text, "HTTP/1.1 %u X\r\n", s->status));
    head_line(w, "Content-Type", s->type);
    if (s->gzip) head_line(w, "Content-Encoding", "gzip");
    head_line(w, "Transfer-Encoding", "chunked");
    const struct json *headers = json_get(s->expected, "response_headers");
    for (const struct json *h = json_first(headers); h; h = json_next(h))
        head_line(w, json_key(h), json_text(h));
    add(w, "\r\n", 2);
    end_read(w);
}

static void chunk(struct wire *w, const char *p, size_t n) {
    char size[32];
    add(w, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n));
    add(w, p, n);
    add(w, "\r\n", 2);
    end_read(w);
}

/* Ends of the events in a body, by reading it byte by byte. */
struct ends {
    size_t at[64], n, now;
};
static void on_event(void *ctx, const struct event *e) {
    struct ends *x = ctx;
    assert_true(x->n < 64);
    x->at[x->n++] = x->now;
}
static struct ends event_ends(const struct sample *s) {
    struct ends x = {.n = 0};
    struct pool pool = {.limit = 1 << 20};
    struct body b;
    body_begin(&b,
               s->sse                      ? BODY_SSE
               : strstr(s->type, "ndjson") ? BODY_NDJSON
               : strstr(s->type, "amazon") ? BODY_AWS
                                           : BODY_COUNTED,
               "", &pool, on_event, &x);
    for (x.now = 1; s->events && x.now <= s->n_body; x.now++) body_feed(&b, s->body + x.now - 1, 1);
    body_free(&b);
    return x;
}

/* One chunk and read an event. */
static struct wire by_event(const struct sample *s) {
    struct wire w = {0};
    struct ends x = event_ends(s);
    size_t from = 0;
    head(&w, s);
    for (size_t i = 0; i < x.n; from = x.at[i++]) chunk(&w, s->body + from, x.at[i] - from);
    if (from < s->n_body) chunk(&w, s->body + from, s->n_body - from);
    if (!json_is_true(json_get(s->expected, "truncated"))) add(&w, "0\r\n\r\n", 5);
    end_read(&w);
    return w;
}

static struct wire gzipped(const struct sample *s) {
    struct wire w = {0};
    struct ends x = event_ends(s);
    z_stream z = {0};
    char out[1 << 16];
    size_t from = 0;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    head(&w, s);
    for (size_t i = 0; i <= x.n; i++) {
        size_t to = i < x.n ? x.at[i] : s->n_body;
        z.next_in = (Bytef *)s->body + from, z.avail_in = (uInt)(to - from);
        z.next_out = (Bytef *)out, z.avail_out = sizeof out;
        deflate(&z, i < x.n ? Z_SYNC_FLUSH : Z_FINISH);
        chunk(&w, out, sizeof out - z.avail_out);
        from = to;
    }
    deflateEnd(&z);
    if (!json_is_true(json_get(s->expected, "truncated"))) add(&w, "0\r\n\r\n", 5);
    end_read(&w);
    return w;
}

static void free_wire(struct wire *w) {
    free(w->p);
    free(w->ends);
}

/* -- running */
static void begin(struct drive *v, const struct sample *s) {
    drive_start(v);
    v->now_ns = 2000;
    drive_post(v, s->ask ? str(s->ask, "path") : "/foo", "", s->ask ? str(s->ask, "body") : "{}");
    v->now_ns = 10000;
}

static void finish(struct drive *v) {
    drive_fin(v, DIR_DOWN);
    drive_close(v);
    drive_stop(v);
    assert_false(fake_misused());
}

/* Facts of the sample when each read ends where `step` bytes or one cut end. */
static char *run_cut(const struct sample *s, const struct wire *w, size_t step, size_t cut) {
    struct drive v;
    begin(&v, s);
    if (step)
        drive_cut(&v, DIR_DOWN, w->p, w->n, step);
    else {
        drive_bytes(&v, DIR_DOWN, w->p, cut);
        drive_bytes(&v, DIR_DOWN, w->p + cut, w->n - cut);
    }
    finish(&v);
    return fake_dump(1);
}

/* Reads that end with events, 1000 ns apart from 11000 on: the k-th event comes at 11000 + k * 1000. */
static void run_by_event(const struct sample *s, const struct wire *w) {
    struct drive v;
    begin(&v, s);
    for (size_t i = 0, from = 0; i < w->n_ends; from = w->ends[i++], v.now_ns += 1000)
        drive_bytes(&v, DIR_DOWN, w->p + from, w->ends[i] - from);
    finish(&v);
}

/* -- held against what is right */
static void hold(const char *file, const char *what, int64_t right, int64_t seen) {
    if (right == seen) return;
    fail_msg("%s: %s is %lld, right is %lld", file, what, (long long)seen, (long long)right);
}

static void hold_fact(const struct sample *s, const char *key, enum fact f) {
    hold(s->name, key, num(s->expected, key, -1), fake_get(1, f, -1));
}

/* Tokens of an event by the source that expected.json names. */
static int64_t tokens(const struct tok_event *e, const char *source, int64_t *before) {
    if (strcmp(source, "token_ids") == 0) return e->ids > 0 ? e->ids : 0;
    if (strcmp(source, "logprobs") == 0) return e->logprobs > 0 ? e->logprobs : 0;
    if (strcmp(source, "one_per_event") == 0) return (e->what & TOK_CONTRACT) != 0;
    if (strstr(source, "_cumulative")) {
        int64_t rise = e->running > *before ? e->running - *before : 0;
        *before += rise;
        return rise;
    }
    return (e->what & TOK_TEXT) != 0;
}

static void hold_events(const struct sample *s) {
    size_t n_events;
    const struct tok_event *e = fake_events(&n_events);
    const struct json *right = json_first(json_get(s->expected, "token_events"));
    int64_t before = 0, first = num(s->expected, "first_token_event_index", -1);
    for (size_t i = 0; i < n_events; i++) {
        int64_t k = tokens(&e[i], str(s->expected, "tokens_source"), &before),
                index = (e[i].t_ns - 11000) / 1000;
        if (first >= 0 && (k > 0 || e[i].what & TOK_SUMMARY)) {
            hold(s->name, "first token event", first, index);
            first = -1;
        }
        if (k == 0) continue;
        int64_t right_index = -1, right_k = -1;
        json_int(json_first(right), &right_index);
        json_int(json_next(json_first(right)), &right_k);
        hold(s->name, "index of a token event", right_index, index);
        hold(s->name, "tokens of an event", right_k, k);
        right = json_next(right);
    }
    if (right) fail_msg("%s: token events are missing", s->name);
}

static void hold_times(const struct sample *s) {
    static const struct {
        const char *key;
        enum fact fact;
    } rows[] = {{"queue_ms", F_reported_queue_ns},     {"load_ms", F_reported_load_ns},
                {"prefill_ms", F_reported_prefill_ns}, {"ttft_ms", F_reported_ttft_ns},
                {"decode_ms", F_reported_decode_ns},   {"total_ms", F_reported_total_ns},
                {"itl_mean_ms", F_reported_itl_ns}};
    const struct json *t = json_get(s->expected, "server_timings");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ms;
        int64_t right = json_real(json_get(t, rows[i].key), &ms) ? llround(ms * 1e6) : -1;
        hold(s->name, rows[i].key, right, fake_get(1, rows[i].fact, -1));
    }
}

static void hold_speculation(const struct sample *s) {
    int64_t accepted = fake_get(1, F_accepted_prediction_tokens, -1);
    int64_t rejected = fake_get(1, F_rejected_prediction_tokens, -1);
    if (fake_get(1, F_matched_stop_seen, 0)) { /* SGLang: the same fields mean speculation */
        hold(s->name, "draft_tokens", num(s->expected, "draft_tokens", -1), accepted + rejected);
        hold(s->name, "accepted_tokens", num(s->expected, "accepted_tokens", -1), accepted);
        return;
    }
    hold_fact(s, "draft_tokens", F_draft_tokens);
    hold_fact(s, "accepted_tokens", F_accepted_tokens);
    hold_fact(s, "predicted_accepted", F_accepted_prediction_tokens);
    hold_fact(s, "predicted_rejected", F_rejected_prediction_tokens);
}

static void hold_finish(const struct sample *s) {
    const struct json *right = json_get(s->expected, "finish_reason");
    char text[256] = "";
    if (json_text(right)) snprintf(text, sizeof text, "%s", json_text(right));
    for (const struct json *v = json_first(right); v; v = json_next(v))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "," : "", json_text(v));
    const char *seen = fake_str(1, F_finish_reason);
    if (strcmp(text, seen ? seen : "") != 0)
        fail_msg("%s: finish_reason is %s, right is %s", s->name, seen, text);
}

static void hold_sample(const struct sample *s) {
    hold_fact(s, "prompt_tokens", F_prompt_tokens);
    hold_fact(s, "cached_tokens", F_cached_tokens);
    hold_fact(s, "output_tokens", F_output_tokens_told);
    if (!json_is_null(json_get(s->expected, "reasoning_tokens")))
        hold_fact(s, "reasoning_tokens", F_reasoning_tokens);
    if (!json_is_null(json_get(s->expected, "cache_write_tokens")))
        hold_fact(s, "cache_write_tokens", F_cache_write_tokens);
    if (s->events) {
        hold_fact(s, "n_events", F_events);
        hold(s->name, "done_marker", json_is_true(json_get(s->expected, "done_marker")),
             fake_get(1, F_done_marker, 0));
        hold(s->name, "comments", num(s->expected, "comments", 0), fake_get(1, F_comments, 0));
        hold(s->name, "body_whole", !json_is_true(json_get(s->expected, "truncated")),
             fake_get(1, F_body_whole, -1));
    }
    const char *error = json_text(json_get(s->expected, "error"));
    hold(s->name, "error's length", error ? (int64_t)strlen(error) : -1, fake_get(1, F_error_bytes, -1));
    hold(s->name, "stream_error", error && s->status < 300, fake_get(1, F_stream_error, 0));
    bool cold = json_is_true(json_get(s->expected, "cold_start")),
         by_duration = fake_get(1, F_reported_load_ns, 0) >= 1000000000;
    bool by_finish = strcmp(str(s->expected, "finish_reason"), "load") == 0;
    hold(s->name, "loading", cold && !by_finish, fake_get(1, F_loading, 0) || by_duration);
    hold(s->name, "status", s->status, fake_get(1, F_status, -1));
    assert_string_equal(fake_str(1, F_api), str(s->expected, "api"));
    if (error) assert_false(fake_holds(error));
    assert_false(fake_holds("secret"));
    hold_times(s);
    hold_speculation(s);
    hold_finish(s);
    hold_events(s);
}

/* -- samples */
static char *gunzip(const char *p, size_t n, size_t *n_out) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n};
    char *out = malloc(1 << 16);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_out = (Bytef *)out, z.avail_out = 1 << 16;
    inflate(&z, Z_FINISH);
    inflateEnd(&z);
    *n_out = (1 << 16) - z.avail_out;
    return out;
}

static struct sample open_sample(const struct json *e) {
    struct sample s = {.expected = e, .status = (unsigned)num(e, "http_status", 200)};
    snprintf(s.name, sizeof s.name, "%s", str(e, "file"));
    char path[256];
    snprintf(path, sizeof path, "wire/%s", s.name);
    s.body = drive_file(path, &s.n_body);
    const char *framing = str(e, "framing");
    s.ask = json_get(asks.root, str(e, "api"));
    if (!s.ask) fail_msg("%s: no request for the api %s in asks.json", s.name, str(e, "api"));
    s.sse = strcmp(framing, "sse") == 0;
    s.events = strcmp(framing, "json") != 0;
    s.type = s.sse                                     ? "text/event-stream; charset=utf-8"
             : strcmp(framing, "ndjson") == 0          ? "application/x-ndjson"
             : strcmp(framing, "aws-eventstream") == 0 ? "application/vnd.amazon.eventstream"
                                                       : "application/json";
    if (strcmp(str(e, "content_encoding"), "gzip") == 0) {
        char *plain = gunzip(s.body, s.n_body, &s.n_body);
        free(s.body);
        s.body = plain, s.gzip = true;
    }
    return s;
}

static void each_sample(void (*f)(const struct sample *s)) {
    int n = 0;
    for (const struct json *e = json_first(document.root); e; e = json_next(e)) {
        struct sample s = open_sample(e);
        f(&s);
        free(s.body);
        n++;
    }
    assert_true(n == json_count(document.root) && n > 50);
}

static void right(const struct sample *s) {
    struct wire w = s->gzip ? gzipped(s) : by_event(s);
    run_by_event(s, &w);
    hold_sample(s);
    free_wire(&w);
}
static void every_sample_reads_as_expected(void **state) {
    each_sample(right);
}

static void same_facts(const struct sample *s, const char *whole, char *seen, const char *how, size_t at) {
    if (strcmp(whole, seen) != 0) fail_msg("%s %s %zu:\n%s\nbut whole:\n%s", s->name, how, at, seen, whole);
    free(seen);
}

static void cuts(const struct sample *s) {
    struct wire w = s->gzip ? gzipped(s) : by_event(s);
    char *whole = run_cut(s, &w, w.n, 0);
    for (size_t step = 1; step < 8; step++)
        same_facts(s, whole, run_cut(s, &w, step, 0), "in steps of", step);
    for (size_t at = 1; at < w.n; at++) same_facts(s, whole, run_cut(s, &w, 0, at), "cut at", at);
    free(whole);
    free_wire(&w);
}
static void cuts_change_nothing(void **state) {
    each_sample(cuts);
}

/* Facts that speak of sizes on the wire differ with the coding; the rest must not. */
static void without_sizes(char *dump) {
    static const char *const lines[] = {"response_bytes = ", "response_body_bytes = ", "content_encoding = ",
                                        "t_end_ns = "}; /* gzip's trailer is one more read */
    for (int i = 0; i < 4; i++) {
        char *at = strstr(dump, lines[i]);
        if (at) memmove(at, strchr(at, '\n') + 1, strlen(strchr(at, '\n')));
    }
    for (char *at = dump; (at = strstr(at, " wire "));) {
        char *behind = at + 6 + strspn(at + 6, "0123456789");
        memmove(at, behind, strlen(behind) + 1);
    }
}

static void coded(const struct sample *s) {
    struct sample plain = *s, gz = *s;
    plain.gzip = false, gz.gzip = true;
    struct wire a = by_event(&plain), b = gzipped(&gz);
    run_by_event(&plain, &a);
    char *right_dump = fake_dump(1);
    run_by_event(&gz, &b);
    char *dump = fake_dump(1);
    without_sizes(right_dump);
    without_sizes(dump);
    same_facts(s, right_dump, dump, "gzip-coded", 0);
    free(right_dump);
    free_wire(&a);
    free_wire(&b);
}
static void gzip_changes_nothing(void **state) {
    each_sample(coded);
}

static void crlf(const struct sample *s) {
    if (!s->sse) return;
    struct sample other = *s;
    other.body = malloc(2 * s->n_body + 1), other.n_body = 0, other.gzip = false;
    for (size_t i = 0; i < s->n_body; i++) {
        if (s->body[i] == '\n' && (i == 0 || s->body[i - 1] != '\r')) other.body[other.n_body++] = '\r';
        other.body[other.n_body++] = s->body[i];
    }
    struct wire w = by_event(&other);
    run_by_event(&other, &w);
    hold_sample(&other);
    free_wire(&w);
    free(other.body);
}
static void crlf_changes_nothing(void **state) {
    each_sample(crlf);
}

/* A gateway's path says nothing: what the answer looks like tells its API, where it is more than an error. */
static void elsewhere(const struct sample *s) {
    struct sample other = *s;
    if (s->status >= 300) return;
    other.ask = NULL;
    struct wire w = s->gzip ? gzipped(s) : by_event(s);
    run_by_event(&other, &w);
    if (strcmp(fake_str(1, F_api), str(s->expected, "api")) != 0)
        fail_msg("%s is taken for %s", s->name, fake_str(1, F_api));
    free_wire(&w);
}
static void answers_are_known_by_their_shape(void **state) {
    each_sample(elsewhere);
}

static struct json_doc open_json(const char *name) {
    size_t n;
    char *text = drive_file(name, &n);
    struct json_doc d = json_open(text, n);
    free(text);
    return d;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_known_by_their_shape),
        cmocka_unit_test(every_sample_reads_as_expected),
        cmocka_unit_test(crlf_changes_nothing),
        cmocka_unit_test(gzip_changes_nothing),
        cmocka_unit_test(cuts_change_nothing),
    };
    document = open_json("wire/expected.json");
    asks = open_json("wire/asks.json");
    if (!document.root || !asks.root) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_close(&asks);
    json_close(&document);
    fake_reset();
    return failed;
}
