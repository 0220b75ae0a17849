/* Statements made from the catalogue: a row of request_facts or connections has a column per fact, so its
 * INSERT is put together from facts.def once and parameters are bound by place. */
#include "analyzer/load_store_impl.h"

#include "analyzer/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of request_facts that are no facts, in the order in which store_request binds them. */
static const char *const own_columns[] = {"recording",         "request",         "recorder",
                                          "arrived_wall_ns",   "ended",           "lost",
                                          "t_lost_ns",         "token_source",    "grade",
                                          "output_tokens",     "hidden_tokens",   "token_events",
                                          "arrivals",          "series",          "tokens_seen",
                                          "tokens_first",      "series_tokens",   "series_arrivals",
                                          "series_span_ns",    "gap_max_ns",      "t_first_token_ns",
                                          "t_first_answer_ns", "t_last_token_ns", "backpressured",
                                          "buffered",          "itl_absent",      "token_mismatch",
                                          "arrivals_base_ns"};
enum { N_OWN = sizeof own_columns / sizeof *own_columns };

static const char *const texts[N_STATEMENTS] = {
    [S_BLOB] = "INSERT INTO request_blobs (id, arrivals_blob) VALUES (?, ?)",
    [S_LOSS] = "INSERT INTO losses (recording, loss, severity, side, from_ns, to_ns, count, bytes, request, "
               "file, meaning, remedy) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [S_ANCHOR] = "INSERT INTO anchors (recording, mono_ns, wall_ns, uncertainty_ns) VALUES (?, ?, ?, ?)",
    [S_ARRIVED] = "UPDATE request_facts SET arrived_wall_ns = t_arrive_ns + ?2 WHERE recording = ?1 AND "
                  "arrived_wall_ns IS NULL",
    [S_NOTE] = "INSERT INTO notes (recording, part, key, value) VALUES (?, ?, ?, ?)",
    [S_HEAD] = "INSERT INTO heads (recording, part, key, value) VALUES (?, ?, ?, ?)",
    [S_FACT] = "INSERT OR REPLACE INTO recorder_facts (recording, name, value) VALUES (?, ?, ?)",
    [S_TIMES] = "INSERT OR REPLACE INTO recorder_times (recording, name, count, sum_ns, p50_ns, p90_ns, "
                "p99_ns, max_ns, "
                "t_max_ns, max_wall_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [S_TRACE] = "INSERT INTO traces (file, recording, part, state, format, blocks, file_bytes, "
                "damaged_bytes, missing_blocks, "
                "first_ns, last_ns, started_wall_ns, ended_wall_ns, recorder, source, version) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [S_PART] = "SELECT file FROM traces WHERE recording = ? AND part = ?",
};

static void prepare(struct store *s, int which, const char *sql) {
    if (s->rc == SQLITE_OK)
        s->rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->st[which], NULL);
}

/* INSERT with the given columns and one for each fact of a subject. */
static void prepare_facts(struct store *s, int which, const char *table, const char *const *own, size_t n_own,
                          enum subject subject) {
    sqlite3_str *columns = sqlite3_str_new(s->db), *marks = sqlite3_str_new(s->db);
    for (size_t i = 0; i < n_own; i++) {
        sqlite3_str_appendf(columns, "%s%s", i ? ", " : "", own[i]);
        sqlite3_str_appendall(marks, i ? ", ?" : "?");
    }
    for (int f = 0; f < N_FACTS; f++) {
        if (fact_infos[f].subject != subject || !db_fact_column_type((enum fact)f)) continue;
        sqlite3_str_appendf(columns, ", %s", fact_infos[f].name);
        sqlite3_str_appendall(marks, ", ?");
    }
    char *c = sqlite3_str_finish(columns), *m = sqlite3_str_finish(marks);
    char *sql = c && m ? sqlite3_mprintf("INSERT OR REPLACE INTO %s (%s) VALUES (%s)", table, c, m) : NULL;
    if (sql)
        prepare(s, which, sql);
    else
        s->rc = SQLITE_NOMEM;
    sqlite3_free(sql);
    sqlite3_free(c);
    sqlite3_free(m);
}

static void prepare_spans(struct store *s, int which, int rows) {
    sqlite3_str *sql = sqlite3_str_new(s->db);
    sqlite3_str_appendall(sql,
                          "INSERT INTO spans (recording, subject, id, name, from_ns, to_ns, value) VALUES ");
    for (int i = 0; i < rows; i++)
        sqlite3_str_appendall(sql, i ? ", (?1, ?, ?, ?, ?, ?, ?)" : "(?1, ?, ?, ?, ?, ?, ?)");
    char *text = sqlite3_str_finish(sql);
    if (text)
        prepare(s, which, text);
    else
        s->rc = SQLITE_NOMEM;
    sqlite3_free(text);
}

struct store *store_open(sqlite3 *db) {
    static const char *const connection_columns[] = {"recording", "connection", "recorder", "ended"};
    struct store *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->db = db;
    prepare_facts(s, S_REQUEST, "request_facts", own_columns, N_OWN, SUBJECT_R);
    prepare_facts(s, S_CONNECTION, "connections", connection_columns, 4, SUBJECT_C);
    prepare_spans(s, S_SPAN, 1);
    prepare_spans(s, S_SPANS, SPANS_AT_ONCE);
    for (int i = 0; i < N_STATEMENTS; i++)
        if (texts[i]) prepare(s, i, texts[i]);
    return s;
}

