/* traceanalyze requests: one row a request. Open, choose columns, step, print, close. */
#include "analyzer/args.h"
#include "analyzer/columns.h"
#include "analyzer/commands.h"
#include "analyzer/requests_table.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"table", "csv", "ndjson", NULL};
static const struct args_spec spec = {
    "requests", OPT_SOURCE | OPT_FORMAT | OPT_SORT | OPT_LIMIT | OPT_COLUMNS, formats,
    "traceanalyze requests TRACE... [--format table|csv|ndjson] [--sort [-]COLUMN] [--limit N] [--columns "
    "NAME,...]\n"
    "                      [--where SQL] [--from T] [--to T] [--last D] [--tz ZONE] [--arrival-window 1ms] "
    "[--quiet]\n\n"
    "One row a request, in the order of arrival unless --sort says another one (- in front: largest first;\n"
    "absent values last). csv and ndjson have every column; traceanalyze definitions --columns explains "
    "them.\n",
    "a trace"};

/* " WHERE ... ORDER BY ... LIMIT ..." for the options; sqlite3_free it. */
static char *tail_of(const struct args *o, const struct columns *all, bool *wrong) {
    const struct column *by = o->sort ? columns_find(all, "--sort", o->sort, strlen(o->sort)) : NULL;
    *wrong = o->sort && !by;
    if (*wrong) return NULL;
    if (!by)
        return sqlite3_mprintf("ORDER BY arrived_wall_ns, recording, request LIMIT %lld",
                               (long long)o->limit);
    return sqlite3_mprintf("ORDER BY \"%w\" %s NULLS LAST, arrived_wall_ns, request LIMIT %lld", by->source,
                           o->descending ? "DESC" : "ASC", (long long)o->limit);
}

static char *select_of(const struct column **picked, size_t n, const char *tail) {
    sqlite3_str *s = sqlite3_str_new(NULL);
    for (size_t i = 0; i < n; i++)
        sqlite3_str_appendf(s, "%s\"%w\"", i ? ", " : "SELECT ", picked[i]->source);
    sqlite3_str_appendf(s, " FROM selected %s", tail);
    return sqlite3_str_finish(s);
}

static const char *grid_cell(char *out, size_t size, const struct cell *c, const struct show_mode *m) {
    switch (c->kind) {
    case CELL_INT: return show_decimals(out, (double)c->i, 0);
    case CELL_NS_AS_MS: return show_ms(out, (double)c->i / 1e6);
    case CELL_REAL: return show_ms(out, c->d);
    case CELL_WALL: return show_time(out, c->i, 3, m);
    case CELL_TEXT: return show_safe(out, size, c->s, c->n, m->utf8);
    default: return "-";
    }
}

static struct grid *grid_for(const struct column **picked, size_t n) {
    struct grid_column *heads = calloc(n + 1, sizeof *heads);
    for (size_t i = 0; heads && i < n; i++)
        heads[i] = (struct grid_column){{NULL, picked[i]->name}, GRID_AUTO, 2};
    struct grid *g = heads ? grid_new(heads, n) : NULL;
    free(heads);
    return g;
}

static void add_grid_row(struct grid *g, const struct cell *cells, size_t n, const struct show_mode *m) {
    char(*room)[256] = malloc(n * sizeof *room + 1);
    const char **texts = calloc(n + 1, sizeof *texts);
    for (size_t i = 0; room && texts && i < n; i++)
        texts[i] = grid_cell(room[i], sizeof room[i], &cells[i], m);
    if (room && texts) grid_row(g, texts);
    free(room);
    free(texts);
}

struct writer {
    const char *format;
    const char **names;
    struct grid *grid; /* table only */
    const struct show_mode *mode;
};

static void write_head(const struct writer *w, struct cell *cells, size_t n) {
    for (size_t i = 0; i < n; i++)
        cells[i] = (struct cell){.kind = CELL_TEXT, .s = w->names[i], .n = strlen(w->names[i])};
    if (strcmp(w->format, "csv") == 0) table_csv(stdout, cells, n);
}

static void write_row(const struct writer *w, const struct cell *cells, size_t n) {
    if (w->grid)
        add_grid_row(w->grid, cells, n, w->mode);
    else if (strcmp(w->format, "csv") == 0)
        table_csv(stdout, cells, n);
    else
        table_ndjson(stdout, w->names, cells, n);
}

static int failed(sqlite3 *db) {
    fprintf(stderr, "traceanalyze: requests: %s\n", sqlite3_errmsg(db));
    return 1;
}

static int write_rows(sqlite3 *db, const struct column **picked, size_t n, const char *sql,
                      struct writer *w) {
    sqlite3_stmt *s = NULL;
    int status = 0, rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    struct cell *cells = calloc(n + 1, sizeof *cells);
    w->names = calloc(n + 1, sizeof *w->names);
    for (size_t i = 0; w->names && i < n; i++) w->names[i] = picked[i]->name;
    if (!cells || !w->names || rc != SQLITE_OK) {
        status = failed(db);
    } else {
        write_head(w, cells, n);
        while ((rc = sqlite3_step(s)) == SQLITE_ROW && !ferror(stdout)) {
            for (size_t i = 0; i < n; i++) cells[i] = columns_cell(s, (int)i, picked[i]->kind);
            write_row(w, cells, n);
        }
        if (rc != SQLITE_DONE && rc != SQLITE_ROW) status = failed(db);
    }
    sqlite3_finalize(s);
    free(cells);
    free(w->names);
    return status;
}

static int print_default(sqlite3 *db, const char *tail, const struct show_mode *m) {
    bool marked;
    struct grid *g = requests_table(db, tail, m, &marked);
    if (!g) return 1;
    grid_print(g, stdout, 1);
    puts(marked ? "times in ms, rates in tok/s    r the engine's own figure    - not known"
                : "times in ms, rates in tok/s    - not known");
    grid_free(g);
    return 0;
}

static int run(sqlite3 *db, const struct args *o, const struct columns *all, const struct show_mode *m) {
    const struct column **picked;
    size_t n;
    bool wrong, table = strcmp(o->format, "table") == 0;
    if (!columns_pick(all, "--columns", o->columns, &picked, &n)) return 2;
    char *tail = tail_of(o, all, &wrong);
    int status = wrong ? 2 : 1;
    if (tail && table && !o->columns) {
        status = print_default(db, tail, m);
    } else if (tail) {
        char *sql = select_of(picked, n, tail);
        struct writer w = {.format = o->format, .grid = table ? grid_for(picked, n) : NULL, .mode = m};
        status = sql ? write_rows(db, picked, n, sql, &w) : 1;
        if (w.grid && status == 0) grid_print(w.grid, stdout, 0);
        grid_free(w.grid);
        sqlite3_free(sql);
    }
    sqlite3_free(tail);
    free(picked);
    return status;
}

int cmd_requests(int argc, char **argv) {
    struct args o;
    struct source source;
    struct columns all;
    struct show_mode mode;
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    if (!show_mode_of(&mode, stdout, o.source.tz)) {
        fprintf(stderr, "traceanalyze: --tz %s: no such zone; UTC, local, or a name as Europe/Berlin\n",
                o.source.tz);
        return 2;
    }
    status = source_open(&source, o.inputs, o.n_inputs, &o.source);
    if (status) return status;
    status = columns_of(&all, source.db, "selected") ? run(source.db, &o, &all, &mode) : failed(source.db);
    if (status == 0) status = source.exit_status;
    columns_free(&all);
    source_close(&source);
    return status;
}
