/* Opening: a database read-only as it is, traces into one in memory; then the same TEMP objects on both. */
#include "analyzer/source.h"

#include "analyzer/db.h"
#include "analyzer/inputs.h"
#include "analyzer/load.h"
#include "analyzer/select.h"
#include "analyzer/sql_text.h"
#include "analyzer/vtab_arrivals.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_WINDOW_NS 1000000

static int say(const char *name, const char *what) {
    fprintf(stderr, "traceanalyze: %s: %s\n", name, what);
    return 2;
}

static int open_database(struct source *s, const struct input *in, const struct source_options *o) {
    if (sqlite3_open_v2(in->path, &s->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fprintf(stderr, "traceanalyze: %s: cannot be opened: %s; look at its permissions\n", in->name,
                sqlite3_errmsg(s->db));
        return 1;
    }
    switch (db_kind(s->db)) {
    case DB_OURS: break;
    case DB_OTHER_VERSION:
        return say(in->name,
                   "made by another version of traceanalyze; load its traces again into a new database");
    case DB_UNREADABLE:
        fprintf(stderr, "traceanalyze: %s: damaged or in use: %s; load its traces again\n", in->name,
                sqlite3_errmsg(s->db));
        return 3;
    default: return say(in->name, "database of another program; give one made by traceanalyze load");
    }
    if (o->arrival_window_ns != DEFAULT_WINDOW_NS)
        return say("--arrival-window",
                   "the arrivals of a database were made when it was loaded; give the traces instead");
    return 0;
}

static int open_traces(struct source *s, const struct inputs *in, const struct source_options *o) {
    bool damaged = false;
    if (sqlite3_open(":memory:", &s->db) != SQLITE_OK || db_create(s->db) != SQLITE_OK) {
        fprintf(stderr, "traceanalyze: no database in memory: %s; close other programs\n",
                sqlite3_errmsg(s->db));
        return 1;
    }
    struct load_options l = {.window_ns = o->arrival_window_ns, .quiet = o->quiet};
    int status = load_traces(s->db, in, &l, &damaged);
    if (damaged) s->exit_status = 3;
    return status;
}

/* After this nothing is written any more, and a text in double quotes is a name, never a string. */
static int dress(struct source *s, const struct source_options *o) {
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    int rc = vtab_arrivals(s->db);
    if (rc == SQLITE_OK) rc = db_exec(s->db, sql_arrival_metrics);
    if (rc != SQLITE_OK) {
        fprintf(stderr, "traceanalyze: the views cannot be made: %s\n", sqlite3_errmsg(s->db));
        return 1;
    }
    int status = select_make(s->db, o);
    if (status == 0) db_exec(s->db, "PRAGMA query_only = ON");
    return status;
}

int source_open(struct source *s, char *const *inputs, size_t n, const struct source_options *o) {
    struct inputs in;
    *s = (struct source){0};
    int status = inputs_collect(&in, inputs, n);
    if (status == 0) status = in.database ? open_database(s, &in.at[0], o) : open_traces(s, &in, o);
    if (status == 0) status = dress(s, o);
    inputs_free(&in);
    if (status != 0) source_close(s);
    return status;
}

void source_close(struct source *s) {
    sqlite3_close(s->db);
    s->db = NULL;
}
