/* Numbers as people read them: 12,480 and 8.3 MB and 48 µs. Pure. Each writes into out[TEXT_MAX] and returns
 * it. */
#ifndef RECORDER_TEXT_H
#define RECORDER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_MAX = 48 };

const char *text_count(char *out, uint64_t n);     /* 12,480 */
const char *text_bytes(char *out, uint64_t bytes); /* 8.3 MB, of 1000 */
const char *text_delay(char *out, uint64_t ns);    /* 48 µs, 3.1 ms, 2.0 s; us without UTF-8 */
const char *text_span(char *out, uint64_t ns);     /* 42 min 00 s */
const char *text_time(char *out, int64_t wall_ns, bool date,
                      bool ms); /* 03:08:02.114; 2027-01-14T03:08:02Z */
bool text_utf8(void);           /* the locale's characters are UTF-8 */

#endif
