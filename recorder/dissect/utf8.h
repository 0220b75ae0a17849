/* UTF-8, as found in traffic: validity, and what stands for bytes that are none. */
#ifndef RECORDER_DISSECT_UTF8_H
#define RECORDER_DISSECT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD       "\xef\xbf\xbd" /* U+FFFD */
#define UTF8_BAD_BYTES 3

/* Length of the valid sequence at p (n > 0 bytes are there), 1 to 4; 0: there is none. */
size_t utf8_sequence(const unsigned char *p, size_t n);
/* Bytes of valid UTF-8 that p begins with. */
size_t utf8_valid(const char *p, size_t n);
/* Copies to out (room for max bytes) with U+FFFD for each byte that is in no valid sequence, and never half a
 * sequence. Returns the bytes written; *n_bad counts replacements, *n_cut the bytes of p that did not fit. */
size_t utf8_clean(const char *p, size_t n, char *out, size_t max, unsigned *n_bad, size_t *n_cut);

#endif
