/* An event stream cut into reads by the input's first bytes must give the events of one read. */
#include "recorder/dissect/sse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t events, bytes, wire, hash;
};

static void on_event(void *ctx, const struct event *e) {
    struct sum *s = ctx;
    s->events++;
    s->bytes += e->n_data;
    s->wire += e->wire_bytes;
    for (size_t i = 0; i < e->n_data; i++) s->hash = s->hash * 31 + (unsigned char)e->data[i];
    for (size_t i = 0; e->name[i]; i++) s->hash = s->hash * 37 + (unsigned char)e->name[i];
    s->hash += e->cut;
}

static struct sum run(const uint8_t *cuts, size_t n_cuts, const uint8_t *p, size_t n) {
    struct pool pool = {.limit = 1 << 20};
    struct sse s = {0};
    struct sum sum = {0};
    for (size_t i = 0, k = 0; i < n; k++) {
        size_t len = n_cuts ? 1u + cuts[k % n_cuts] % 32u : n;
        if (len > n - i) len = n - i;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        sse_feed(&s, &pool, copy, len, on_event, &sum);
        free(copy);
        i += len;
    }
    sse_end(&s, &pool, on_event, &sum);
    sum.hash += s.comments;
    if (pool.used) abort();
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    struct sum whole = run(NULL, 0, data + 4, size - 4), cut = run(data, 4, data + 4, size - 4);
    if (memcmp(&whole, &cut, sizeof whole) != 0) abort();
    return 0;
}
