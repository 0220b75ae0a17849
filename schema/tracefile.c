/* The head of a trace: put and got in the same order, side by side. */
#include "schema/tracefile.h"

#include <string.h>
#include <zlib.h>

void trace_head_put(struct bytes *out, struct trace_head *h, const char *const *pairs) {
    uint32_t n = 0;
    size_t start = out->n, size = TRACE_HEAD_MIN;
    for (; pairs && pairs[2 * n]; n++) size += 8 + strlen(pairs[2 * n]) + strlen(pairs[2 * n + 1]);
    h->header_size = (uint32_t)size;
    bytes_put(out, TRACE_MAGIC, 8);
    bytes_put_u32(out, h->format);
    bytes_put_u32(out, h->header_size);
    bytes_put_u64(out, h->required);
    bytes_put_u64(out, h->optional);
    bytes_put(out, h->recording, 16);
    bytes_put_u64(out, h->part);
    bytes_put_u32(out, h->salt);
    if (!out->failed) bytes_put_u32(out, (uint32_t)crc32(0, out->p + start, 60));
    bytes_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        bytes_put_u32(out, (uint32_t)strlen(pairs[2 * i]));
        bytes_put_u32(out, (uint32_t)strlen(pairs[2 * i + 1]));
        bytes_put(out, pairs[2 * i], strlen(pairs[2 * i]));
        bytes_put(out, pairs[2 * i + 1], strlen(pairs[2 * i + 1]));
    }
    const uint8_t *rest = out->p + start + TRACE_HEAD_FIXED;
    if (!out->failed) bytes_put_u32(out, (uint32_t)crc32(0, rest, (uInt)(size - TRACE_HEAD_FIXED - 4)));
}

bool trace_head_get(struct trace_head *h, const uint8_t *p) {
    if (load_u32(p + 60) != (uint32_t)crc32(0, p, 60)) return false; /* H2 */
    h->format = load_u32(p + 8);
    h->header_size = load_u32(p + 12);
    h->required = load_u64(p + 16);
    h->optional = load_u64(p + 24);
    memcpy(h->recording, p + 32, 16);
    h->part = load_u64(p + 48);
    h->salt = load_u32(p + 56);
    return true;
}
