/* Loads traces into a database that has our tables: opens the files, puts the parts of each recording in
 * order, reads them in one transaction, derives what needs the whole table. */
#ifndef ANALYZER_LOAD_H
#define ANALYZER_LOAD_H

#include "analyzer/inputs.h"

#include <sqlite3.h>
#include <stdint.h>

struct load_options {
    int64_t window_ns; /* reads this close to the first of an arrival belong to it */
    bool quiet;        /* no notes and no progress on stderr */
    bool rows;         /* make a plain table arrivals, too */
};

/* 0, or an exit status after one line on stderr: nothing was stored. *damaged becomes true when some input
 * was damaged and the database covers what could be read. */
int load_traces(sqlite3 *db, const struct inputs *in, const struct load_options *o, bool *damaged);

/* What needs the whole table (schema/sql/029 to 032), as load_traces runs it at its end. again: there were
 * requests before this load. An SQLite code. */
int load_derive(sqlite3 *db, bool again);

#endif
