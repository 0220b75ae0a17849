/* Definitions: the comments of schema/sql as rows of the table `definitions`.
 *
 * The text that a reader of the SQL sees beside a column is the text that users are shown. */
#ifndef ANALYZER_DEFINE_H
#define ANALYZER_DEFINE_H

#include <sqlite3.h>

/* Fills definitions in a database that has its tables and views. An SQLite code. */
int define_all(sqlite3 *db);

#endif
