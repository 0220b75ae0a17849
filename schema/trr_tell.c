/* Tells a decoded block through the struct of functions: lines, begins, facts, spans, events, ends, losses,
 * anchors, distributions. */
#include "schema/trr_parts.h"

static void tell_facts(const struct block *b, const struct trr_ops *ops, void *ctx) {
    for (size_t i = 0; i < b->facts.n; i++) {
        const struct block_fact *f = &b->facts.at[i];
        enum fact name = (enum fact)f->fact;
        if (f->kind == VALUE_STR) {
            if (ops->fact_str) ops->fact_str(ctx, f->id, name, (const char *)b->text.p + f->at, f->n);
        } else if (f->kind == VALUE_REAL) {
            if (ops->fact_real) ops->fact_real(ctx, f->id, name, f->r);
        } else if (ops->fact_int) {
            ops->fact_int(ctx, f->id, name, f->i);
        }
    }
    for (size_t i = 0; i < b->spans.n && ops->fact_span; i++) {
        const struct block_span *s = &b->spans.at[i];
        ops->fact_span(ctx, s->id, (enum fact)s->fact, s->t0_ns, s->t1_ns, s->value);
    }
}

static void tell_events(const struct block *b, const struct trr_ops *ops, void *ctx) {
    struct tok_event events[EVENTS_CHUNK];
    for (size_t i = 0; i < b->runs.n; i++) {
        const struct block_run *run = &b->runs.at[i];
        struct run_at at = {0};
        for (size_t n; (n = block_events(b, run, &at, events)) > 0;)
            ops->events(ctx, run->request, events, n);
    }
}

static void tell_rest(const struct block *b, const struct trr_ops *ops, void *ctx) {
    for (size_t i = 0; i < b->losses.n && ops->loss; i++) {
        const struct block_loss *l = &b->losses.at[i];
        ops->loss(ctx, (enum loss)l->loss, l->t0_ns, l->t1_ns, l->count, l->bytes, l->request);
    }
    for (size_t i = 0; i < b->anchors.n && ops->anchor; i++) {
        const struct block_anchor *a = &b->anchors.at[i];
        ops->anchor(ctx, a->mono_ns, a->wall_ns, a->uncertainty_ns);
    }
    for (unsigned i = 0; i < N_HISTS && ops->hist; i++)
        if (b->hists_set >> i & 1) ops->hist(ctx, (enum hist_name)i, b->hists[i]);
}

void trr_tell(struct trr *r, uint64_t seq, int64_t first_ns, int64_t last_ns, const struct trr_ops *ops,
              void *ctx) {
    const struct block *b = &r->block;
    if (ops->block) ops->block(ctx, seq, first_ns, last_ns);
    for (size_t i = 0; i < b->lines.n && ops->open_line; i++)
        ops->open_line(ctx, b->lines.at[i].request, b->lines.at[i].events, b->lines.at[i].last_ns);
    for (size_t i = 0; i < b->begins.n && ops->begin; i++)
        ops->begin(ctx, b->begins.at[i].subject, b->begins.at[i].id, b->begins.at[i].snapshot);
    tell_facts(b, ops, ctx);
    if (ops->events) tell_events(b, ops, ctx);
    for (size_t i = 0; i < b->ends.n && ops->end; i++) ops->end(ctx, b->ends.at[i].subject, b->ends.at[i].id);
    tell_rest(b, ops, ctx);
}
