/* Rows to the bytes of a body: each kind of row in a section of its own, in the order of tracefile.h. The
 * mirror of block_decode.c; token events are in block_events.c. */
#include "schema/block.h"

#include <stdlib.h>
#include <string.h>

static size_t section_begin(struct encoder *e) {
    bytes_put_u32(&e->raw, 0);
    return e->raw.n;
}

static void section_end(struct encoder *e, enum section tag, size_t start) {
    if (!e->raw.failed) store_u32(e->raw.p + start - 4, (uint32_t)(e->raw.n - start) << 8 | tag);
}

static bool scratch(struct encoder *e, const struct block *b) {
    size_t n = 1;
    size_t counts[] = {b->lines.n, b->begins.n, b->ends.n, b->facts.n, b->events.n, b->runs.n};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] > n) n = counts[i];
    if (n > BLOCK_ROWS_MAX) return false;
    if (n <= e->cap) return true;
    n += n / 2;
    free(e->column);
    free(e->ev);
    free(e->run);
    e->column = malloc(n * sizeof *e->column);
    e->ev = malloc(n * sizeof *e->ev);
    e->run = malloc(n * sizeof *e->run);
    e->cap = e->column && e->ev && e->run ? n : 0;
    return e->cap > 0;
}

/* Texts, each once: a table of the indexes of those seen, by hash. Gives each STR fact's index in e->column
 * order by writing it to index[]. */
struct strings {
    uint32_t *slot; /* index + 1 of a distinct text; 0 free */
    size_t mask;
    uint32_t *index; /* of each fact's text */
    uint32_t *first; /* fact that has a distinct text first */
    uint32_t n;
};

static uint32_t text_hash(const uint8_t *p, size_t n) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 16777619u;
    return h;
}

static bool strings_new(struct strings *s, size_t n_facts) {
    size_t slots = 64;
    while (slots < 2 * n_facts) slots *= 2;
    *s = (struct strings){.slot = calloc(slots, sizeof *s->slot), .mask = slots - 1};
    s->index = malloc(n_facts * sizeof *s->index);
    s->first = malloc(n_facts * sizeof *s->first);
    return s->slot && s->index && s->first;
}

static void strings_free(struct strings *s) {
    free(s->slot);
    free(s->index);
    free(s->first);
}

static void strings_find(struct strings *s, const struct block *b, uint32_t i) {
    const struct block_fact *f = &b->facts.at[i];
    const uint8_t *text = f->n ? b->text.p + f->at : NULL;
    size_t at = text_hash(text, f->n) & s->mask;
    for (; s->slot[at]; at = (at + 1) & s->mask) {
        const struct block_fact *g = &b->facts.at[s->first[s->slot[at] - 1]];
        if (g->n == f->n && (!f->n || memcmp(b->text.p + g->at, text, f->n) == 0)) break;
    }
    if (!s->slot[at]) {
        s->first[s->n++] = i;
        s->slot[at] = s->n;
    }
    s->index[i] = s->slot[at] - 1;
}

static void put_strings(struct encoder *e, const struct block *b, const struct strings *s) {
    if (!s->n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, s->n);
    for (uint32_t i = 0; i < s->n; i++) bytes_put_varint(&e->raw, b->facts.at[s->first[i]].n);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct block_fact *f = &b->facts.at[s->first[i]];
        if (f->n) bytes_put(&e->raw, b->text.p + f->at, f->n);
    }
    section_end(e, SECTION_STRINGS, start);
}

static void put_subjects(struct encoder *e, enum section tag, const struct block_subject *s, size_t n) {
    if (!n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, n);
    for (size_t i = 0; i < n; i++) e->column[i] = s[i].subject | (unsigned)s[i].snapshot << 2;
    bytes_put_column(&e->raw, e->column, n);
    for (size_t i = 0; i < n; i++) e->column[i] = zigzag_diff(s[i].id, i ? s[i - 1].id : 0);
    bytes_put_column(&e->raw, e->column, n);
    section_end(e, tag, start);
}

static void put_value(struct encoder *e, const struct block *b, const struct block_fact *f, uint32_t index) {
    uint64_t bits;
    switch (f->kind) {
    case VALUE_INT: bytes_put_zigzag(&e->raw, f->i); break;
    case VALUE_TIME: bytes_put_zigzag(&e->raw, to_tick(f->i) - b->base_tick); break;
    case VALUE_REAL:
        memcpy(&bits, &f->r, sizeof bits);
        bytes_put_u64(&e->raw, bits);
        break;
    default: bytes_put_varint(&e->raw, index);
    }
}

static bool put_facts(struct encoder *e, const struct block *b) {
    size_t n = b->facts.n;
    if (!n) return true;
    struct strings s;
    bool ok = strings_new(&s, n);
    if (ok) {
        for (uint32_t i = 0; i < n; i++)
            if (b->facts.at[i].kind == VALUE_STR) strings_find(&s, b, i);
        put_strings(e, b, &s);
        size_t start = section_begin(e);
        bytes_put_varint(&e->raw, n);
        for (size_t i = 0; i < n; i++)
            e->column[i] = zigzag_diff(b->facts.at[i].id, i ? b->facts.at[i - 1].id : 0);
        bytes_put_column(&e->raw, e->column, n);
        for (size_t i = 0; i < n; i++) e->column[i] = b->facts.at[i].fact << 3 | b->facts.at[i].kind;
        bytes_put_column(&e->raw, e->column, n);
        for (size_t i = 0; i < n; i++) put_value(e, b, &b->facts.at[i], s.index[i]);
        section_end(e, SECTION_FACTS, start);
    }
    strings_free(&s);
    return ok;
}

