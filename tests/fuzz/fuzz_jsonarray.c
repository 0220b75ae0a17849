/* A JSON array cut into reads by the input's first bytes must give the elements of one read, and each element
 * of an array that is JSON must be JSON. */
#include "recorder/dissect/json.h"
#include "recorder/dissect/jsonarray.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t events, bytes, wire, hash, bad;
};

static void on_event(void *ctx, const struct event *e) {
    struct sum *s = ctx;
    struct json_doc d = json_open(e->data, e->n_data);
    s->bad += d.verdict == JSON_BAD;
    json_close(&d);
    s->events++;
    s->bytes += e->n_data;
    s->wire += e->wire_bytes;
    for (size_t i = 0; i < e->n_data; i++) s->hash = s->hash * 31 + (unsigned char)e->data[i];
    s->hash += e->cut + 2 * e->unread;
}

static struct sum run(const uint8_t *cuts, size_t n_cuts, const uint8_t *p, size_t n) {
    struct pool pool = {.limit = 1 << 20};
    struct jsonarray s = {0};
    struct sum sum = {0};
    for (size_t i = 0, k = 0; i < n; k++) {
        size_t len = n_cuts ? 1u + cuts[k % n_cuts] % 32u : n;
        if (len > n - i) len = n - i;
        char *copy = malloc(len);
        memcpy(copy, p + i, len);
        jsonarray_feed(&s, &pool, copy, len, on_event, &sum);
        free(copy);
        i += len;
    }
    jsonarray_end(&s, &pool, on_event, &sum);
    sum.hash += s.where;
    if (pool.used || sum.wire > n) abort();
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    const uint8_t *p = data + 4;
    size_t n = size - 4;
    struct sum whole = run(NULL, 0, p, n), cut = run(data, 4, p, n);
    if (memcmp(&whole, &cut, sizeof whole) != 0) abort();
    struct json_doc d = json_open((const char *)p, n);
    int count = d.verdict == JSON_OK ? json_count(d.root) : -1;
    if (count >= 0 && ((uint64_t)count != whole.events || whole.bad > 0)) abort();
    json_close(&d);
    return 0;
}
