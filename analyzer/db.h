/* The database made from traces: its objects, how to know one of ours, and small helpers over SQLite.
 *
 * Knows schema/sql and the catalogue of facts; knows no trace file. */
#ifndef ANALYZER_DB_H
#define ANALYZER_DB_H

#include "schema/facts.h"

#include <sqlite3.h>

#define DB_APPLICATION_ID 0x54525243 /* "TRRC", in the header of a database file */
#define DB_SCHEMA_VERSION 1

enum db_kind { DB_EMPTY, DB_OURS, DB_OTHER_VERSION, DB_OTHER_PROGRAM, DB_UNREADABLE };

/* Creates every object of the stored schema in an empty database and fills definitions. 0, or an SQLite error
 * code: sqlite3_errmsg(db) says what. */
int db_create(sqlite3 *db);
/* What the open database is. */
enum db_kind db_kind(sqlite3 *db);

/* Runs statements without results; an SQLite code. */
int db_exec(sqlite3 *db, const char *sql);
/* First column of the first row as a number, or fallback without a row. */
int64_t db_number(sqlite3 *db, const char *sql, int64_t fallback);
/* SQL text with its FACTS lines filled from the catalogue; the caller frees it. NULL without memory. */
char *db_expand(const char *sql);
/* Type of a fact's column: INTEGER, REAL or TEXT; NULL for a span, which has none. */
const char *db_fact_column_type(enum fact f);

#endif
