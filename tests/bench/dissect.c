/* bench_dissect: what it costs to read one streamed event, by dialect.
 *
 * Whole responses go through the dissector as the forwarder would tell them, one piece for each event, into a
 * trace writer that only counts. Streams are made of the samples in tests/wire. Only the repeated events are
 * timed. A stream of which not every event was seen has no figure: to read nothing is cheap. */
#include "recorder/dissect.h"
#include "tests/bench/longer.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS_MAX = 96, ROUNDS_MAX = 99, EVENT_NS = 20000000 };

struct stream {
    const char *api, *file, *path;
    char *request; /* the whole of it */
    const char *type;
    struct longer answer;
    double ns[ROUNDS_MAX]; /* of an event, by round */
    double parsed;         /* share of the events that needed the JSON parser */
    size_t seen;           /* events logged in the last round */
};
static struct stream streams[STREAMS_MAX];
static size_t n_streams, n_rounds = 15, n_events = 1000;
static bool by_sample;
static const char *only;

/* -- the writer */
static size_t logged;
void trw_begin(struct trw *w, enum subject s, uint64_t id) {}
void trw_end(struct trw *w, enum subject s, uint64_t id) {}
void trw_int(struct trw *w, uint64_t id, enum fact f, int64_t value) {}
void trw_real(struct trw *w, uint64_t id, enum fact f, double value) {}
void trw_str(struct trw *w, uint64_t id, enum fact f, const char *p, size_t n) {}
void trw_span(struct trw *w, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value) {}
void trw_loss(struct trw *w, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
              uint64_t request) {}
void trw_anchor(struct trw *w, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {}
void trw_hist(struct trw *w, enum hist_name name, const struct hist *h) {}
void trw_tick(struct trw *w, int64_t now_ns) {}
void trw_event(struct trw *w, const struct tok_event *e) {
    logged++;
}

/* The linker puts this before the parser (-Wl,--wrap): what a template answers never comes here. */
static size_t parses;
cJSON *__real_cJSON_ParseWithLengthOpts(const char *p, size_t n, const char **end, cJSON_bool whole);
cJSON *__wrap_cJSON_ParseWithLengthOpts(const char *p, size_t n, const char **end, cJSON_bool whole);
cJSON *__wrap_cJSON_ParseWithLengthOpts(const char *p, size_t n, const char **end, cJSON_bool whole) {
    parses++;
    return __real_cJSON_ParseWithLengthOpts(p, n, end, whole);
}

/* -- one response */
static struct {
    struct dissect *d;
    uint64_t off[2];
    int64_t t_ns;
} now;

static void piece(struct piece p, const char *bytes) {
    p.flow = 1, p.t_ns = now.t_ns;
    p.head_at = p.end_at = NO_OFFSET;
    dissect_piece(now.d, &p, bytes);
}
static void tell(enum dir dir, const char *p, size_t n) {
    struct piece d = {.kind = PIECE_DATA, .dir = (uint8_t)dir, .off = now.off[dir], .n_bytes = (uint32_t)n};
    if (dir == DIR_UP) d.t2_ns = now.t_ns + 1;
    piece(d, p);
    now.off[dir] += n;
}
static void tell_chunks(const struct longer *l, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        size_t begin = i ? l->ends[i - 1] : 0;
        now.t_ns += EVENT_NS;
        tell(DIR_DOWN, l->bytes + begin, l->ends[i] - begin);
    }
}

static double clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void begin_response(const struct stream *x, struct shared *shared) {
    static const char *const names[] = {"127.0.0.1:1"};
    static const uint8_t key[32] = {7};
    struct dissect_config c = {.trw = (struct trw *)&logged, .shared = shared, .n_pairs = 1, .key = key};
    c.listens = c.upstreams = names;
    memset(&now, 0, sizeof now);
    now.t_ns = EVENT_NS;
    now.d = dissect_new(&c);
    if (!now.d) abort();
    char head[256];
    piece((struct piece){.kind = PIECE_OPEN}, NULL);
    tell(DIR_UP, x->request, strlen(x->request));
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", x->type);
    tell(DIR_DOWN, head, (size_t)n);
}

