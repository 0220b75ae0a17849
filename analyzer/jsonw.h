/* Writes one JSON value, indented, as it goes. Knows nothing of what it writes.
 *
 * NaN is null (not known), infinity "inf", whole numbers above 2^53 are strings. */
#ifndef ANALYZER_JSONW_H
#define ANALYZER_JSONW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct jsonw {
    FILE *f;
    int depth;
    bool first; /* nothing yet in the innermost object or array */
};

/* kind is '{' or '['. key NULL: an element of an array, or the outermost value. */
void jsonw_open(struct jsonw *j, const char *key, char kind);
void jsonw_close(struct jsonw *j, char kind);
void jsonw_number(struct jsonw *j, const char *key, double v);
void jsonw_int(struct jsonw *j, const char *key, int64_t v);
void jsonw_bool(struct jsonw *j, const char *key, bool v);
void jsonw_text(struct jsonw *j, const char *key, const char *s);   /* NULL: null */
void jsonw_wall(struct jsonw *j, const char *key, int64_t wall_ns); /* RFC 3339; 0: null */

#endif
