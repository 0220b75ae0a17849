/* Rows of all tables but those that have a column a fact. */
#include "analyzer/load_store_impl.h"

#include <string.h>

static void put_span(struct row *r, const struct store_span *span) {
    static const char *const subjects[N_SUBJECTS] = {"request", "connection", "recording"};
    put_text(r, subjects[fact_infos[span->f].subject]);
    put(r, (int64_t)span->id);
    put_text(r, fact_infos[span->f].name);
    put(r, span->from_ns);
    put(r, span->to_ns);
    put(r, span->value);
}

void store_spans(struct store *s, const struct store_span *spans, size_t n) {
    while (n > 0) {
        size_t rows = n < SPANS_AT_ONCE ? 1 : SPANS_AT_ONCE;
        int which = rows == 1 ? S_SPAN : S_SPANS;
        struct row r = row(s, which);
        put_text(&r, s->recording);
        for (size_t i = 0; i < rows; i++) put_span(&r, &spans[i]);
        step(s, which);
        spans += rows;
        n -= rows;
    }
}

void store_loss(struct store *s, enum loss l, int64_t from_ns, int64_t to_ns, uint64_t count, uint64_t bytes,
                uint64_t request, const char *file) {
    const struct loss_info *i = &loss_infos[l];
    struct row r = row(s, S_LOSS);
    put_text(&r, s->recording);
    put_text(&r, i->name);
    put_text(&r, i->severity);
    put_text(&r, i->side);
    put_or_null(&r, from_ns);
    put_or_null(&r, to_ns);
    put(&r, (int64_t)count);
    put_or_null(&r, bytes ? (int64_t)bytes : ATTRIBUTE_NONE);
    put_or_null(&r, request ? (int64_t)request : ATTRIBUTE_NONE);
    put_text(&r, file);
    put_text(&r, i->meaning);
    put_text(&r, i->remedy);
    step(s, S_LOSS);
}

void store_anchor(struct store *s, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    struct row r = row(s, S_ANCHOR);
    put_text(&r, s->recording);
    put(&r, mono_ns);
    put(&r, wall_ns);
    put(&r, uncertainty_ns);
    step(s, S_ANCHOR);
    if (!s->wall || s->wall->n != 1) return;
    /* The first one: requests may have ended before it was told. */
    r = row(s, S_ARRIVED);
    put_text(&r, s->recording);
    put(&r, (int64_t)((uint64_t)wall_ns - (uint64_t)mono_ns));
    step(s, S_ARRIVED);
}

void store_head(struct store *s, uint64_t part, const char *key, const char *value) {
    /* --note KEY=VALUE is note.KEY in the head */
    bool note = strncmp(key, "note.", 5) == 0;
    int which = note ? S_NOTE : S_HEAD;
    struct row r = row(s, which);
    put_text(&r, s->recording);
    put(&r, (int64_t)part);
    put_text(&r, note ? key + 5 : key);
    put_text(&r, value);
    step(s, which);
}

void store_recorder_fact(struct store *s, enum fact f, int64_t value) {
    struct row r = row(s, S_FACT);
    put_text(&r, s->recording);
    put_text(&r, fact_infos[f].name);
    put(&r, value);
    step(s, S_FACT);
}

void store_times(struct store *s, enum hist_name name, const struct hist *h) {
    struct row r = row(s, S_TIMES);
    put_text(&r, s->recording);
    put_text(&r, hist_names[name]);
    put(&r, (int64_t)h->count);
    put(&r, (int64_t)h->sum_ns);
    put(&r, (int64_t)hist_quantile(h, 0.5));
    put(&r, (int64_t)hist_quantile(h, 0.9));
    put(&r, (int64_t)hist_quantile(h, 0.99));
    put(&r, (int64_t)h->max_ns);
    put(&r, h->t_max_ns);
    put_wall(&r, s, h->count ? h->t_max_ns : ATTRIBUTE_NONE);
    step(s, S_TIMES);
}

void store_trace(struct store *s, const struct store_trace *t) {
    bool any = t->totals.blocks > 0;
    int64_t first = any ? t->totals.first_ns : ATTRIBUTE_NONE,
            last = any ? t->totals.last_ns : ATTRIBUTE_NONE;
    struct row r = row(s, S_TRACE);
    put_text(&r, t->file);
    put_text(&r, s->recording);
    put(&r, (int64_t)t->part);
    put_text(&r, trr_state_name(t->state));
    put(&r, t->format);
    put(&r, (int64_t)t->totals.blocks);
    put(&r, (int64_t)t->totals.file_bytes);
    put(&r, (int64_t)t->totals.damaged_bytes);
    put(&r, (int64_t)t->totals.missing_blocks);
    put_or_null(&r, first);
    put_or_null(&r, last);
    put_wall(&r, s, first);
    put_wall(&r, s, last);
    put_text(&r, s->recorder);
    put_text(&r, t->source);
    put_text(&r, t->version);
    step(s, S_TRACE);
}

char *store_part_file(struct store *s, const char *recording, uint64_t part) {
    struct row r = row(s, S_PART);
    char *file = NULL;
    put_text(&r, recording);
    put(&r, (int64_t)part);
    if (sqlite3_step(r.st) == SQLITE_ROW) file = strdup((const char *)sqlite3_column_text(r.st, 0));
    sqlite3_reset(r.st);
    return file;
}
