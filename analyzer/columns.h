/* The columns of the view `requests` as people and programs see them: durations in ms, times of day as RFC
 * 3339.
 *
 * Knows the naming rule of the schema, not the columns themselves: a new column of the view needs no line
 * here. */
#ifndef ANALYZER_COLUMNS_H
#define ANALYZER_COLUMNS_H

#include "analyzer/table.h"

#include <sqlite3.h>

enum column_kind {
    COLUMN_PLAIN,
    COLUMN_DURATION, /* whole or real ns in the view, shown as ms */
    COLUMN_WALL      /* ns since the epoch, shown as time of day */
};

struct column {
    char name[64];   /* as shown: ttft_server_ms */
    char source[64]; /* in the view: ttft_server_ns */
    enum column_kind kind;
};

struct columns {
    struct column *v;
    size_t n;
};

/* Columns of a view in its order, blobs left out. False when memory is short or the view cannot be read; the
 * reason is then sqlite3_errmsg. columns_free afterwards in both cases. */
bool columns_of(struct columns *c, sqlite3 *db, const char *view);
void columns_free(struct columns *c);

/* Finds a column by its shown name, its name in the view, the metric's name without its unit, or a short name
 * (ttft, e2e: the _client ones). NULL: one line on stderr with the option, the word and a near match. */
const struct column *columns_find(const struct columns *c, const char *option, const char *word,
                                  size_t n_word);
/* Resolves a comma list given to option; NULL: all of c. *out is to be freed. False after one line on stderr.
 */
bool columns_pick(const struct columns *c, const char *option, const char *list, const struct column ***out,
                  size_t *n);

/* Column i of the statement's row as a cell; text is borrowed until the next step. */
struct cell columns_cell(sqlite3_stmt *s, int i, enum column_kind kind);

#endif
