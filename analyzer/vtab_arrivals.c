/* An eponymous virtual table. A cursor walks the requests that have a blob, by a statement of its own, and
 * within each the blob; request = ? and recording = ? go into that statement, so that one request costs one
 * look-up. */
#include "analyzer/vtab_arrivals.h"

#include "analyzer/arrivals.h"

#include <string.h>

enum {
    C_RECORDING,
    C_REQUEST,
    C_CHOICE,
    C_ARRIVAL,
    C_T,
    C_TOKENS,
    C_EVENTS,
    C_READS,
    C_BYTES,
    C_BACKPRESSURED
};
enum { BY_REQUEST = 1, BY_RECORDING = 2 }; /* bits of idxNum, arguments in this order */

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
};

struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *requests;
    struct arrivals_reader reader;
    struct arrival at;
    int64_t base_ns, ordinal, row;
    bool end;
};

static int on_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                      char **err) {
    int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE arrivals (recording TEXT, request INTEGER, choice INTEGER, arrival INTEGER, "
            "t_ns INTEGER, tokens INTEGER, events INTEGER, reads INTEGER, bytes INTEGER, "
            "backpressured INTEGER)");
    if (rc != SQLITE_OK) return rc;
    struct table *t = sqlite3_malloc(sizeof *t);
    if (!t) return SQLITE_NOMEM;
    *t = (struct table){.db = db};
    *out = &t->base;
    return SQLITE_OK;
}

static int on_disconnect(sqlite3_vtab *t) {
    sqlite3_free(t);
    return SQLITE_OK;
}

static int on_best_index(sqlite3_vtab *t, sqlite3_index_info *i) {
    int request = -1, recording = -1, args = 0;
    for (int c = 0; c < i->nConstraint; c++) {
        if (!i->aConstraint[c].usable || i->aConstraint[c].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
        if (i->aConstraint[c].iColumn == C_REQUEST) request = c;
        if (i->aConstraint[c].iColumn == C_RECORDING) recording = c;
    }
    i->idxNum = 0;
    i->estimatedCost = 1e7;
    i->estimatedRows = 1000000;
    if (request >= 0) {
        i->aConstraintUsage[request].argvIndex = ++args;
        i->idxNum |= BY_REQUEST;
        i->estimatedCost = 1e3;
        i->estimatedRows = 1000;
    }
    if (recording >= 0) {
        i->aConstraintUsage[recording].argvIndex = ++args;
        i->idxNum |= BY_RECORDING;
        i->estimatedCost /= 2;
    }
    return SQLITE_OK;
}

static int on_open(sqlite3_vtab *t, sqlite3_vtab_cursor **out) {
    struct cursor *c = sqlite3_malloc(sizeof *c);
    if (!c) return SQLITE_NOMEM;
    *c = (struct cursor){.end = true};
    *out = &c->base;
    return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base) {
    struct cursor *c = (struct cursor *)base;
    sqlite3_finalize(c->requests);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int damaged(struct cursor *c) {
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sqlite3_mprintf("the arrivals of request %lld are damaged",
                                             (long long)sqlite3_column_int64(c->requests, 1));
    return SQLITE_CORRUPT_VTAB;
}

/* The next request that has an arrival. */
static int next_request(struct cursor *c) {
    int rc;
    while ((rc = sqlite3_step(c->requests)) == SQLITE_ROW) {
        c->base_ns = sqlite3_column_int64(c->requests, 2);
        arrivals_read(&c->reader, sqlite3_column_blob(c->requests, 3),
                      (size_t)sqlite3_column_bytes(c->requests, 3), c->base_ns);
        c->ordinal = 0;
        if (arrivals_next(&c->reader, &c->at)) return SQLITE_OK;
        if (!c->reader.p) return damaged(c);
    }
    c->end = true;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int on_next(sqlite3_vtab_cursor *base) {
    struct cursor *c = (struct cursor *)base;
    uint32_t choice = c->at.choice;
    c->row++;
    if (arrivals_next(&c->reader, &c->at)) {
        c->ordinal = c->at.choice == choice ? c->ordinal + 1 : 0;
        return SQLITE_OK;
    }
    return c->reader.p ? next_request(c) : damaged(c);
}

static int on_filter(sqlite3_vtab_cursor *base, int by, const char *text, int argc, sqlite3_value **argv) {
    struct cursor *c = (struct cursor *)base;
    char *sql = sqlite3_mprintf("SELECT f.recording, f.request, f.arrivals_base_ns, b.arrivals_blob "
                                "FROM main.request_facts f JOIN main.request_blobs b ON b.id = f.id "
                                "WHERE COALESCE(f.partial, 0) = 0%s%s",
                                by & BY_REQUEST ? " AND f.request = ?" : "",
                                by & BY_RECORDING ? " AND f.recording = ?" : "");
    if (!sql) return SQLITE_NOMEM;
    sqlite3_finalize(c->requests);
    c->requests = NULL;
    int rc = sqlite3_prepare_v2(((struct table *)base->pVtab)->db, sql, -1, &c->requests, NULL);
    sqlite3_free(sql);
    for (int i = 0; i < argc && rc == SQLITE_OK; i++) rc = sqlite3_bind_value(c->requests, i + 1, argv[i]);
    if (rc != SQLITE_OK) return rc;
    c->end = false;
    c->row = 0;
    return next_request(c);
}

static int on_eof(sqlite3_vtab_cursor *base) {
    return ((struct cursor *)base)->end;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *to, int column) {
    const struct cursor *c = (struct cursor *)base;
    switch (column) {
    case C_RECORDING: sqlite3_result_value(to, sqlite3_column_value(c->requests, 0)); break;
    case C_REQUEST: sqlite3_result_int64(to, sqlite3_column_int64(c->requests, 1)); break;
    case C_CHOICE: sqlite3_result_int64(to, c->at.choice); break;
    case C_ARRIVAL: sqlite3_result_int64(to, c->ordinal); break;
    case C_T: sqlite3_result_int64(to, (int64_t)((uint64_t)c->at.t_ns - (uint64_t)c->base_ns)); break;
    case C_TOKENS: sqlite3_result_int64(to, c->at.tokens); break;
    case C_EVENTS: sqlite3_result_int64(to, c->at.events); break;
    case C_READS: sqlite3_result_int64(to, c->at.reads); break;
    case C_BYTES: sqlite3_result_int64(to, c->at.bytes); break;
    case C_BACKPRESSURED: sqlite3_result_int64(to, c->at.backpressured); break;
    default: break;
    }
    return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row) {
    *row = ((struct cursor *)base)->row;
    return SQLITE_OK;
}

int vtab_arrivals(sqlite3 *db) {
    static const sqlite3_module module = {
        .iVersion = 0,
        .xConnect = on_connect, /* without xCreate: the module is the table */
        .xBestIndex = on_best_index,
        .xDisconnect = on_disconnect,
        .xOpen = on_open,
        .xClose = on_close,
        .xFilter = on_filter,
        .xNext = on_next,
        .xEof = on_eof,
        .xColumn = on_column,
        .xRowid = on_rowid,
    };
    int rc = sqlite3_create_module_v2(db, "arrivals", &module, NULL, NULL);
    /* Its first use makes the table, which an authorizer set later on would forbid. */
    return rc == SQLITE_OK ? sqlite3_exec(db, "SELECT 1 FROM arrivals LIMIT 0", NULL, NULL, NULL) : rc;
}
