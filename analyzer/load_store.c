/* Statements made from the catalogue: a row of request_facts or connections has a column per fact, so its
 * INSERT is put together from facts.def once and parameters are bound by place. */
#include "analyzer/load_store.h"

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

enum {
    S_REQUEST,
    S_BLOB,
    S_CONNECTION,
    S_SPAN,
    S_LOSS,
    S_ANCHOR,
    S_ARRIVED,
    S_NOTE,
    S_HEAD,
    S_FACT,
    S_TIMES,
    S_TRACE,
    S_PART,
    S_ROW,
    N_STATEMENTS
};

struct store {
    sqlite3 *db;
    sqlite3_stmt *st[N_STATEMENTS];
    int rc;
    const char *recording, *recorder;
    const struct wall *wall;
};

static const char *const texts[N_STATEMENTS] = {
    [S_BLOB] = "INSERT INTO request_blobs (id, arrivals_blob) VALUES (?, ?)",
    [S_SPAN] = "INSERT INTO spans (recording, subject, id, name, from_ns, to_ns, value) VALUES (?, ?, ?, ?, "
               "?, ?, ?)",
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

struct store *store_open(sqlite3 *db) {
    static const char *const connection_columns[] = {"recording", "connection", "recorder", "ended"};
    struct store *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->db = db;
    prepare_facts(s, S_REQUEST, "request_facts", own_columns, N_OWN, SUBJECT_R);
    prepare_facts(s, S_CONNECTION, "connections", connection_columns, 4, SUBJECT_C);
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

/* ---- binding: values by place, absent ones stay NULL */

struct row {
    sqlite3_stmt *st;
    int at;
};

static struct row row(struct store *s, int which) {
    sqlite3_clear_bindings(s->st[which]);
    return (struct row){s->st[which], 0};
}

static void put(struct row *r, int64_t v) {
    sqlite3_bind_int64(r->st, ++r->at, v);
}
static void put_or_null(struct row *r, int64_t v) {
    ++r->at;
    if (v != ATTRIBUTE_NONE) sqlite3_bind_int64(r->st, r->at, v);
}
/* The text must live until the row is stepped. */
static void put_text(struct row *r, const char *p) {
    ++r->at;
    if (p) sqlite3_bind_text(r->st, r->at, p, -1, SQLITE_STATIC);
}
static void put_wall(struct row *r, const struct store *s, int64_t mono_ns) {
    int64_t w;
    put_or_null(r,
                mono_ns != ATTRIBUTE_NONE && s->wall && wall_of(s->wall, mono_ns, &w) ? w : ATTRIBUTE_NONE);
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

static void step(struct store *s, int which) {
    if (s->rc != SQLITE_OK) return;
    if (sqlite3_step(s->st[which]) != SQLITE_DONE) s->rc = sqlite3_errcode(s->db);
    sqlite3_reset(s->st[which]);
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

void store_span(struct store *s, enum fact f, uint64_t id, int64_t from_ns, int64_t to_ns, int64_t value) {
    static const char *const subjects[N_SUBJECTS] = {"request", "connection", "recording"};
    struct row r = row(s, S_SPAN);
    put_text(&r, s->recording);
    put_text(&r, subjects[fact_infos[f].subject]);
    put(&r, (int64_t)id);
    put_text(&r, fact_infos[f].name);
    put(&r, from_ns);
    put(&r, to_ns);
    put(&r, value);
    step(s, S_SPAN);
}

void store_loss(struct store *s, enum loss l, int64_t from_ns, int64_t to_ns, uint64_t count, uint64_t bytes,
                uint64_t request, const char *file) {
    const struct loss_info *i = &loss_infos[l];
    struct row r = row(s, S_LOSS);
    put_text(&r, s->recording);
    put_text(&r, i->name);
    put_text(&r, i->severity);
    put_text(&r, i->side);
    put_or_null(&r, from_ns);
    put_or_null(&r, to_ns);
    put(&r, (int64_t)count);
    put_or_null(&r, bytes ? (int64_t)bytes : ATTRIBUTE_NONE);
    put_or_null(&r, request ? (int64_t)request : ATTRIBUTE_NONE);
    put_text(&r, file);
    put_text(&r, i->meaning);
    put_text(&r, i->remedy);
    step(s, S_LOSS);
}

void store_anchor(struct store *s, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    struct row r = row(s, S_ANCHOR);
    put_text(&r, s->recording);
    put(&r, mono_ns);
    put(&r, wall_ns);
    put(&r, uncertainty_ns);
    step(s, S_ANCHOR);
    if (!s->wall || s->wall->n != 1) return;
    /* The first one: requests may have ended before it was told. */
    r = row(s, S_ARRIVED);
    put_text(&r, s->recording);
    put(&r, (int64_t)((uint64_t)wall_ns - (uint64_t)mono_ns));
    step(s, S_ARRIVED);
}

void store_head(struct store *s, uint64_t part, const char *key, const char *value) {
    /* --note KEY=VALUE is note.KEY in the head */
    bool note = strncmp(key, "note.", 5) == 0;
    int which = note ? S_NOTE : S_HEAD;
    struct row r = row(s, which);
    put_text(&r, s->recording);
    put(&r, (int64_t)part);
    put_text(&r, note ? key + 5 : key);
    put_text(&r, value);
    step(s, which);
}

void store_recorder_fact(struct store *s, enum fact f, int64_t value) {
    struct row r = row(s, S_FACT);
    put_text(&r, s->recording);
    put_text(&r, fact_infos[f].name);
    put(&r, value);
    step(s, S_FACT);
}

void store_times(struct store *s, enum hist_name name, const struct hist *h) {
    struct row r = row(s, S_TIMES);
    put_text(&r, s->recording);
    put_text(&r, hist_names[name]);
    put(&r, (int64_t)h->count);
    put(&r, (int64_t)h->sum_ns);
    put(&r, (int64_t)hist_quantile(h, 0.5));
    put(&r, (int64_t)hist_quantile(h, 0.9));
    put(&r, (int64_t)hist_quantile(h, 0.99));
    put(&r, (int64_t)h->max_ns);
    put(&r, h->t_max_ns);
    put_wall(&r, s, h->count ? h->t_max_ns : ATTRIBUTE_NONE);
    step(s, S_TIMES);
}

void store_trace(struct store *s, const struct store_trace *t) {
    bool any = t->totals.blocks > 0;
    int64_t first = any ? t->totals.first_ns : ATTRIBUTE_NONE,
            last = any ? t->totals.last_ns : ATTRIBUTE_NONE;
    struct row r = row(s, S_TRACE);
    put_text(&r, t->file);
    put_text(&r, s->recording);
    put(&r, (int64_t)t->part);
    put_text(&r, trr_state_name(t->state));
    put(&r, t->format);
    put(&r, (int64_t)t->totals.blocks);
    put(&r, (int64_t)t->totals.file_bytes);
    put(&r, (int64_t)t->totals.damaged_bytes);
    put(&r, (int64_t)t->totals.missing_blocks);
    put_or_null(&r, first);
    put_or_null(&r, last);
    put_wall(&r, s, first);
    put_wall(&r, s, last);
    put_text(&r, s->recorder);
    put_text(&r, t->source);
    put_text(&r, t->version);
    step(s, S_TRACE);
}

char *store_part_file(struct store *s, const char *recording, uint64_t part) {
    struct row r = row(s, S_PART);
    char *file = NULL;
    put_text(&r, recording);
    put(&r, (int64_t)part);
    if (sqlite3_step(r.st) == SQLITE_ROW) file = strdup((const char *)sqlite3_column_text(r.st, 0));
    sqlite3_reset(r.st);
    return file;
}
