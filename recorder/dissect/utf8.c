/* The table of well-formed sequences of the Unicode standard (3.9, table 3-7), as ranges of the second byte.
 */
#include "recorder/dissect/utf8.h"

#include <string.h>

size_t utf8_sequence(const unsigned char *p, size_t n) {
    unsigned char c = p[0], low = 0x80, high = 0xbf;
    size_t len;
    if (c < 0x80) return 1;
    if (c < 0xc2 || c > 0xf4) return 0;
    len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (n < len) return 0;
    if (c == 0xe0) low = 0xa0;
    if (c == 0xed) high = 0x9f;
    if (c == 0xf0) low = 0x90;
    if (c == 0xf4) high = 0x8f;
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return len;
}

size_t utf8_valid(const char *p, size_t n) {
    size_t i = 0;
    while (i < n) {
        size_t len = utf8_sequence((const unsigned char *)p + i, n - i);
        if (len == 0) break;
        i += len;
    }
    return i;
}

size_t utf8_clean(const char *p, size_t n, char *out, size_t max, unsigned *n_bad, size_t *n_cut) {
    size_t i = 0, w = 0;
    while (i < n) {
        size_t len = utf8_sequence((const unsigned char *)p + i, n - i);
        size_t wlen = len ? len : UTF8_BAD_BYTES;
        if (w + wlen > max) break;
        memcpy(out + w, len ? p + i : UTF8_BAD, wlen);
        *n_bad += len == 0;
        i += len ? len : 1;
        w += wlen;
    }
    *n_cut += n - i;
    return w;
}
