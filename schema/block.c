/* Rows in memory, and the frame around a body: header, checksums, zstd. */
#include "schema/block.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define ZSTD_LEVEL 1 /* on columns no larger than level 3, at half the time */

void *rows_add(void *at, size_t *n, size_t *cap, size_t size) {
    char *p;
    memcpy(&p, at, sizeof p);
    if (*n == *cap) {
        size_t want = *cap ? *cap * 2 : 64;
        p = realloc(p, want * size);
        if (!p) return NULL;
        memcpy(at, &p, sizeof p);
        *cap = want;
    }
    return memset(p + (*n)++ * size, 0, size);
}

void block_clear(struct block *b) {
    b->first_ns = INT64_MAX;
    b->last_ns = INT64_MIN;
    b->lines.n = b->begins.n = b->ends.n = b->facts.n = b->spans.n = b->losses.n = b->anchors.n = 0;
    b->runs.n = b->events.n = b->event_run.n = 0;
    b->hists_set = 0;
    b->n_events = 0;
    b->weight = 0;
    if (b->text_borrowed) b->text = (struct bytes){0};
    b->text_borrowed = false;
    b->text.n = 0;
    b->text.failed = false;
}

void block_free(struct block *b) {
    block_clear(b);
    free(b->lines.at);
    free(b->begins.at);
    free(b->ends.at);
    free(b->facts.at);
    free(b->spans.at);
    free(b->losses.at);
    free(b->anchors.at);
    free(b->runs.at);
    free(b->events.at);
    free(b->event_run.at);
    for (int i = 0; i < N_HISTS; i++) free(b->hists[i]);
    bytes_free(&b->text);
    memset(b, 0, sizeof *b);
}

bool block_empty(const struct block *b) {
    return !b->begins.n && !b->ends.n && !b->facts.n && !b->spans.n && !b->losses.n && !b->anchors.n &&
           !b->events.n && !b->hists_set;
}

void encoder_free(struct encoder *e) {
    bytes_free(&e->raw);
    bytes_free(&e->out);
    free(e->column);
    free(e->ev);
    free(e->run);
    ZSTD_freeCCtx(e->zstd);
    memset(e, 0, sizeof *e);
}

/* The body as one frame. At a split the compressor begins a new block inside the frame, so that bytes of
 * another kind get a code table of their own. Returns the frame's bytes, 0 on failure. */
static size_t put_frame(struct encoder *e, uint8_t *to, size_t room) {
    ZSTD_outBuffer out = {to, room, 0};
    ZSTD_CCtx_reset(e->zstd, ZSTD_reset_session_only);
    for (unsigned i = 0; i <= e->n_splits; i++) {
        bool last = i == e->n_splits;
        ZSTD_inBuffer in = {e->raw.p, last ? e->raw.n : e->split[i], i ? e->split[i - 1] : 0};
        size_t left = ZSTD_compressStream2(e->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
        if (ZSTD_isError(left) || left > 0) return 0;
    }
    return out.pos;
}

static bool encoder_ready(struct encoder *e) {
    if (e->zstd) return true;
    e->zstd = ZSTD_createCCtx();
    if (!e->zstd) return false;
    ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_contentSizeFlag, 0);
    return true;
}

static void put_header(uint8_t *p, uint32_t salt, uint32_t raw_n, uint32_t body_n, int64_t first_ns,
                       int64_t last_ns) {
    memcpy(p, BLOCK_MARK, 4);
    store_u32(p + 4, salt);
    store_u32(p + 16, raw_n);
    store_u32(p + 20, body_n);
    store_u64(p + 24, (uint64_t)first_ns);
    store_u64(p + 32, (uint64_t)last_ns);
}

void block_header_finish(uint8_t *p, uint64_t seq) {
    store_u64(p + 8, seq);
    store_u32(p + 44, (uint32_t)crc32(0, p, 44));
}

bool block_seal_up(struct encoder *e, uint32_t salt, uint64_t seq, int64_t first_ns, int64_t last_ns) {
    if (!encoder_ready(e)) return false;
    e->out.n = 0;
    size_t room = ZSTD_compressBound(e->raw.n) + SPLITS_MAX * 16;
    uint8_t *p = bytes_room(&e->out, BLOCK_HEADER + room);
    if (!p) return false;
    size_t body_n = put_frame(e, p + BLOCK_HEADER, room);
    if (!body_n || body_n > BLOCK_BODY_MAX) return false;
    e->out.n = BLOCK_HEADER + body_n;
    put_header(p, salt, (uint32_t)e->raw.n, (uint32_t)body_n, first_ns, last_ns);
    store_u32(p + 40, (uint32_t)crc32(0, p + BLOCK_HEADER, (uInt)body_n));
    block_header_finish(p, seq);
    return true;
}

void block_put_seal(uint8_t *out, uint32_t salt, uint64_t seq, int64_t t_ns) {
    put_header(out, salt, 0, 0, t_ns, t_ns);
    store_u32(out + 40, BLOCK_SEAL_CRC);
    block_header_finish(out, seq);
}

const char *block_header_get(struct block_header *h, const uint8_t *p, uint32_t salt) {
    if (memcmp(p, BLOCK_MARK, 4) != 0 || load_u32(p + 4) != salt) return "no block begins here"; /* B1 */
    if (load_u32(p + 44) != (uint32_t)crc32(0, p, 44))
        return "a block's header does not match its checksum"; /* B2 */
    *h = (struct block_header){.seq = load_u64(p + 8),
                               .raw_bytes = load_u32(p + 16),
                               .body_bytes = load_u32(p + 20),
                               .first_ns = (int64_t)load_u64(p + 24),
                               .last_ns = (int64_t)load_u64(p + 32),
                               .body_crc = load_u32(p + 40)};
    bool seal = !h->raw_bytes && !h->body_bytes && h->body_crc == BLOCK_SEAL_CRC;
    bool block =
        h->raw_bytes && h->raw_bytes <= BLOCK_RAW_MAX && h->body_bytes && h->body_bytes <= BLOCK_BODY_MAX;
    return seal || block ? NULL : "a block's lengths are impossible"; /* B3 */
}

bool block_inflate(void *zstd_dctx, uint8_t *to, size_t n, const uint8_t *body, size_t body_n) {
    return ZSTD_findFrameCompressedSize(body, body_n) == body_n &&
           ZSTD_decompressDCtx(zstd_dctx, to, n, body, body_n) == n;
}
