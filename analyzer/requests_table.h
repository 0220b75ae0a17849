/* Requests as a table for people, each on its own row: the default columns of `requests`, and `report` when
 * there are at most 20. Knows the view `selected`. */
#ifndef ANALYZER_REQUESTS_TABLE_H
#define ANALYZER_REQUESTS_TABLE_H

#include "analyzer/table.h"

#include <sqlite3.h>

/* The rows of `selected` that tail ("WHERE ... ORDER BY ... LIMIT ...", SQL of ours) leaves. *marked is set
 * when a figure of the engine's own (r) is among them. NULL after one line on stderr. */
struct grid *requests_table(sqlite3 *db, const char *tail, const struct show_mode *m, bool *marked);

#endif
