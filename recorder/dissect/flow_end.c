/* How what is open on a flow ends when its connection does.
 *
 * Knows what was seen of both sides, no pieces. The one hard idea: a FIN of the client does not say whether
 * it left or only has no more to send. The next bytes that reach it do: a client that left answers them with
 * a reset within a round trip, one that takes them for longer is there. */
#include "recorder/dissect/flow.h"

/* Beyond most ways around the world. */
static const int64_t ROUND_TRIP_NS = 150 * 1000000;

int64_t flow_client_gone(const struct flow *f, int64_t t_ns, const char **by) {
    const struct half *up = &f->half[DIR_UP];
    bool half_closed = f->t_answer_after_fin && t_ns - f->t_answer_after_fin > ROUND_TRIP_NS;
    if (up->t_reset)
        *by = "client_reset";
    else if (up->t_fin && !half_closed)
        *by = "client_fin";
    return up->t_fin && !half_closed ? up->t_fin : up->t_reset;
}

/* A request whose head is still to be completed has been seen, too. */
static void begin_cut_head(struct flow *f) {
    const struct half *up = &f->half[DIR_UP];
    if (!up->in_head || up->deaf || f->up) return;
    struct exchange *x = f->up = flow_begin(f, up->t_begin, false);
    if (x) answer_text(&x->a, F_api, "other", 5);
}

/* A response whose head is still to be completed has begun, too. */
static void begin_cut_answer(struct flow *f) {
    const struct half *down = &f->half[DIR_DOWN];
    struct exchange *x = f->down;
    if (!x || x->over || x->down_head || !down->in_head) return;
    x->down_begin = down->begin, x->down_end = down->off;
    answer_int(&x->a, F_t_first_byte_ns, down->t_begin);
}

void flow_cut(struct flow *f, int64_t t_ns, const char *by, int error) {
    int64_t gone = flow_client_gone(f, t_ns, &by);
    begin_cut_head(f);
    begin_cut_answer(f);
    for (struct exchange *x = flow_first_open(f); x; x = x->next) {
        if (x->over || x->tunnel) continue;
        int64_t left = gone > x->t_arrive ? gone : 0;
        if (gone) answer_int(&x->a, F_t_client_gone_ns, left ? left : t_ns);
        if (x->down_head) x->down_end = f->half[DIR_DOWN].off;
        flow_end(f, x, &(struct exchange_end){left ? left : t_ns, by, error, false});
    }
}
