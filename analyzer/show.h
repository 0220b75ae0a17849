/* How values look to people: numbers, times, shares, sizes, marks, and text that others wrote.
 *
 * Pure formatting (screens.md rules 2, 3, 4 and 8); knows neither SQL nor metrics. Its one hard idea:
 * whatever stands in a trace is shown without control or bidirectional characters, and a terminal without
 * UTF-8 gets ASCII of the same meaning. */
#ifndef ANALYZER_SHOW_H
#define ANALYZER_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct show_mode {
    bool utf8;        /* symbols beyond ASCII may be printed */
    bool colour;      /* the output is a terminal that takes colour, and NO_COLOR is not set */
    int columns;      /* width to keep to: 100, less in a narrower terminal */
    bool local;       /* times of day by the TZ of the process, not UTC */
    const char *zone; /* name of that zone for the head: "UTC", "local", "Europe/Berlin" */
};

/* Finds out about out: terminal or not, COLUMNS, NO_COLOR, the locale's character set. tz NULL: UTC; "local"
 * or a zone's name changes the times of day of the whole process. False when there is no such zone. */
bool show_mode_of(struct show_mode *m, FILE *out, const char *tz);

/* Room for any number or time below. */
#define SHOW_MAX 64

/* Each writes into out (SHOW_MAX bytes) and returns it. NaN is "-" (not known), infinity "inf". */
const char *show_ms(char *out, double ms);       /* 9.99 · 99.9 · 1,234 */
const char *show_rate(char *out, double rate);   /* three digits, whole from 100 */
const char *show_share(char *out, double share); /* 0..1 as percent without its sign: 98.8, 0.78 */
const char *show_count(char *out, double n);     /* 12,480; from a million 4.61M */
const char *show_bytes(char *out, double bytes); /* 8.3 MB */
const char *show_ratio(char *out, double ratio); /* 0.718 */
const char *show_decimals(char *out, double v, int decimals); /* with thousands commas */
/* 42 min 00 s · 14.8 s · 3 h 20 min; short leaves out a second unit of zero: 42 min */
const char *show_duration(char *out, double seconds, bool brief);
/* Durations whose unit changes with their size: 48 µs, 3.1 ms, 2.4 s. */
const char *show_span(char *out, double ns, const struct show_mode *m);

/* Wall clock, ns since the epoch, in the mode's zone. */
const char *show_date(char *out, int64_t wall_ns, const struct show_mode *m);               /* 2027-01-14 */
const char *show_time(char *out, int64_t wall_ns, int decimals, const struct show_mode *m); /* 03:07:12.4 */
/* RFC 3339 with nanoseconds; UTC (Z) whatever the mode. */
const char *show_rfc3339(char *out, int64_t wall_ns);

/* Reads the character at s (n >= 1 bytes): its length in bytes, 0 when it is no UTF-8. */
size_t show_utf8(const char *s, size_t n, uint32_t *c);

/* Copies n bytes of text that others wrote: control and bidi characters and bytes that are no UTF-8 as \x..,
 * everything else as it is (without UTF-8: ASCII of the same meaning for our own symbols, \x.. for the rest).
 * Cuts at size - 1 bytes, never inside a character. Returns out. */
const char *show_safe(char *out, size_t size, const char *s, size_t n, bool utf8);
/* Terminal columns that a safe text takes. */
size_t show_width(const char *s);

/* A bar of 0 to 8 eighths; 0 is '.'. */
const char *show_bar(int eighths, const struct show_mode *m);

#endif
