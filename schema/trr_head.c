/* The head of a trace, checked in the order of tracefile.h. */
#include "schema/trr_parts.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *bad(enum trr_state *state, enum trr_state s, const char *why) {
    *state = s;
    return why;
}

/* Splits the pairs into r->told. False when they do not lie inside. */
static bool take_pairs(struct trr *r, struct cursor c) {
    uint32_t n = cursor_u32(&c);
    if (n > cursor_left(&c) / 8) return false;
    r->pair_text = malloc(cursor_left(&c) + 2 * (size_t)n + 1);
    const char **pairs = malloc((2 * (size_t)n + 1) * sizeof *pairs);
    r->told.pairs = pairs;
    if (!r->pair_text || !pairs) return false;
    char *to = r->pair_text;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len[2];
        len[0] = cursor_u32(&c);
        len[1] = cursor_u32(&c);
        for (int j = 0; j < 2; j++) {
            const uint8_t *p = cursor_take(&c, len[j]);
            if (!p) return false;
            memcpy(to, p, len[j]);
            pairs[2 * i + (uint32_t)j] = to;
            to[len[j]] = 0;
            to += len[j] + 1;
        }
    }
    r->told.n_pairs = n;
    return cursor_left(&c) == 0;
}

static void read_pairs(struct trr *r) {
    size_t n = r->head.header_size - TRACE_HEAD_FIXED - 4;
    const uint8_t *p = source_get(&r->source, TRACE_HEAD_FIXED, n + 4);
    r->pairs_damaged = !p || load_u32(p + n) != (uint32_t)crc32(0, p, (uInt)n) ||
                       !take_pairs(r, (struct cursor){p, p + n, false}); /* H5 */
    if (r->pairs_damaged) r->told.n_pairs = 0;
}

const char *trr_head_read(struct trr *r, enum trr_state *state) {
    size_t n = TRACE_HEAD_FIXED;
    const uint8_t *p = source_some(&r->source, 0, &n);
    if (r->source.io_errno) return bad(state, TRR_IO, strerror(r->source.io_errno));
    if (n == 0) return bad(state, TRR_EMPTY, "the file is empty"); /* H1 */
    if (memcmp(p, TRACE_MAGIC, n < 8 ? n : 8) != 0) return bad(state, TRR_FOREIGN, "this is not a trace");
    if (n < TRACE_HEAD_FIXED) return bad(state, TRR_TORN, "the file ends inside its head");
    struct trace_head *h = &r->head;
    if (!trace_head_get(h, p))
        return bad(state, TRR_DAMAGED, "the head does not match its checksum"); /* H2 */
    if (h->format > TRACE_FORMAT || (h->required & ~(uint64_t)TRACE_REQUIRED))  /* H3 */
        return bad(state, TRR_NEWER, "written by a newer tracerec; read it with a newer traceanalyze");
    if (h->header_size < TRACE_HEAD_MIN || h->header_size > TRACE_HEAD_MAX) /* H4 */
        return bad(state, TRR_DAMAGED, "the size of the head is impossible");
    if (!source_get(&r->source, 0, h->header_size))
        return bad(state, TRR_TORN, "the file ends inside its head");
    memcpy(r->told.recording, h->recording, sizeof r->told.recording);
    r->told.part = h->part;
    r->told.format = h->format;
    read_pairs(r);
    return NULL;
}
