/* See fake_trace_db.h. */
#include "tests/unit/fake_trace_db.h"

#include "analyzer/arrivals.h"
#include "analyzer/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t START_WALL_NS = 1799895300000000000; /* 2027-01-14 02:55:00 UTC */
static const int64_t START_NS = 1000000000000;
#define RECORDING "11111111-2222-3333-4444-555555555555"

static void must(sqlite3 *db, int rc) {
    if (rc == SQLITE_OK || rc == SQLITE_DONE) return;
    fprintf(stderr, "fake_trace_db: %s\n", sqlite3_errmsg(db));
    abort();
}

sqlite3 *fake_db_new(const char *path, double seconds) {
    sqlite3 *db;
    unlink(path);
    must(NULL, sqlite3_open(path, &db));
    must(db, db_create(db));
    char *sql = sqlite3_mprintf("INSERT INTO traces VALUES (1, 'v.trc', '" RECORDING
                                "', 0, 'sealed', 1, 12, 83000, 0, 0, %lld, %lld, %lld, %lld,"
                                " 'vllm-7c9f', 'proxy to 127.0.0.1:8000', 'tracerec 0.1.0');"
                                "INSERT INTO notes VALUES ('" RECORDING
                                "', 0, 'engine', 'vllm-0.21.0'), ('" RECORDING "', 0, 'gpu', '2xH200');",
                                START_NS, START_NS + (int64_t)(seconds * 1e9), START_WALL_NS,
                                START_WALL_NS + (int64_t)(seconds * 1e9));
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
    sqlite3_free(sql);
    must(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
    return db;
}

/* Binds ms after arrival as ns on the recorder's clock; absent below 0. */
static void bind_time(sqlite3_stmt *s, int i, int64_t arrive, double ms) {
    if (ms < 0)
        sqlite3_bind_null(s, i);
    else
        sqlite3_bind_int64(s, i, arrive + (int64_t)(ms * 1e6 + .5));
}

static void bind_count(sqlite3_stmt *s, int i, double v) {
    if (v < 0)
        sqlite3_bind_null(s, i);
    else
        sqlite3_bind_int64(s, i, (int64_t)(v + .5));
}

struct counted {
    unsigned char *blob;
    size_t bytes;
    int64_t span_ns, first_ns, last_ns;
    int tokens, first_tokens, series, gaps;
};

static struct counted count_arrivals(const struct fake_request *f, int64_t arrive, int64_t base) {
    struct counted c = {.blob = malloc(arrivals_bound((size_t)f->n_arrivals + 1))};
    struct arrival *a = calloc((size_t)f->n_arrivals + 1, sizeof *a);
    for (int i = 0; i < f->n_arrivals; i++) {
        a[i] = (struct arrival){.t_ns = arrive + (int64_t)(f->arrivals[i].t * 1e6 + .5),
                                .choice = (uint32_t)f->arrivals[i].choice,
                                .tokens = (uint32_t)f->arrivals[i].tokens,
                                .events = 1,
                                .reads = 1,
                                .bytes = 200};
        bool begins = i == 0 || a[i].choice != a[i - 1].choice;
        c.tokens += f->arrivals[i].tokens;
        if (begins) c.first_tokens += f->arrivals[i].tokens;
        if (!begins) c.span_ns += a[i].t_ns - a[i - 1].t_ns;
        c.series += begins;
        c.gaps += !begins;
        if (i == 0 || a[i].t_ns < c.first_ns) c.first_ns = a[i].t_ns;
        if (a[i].t_ns > c.last_ns) c.last_ns = a[i].t_ns;
    }
    c.bytes = arrivals_encode(a, (size_t)f->n_arrivals, base, c.blob);
    free(a);
    return c;
}

static void add_blob(sqlite3 *db, const struct counted *c) {
    sqlite3_stmt *s;
    must(db, sqlite3_prepare_v2(
                 db, "INSERT INTO request_blobs (id, arrivals_blob) VALUES (last_insert_rowid(), ?1)", -1, &s,
                 NULL));
    sqlite3_bind_blob(s, 1, c->blob, (int)c->bytes, SQLITE_TRANSIENT);
    must(db, sqlite3_step(s));
    sqlite3_finalize(s);
}

void fake_db_add(sqlite3 *db, int request, const struct fake_request *f) {
    static const char sql[] =
        "INSERT INTO request_facts (recording, request, recorder, ended, lost, buffered, arrived_wall_ns, "
        "t_arrive_ns, t_received_ns,"
        " t_forwarded_ns, t_first_byte_ns, t_end_ns, api, path, model, user_agent, end_by, status, stream, "
        "streamed, finish_reason,"
        " body_whole, prompt_tokens, cached_tokens, output_tokens, retry_count, reported_load_ns, "
        "reported_prefill_ns, draft_tokens,"
        " accepted_tokens, spec_steps, token_source, grade, stamp_source, queue_start_wall_ns, "
        "arrive_wall_ns, method,"
        " arrivals, series, tokens_seen, tokens_first, series_tokens, series_arrivals, series_span_ns, "
        "t_first_token_ns,"
        " t_first_answer_ns, t_last_token_ns, itl_absent, arrivals_base_ns, start_class)"
        " VALUES ('" RECORDING "', ?1, 'vllm-7c9f', ?2, 0, 0, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
        "?13, ?14, ?14, ?15, ?16, ?17,"
        " ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, 'kernel', ?28, ?29, 'POST', ?30, ?31, ?32, ?33, "
        "?34, ?35, ?36, ?37, ?37,"
        " ?38, ?39, ?40, CASE WHEN ?21 >= 1000000000 THEN 'cold' WHEN ?21 > 0 THEN 'warmup' END)";
    sqlite3_stmt *s;
    int64_t offset = (int64_t)(f->at_s * 1e9 + .5), arrive = START_NS + offset;
    int64_t base = arrive + (f->forwarded < 0 ? 0 : (int64_t)(f->forwarded * 1e6 + .5));
    struct counted c = count_arrivals(f, arrive, base);
    must(db, sqlite3_prepare_v2(db, sql, -1, &s, NULL));
    sqlite3_bind_int(s, 1, request);
    sqlite3_bind_int(s, 2, f->ended);
    sqlite3_bind_int64(s, 3, START_WALL_NS + offset);
    sqlite3_bind_int64(s, 4, arrive);
    bind_time(s, 5, arrive, f->forwarded);
    bind_time(s, 6, arrive, f->first_byte);
    bind_time(s, 7, arrive, f->end);
    const char *const texts[] = {f->api, f->path, f->model, f->user_agent, f->end_by};
    for (int i = 0; i < 5; i++) sqlite3_bind_text(s, 8 + i, texts[i], -1, SQLITE_STATIC);
    bind_count(s, 13, f->status);
    sqlite3_bind_int(s, 14, f->streamed);
    if (f->finished) sqlite3_bind_text(s, 15, "stop", -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 16, f->finished);
    const double counts[] = {f->prompt,        f->cached,  f->output,   f->attempt - 1, f->load * 1e6,
                             f->prefill * 1e6, f->drafted, f->accepted, f->steps};
    for (int i = 0; i < 9; i++) bind_count(s, 17 + i, counts[i]);
    sqlite3_bind_text(s, 26, f->token_source, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 27, f->grade, -1, SQLITE_STATIC);
    if (f->intended >= 0) {
        sqlite3_bind_int64(s, 28, START_WALL_NS + offset - (int64_t)(f->intended * 1e6 + .5));
        sqlite3_bind_int64(s, 29, START_WALL_NS + offset);
    }
    const int64_t series[] = {f->n_arrivals, c.series, c.tokens, c.first_tokens, c.tokens - c.first_tokens,
                              c.gaps,        c.span_ns};
    for (int i = 0; i < 7; i++) sqlite3_bind_int64(s, 30 + i, series[i]);
    if (f->n_arrivals) {
        sqlite3_bind_int64(s, 37, c.first_ns);
        sqlite3_bind_int64(s, 38, c.last_ns);
    } else {
        sqlite3_bind_text(s, 39, f->streamed ? "no_arrivals" : "not_streamed", -1, SQLITE_STATIC);
    }
    sqlite3_bind_int64(s, 40, base);
    must(db, sqlite3_step(s));
    sqlite3_finalize(s);
    if (f->n_arrivals) add_blob(db, &c);
    free(c.blob);
}

void fake_db_loss(sqlite3 *db, const char *name, double from_s, double to_s, int count, int request) {
    const struct loss_info *l = NULL;
    for (int i = 0; i < N_LOSSES; i++)
        if (sqlite3_stricmp(loss_infos[i].name, name) == 0) l = &loss_infos[i];
    if (!l) abort();
    int64_t from = (int64_t)(from_s * 1e9), to = (int64_t)(to_s * 1e9);
    char *sql =
        sqlite3_mprintf("INSERT INTO losses VALUES ('" RECORDING
                        "', %Q, %Q, %Q, %lld, %lld, %lld, %lld, %d, NULL, nullif(%d, 0),"
                        " NULL, %Q, %Q)",
                        l->name, l->severity, l->side, START_NS + from, START_NS + to, START_WALL_NS + from,
                        START_WALL_NS + to, count, request, l->meaning, l->remedy);
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
    sqlite3_free(sql);
}

void fake_db_delay(sqlite3 *db, const char *name, int count, int64_t p50, int64_t p99, int64_t max,
                   double at_s) {
    int64_t at = (int64_t)(at_s * 1e9);
    char *sql =
        sqlite3_mprintf("INSERT INTO recorder_times VALUES ('" RECORDING
                        "', %Q, %d, %lld, %lld, %lld, %lld, %lld, %lld, %lld)",
                        name, count, p50 * count, p50, p50 * 2, p99, max, START_NS + at, START_WALL_NS + at);
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
    sqlite3_free(sql);
}

static void finish(sqlite3 *db) {
    must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    must(db, sqlite3_close(db));
}

enum { TOKENS = 32 };

/* Request i of 1 to 400 arrives at (i - 1) / 2 s, is forwarded 1 ms later and answers after
 * 100 + (37 i mod 100) ms (2,000 ms more for 201 to 220: a spike). 32 arrivals of 2 tokens, 40 + (i mod 11)
 * ms apart; N = 64. i mod 50 = 7: 500 after 5 ms. i mod 97 = 5: the client leaves 30 ms after sending. i mod
 * 20 = 3: not streamed, N = 64. 400 is in flight. i mod 5 < 3: 600 of 1,000 prompt tokens cached, else 0 of
 * 1,000. */
static void add_busy(sqlite3 *db, int i) {
    struct fake_arrival a[TOKENS];
    double ttft = 101 + 37 * i % 100 + (i > 200 && i <= 220 ? 2000 : 0), gap = 40 + i % 11;
    for (int k = 0; k < TOKENS; k++) a[k] = (struct fake_arrival){ttft + gap * k, 2, 0};
    struct fake_request f = {.at_s = (i - 1) / 2.0,
                             .api = "openai-chat",
                             .path = "/v1/chat/completions",
                             .model = "qwen3-32b",
                             .user_agent = "OpenAI/Python 1.99.1",
                             .end_by = "complete",
                             .status = 200,
                             .streamed = 1,
                             .ended = 1,
                             .finished = 1,
                             .forwarded = 1,
                             .first_byte = ttft - 2,
                             .end = a[TOKENS - 1].t + 5,
                             .intended = -1,
                             .prompt = 1000,
                             .cached = i % 5 < 3 ? 600 : 0,
                             .output = 2 * TOKENS,
                             .attempt = i % 50 == 8 ? 2 : 1,
                             .load = -1,
                             .prefill = -1,
                             .drafted = -1,
                             .accepted = -1,
                             .steps = -1,
                             .token_source = "running_usage",
                             .grade = "exact",
                             .arrivals = a,
                             .n_arrivals = TOKENS};
    if (i % 20 == 3) f.streamed = 0;
    if (i % 50 == 7) f.status = 500, f.end = 5, f.first_byte = 4;
    if (i % 97 == 5) f.end_by = "client_fin", f.end = 31, f.first_byte = -1, f.status = -1;
    if (i == 400) f.ended = 0, f.end = -1, f.end_by = NULL, f.first_byte = -1, f.status = -1;
    if (f.status != 200) f.finished = 0, f.output = f.prompt = f.cached = -1, f.token_source = f.grade = NULL;
    if (f.status != 200 || !f.streamed) f.n_arrivals = 0;
    fake_db_add(db, i, &f);
}

void fake_db_busy(const char *path) {
    sqlite3 *db = fake_db_new(path, 205);
    for (int i = 1; i <= 400; i++) add_busy(db, i);
    for (int i = 0; i < 12; i++)
        fake_db_add(db, 401 + i,
                    &(struct fake_request){.at_s = 16 * i,
                                           .api = "other",
                                           .path = i % 3 ? "/health" : "/v1/models",
                                           .end_by = "complete",
                                           .status = 200,
                                           .ended = 1,
                                           .finished = 1,
                                           .forwarded = 0.1,
                                           .first_byte = 1,
                                           .end = 2,
                                           .intended = -1,
                                           .prompt = -1,
                                           .cached = -1,
                                           .output = -1,
                                           .attempt = 0,
                                           .load = -1,
                                           .prefill = -1,
                                           .drafted = -1,
                                           .accepted = -1,
                                           .steps = -1});
    fake_db_loss(db, "queue_full", 100.114, 100.391, 312, 0);
    fake_db_delay(db, "delay_down", 12000, 11000, 48000, 3100000, 100.2);
    finish(db);
}

void fake_db_few(const char *path) {
    static const struct {
        double at;
        const char *agent;
        int prompt, output;
        double load, prefill, ttft, gap;
    } rows[6] = {
        {0, "aiohttp/3.11.2", 412, 236, 8912, 1329, 10241, 40.3},
        {20, "aiohttp/3.11.2", 655, 9, 31, 2119, 2151, 40.6},
        {111, "aiohttp/3.11.2", 702, 301, 28, 2265, 2293, 40.8},
        {209, "aiohttp/3.11.2", 96, 120, 30, 334, 364, 40.2},
        {304, "litellm/1.77.1", 6310, 402, 9377, 20527, 29904, 46.1},
        {411, "litellm/1.77.1", 6755, 188, 33, 1597, 1630, 46.3},
    };
    sqlite3 *db = fake_db_new(path, 449);
    for (int i = 0; i < 6; i++) {
        struct fake_arrival a[402];
        for (int k = 0; k < rows[i].output; k++)
            a[k] = (struct fake_arrival){rows[i].ttft + 1 + rows[i].gap * k, 1, 0};
        fake_db_add(db, i + 1,
                    &(struct fake_request){.at_s = rows[i].at,
                                           .api = "ollama-chat",
                                           .path = "/api/chat",
                                           .model = "gemma3:12b",
                                           .user_agent = rows[i].agent,
                                           .end_by = "complete",
                                           .status = 200,
                                           .streamed = 1,
                                           .ended = 1,
                                           .finished = 1,
                                           .forwarded = 1,
                                           .first_byte = rows[i].ttft,
                                           .end = a[rows[i].output - 1].t + 4,
                                           .intended = -1,
                                           .prompt = rows[i].prompt,
                                           .cached = -1,
                                           .output = rows[i].output,
                                           .attempt = 1,
                                           .load = rows[i].load,
                                           .prefill = rows[i].prefill,
                                           .drafted = -1,
                                           .accepted = -1,
                                           .steps = -1,
                                           .token_source = "engine_event",
                                           .grade = "exact",
                                           .arrivals = a,
                                           .n_arrivals = rows[i].output});
    }
    fake_db_delay(db, "delay_down", 1300, 14000, 90000, 200000, 210);
    finish(db);
}
