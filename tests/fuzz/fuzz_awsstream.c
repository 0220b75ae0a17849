/* Frames cut into reads by the input's first bytes must give the events of one read. Chance makes no
 * checksums: where the first byte is even, the lengths and checksums of the frames are put right first. */
#include "recorder/dissect/awsstream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t events, bytes, wire, hash;
};

static void add_text(struct sum *s, const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) s->hash = s->hash * 31 + (unsigned char)p[i];
}

static void on_event(void *ctx, const struct event *e) {
    struct sum *s = ctx;
    s->events++;
    s->bytes += e->n_data;
    s->wire += e->wire_bytes;
    add_text(s, e->data, e->n_data);
    add_text(s, e->name, strlen(e->name));
    if (e->error_type) add_text(s, e->error_type, strlen(e->error_type));
    s->hash += e->cut + 2 * e->unread + 4 * !!e->error_type;
}

static struct sum run(const uint8_t *cuts, size_t n_cuts, const uint8_t *p, size_t n) {
    struct pool pool = {.limit = 1 << 20};
    struct awsstream s = {0};
    struct sum sum = {0};
    for (size_t i = 0, k = 0; i < n; k++) {
        size_t len = n_cuts ? 1u + cuts[k % n_cuts] % 32u : n;
        if (len > n - i) len = n - i;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        awsstream_feed(&s, &pool, copy, len, on_event, &sum);
        free(copy);
        i += len;
    }
    awsstream_end(&s, &pool, on_event, &sum);
    if (pool.used || sum.wire != n) abort(); /* every byte belongs to one event */
    return sum;
}

static void put_u32(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_right(uint8_t *p, size_t n) {
    while (n >= 16) {
        size_t total = 16u + (p[2] << 8 | p[3]) % 1024u;
        if (total > n) total = n;
        put_u32(p, total);
        put_u32(p + 4, p[7] % (total - 15));
        put_u32(p + 8, crc32(0, p, 8));
        put_u32(p + total - 4, crc32(0, p, (uInt)total - 4));
        p += total, n -= total;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    size_t n = size - 4;
    uint8_t *bytes = malloc(n + !n);
    memcpy(bytes, data + 4, n);
    if (data[0] % 2 == 0) put_right(bytes, n);
    struct sum whole = run(NULL, 0, bytes, n), cut = run(data, 4, bytes, n);
    if (memcmp(&whole, &cut, sizeof whole) != 0) abort();
    free(bytes);
    return 0;
}
