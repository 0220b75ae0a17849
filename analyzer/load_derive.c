/* What needs the whole table: the SQL of schema/sql/030 to 032, and between them how many generations of an
 * upstream are in flight at each arrival.
 *
 * In flight is what has arrived and not ended: a running sum over arrivals and ends in order of time, which
 * SQL can say, too, at twenty times the cost. */
#include "analyzer/attribute.h"
#include "analyzer/db.h"
#include "analyzer/load.h"
#include "analyzer/sql_text.h"

#include <stdlib.h>
#include <string.h>

/* The catalogue of losses, for those that SQL finds. */
static int put_loss_texts(sqlite3 *db) {
    int rc = db_exec(
        db, "CREATE TEMP TABLE loss_texts (loss TEXT, severity TEXT, side TEXT, meaning TEXT, remedy TEXT)");
    for (int i = 0; i < N_LOSSES && rc == SQLITE_OK; i++) {
        const struct loss_info *l = &loss_infos[i];
        char *sql = sqlite3_mprintf("INSERT INTO loss_texts VALUES (%Q, %Q, %Q, %Q, %Q)", l->name,
                                    l->severity, l->side, l->meaning, l->remedy);
        rc = sql ? db_exec(db, sql) : SQLITE_NOMEM;
        sqlite3_free(sql);
    }
    return rc;
}

/* ---- flights */

struct edge {
    int64_t group, t_ns;
    int64_t id;  /* of an arrival; 0: an end */
    int counted; /* an arrival: 1, 0 where it ended no later than it arrived; an end: -1 */
};
struct edges {
    struct edge *at;
    size_t n, room;
};

static bool add(struct edges *e, struct edge edge) {
    if (!attribute_room((void **)&e->at, &e->room, e->n + 1, sizeof *e->at)) return false;
    e->at[e->n++] = edge;
    return true;
}

/* By upstream, then time; ends come first, since t_arrive <= t < t_end. */
static int by_time(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    return (x->id != 0) - (y->id != 0);
}

static int64_t time_at(sqlite3_stmt *s, int column) {
    return sqlite3_column_type(s, column) == SQLITE_NULL ? ATTRIBUTE_NONE : sqlite3_column_int64(s, column);
}

/* One without an end is in flight for ever. */
static int read_edges(sqlite3 *db, struct edges *e) {
    static const char sql[] =
        "SELECT g.id, u.rowid, g.a, g.e FROM d_gen g JOIN d_upstream u ON u.recording = g.recording "
        "AND u.upstream IS g.upstream";
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc != SQLITE_OK) return rc;
    bool room = true;
    while (room && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s, 0), group = sqlite3_column_int64(s, 1);
        int64_t a_ns = time_at(s, 2), e_ns = time_at(s, 3);
        bool known = a_ns != ATTRIBUTE_NONE && e_ns != ATTRIBUTE_NONE;
        room = add(e, (struct edge){group, a_ns, id, !known || e_ns > a_ns});
        if (room && known && e_ns > a_ns) room = add(e, (struct edge){group, e_ns, 0, -1});
    }
    sqlite3_finalize(s);
    return !room ? SQLITE_NOMEM : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put_flight(sqlite3_stmt *s, int64_t id, int64_t n) {
    sqlite3_bind_int64(s, 1, id);
    sqlite3_bind_int64(s, 2, n);
    sqlite3_step(s);
    return sqlite3_reset(s);
}

/* Arrivals at one instant are in flight for each other. */
static int sum_edges(const struct edges *e, sqlite3_stmt *s) {
    int rc = SQLITE_OK;
    int64_t flying = 0;
    for (size_t i = 0, next; i < e->n && rc == SQLITE_OK; i = next) {
        if (i == 0 || e->at[i].group != e->at[i - 1].group) flying = 0;
        for (next = i; next < e->n && by_time(&e->at[i], &e->at[next]) == 0; next++)
            flying += e->at[next].counted;
        for (; i < next && e->at[i].id && rc == SQLITE_OK; i++)
            rc = put_flight(s, e->at[i].id, flying - e->at[i].counted);
    }
    return rc;
}

static int count_flights(sqlite3 *db) {
    struct edges e = {0};
    sqlite3_stmt *s = NULL;
    int rc = read_edges(db, &e);
    if (e.n > 0) qsort(e.at, e.n, sizeof *e.at, by_time);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "INSERT INTO d_flight (id, n) VALUES (?, ?)", -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sum_edges(&e, s);
    sqlite3_finalize(s);
    free(e.at);
    return rc;
}

/* ---- all of it */

/* Whether anything may be a start of an engine or a load of a model: mostly nothing is, and looking for
 * what follows one takes long. */
static bool may_start(sqlite3 *db) {
    static const char sql[] =
        "SELECT EXISTS (SELECT 1 FROM d_gen WHERE outcome = 'upstream_refused' OR status = 503 "
        "OR finish_reason = 'load' OR reported_load_ns IS NOT NULL) "
        "OR EXISTS (SELECT 1 FROM connections WHERE t_upstream_reset_ns IS NOT NULL)";
    return db_number(db, sql, 1) != 0;
}

int load_derive(sqlite3 *db, bool again) {
    int rc = put_loss_texts(db);
    if (rc == SQLITE_OK && again) rc = db_exec(db, sql_forget);
    if (rc == SQLITE_OK) rc = db_exec(db, sql_generations);
    if (rc == SQLITE_OK) rc = count_flights(db);
    if (rc == SQLITE_OK && may_start(db)) rc = db_exec(db, sql_starts);
    if (rc == SQLITE_OK) rc = db_exec(db, sql_findings);
    if (rc == SQLITE_OK) rc = db_exec(db, "DROP TABLE loss_texts");
    return rc;
}