/* A whole response; the repeated events are timed. */
static void play(struct stream *x, size_t round, struct shared *shared) {
    const struct longer *l = &x->answer;
    begin_response(x, shared);
    tell_chunks(l, 0, l->first);
    logged = parses = 0;
    double from = clock_ns();
    tell_chunks(l, l->first, l->first + l->n);
    x->ns[round] = (clock_ns() - from) / (double)l->n;
    x->seen = logged;
    x->parsed = (double)parses / (double)l->n;
    tell_chunks(l, l->first + l->n, l->n_chunks);
    tell(DIR_DOWN, "0\r\n\r\n", 5);
    piece((struct piece){.kind = PIECE_CLOSE}, NULL);
    dissect_free(now.d);
}

/* -- samples */
static char *read_file(const char *name, size_t *n) {
    char path[4096];
    snprintf(path, sizeof path, "%s/wire/%s", TEST_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return fprintf(stderr, "bench_dissect: cannot open %s\n", path), NULL;
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = calloc(1, *n + 1);
    if (p && fread(p, 1, *n, f) != *n) *n = 0;
    fclose(f);
    return p;
}
static cJSON *read_json(const char *name) {
    size_t n;
    char *text = read_file(name, &n);
    cJSON *j = text ? cJSON_Parse(text) : NULL;
    free(text);
    return j;
}
static const char *str(const cJSON *o, const char *key) {
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return s ? s : "";
}

static bool make_answer(struct stream *x, const cJSON *sample) {
    static int at[1024];
    size_t n;
    char *bytes = read_file(x->file, &n);
    struct sample s = {
        .framing = str(sample, "framing"), .bytes = bytes, .n = n, .token_events = at, .run = 16};
    const cJSON *e, *events = cJSON_GetObjectItemCaseSensitive(sample, "n_events");
    s.n_events = cJSON_IsNumber(events) ? (size_t)events->valueint : 0;
    /* choices take turns; reasoning, text and tools come in runs */
    if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(sample, "finish_reason"))) s.run = 1;
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(sample, "token_events")) {
        if (s.n_token_events < 1024) at[s.n_token_events++] = cJSON_GetArrayItem(e, 0)->valueint;
    }
    bool good = bytes && longer_make(&x->answer, &s, n_events);
    free(bytes);
    return good;
}

static void add_stream(const cJSON *sample, const cJSON *asks) {
    struct stream *x = &streams[n_streams];
    const cJSON *ask = cJSON_GetObjectItemCaseSensitive(asks, str(sample, "api"));
    const char *framing = str(sample, "framing");
    *x = (struct stream){.api = str(sample, "api"), .file = str(sample, "file"), .path = str(ask, "path")};
    if (only && strcmp(only, x->api) != 0 && strcmp(only, x->file) != 0) return;
    if (!ask || n_streams == STREAMS_MAX || !make_answer(x, sample)) {
        fprintf(stderr, "bench_dissect: %s: left out, it cannot be made longer\n", x->file);
        return;
    }
    x->type = strcmp(framing, "sse") == 0      ? "text/event-stream"
              : strcmp(framing, "ndjson") == 0 ? "application/x-ndjson"
                                               : "application/vnd.amazon.eventstream";
    char *body = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(ask, "body"));
    if (asprintf(&x->request, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s", x->path,
                 strlen(body), body) < 0)
        abort();
    cJSON_free(body);
    n_streams++;
}

/* Streams that begin like another sample and break off, or test the framing alone, are no measure. */
static bool is_measure(const cJSON *sample) {
    static const char *const not [] = {"error", "truncated", "content_encoding"};
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (cJSON_GetObjectItemCaseSensitive(sample, not [i])) return false;
    return strcmp(str(sample, "framing"), "json") != 0 && !strstr(str(sample, "file"), "torture") &&
           cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(sample, "token_events")) > 0;
}

