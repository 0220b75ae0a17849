/* What part of the input is looked at: --from, --to, --last and --where as the TEMP view `selected`. */
#ifndef ANALYZER_SELECT_H
#define ANALYZER_SELECT_H

#include "analyzer/source.h"

/* Makes the view. 0, or 2 after one line on stderr that says what cannot be read. */
int select_make(sqlite3 *db, const struct source_options *o);

/* A time as people write it, into ns since the epoch: 03:07, 03:07:12.4 (of the day of start), RFC 3339
 * (without a zone: in tz), +90s from start, -10m from end. False when it is none. */
bool select_time(const char *text, const char *tz, int64_t start_wall_ns, int64_t end_wall_ns,
                 int64_t *wall_ns);
/* "90s", "10m", "1.5h", "200ms", "2d" into ns; false when it is none. */
bool select_duration(const char *text, int64_t *ns);

#endif
