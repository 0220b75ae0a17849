/* What a command reads: traces, folders of them, or a database made by load, seen as one SQLite connection.
 *
 * Whatever the input, afterwards db has every object of design.md 7 (tables traces, connections, losses,
 * samples, notes, definitions; view requests, one row a request with every fact and metric, durations in
 * integer _ns), and a TEMP view `selected`: the rows of requests that --where, --from, --to and --last leave.
 * Nobody can write through it. */
#ifndef ANALYZER_SOURCE_H
#define ANALYZER_SOURCE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_options {
    int64_t arrival_window_ns;    /* 1 ms unless told */
    const char *from, *to, *last; /* as given: 03:07, 03:07:12.4, RFC 3339, +90s, -10m; NULL: none */
    const char *tz;               /* NULL: UTC */
    const char *where;            /* an SQL condition over requests; NULL: none */
    bool quiet;                   /* no progress bar, no notes on stderr */
};

struct source {
    sqlite3 *db;
    int exit_status; /* 0, or 3 when an input was damaged and the result covers what could be read */
};

/* Opens n inputs. Returns 0, or an exit status (1, 2, 3) after one line on stderr that says program, what,
 * input, why and what to do. */
int source_open(struct source *s, char *const *inputs, size_t n, const struct source_options *o);
void source_close(struct source *s);

#endif
