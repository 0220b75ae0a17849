/* Drives the functions that the reader would call. */
#include "tests/unit/kit_db.h"

#include "analyzer/db.h"
#include "analyzer/load.h"
#include "analyzer/sql_text.h"
#include "analyzer/vtab_arrivals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

static int64_t ns(double ms) {
    return KIT_T0_NS + (int64_t)llround(ms * 1e6);
}

void kit_open(struct kit *k) {
    static const uint8_t uuid[16] = {1, 2, 3};
    assert_int_equal(sqlite3_open(":memory:", &k->db), SQLITE_OK);
    assert_int_equal(db_create(k->db), SQLITE_OK);
    k->store = store_open(k->db);
    assert_non_null(k->store);
    recording_begin(&k->r, k->store, uuid, "host-a", 1000000);
    recording_part(&k->r, 0, "kit.trc");
    kit_block(k);
    recording_ops.anchor(&k->r, KIT_T0_NS, 1800000000000000000, 100);
}

void kit_block(struct kit *k) {
    recording_ops.block(&k->r, 0, 0, 0);
}

void kit_request(struct kit *k, uint64_t id, double arrive_ms) {
    recording_ops.begin(&k->r, SUBJECT_R, id, false);
    kit_ms(k, id, F_t_arrive_ns, arrive_ms);
    kit_ms(k, id, F_t_received_ns, arrive_ms);
    kit_ms(k, id, F_t_forwarded_ns, arrive_ms);
    kit_int(k, id, F_status, 200);
    kit_int(k, id, F_streamed, 1);
    kit_text(k, id, F_api, "openai-chat");
    kit_text(k, id, F_model, "m");
    kit_text(k, id, F_path, "/v1/chat/completions");
    kit_text(k, id, F_upstream, "127.0.0.1:8000");
}

void kit_ms(struct kit *k, uint64_t id, enum fact f, double ms) {
    recording_ops.fact_int(&k->r, id, f, ns(ms));
}
void kit_int(struct kit *k, uint64_t id, enum fact f, int64_t v) {
    recording_ops.fact_int(&k->r, id, f, v);
}
void kit_text(struct kit *k, uint64_t id, enum fact f, const char *text) {
    recording_ops.fact_str(&k->r, id, f, text, strlen(text));
}

void kit_event(struct kit *k, uint64_t id, double t_ms, const struct tok_event *e) {
    struct tok_event copy = *e;
    copy.request = id;
    copy.t_ns = ns(t_ms);
    if (copy.read == 0) copy.read = (uint64_t)llround(t_ms * 1000) + 1; /* a read of its own */
    recording_ops.events(&k->r, id, &copy, 1);
}

void kit_content(struct kit *k, uint64_t id, double t_ms, uint32_t text_bytes) {
    struct tok_event e = {.what = TOK_CONTENT,
                          .text_bytes = text_bytes,
                          .wire_bytes = 100,
                          .running = -1,
                          .ids = -1,
                          .logprobs = -1};
    kit_event(k, id, t_ms, &e);
}

void kit_end(struct kit *k, uint64_t id, double end_ms) {
    struct open_subject *o = open_find(&k->r.requests, id);
    assert_non_null(o);
    if (o->facts[F_t_first_byte_ns].kind == VALUE_ABSENT) kit_ms(k, id, F_t_first_byte_ns, end_ms);
    kit_ms(k, id, F_t_end_ns, end_ms);
    kit_text(k, id, F_finish_reason, "stop");
    kit_text(k, id, F_end_by, "complete");
    kit_int(k, id, F_body_whole, 1);
    recording_ops.end(&k->r, SUBJECT_R, id);
}

void kit_done(struct kit *k) {
    recording_end(&k->r);
    assert_false(k->r.no_memory);
    assert_int_equal(store_close(k->store), SQLITE_OK);
    int rc = load_derive(k->db, true);
    if (rc != SQLITE_OK) print_error("derive: %s\n", sqlite3_errmsg(k->db));
    assert_int_equal(rc, SQLITE_OK);
    assert_int_equal(vtab_arrivals(k->db), SQLITE_OK);
    assert_int_equal(db_exec(k->db, sql_arrival_metrics), SQLITE_OK);
}

void kit_close(struct kit *k) {
    assert_int_equal(sqlite3_close(k->db), SQLITE_OK);
}

static sqlite3_stmt *prepared(struct kit *k, const char *sql) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(k->db, sql, -1, &s, NULL) != SQLITE_OK)
        print_error("%s: %s\n", sql, sqlite3_errmsg(k->db));
    assert_non_null(s);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    return s;
}

double kit_query(struct kit *k, const char *sql) {
    sqlite3_stmt *s = prepared(k, sql);
    double v = sqlite3_column_type(s, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    return v;
}

double kit_number(struct kit *k, uint64_t id, const char *column) {
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s FROM requests WHERE request = %llu", column, (unsigned long long)id);
    return kit_query(k, sql);
}

const char *kit_word(struct kit *k, uint64_t id, const char *column) {
    static char word[256];
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT %s FROM requests WHERE request = %llu", column, (unsigned long long)id);
    sqlite3_stmt *s = prepared(k, sql);
    const char *p = (const char *)sqlite3_column_text(s, 0);
    if (p) snprintf(word, sizeof word, "%s", p);
    sqlite3_finalize(s);
    return p ? word : NULL;
}
