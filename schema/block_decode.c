/* The bytes of a body to rows: the mirror of block_encode.c. Takes any bytes: every count is checked against
 * its bound and every read against the section's end; one failure anywhere and the whole block does not
 * decode. Differences are undone in wrapping arithmetic, which has no bad input. */
#include "schema/block.h"

#include <stdlib.h>
#include <string.h>

struct text {
    uint32_t at, n;
};
/* What decoding carries from section to section. */
struct decoder {
    struct block *b;
    const uint8_t *raw; /* start of the body */
    ROWS(struct text) strings;
};

/* A number of rows, of which each takes at least min_bytes of what is left. */
static size_t get_count(struct cursor *c, size_t min_bytes) {
    uint64_t n = cursor_varint(c);
    if (n > BLOCK_ROWS_MAX || n * min_bytes > cursor_left(c)) c->failed = true;
    return c->failed ? 0 : (size_t)n;
}

/* A new row of the block, NULL (and the cursor failed) when memory ran out. */
#define ROW(c, rows) row_or_fail(c, ROWS_ADD(rows))
static void *row_or_fail(struct cursor *c, void *row) {
    if (!row) c->failed = true;
    return row;
}

static int64_t get_time(struct cursor *c, const struct block *b) {
    return from_tick((int64_t)((uint64_t)b->base_tick + (uint64_t)cursor_zigzag(c)));
}

static void get_range(struct cursor *c, const struct block *b, int64_t *t0_ns, int64_t *t1_ns) {
    *t0_ns = get_time(c, b);
    *t1_ns = (int64_t)((uint64_t)*t0_ns + (uint64_t)from_tick(cursor_zigzag(c)));
}

static void get_strings(struct decoder *d, struct cursor *c) {
    size_t n = get_count(c, 1);
    for (size_t i = 0; i < n && !c->failed; i++) {
        uint64_t len = cursor_varint(c);
        struct text *row = ROW(c, &d->strings);
        if (len > BLOCK_RAW_MAX) c->failed = true;
        if (row) row->n = (uint32_t)len;
    }
    for (size_t i = 0; i < n && !c->failed; i++) {
        const uint8_t *p = cursor_take(c, d->strings.at[i].n);
        if (p) d->strings.at[i].at = (uint32_t)(p - d->raw);
    }
}

static void get_subjects(struct cursor *c, struct block_subject **at, size_t *n_rows, size_t *cap) {
    size_t n = get_count(c, 0);
    struct column what = cursor_column(c, n, 1), step = cursor_column(c, n, 8);
    uint64_t id = 0;
    for (size_t i = 0; i < n && !c->failed; i++) {
        uint64_t w = column_at(&what, i);
        struct block_subject *s = row_or_fail(c, rows_add(at, n_rows, cap, sizeof **at));
        if ((w & 3) >= N_SUBJECTS || w > 7) c->failed = true;
        id += (uint64_t)unzigzag(column_at(&step, i));
        if (s) *s = (struct block_subject){id, (enum subject)(w & 3), w >> 2};
    }
}

/* What a fact of this number may carry: a span, which has a section of its own, nothing; numbers of later
 * versions anything. */
static bool kind_fits(uint64_t fact, enum value_kind kind) {
    static const enum value_kind kinds[] = {
        [FACT_TIME] = VALUE_TIME, [FACT_INT] = VALUE_INT, [FACT_REAL] = VALUE_REAL, [FACT_STR] = VALUE_STR};
    if (fact >= N_FACTS) return true;
    return fact_infos[fact].type != FACT_SPAN && kinds[fact_infos[fact].type] == kind;
}

static void get_value(struct decoder *d, struct cursor *c, struct block_fact *f) {
    uint64_t bits;
    switch (f->kind) {
    case VALUE_INT: f->i = cursor_zigzag(c); break;
    case VALUE_TIME: f->i = get_time(c, d->b); break;
    case VALUE_REAL:
        bits = cursor_u64(c);
        memcpy(&f->r, &bits, sizeof bits);
        break;
    case VALUE_STR:
        bits = cursor_varint(c);
        if (bits >= d->strings.n) {
            c->failed = true;
        } else {
            f->at = d->strings.at[bits].at;
            f->n = d->strings.at[bits].n;
        }
        break;
    default:
        bits = cursor_varint(c);
        if (bits > cursor_left(c)) c->failed = true;
        cursor_take(c, c->failed ? 0 : bits);
    }
}

static void get_facts(struct decoder *d, struct cursor *c) {
    size_t n = get_count(c, 1);
    struct column id_step = cursor_column(c, n, 8), key = cursor_column(c, n, 4);
    uint64_t id = 0;
    for (size_t i = 0; i < n && !c->failed; i++) {
        uint64_t k = column_at(&key, i);
        struct block_fact f = {.fact = (uint32_t)(k >> 3), .kind = (enum value_kind)(k & 7)};
        f.id = id += (uint64_t)unzigzag(column_at(&id_step, i));
        if (!kind_fits(f.fact, f.kind)) c->failed = true;
        get_value(d, c, &f);
        if (f.fact >= N_FACTS || c->failed) continue;
        struct block_fact *row = ROW(c, &d->b->facts);
        if (row) *row = f;
    }
}

static void get_spans(struct block *b, struct cursor *c) {
    size_t n = get_count(c, 5);
    for (size_t i = 0; i < n && !c->failed; i++) {
        struct block_span s;
        uint64_t fact = cursor_varint(c);
        s.fact = (uint32_t)fact;
        s.id = cursor_varint(c);
        get_range(c, b, &s.t0_ns, &s.t1_ns);
        s.value = cursor_zigzag(c);
        if (fact >= N_FACTS || c->failed) continue;
        if (fact_infos[fact].type != FACT_SPAN) c->failed = true;
        struct block_span *row = ROW(c, &b->spans);
        if (row) *row = s;
    }
}