bool store_make_rows(struct store *s) {
    static const char table[] =
        "CREATE TABLE IF NOT EXISTS arrivals (recording TEXT NOT NULL, request INTEGER NOT NULL, choice "
        "INTEGER NOT NULL, "
        "arrival INTEGER NOT NULL, t_ns INTEGER NOT NULL, tokens INTEGER NOT NULL, events INTEGER NOT NULL, "
        "reads INTEGER NOT NULL, bytes INTEGER NOT NULL, backpressured INTEGER NOT NULL)";
    if (s->rc == SQLITE_OK) s->rc = db_exec(s->db, table);
    prepare(s, S_ROW, "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    return s->rc == SQLITE_OK;
}

int store_close(struct store *s) {
    for (int i = 0; i < N_STATEMENTS; i++) sqlite3_finalize(s->st[i]);
    int rc = s->rc;
    free(s);
    return rc;
}

bool store_failed(const struct store *s) {
    return s->rc != SQLITE_OK;
}

void store_recording(struct store *s, const char *recording, const char *recorder, const struct wall *wall) {
    s->recording = recording;
    s->recorder = recorder;
    s->wall = wall;
}

static void put_facts(struct row *r, const struct open_subject *o, enum subject subject) {
    for (int f = 0; f < N_FACTS; f++) {
        if (fact_infos[f].subject != subject || fact_infos[f].type == FACT_SPAN) continue;
        const struct value *v = &o->facts[f];
        ++r->at;
        if (v->kind == VALUE_IS_INT)
            sqlite3_bind_int64(r->st, r->at, v->i);
        else if (v->kind == VALUE_IS_REAL)
            sqlite3_bind_double(r->st, r->at, v->r);
        else if (v->kind == VALUE_IS_TEXT)
            sqlite3_bind_text(r->st, r->at, v->s, (int)v->n, SQLITE_STATIC);
    }
}

/* ---- rows */

static void put_arrival_rows(struct store *s, const struct store_request *q) {
    struct arrivals_reader reader;
    struct arrival b;
    uint32_t choice = 0;
    int64_t ordinal = 0;
    arrivals_read(&reader, q->blob, q->blob_bytes, q->base_ns);
    while (arrivals_next(&reader, &b)) {
        if (b.choice != choice) ordinal = 0;
        choice = b.choice;
        struct row r = row(s, S_ROW);
        put_text(&r, s->recording);
        put(&r, (int64_t)q->o->id);
        put(&r, b.choice);
        put(&r, ordinal++);
        put(&r, (int64_t)((uint64_t)b.t_ns - (uint64_t)q->base_ns));
        put(&r, b.tokens);
        put(&r, b.events);
        put(&r, b.reads);
        put(&r, b.bytes);
        put(&r, b.backpressured);
        step(s, S_ROW);
    }
}

static void put_attribution(struct row *r, const struct attribution *a) {
    bool any = a->n_arrivals > 0;
    put_text(r, token_source_name(a->source));
    put_text(r, any ? a->grade : NULL);
    put_or_null(r, a->output_tokens);
    put_or_null(r, a->hidden_tokens);
    put(r, (int64_t)a->token_events);
    put(r, (int64_t)a->n_arrivals);
    put(r, (int64_t)a->series);
    put(r, (int64_t)a->tokens_seen);
    put(r, (int64_t)a->tokens_first);
    put(r, (int64_t)a->series_tokens);
    put(r, (int64_t)a->series_arrivals);
    put(r, a->series_span_ns);
    put_or_null(r, a->gap_max_ns);
    put_or_null(r, a->t_first_token_ns);
    put_or_null(r, a->t_first_answer_ns);
    put_or_null(r, a->t_last_token_ns);
    put(r, (int64_t)a->backpressured);
    put(r, a->buffered);
    put_text(r, a->itl_absent);
    put_or_null(r, a->token_mismatch);
}

static void store_blob(struct store *s, const struct store_request *q) {
    struct row r = row(s, S_BLOB);
    put(&r, sqlite3_last_insert_rowid(s->db));
    sqlite3_bind_blob64(r.st, 2, q->blob, q->blob_bytes, SQLITE_STATIC);
    step(s, S_BLOB);
}

void store_request(struct store *s, const struct store_request *q) {
    const struct open_subject *o = q->o;
    if (s->rc != SQLITE_OK) return;
    struct row r = row(s, S_REQUEST);
    put_text(&r, s->recording);
    put(&r, (int64_t)o->id);
    put_text(&r, s->recorder);
    put_wall(&r, s, open_int(o, F_t_arrive_ns, ATTRIBUTE_NONE));
    put(&r, o->ended);
    put(&r, o->lost);
    put_or_null(&r, o->t_lost_ns);
    put_attribution(&r, &q->a);
    put_or_null(&r, q->base_ns);
    put_facts(&r, o, SUBJECT_R);
    step(s, S_REQUEST);
    if (q->blob_bytes > 0 && s->rc == SQLITE_OK) store_blob(s, q);
    if (s->st[S_ROW]) put_arrival_rows(s, q);
}

void store_connection(struct store *s, const struct open_subject *o) {
    struct row r = row(s, S_CONNECTION);
    put_text(&r, s->recording);
    put(&r, (int64_t)o->id);
    put_text(&r, s->recorder);
    put(&r, o->ended);
    put_facts(&r, o, SUBJECT_C);
    step(s, S_CONNECTION);
}
