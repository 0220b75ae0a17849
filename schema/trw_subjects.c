/* What is open: for each request and connection its id, its events so far, and the facts told of it, kept so
 * that a next part can begin with them. A hash of indexes over a dense array that stays in the order in which
 * subjects began; those that ended are swept out between two blocks. */
#include "schema/trw_parts.h"

#include <stdlib.h>
#include <string.h>

#define KEEP_MAX       (16 << 10) /* bytes of facts kept of one subject; facts beyond are not told again */
#define KEEP_SPANS_MAX (8 << 10)  /* spans leave the rest of it to facts */

/* One kept fact: n bytes follow, a struct block_span or a struct block_fact with its text. */
struct kept {
    uint32_t fact, n;
};

void subjects_free(struct subjects *s) {
    for (size_t i = 0; i < s->n; i++) bytes_free(&s->at[i].facts);
    free(s->at);
    free(s->slot);
    *s = (struct subjects){0};
}

static size_t slot_of(const struct subjects *s, enum subject subject, uint64_t id) {
    return (size_t)(((id << 2 | subject) * 0x9e3779b97f4a7c15u) >> 20) & (s->slots - 1);
}

/* The slot that holds the subject, or the free one where it belongs. */
static size_t look(const struct subjects *s, enum subject subject, uint64_t id) {
    size_t i = slot_of(s, subject, id);
    for (; s->slot[i]; i = (i + 1) & (s->slots - 1)) {
        const struct subject_entry *e = &s->at[s->slot[i] - 1];
        if (e->id == id && e->subject == subject) break;
    }
    return i;
}

struct subject_entry *subjects_find(struct subjects *s, enum subject subject, uint64_t id) {
    if (!s->slots) return NULL;
    size_t i = look(s, subject, id);
    return s->slot[i] ? &s->at[s->slot[i] - 1] : NULL;
}

static void fill_slots(struct subjects *s) {
    memset(s->slot, 0, s->slots * sizeof *s->slot);
    for (size_t i = 0; i < s->n; i++) s->slot[look(s, s->at[i].subject, s->at[i].id)] = (uint32_t)i + 1;
}

static bool grow_slots(struct subjects *s) {
    size_t slots = s->slots ? s->slots * 2 : 256;
    uint32_t *slot = realloc(s->slot, slots * sizeof *slot);
    if (!slot) return false;
    s->slot = slot;
    s->slots = slots;
    fill_slots(s);
    return true;
}

struct subject_entry *subjects_get(struct subjects *s, enum subject subject, uint64_t id) {
    struct subject_entry *e = subjects_find(s, subject, id);
    if (e) return e;
    if (s->n * 2 >= s->slots && !grow_slots(s)) return NULL;
    e = rows_add(&s->at, &s->n, &s->cap, sizeof *s->at);
    if (!e) return NULL;
    e->id = id;
    e->subject = subject;
    s->slot[look(s, subject, id)] = (uint32_t)s->n;
    return e;
}

void subjects_sweep(struct subjects *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct subject_entry *e = &s->at[i];
        if (e->begun && !e->ended) {
            if (kept != i) s->at[kept] = *e;
            kept++;
        } else {
            bytes_free(&e->facts);
        }
    }
    if (kept == s->n) return;
    s->n = kept;
    fill_slots(s);
}

static struct kept kept_at(const struct bytes *b, size_t at) {
    struct kept k;
    memcpy(&k, b->p + at, sizeof k);
    return k;
}

/* Takes out what is kept of a fact that is told again. */
static void forget(struct bytes *b, uint32_t fact) {
    for (size_t at = 0; at < b->n;) {
        struct kept k = kept_at(b, at);
        size_t n = sizeof k + k.n;
        if (k.fact != fact) {
            at += n;
            continue;
        }
        memmove(b->p + at, b->p + at + n, b->n - at - n);
        b->n -= n;
        return;
    }
}

static void keep(struct bytes *b, uint32_t fact, const void *row, size_t row_n, const char *text, size_t n) {
    struct kept k = {fact, (uint32_t)(row_n + n)};
    uint8_t *p = b->n + sizeof k + k.n <= KEEP_MAX ? bytes_room(b, sizeof k + k.n) : NULL;
    if (!p) {
        b->failed = false;
        return;
    }
    memcpy(p, &k, sizeof k);
    memcpy(p + sizeof k, row, row_n);
    if (n) memcpy(p + sizeof k + row_n, text, n);
    b->n += sizeof k + k.n;
}

void subject_keep(struct subject_entry *e, const struct block_fact *f, const char *text) {
    forget(&e->facts, f->fact);
    keep(&e->facts, f->fact, f, sizeof *f, text, f->kind == VALUE_STR ? f->n : 0);
}

void subject_keep_span(struct subject_entry *e, const struct block_span *s) {
    if (e->facts.n < KEEP_SPANS_MAX) keep(&e->facts, s->fact, s, sizeof *s, NULL, 0);
}

static void retell_span(struct block *b, const uint8_t *p) {
    struct block_span *s = ROWS_ADD(&b->spans);
    if (!s) return;
    memcpy(s, p, sizeof *s);
    block_time(b, s->t0_ns);
    block_time(b, s->t1_ns);
}

static void retell_fact(struct block *b, const uint8_t *p) {
    struct block_fact *f = ROWS_ADD(&b->facts);
    if (!f) return;
    memcpy(f, p, sizeof *f);
    if (f->kind == VALUE_TIME) block_time(b, f->i);
    if (f->kind != VALUE_STR) return;
    f->at = (uint32_t)b->text.n;
    bytes_put(&b->text, p + sizeof *f, f->n);
    if (b->text.failed) f->n = 0;
}

void subject_retell(const struct subject_entry *e, struct block *b) {
    struct block_subject *begin = ROWS_ADD(&b->begins);
    if (begin) *begin = (struct block_subject){e->id, e->subject, true};
    for (size_t at = 0; at < e->facts.n;) {
        struct kept k = kept_at(&e->facts, at);
        const uint8_t *p = e->facts.p + at + sizeof k;
        if (fact_infos[k.fact].type == FACT_SPAN)
            retell_span(b, p);
        else
            retell_fact(b, p);
        at += sizeof k + k.n;
    }
}
