/* Any bytes as a trace. The first byte picks: a file as it is; a block's body, with which the decoder is
 * reached past the checksums; or a file whose checksums are made to fit before it is read. */
#include "schema/trr_parts.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that is told, so that a sanitizer sees those that are not there. */
static volatile uint64_t sum;

static void on_block(void *ctx, uint64_t seq, int64_t first_ns, int64_t last_ns) {
    sum += seq + (uint64_t)first_ns + (uint64_t)last_ns;
}
static void on_line(void *ctx, uint64_t request, uint64_t events, int64_t last_ns) {
    sum += request + events + (uint64_t)last_ns;
}
static void on_begin(void *ctx, enum subject s, uint64_t id, bool snapshot) {
    if (s >= N_SUBJECTS) abort();
    sum += id + snapshot;
}
static void on_int(void *ctx, uint64_t id, enum fact f, int64_t v) {
    if (f >= N_FACTS || (fact_infos[f].type != FACT_INT && fact_infos[f].type != FACT_TIME)) abort();
    sum += id + (uint64_t)v;
}
static void on_real(void *ctx, uint64_t id, enum fact f, double v) {
    if (f >= N_FACTS || fact_infos[f].type != FACT_REAL) abort();
    sum += id + (v > 0);
}
static void on_str(void *ctx, uint64_t id, enum fact f, const char *p, size_t n) {
    if (f >= N_FACTS || fact_infos[f].type != FACT_STR) abort();
    for (size_t i = 0; i < n; i++) sum += (unsigned char)p[i];
}
static void on_span(void *ctx, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value) {
    if (f >= N_FACTS || fact_infos[f].type != FACT_SPAN) abort();
    sum += id + (uint64_t)t0_ns + (uint64_t)t1_ns + (uint64_t)value;
}
static void on_events(void *ctx, uint64_t request, const struct tok_event *e, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (e[i].request != request) abort();
        sum += (uint64_t)e[i].t_ns + e[i].read + e[i].choice + e[i].what + e[i].text_bytes + e[i].wire_bytes +
               (uint64_t)e[i].running + (uint64_t)e[i].ids + (uint64_t)e[i].logprobs;
    }
}
static void on_end(void *ctx, enum subject s, uint64_t id) {
    if (s >= N_SUBJECTS) abort();
    sum += id;
}
static void on_loss(void *ctx, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t n, uint64_t bytes,
                    uint64_t request) {
    if (l >= N_LOSSES) abort();
    sum += (uint64_t)t0_ns + (uint64_t)t1_ns + n + bytes + request;
}
static void on_anchor(void *ctx, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    sum += (uint64_t)mono_ns + (uint64_t)wall_ns + (uint64_t)uncertainty_ns;
}
static void on_hist(void *ctx, enum hist_name name, const struct hist *h) {
    if (name >= N_HISTS) abort();
    for (int i = 0; i < HIST_BUCKETS; i++) sum += h->bucket[i];
    sum += hist_quantile(h, 0.5);
}
static void on_damage(void *ctx, uint64_t offset, uint64_t bytes, const char *why) {
    sum += offset + bytes + strlen(why);
}
static void on_gap(void *ctx, uint64_t first, uint64_t n, int64_t before_ns, int64_t after_ns) {
    sum += first + n;
}

static const struct trr_ops ops = {.block = on_block,
                                   .open_line = on_line,
                                   .begin = on_begin,
                                   .fact_int = on_int,
                                   .fact_real = on_real,
                                   .fact_str = on_str,
                                   .fact_span = on_span,
                                   .events = on_events,
                                   .end = on_end,
                                   .loss = on_loss,
                                   .anchor = on_anchor,
                                   .hist = on_hist,
                                   .damage = on_damage,
                                   .gap = on_gap};

static void read_file(const uint8_t *p, size_t n) {
    enum trr_state state;
    char err[200];
    struct trr *r = trr_open_mem(p, n, &state, err, sizeof err);
    if (!r) return;
    for (size_t i = 0; i < r->told.n_pairs * 2; i++) sum += strlen(r->told.pairs[i]);
    trr_read(r, INT64_MIN, INT64_MAX, &ops, NULL);
    trr_read(r, 0, 1000000000, &ops, NULL);
    trr_close(r);
}

/* An exact copy, so that reading one byte beyond it is seen. */
static uint8_t *copy_of(const uint8_t *p, size_t n) {
    uint8_t *c = malloc(n ? n : 1);
    if (!c) abort();
    if (n) memcpy(c, p, n);
    return c;
}

static void decode_body(const uint8_t *p, size_t n) {
    static struct trr r;
    uint8_t *raw = copy_of(p, n);
    block_clear(&r.block);
    if (block_decode(&r.block, raw, n, 123456789)) trr_tell(&r, 1, 0, 1, &ops, NULL);
    block_clear(&r.block);
    free(raw);
}

/* Gives head and blocks the checksums that their bytes ask for. */
static void fix_and_read(const uint8_t *data, size_t n) {
    uint8_t *p = copy_of(data, n);
    if (n >= TRACE_HEAD_MIN) {
        memcpy(p, TRACE_MAGIC, 8);
        store_u32(p + 60, (uint32_t)crc32(0, p, 60));
        size_t at = load_u32(p + 12);
        if (at >= TRACE_HEAD_MIN && at <= n)
            store_u32(p + at - 4,
                      (uint32_t)crc32(0, p + TRACE_HEAD_FIXED, (uInt)(at - TRACE_HEAD_FIXED - 4)));
        while (at <= n && n - at >= BLOCK_HEADER) {
            size_t body = load_u32(p + at + 20), left = n - at - BLOCK_HEADER;
            memcpy(p + at, BLOCK_MARK, 4);
            memcpy(p + at + 4, p + 56, 4);
            if (body && body <= left) store_u32(p + at + 40, (uint32_t)crc32(0, p + at + 48, (uInt)body));
            block_header_finish(p + at, load_u64(p + at + 8));
            at += BLOCK_HEADER + body;
        }
    }
    read_file(p, n);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    switch (data[0] % 3) {
    case 0: read_file(data + 1, size - 1); break;
    case 1: decode_body(data + 1, size - 1); break;
    default: fix_and_read(data + 1, size - 1);
    }
    return 0;
}
