/* Sends pieces to their flows; those of no flow become facts of the recording. */
#include "recorder/dissect.h"

#include "recorder/dissect/flow.h"

#include <stdlib.h>

struct dissect *dissect_new(const struct dissect_config *config) {
    struct dissect *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->config = *config;
    d->pool.limit = POOL_BYTES;
    return d;
}

static void on_clock(struct dissect *d, const struct piece *p) {
    d->wall_at_ns = p->t_ns;
    d->wall_ns = p->t2_ns;
    trw_anchor(d->config.trw, p->t_ns, p->t2_ns, p->value);
}

static void on_loss(struct dissect *d, const struct piece *p) {
    if (p->value < 0 || p->value >= N_LOSSES) return;
    trw_loss(d->config.trw, (enum loss)p->value, p->t_ns, p->t2_ns, p->off, (uint64_t)p->value2, 0);
    d->config.shared->counts.loss[p->value] += p->off;
}

void dissect_piece(struct dissect *d, const struct piece *p, const void *bytes) {
    struct trw *w = d->config.trw;
    switch ((enum piece_kind)p->kind) {
    case PIECE_STALL: trw_span(w, 0, F_loop_stall, p->t_ns, p->t2_ns, 0); break;
    case PIECE_DOWN: trw_span(w, 0, F_upstream_down, p->t_ns, p->t2_ns, p->value); break;
    case PIECE_MARK: trw_span(w, 0, F_marker, p->t_ns, p->t_ns, p->value); break;
    case PIECE_CLOCK: on_clock(d, p); break;
    case PIECE_LOSS:
        if (p->value < 0 || p->value >= N_LOSSES) break;
        if (flow_find(d, p->flow))
            flow_piece(d, p, bytes);
        else
            on_loss(d, p);
        break;
    case PIECE_PAD:
    case PIECE_ROTATE:
    case N_PIECE_KINDS: break;
    default: flow_piece(d, p, bytes); break;
    }
    flow_tidy(d, p->t_ns);
}

void dissect_stop(struct dissect *d, int64_t now_ns) {
    for (size_t i = 0; i < d->table_size; i++)
        while (d->table[i]) flow_stop(d->table[i], now_ns);
}

void dissect_free(struct dissect *d) {
    if (!d) return;
    dissect_stop(d, 0);
    free(d->table);
    free(d);
}
