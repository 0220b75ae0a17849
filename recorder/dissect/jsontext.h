/* JSON text before it is parsed: is it whole and of bounded size, and what must be repaired so that a parser
 * that knows neither NaN, nor 64-bit integers, nor lone surrogates reads it. Pure. */
#ifndef RECORDER_DISSECT_JSONTEXT_H
#define RECORDER_DISSECT_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_DEPTH_MAX  512
#define JSON_VALUES_MAX 100000

struct jsontext {
    enum { JSONTEXT_OK, JSONTEXT_BAD, JSONTEXT_LARGE } verdict; /* LARGE: too deep or too many values */
    unsigned repairs;   /* needed: NaN, lone surrogates, NUL characters, bytes that are not UTF-8 */
    unsigned rewrites;  /* whole numbers of more than 15 digits that need a mark, see jsontext_repair */
    unsigned too_large; /* of them above 2^63 - 1 (or below -2^63): they become null */
    size_t begin, end;  /* where the one value lies in the text */
};

/* Looks at n bytes of text. It must be one value, white space around it; a byte order mark may come first. */
struct jsontext jsontext_scan(const char *p, size_t n);

/* A whole number that a double does not hold becomes a string of this byte, which no text of valid UTF-8 has,
 * and its digits. */
#define JSONTEXT_MARK '\xff'

/* Writes the repaired text to out, with a terminator. Room for jsontext_room(n) bytes is needed. Returns its
 * length. Only for a text whose verdict is OK. */
size_t jsontext_repair(const char *p, size_t n, char *out);
size_t jsontext_room(size_t n);

#endif