/* -- figures */
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(const double *v, size_t n) {
    double copy[ROUNDS_MAX];
    memcpy(copy, v, n * sizeof *v);
    qsort(copy, n, sizeof *copy, by_value);
    return n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
}

static double bytes_of(const struct stream *x) {
    const struct longer *l = &x->answer;
    return (double)(l->ends[l->first + l->n - 1] - (l->first ? l->ends[l->first - 1] : 0)) / (double)l->n;
}

/* One row: of the streams from i to end, each with the same weight. */
static bool print_row(const char *name, size_t i, size_t end) {
    double ns[ROUNDS_MAX] = {0}, bytes = 0, parsed = 0, n = (double)(end - i);
    bool whole = true;
    for (; i < end; i++) {
        for (size_t r = 0; r < n_rounds; r++) ns[r] += streams[i].ns[r] / n;
        bytes += bytes_of(&streams[i]) / n;
        parsed += streams[i].parsed / n;
        whole &= streams[i].seen == streams[i].answer.n;
    }
    printf("| %s | %.0f | %.0f |", name, n * (double)n_events, bytes);
    double middle = median(ns, n_rounds);
    if (whole)
        printf(" %.0f | %.0f | %.0f %% |\n", middle, bytes / middle * 1000,
               100 * (1 - (parsed < 1 ? parsed : 1)));
    else
        puts(" - | - | not every event was seen |");
    return whole;
}

static int by_api(const void *a, const void *b) {
    const struct stream *x = a, *y = b;
    int api = strcmp(x->api, y->api);
    return api ? api : strcmp(x->file, y->file);
}

static int report(void) {
    bool whole = true;
    printf("| %s | events | bytes an event | ns an event | MB/s | by template |\n|---|---|---|---|---|---|\n",
           by_sample ? "sample" : "dialect");
    for (size_t i = 0, end; i < n_streams; i = end) {
        for (end = i + 1; !by_sample && end < n_streams && strcmp(streams[i].api, streams[end].api) == 0;)
            end++;
        whole &= print_row(by_sample ? streams[i].file : streams[i].api, i, end);
    }
    return whole && n_streams > 0 ? 0 : 1;
}

static size_t whole_number(const char *text, size_t most) {
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    return *end || v > most ? 0 : v;
}

static bool options(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--samples") == 0)
            by_sample = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            n_rounds = whole_number(value, ROUNDS_MAX), i++;
        else if (strcmp(argv[i], "--events") == 0)
            n_events = whole_number(value, 1000000), i++;
        else if (strcmp(argv[i], "--only") == 0)
            only = value, i++;
        else
            return false;
    }
    return n_rounds > 0 && n_events > 0;
}

int main(int argc, char **argv) {
    struct shared *shared = calloc(1, sizeof *shared);
    if (!options(argc, argv) || !shared) {
        fputs("bench_dissect [--rounds 15] [--events 1000] [--samples] [--only DIALECT|SAMPLE]\n", stderr);
        return 2;
    }
    cJSON *expected = read_json("expected.json"), *asks = read_json("asks.json");
    const cJSON *sample;
    cJSON_ArrayForEach(sample, expected) {
        if (is_measure(sample)) add_stream(sample, asks);
    }
    qsort(streams, n_streams, sizeof *streams, by_api);
    /* rounds go forth and back, so that a machine that slows down hurts all streams alike */
    for (size_t r = 0; r < n_rounds; r++)
        for (size_t i = 0; i < n_streams; i++) play(&streams[r % 2 ? n_streams - 1 - i : i], r, shared);
    int status = report();
    for (size_t i = 0; i < n_streams; i++) longer_free(&streams[i].answer), free(streams[i].request);
    cJSON_Delete(expected);
    cJSON_Delete(asks);
    free(shared);
    return status;
}
