/* Steps over JSON text by its brackets and strings, without parsing it. Pure.
 *
 * The text may be no JSON at all: what is not understood is left to the parser. */
#ifndef RECORDER_DISSECT_JSONWALK_H
#define RECORDER_DISSECT_JSONWALK_H

#include <stddef.h>

/* Behind the string that begins at p with its quotation mark; NULL: it does not end. */
const char *jsonwalk_string(const char *p, const char *end);
/* Behind the value that begins at p; end: it does not end. */
const char *jsonwalk_value(const char *p, const char *end);
/* Copies an object's text to out (room for n bytes) with null in place of the long values of its members
 * called keys (NULL at the end). The length of the copy, 0: there is none to use. */
size_t jsonwalk_without(const char *p, size_t n, const char *const *keys, char *out);

#endif