static void get_losses(struct block *b, struct cursor *c) {
    size_t n = get_count(c, 6);
    for (size_t i = 0; i < n && !c->failed; i++) {
        struct block_loss l;
        uint64_t loss = cursor_varint(c);
        l.loss = (uint32_t)loss;
        get_range(c, b, &l.t0_ns, &l.t1_ns);
        l.count = cursor_varint(c);
        l.bytes = cursor_varint(c);
        l.request = cursor_varint(c);
        if (loss >= N_LOSSES || c->failed) continue;
        struct block_loss *row = ROW(c, &b->losses);
        if (row) *row = l;
    }
}

static void get_anchors(struct block *b, struct cursor *c) {
    size_t n = get_count(c, 3);
    for (size_t i = 0; i < n && !c->failed; i++) {
        struct block_anchor *a = ROW(c, &b->anchors);
        if (!a) return;
        a->mono_ns = (int64_t)((uint64_t)from_tick(b->base_tick) + (uint64_t)cursor_zigzag(c));
        a->wall_ns = cursor_zigzag(c);
        a->uncertainty_ns = cursor_zigzag(c);
    }
}

static void get_hist(struct block *b, struct cursor *c) {
    uint64_t name = cursor_varint(c);
    bool known = name < N_HISTS;
    if (known && !b->hists[name]) b->hists[name] = malloc(sizeof(struct hist));
    struct hist later, *h = known ? b->hists[name] : &later;
    if (!h) {
        c->failed = true;
        return;
    }
    memset(h, 0, sizeof *h);
    h->count = cursor_varint(c);
    h->sum_ns = cursor_varint(c);
    h->max_ns = cursor_varint(c);
    h->t_max_ns = cursor_zigzag(c);
    size_t n = get_count(c, 2);
    uint64_t bucket = 0;
    for (size_t i = 0; i < n && !c->failed; i++, bucket++) {
        uint64_t skip = cursor_varint(c), count = cursor_varint(c);
        if (skip >= HIST_BUCKETS - bucket || bucket >= HIST_BUCKETS) {
            c->failed = true;
            return;
        }
        bucket += skip;
        h->bucket[bucket] = count;
    }
    if (known) b->hists_set |= 1u << name;
}

static void get_hists(struct block *b, struct cursor *c) {
    size_t n = get_count(c, 6);
    for (size_t i = 0; i < n && !c->failed; i++) get_hist(b, c);
}

static void get_lines(struct block *b, struct cursor *c) {
    size_t n = get_count(c, 0);
    struct column step = cursor_column(c, n, 8), events = cursor_column(c, n, 8);
    struct column ago = cursor_column(c, n, 8);
    uint64_t id = UINT64_MAX;
    for (size_t i = 0; i < n && !c->failed; i++) {
        struct block_line *l = ROW(c, &b->lines);
        if (!l) return;
        uint64_t next = id + 1 + column_at(&step, i);
        if (i && next <= id) c->failed = true;
        l->request = id = next;
        l->events = column_at(&events, i);
        uint64_t tick = (uint64_t)b->base_tick - (uint64_t)unzigzag(column_at(&ago, i));
        l->last_ns = l->events ? from_tick((int64_t)tick) : 0;
    }
}

static void get_section(struct decoder *d, unsigned tag, struct cursor *c) {
    struct block *b = d->b;
    switch (tag) {
    case SECTION_BEGINS: get_subjects(c, &b->begins.at, &b->begins.n, &b->begins.cap); break;
    case SECTION_STRINGS: get_strings(d, c); break;
    case SECTION_FACTS: get_facts(d, c); break;
    case SECTION_SPANS: get_spans(b, c); break;
    case SECTION_LOSSES: get_losses(b, c); break;
    case SECTION_ANCHORS: get_anchors(b, c); break;
    case SECTION_HISTS: get_hists(b, c); break;
    case SECTION_ENDS: get_subjects(c, &b->ends.at, &b->ends.n, &b->ends.cap); break;
    case SECTION_OPEN: get_lines(b, c); break;
    case SECTION_EVENTS:
        if (!block_decode_events(b, c)) c->failed = true;
        break;
    default: /* of a later version */ c->p = c->end;
    }
    if (c->p != c->end) c->failed = true;
}

bool block_decode(struct block *b, const uint8_t *raw, size_t n, int64_t first_ns) {
    struct decoder d = {.b = b, .raw = raw};
    struct cursor c = {raw, raw + n, false};
    unsigned last_tag = 0;
    b->base_tick = (int64_t)((uint64_t)to_tick(first_ns) + (uint64_t)cursor_zigzag(&c));
    b->text = (struct bytes){.p = (uint8_t *)(uintptr_t)raw, .n = n};
    b->text_borrowed = true;
    while (!c.failed && cursor_left(&c) > 0) {
        uint32_t word = cursor_u32(&c);
        const uint8_t *p = cursor_take(&c, word >> 8);
        if (!p || (word & 255) <= last_tag) c.failed = true;
        if (c.failed) break;
        last_tag = word & 255;
        struct cursor section = {p, p + (word >> 8), false};
        get_section(&d, last_tag, &section);
        c.failed |= section.failed;
    }
    free(d.strings.at);
    return !c.failed && cursor_left(&c) == 0;
}
