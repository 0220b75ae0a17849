/* The table `arrivals`: rows out of the blobs of request_facts, for SQL on a connection of ours.
 *
 * Nothing stored in a database names it, so that every other program can open the file. */
#ifndef ANALYZER_VTAB_ARRIVALS_H
#define ANALYZER_VTAB_ARRIVALS_H

#include <sqlite3.h>

/* Registers it on a connection. An SQLite code. */
int vtab_arrivals(sqlite3 *db);

#endif
