/* traceanalyze sql: one query over traces. Open, prepare, step, print, close; nothing can be written. */
#include "analyzer/args.h"
#include "analyzer/commands.h"
#include "analyzer/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"table", "csv", "ndjson", NULL};
static const struct args_spec spec = {"sql", OPT_SOURCE | OPT_FORMAT, formats,
                                      "traceanalyze sql TRACE... 'SELECT ...' [--format table|csv|ndjson] "
                                      "[--where SQL] [--from T] [--to T] [--last D] [--tz ZONE]\n\n"
                                      "Tables: requests (a row a request), selected (those that --where, "
                                      "--from, --to and --last leave), arrivals, gaps,\n"
                                      "traces, connections, spans, losses, samples, notes, definitions. "
                                      "Reading only. Durations are whole ns, in _ns.\n",
                                      "a trace and a query"};

static int reading(void *ctx, int action, const char *a, const char *b, const char *c, const char *d) {
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_PRAGMA: return b == NULL || strncmp(a, "table_", 6) == 0 ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}

static struct cell cell_of(sqlite3_stmt *s, int i) {
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER: return (struct cell){.kind = CELL_INT, .i = sqlite3_column_int64(s, i)};
    case SQLITE_FLOAT: return (struct cell){.kind = CELL_REAL, .d = sqlite3_column_double(s, i)};
    case SQLITE_TEXT: {
        const char *p = (const char *)sqlite3_column_text(s, i);
        return (struct cell){.kind = CELL_TEXT, .s = p, .n = (size_t)sqlite3_column_bytes(s, i)};
    }
    case SQLITE_BLOB: return (struct cell){.kind = CELL_TEXT, .s = "(blob)", .n = 6};
    default: return (struct cell){.kind = CELL_NULL};
    }
}

struct writer {
    const char *format;
    const char **names;
    size_t n;
    struct grid *grid; /* table only */
    struct show_mode mode;
};

enum { CELL_BYTES = 512 };

static void grid_cells(struct writer *w, const struct cell *cells) {
    char(*room)[CELL_BYTES] = malloc(w->n * sizeof *room + 1);
    const char **texts = calloc(w->n + 1, sizeof *texts);
    for (size_t i = 0; room && texts && i < w->n; i++) {
        const struct cell *c = &cells[i];
        texts[i] = room[i];
        if (c->kind == CELL_INT)
            snprintf(room[i], CELL_BYTES, "%lld", (long long)c->i);
        else if (c->kind == CELL_REAL)
            table_double(room[i], c->d);
        else if (c->kind == CELL_TEXT)
            show_safe(room[i], CELL_BYTES, c->s, c->n, w->mode.utf8);
        else
            texts[i] = "-";
    }
    if (room && texts) grid_row(w->grid, texts);
    free(room);
    free(texts);
}

static void write_row(struct writer *w, const struct cell *cells) {
    if (w->grid)
        grid_cells(w, cells);
    else if (strcmp(w->format, "csv") == 0)
        table_csv(stdout, cells, w->n);
    else
        table_ndjson(stdout, w->names, cells, w->n);
}

static bool begin(struct writer *w, sqlite3_stmt *s, struct cell *cells) {
    struct grid_column *heads = calloc(w->n + 1, sizeof *heads);
    for (size_t i = 0; heads && i < w->n; i++) {
        w->names[i] = sqlite3_column_name(s, (int)i);
        heads[i] = (struct grid_column){{NULL, w->names[i]}, GRID_LEFT, 0};
        cells[i] = (struct cell){.kind = CELL_TEXT, .s = w->names[i], .n = strlen(w->names[i])};
    }
    if (heads && strcmp(w->format, "table") == 0)
        w->grid = grid_new(heads, w->n);
    else if (strcmp(w->format, "csv") == 0)
        write_row(w, cells);
    bool good = heads != NULL;
    free(heads);
    return good;
}

static int failed(sqlite3 *db, int status) {
    fprintf(stderr, "traceanalyze: sql: %s; tables and columns: traceanalyze definitions --columns\n",
            sqlite3_errmsg(db));
    return status;
}

static int run(sqlite3 *db, sqlite3_stmt *s, const struct args *o) {
    struct writer w = {.format = o->format, .n = (size_t)sqlite3_column_count(s)};
    struct cell *cells = calloc(w.n + 1, sizeof *cells);
    w.names = calloc(w.n + 1, sizeof *w.names);
    show_mode_of(&w.mode, stdout, o->source.tz);
    int rc = cells && w.names && begin(&w, s, cells) ? SQLITE_OK : SQLITE_NOMEM;
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        for (size_t i = 0; i < w.n; i++) cells[i] = cell_of(s, (int)i);
        write_row(&w, cells);
        rc = SQLITE_OK;
    }
    if (w.grid && rc == SQLITE_DONE) grid_print(w.grid, stdout, 0);
    if (w.grid) grid_free(w.grid);
    free(cells);
    free(w.names);
    return rc == SQLITE_DONE ? 0 : failed(db, 1);
}

/* Only white space, semicolons and comments may follow the statement. */
static bool is_rest_empty(const char *tail) {
    return tail[strspn(tail, " \t\r\n;")] == 0;
}

int cmd_sql(int argc, char **argv) {
    struct args o;
    struct source source;
    sqlite3_stmt *s = NULL;
    const char *tail = "";
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    if (o.n_inputs < 2) {
        fputs("traceanalyze: sql: no query; give a trace and then the query in quotes\n", stderr);
        return 2;
    }
    status = source_open(&source, o.inputs, o.n_inputs - 1, &o.source);
    if (status != 0) return status;
    sqlite3_set_authorizer(source.db, reading, NULL);
    if (sqlite3_prepare_v2(source.db, o.inputs[o.n_inputs - 1], -1, &s, &tail) != SQLITE_OK)
        status = failed(source.db, 2);
    else if (!s || !is_rest_empty(tail)) {
        fputs("traceanalyze: sql: give one statement, SELECT ...\n", stderr);
        status = 2;
    } else
        status = run(source.db, s, &o);
    sqlite3_finalize(s);
    if (status == 0) status = source.exit_status;
    source_close(&source);
    return status;
}
