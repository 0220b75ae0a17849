/* JSON lines cut into reads by the input's first byte must give the lines of one read. */
#include "recorder/dissect/ndjson.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_event(void *ctx, const struct event *e) {
    uint64_t *hash = ctx;
    *hash = *hash * 31 + e->wire_bytes + e->cut;
    for (size_t i = 0; i < e->n_data; i++) *hash = *hash * 31 + (unsigned char)e->data[i];
}

static uint64_t run(size_t step, const uint8_t *p, size_t n) {
    struct pool pool = {.limit = 1 << 20};
    struct ndjson s = {0};
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i += step) {
        size_t len = n - i < step ? n - i : step;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        ndjson_feed(&s, &pool, copy, len, on_event, &hash);
        free(copy);
    }
    ndjson_end(&s, &pool, true, on_event, &hash);
    if (pool.used) abort();
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    if (run(1 + data[0] % 16u, data + 1, size - 1) != run(size, data + 1, size - 1)) abort();
    return 0;
}
