/* Arrivals: what reaches a reader at one instant, made of events whose tokens are known.
 *
 * Events of all choices lie mixed in time. Each choice has its open arrival; what is opened goes to the end
 * of one list, which is sorted by choice afterwards, if there are several. */
#include "analyzer/attribute_impl.h"

#include <string.h>

#define BUFFERED_TOKENS 16
#define TOK_ANSWER      (TOK_CONTENT | TOK_REFUSAL | TOK_TOOL | TOK_AUDIO)

static inline uint32_t add32(uint32_t a, uint32_t b) {
    uint32_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT32_MAX : sum;
}

static void open_arrival(struct attributor *a, struct attribute_choice *c, struct attribution *out,
                         const struct attribute_event *e) {
    a->arrivals[out->n_arrivals] = (struct arrival){.t_ns = e->t_ns, .choice = e->choice};
    c->open = ++out->n_arrivals;
    c->arrivals++;
    c->last_read = ~e->read;
}

/* The bearing events, in order of time, become arrivals in order of their first reads. */
static void make(struct attributor *a, const struct attribute_event *e, size_t n, int64_t window_ns,
                 struct attribution *out) {
    for (size_t i = 0; i < n; i++, e++) {
        if (e->running == 0) continue;
        struct attribute_choice *c = &a->choices[e->choice];
        bool joins =
            c->open > 0 &&
            (e->read == c->last_read ||
             (window_ns > 0 && attribute_minus(e->t_ns, a->arrivals[c->open - 1].t_ns) <= window_ns));
        if (!joins) open_arrival(a, c, out, e);
        struct arrival *b = &a->arrivals[c->open - 1];
        uint32_t event = !(e->what & ATTRIBUTE_STOP_TOKEN);
        b->tokens = add32(b->tokens, e->running);
        b->events += event;
        b->reads += e->read != c->last_read;
        b->bytes = add32(b->bytes, e->wire_bytes);
        c->last_read = e->read;
        out->token_events += event;
        if (out->t_first_answer_ns == ATTRIBUTE_NONE && e->what & TOK_ANSWER)
            out->t_first_answer_ns = e->t_ns;
    }
}

/* Counting sort by choice; each series stays in order of time. */
static bool sort(struct attributor *a, size_t n_choices, size_t n) {
    if (!attribute_room((void **)&a->sorted, &a->sorted_room, n, sizeof *a->sorted)) return false;
    size_t at = 0;
    for (size_t i = 0; i < n_choices; i++) {
        a->choices[i].open = at;
        at += a->choices[i].arrivals;
    }
    for (size_t i = 0; i < n; i++) a->sorted[a->choices[a->arrivals[i].choice].open++] = a->arrivals[i];
    struct arrival *p = a->arrivals;
    size_t room = a->arrivals_room;
    a->arrivals = a->sorted;
    a->arrivals_room = a->sorted_room;
    a->sorted = p;
    a->sorted_room = room;
    return true;
}

/* Whether [from, to] overlaps a pause; *i moves on over pauses that end before, so times must ascend. */
static bool overlaps(const struct attribute_facts *f, size_t *i, int64_t from_ns, int64_t to_ns) {
    while (*i < f->n_pauses && f->pauses[*i].to_ns <= from_ns) ++*i;
    return *i < f->n_pauses && f->pauses[*i].from_ns < to_ns;
}

/* One gap of a series into the sums, or out of them where the client was slow. */
static void add_gap(const struct attribute_facts *f, size_t *pause, struct attribution *out,
                    const struct arrival *last, struct arrival *b) {
    int64_t gap = attribute_minus(b->t_ns, last->t_ns);
    b->backpressured = f->n_pauses > 0 && overlaps(f, pause, last->t_ns, b->t_ns);
    if (b->backpressured) {
        out->backpressured++;
        return;
    }
    out->series_arrivals++;
    out->series_tokens += b->tokens;
    out->series_span_ns = attribute_plus(out->series_span_ns, gap);
    if (gap > out->gap_max_ns) out->gap_max_ns = gap;
}

static void sum(struct attributor *a, const struct attribute_facts *f, struct attribution *out) {
    size_t pause = 0;
    for (size_t i = 0; i < out->n_arrivals; i++) {
        struct arrival *b = &a->arrivals[i];
        out->tokens_seen += b->tokens;
        if (out->t_first_token_ns == ATTRIBUTE_NONE || b->t_ns < out->t_first_token_ns)
            out->t_first_token_ns = b->t_ns;
        if (out->t_last_token_ns == ATTRIBUTE_NONE || b->t_ns > out->t_last_token_ns)
            out->t_last_token_ns = b->t_ns;
        if (i > 0 && b->choice == b[-1].choice) {
            add_gap(f, &pause, out, b - 1, b);
            continue;
        }
        out->series++;
        out->tokens_first += b->tokens;
        pause = 0;
    }
}

bool attribute_arrivals(struct attributor *a, const struct attribute_events *v, size_t n,
                        const struct attribute_facts *f, struct attribution *out) {
    if (out->source == SOURCE_NONE) return true;
    if (!attribute_room((void **)&a->arrivals, &a->arrivals_room, n, sizeof *a->arrivals)) return false;
    make(a, v->e, n, f->window_ns, out);
    if (v->choices > 1 && out->n_arrivals > 0 && !sort(a, v->choices, out->n_arrivals)) return false;
    sum(a, f, out);
    out->arrivals = a->arrivals;
    if (out->n_arrivals == 0) return true;
    size_t pause = 0;
    if (f->t_end_ns != ATTRIBUTE_NONE && overlaps(f, &pause, out->t_last_token_ns, f->t_end_ns))
        out->backpressured++;
    out->buffered = out->tokens_seen >= BUFFERED_TOKENS && out->n_arrivals == out->series &&
                    attribute_minus(out->t_last_token_ns, out->t_first_token_ns) <= f->window_ns;
    return true;
}