static void put_range(struct encoder *e, const struct block *b, int64_t t0_ns, int64_t t1_ns) {
    bytes_put_zigzag(&e->raw, to_tick(t0_ns) - b->base_tick);
    bytes_put_zigzag(&e->raw, to_tick(t1_ns) - to_tick(t0_ns));
}

static void put_spans(struct encoder *e, const struct block *b) {
    if (!b->spans.n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, b->spans.n);
    for (size_t i = 0; i < b->spans.n; i++) {
        const struct block_span *s = &b->spans.at[i];
        bytes_put_varint(&e->raw, s->fact);
        bytes_put_varint(&e->raw, s->id);
        put_range(e, b, s->t0_ns, s->t1_ns);
        bytes_put_zigzag(&e->raw, s->value);
    }
    section_end(e, SECTION_SPANS, start);
}

static void put_losses(struct encoder *e, const struct block *b) {
    if (!b->losses.n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, b->losses.n);
    for (size_t i = 0; i < b->losses.n; i++) {
        const struct block_loss *l = &b->losses.at[i];
        bytes_put_varint(&e->raw, l->loss);
        put_range(e, b, l->t0_ns, l->t1_ns);
        bytes_put_varint(&e->raw, l->count);
        bytes_put_varint(&e->raw, l->bytes);
        bytes_put_varint(&e->raw, l->request);
    }
    section_end(e, SECTION_LOSSES, start);
}

static void put_anchors(struct encoder *e, const struct block *b) {
    if (!b->anchors.n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, b->anchors.n);
    for (size_t i = 0; i < b->anchors.n; i++) {
        const struct block_anchor *a = &b->anchors.at[i];
        bytes_put_varint(&e->raw, zigzag_diff((uint64_t)a->mono_ns, (uint64_t)from_tick(b->base_tick)));
        bytes_put_zigzag(&e->raw, a->wall_ns);
        bytes_put_zigzag(&e->raw, a->uncertainty_ns);
    }
    section_end(e, SECTION_ANCHORS, start);
}

static void put_hist(struct encoder *e, uint32_t name, const struct hist *h) {
    uint64_t head[] = {name, h->count, h->sum_ns, h->max_ns};
    for (int i = 0; i < 4; i++) bytes_put_varint(&e->raw, head[i]);
    bytes_put_zigzag(&e->raw, h->t_max_ns);
    unsigned used = 0, next = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) used += h->bucket[i] > 0;
    bytes_put_varint(&e->raw, used);
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        if (!h->bucket[i]) continue;
        bytes_put_varint(&e->raw, i - next);
        bytes_put_varint(&e->raw, h->bucket[i]);
        next = i + 1;
    }
}

static void put_hists(struct encoder *e, const struct block *b) {
    if (!b->hists_set) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, (uint64_t)__builtin_popcount(b->hists_set));
    for (uint32_t i = 0; i < N_HISTS; i++)
        if (b->hists_set >> i & 1) put_hist(e, i, b->hists[i]);
    section_end(e, SECTION_HISTS, start);
}

static int by_request(const void *a, const void *b) {
    uint64_t x = ((const struct block_line *)a)->request, y = ((const struct block_line *)b)->request;
    return (x > y) - (x < y);
}

/* Lines come in the order in which requests began, which is nearly always that of their ordinals. */
static void sort_lines(struct block *b) {
    for (size_t i = 1; i < b->lines.n; i++) {
        if (b->lines.at[i - 1].request < b->lines.at[i].request) continue;
        qsort(b->lines.at, b->lines.n, sizeof *b->lines.at, by_request);
        return;
    }
}

static void put_lines(struct encoder *e, const struct block *b) {
    size_t n = b->lines.n;
    const struct block_line *l = b->lines.at;
    if (!n) return;
    size_t start = section_begin(e);
    bytes_put_varint(&e->raw, n);
    for (size_t i = 0; i < n; i++) e->column[i] = l[i].request - (i ? l[i - 1].request : UINT64_MAX) - 1;
    bytes_put_column(&e->raw, e->column, n);
    for (size_t i = 0; i < n; i++) e->column[i] = l[i].events;
    bytes_put_column(&e->raw, e->column, n);
    e->noise = e->raw.n;
    for (size_t i = 0; i < n; i++)
        e->column[i] = l[i].events ? zigzag(b->base_tick - to_tick(l[i].last_ns)) : 0;
    bytes_put_column(&e->raw, e->column, n);
    section_end(e, SECTION_OPEN, start);
}

bool block_encode(struct encoder *e, struct block *b) {
    e->raw.n = 0;
    e->n_splits = 0;
    e->noise = 0;
    if (b->first_ns > b->last_ns || !scratch(e, b)) return false;
    sort_lines(b);
    b->base_tick = to_tick(b->events.n ? b->events.at[0].t_ns : b->last_ns);
    bytes_put_zigzag(&e->raw, b->base_tick - to_tick(b->first_ns));
    put_subjects(e, SECTION_BEGINS, b->begins.at, b->begins.n);
    if (!put_facts(e, b)) return false;
    put_spans(e, b);
    put_losses(e, b);
    put_anchors(e, b);
    put_hists(e, b);
    put_subjects(e, SECTION_ENDS, b->ends.at, b->ends.n);
    put_lines(e, b);
    if (b->events.n) {
        size_t start = section_begin(e);
        if (!block_encode_events(e, b)) return false;
        section_end(e, SECTION_EVENTS, start);
    }
    return !e->raw.failed && e->raw.n <= BLOCK_RAW_MAX;
}
