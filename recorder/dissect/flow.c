/* The table grows with the flows. An exchange that is over stays a moment, since its delivery and what the
 * transport does behind its back are told by later pieces; but not as long as its connection, since each open
 * request costs a line in every block of the trace. */
#include "recorder/dissect/flow.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_MIN = 64 };
static const int64_t LINGER_NS = 50 * 1000000;

/* -- table */
static struct flow **bucket(const struct dissect *d, uint64_t id) {
    return &d->table[(id * 0x9e3779b97f4a7c15u >> 32) & (d->table_size - 1)];
}

static bool grow(struct dissect *d) {
    struct dissect old = *d;
    d->table_size = old.table_size ? 2 * old.table_size : TABLE_MIN;
    d->table = calloc(d->table_size, sizeof *d->table);
    if (!d->table) {
        d->table = old.table, d->table_size = old.table_size;
        return old.table != NULL;
    }
    for (size_t i = 0; i < old.table_size; i++)
        for (struct flow *f = old.table[i], *next; f; f = next) {
            struct flow **b = bucket(d, f->id);
            next = f->chained;
            f->chained = *b, *b = f;
        }
    free(old.table);
    return true;
}

struct flow *flow_find(struct dissect *d, uint64_t id) {
    if (!d->table) return NULL;
    struct flow *f = *bucket(d, id);
    while (f && f->id != id) f = f->chained;
    return f;
}

static void free_flow(struct flow *f) {
    http1_free(f->half[DIR_UP].http);
    http1_free(f->half[DIR_DOWN].http);
    head_free(&f->half[DIR_UP].head);
    head_free(&f->half[DIR_DOWN].head);
    free(f);
}

struct flow *flow_open(struct dissect *d, uint64_t id) {
    if (d->n_flows >= d->table_size && !grow(d)) return NULL;
    struct flow *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->d = d, f->id = id;
    f->half[DIR_UP].http = http1_new(HTTP1_REQUEST, &flow_up_ops, f);
    f->half[DIR_DOWN].http = http1_new(HTTP1_RESPONSE, &flow_down_ops, f);
    if (!f->half[DIR_UP].http || !f->half[DIR_DOWN].http) {
        free_flow(f);
        return NULL;
    }
    head_begin(&f->half[DIR_UP].head);
    head_begin(&f->half[DIR_DOWN].head);
    struct flow **b = bucket(d, id);
    f->chained = *b, *b = f;
    d->n_flows++;
    return f;
}

void flow_close(struct flow *f) {
    struct flow **at = bucket(f->d, f->id);
    while (*at != f) at = &(*at)->chained;
    *at = f->chained;
    f->d->n_flows--;
    free_flow(f);
}

/* -- exchanges */
struct exchange *flow_first_open(struct flow *f) {
    struct exchange **x = &f->place[PLACE_OPEN];
    while (*x && (*x)->over) *x = (*x)->next;
    return *x;
}

/* A new request shows that older answers have arrived. Answers end in order, so those that still linger are
 * the later ones. */
static void free_old(struct flow *f) {
    struct exchange *x;
    while ((x = f->first) && x->over && x->up_done && !x->lingers) flow_free_exchange(f, x);
}

static void append(struct flow *f, struct exchange *x) {
    x->flow = f;
    x->prev = f->last;
    *(f->last ? &f->last->next : &f->first) = x;
    f->last = x;
    for (int i = 0; i < N_FLOW_PLACES; i++)
        if (!f->place[i]) f->place[i] = x;
    f->n_open++;
}

struct exchange *flow_begin(struct flow *f, int64_t t_arrive, bool partial) {
    free_old(f);
    if (f->n_open >= FLOW_OPEN_MAX) f->crowded = true;
    if (f->crowded) return NULL;
    const struct dissect_config *c = &f->d->config;
    struct exchange_start start = {.trw = c->trw, .shared = c->shared, .pool = &f->d->pool, .key = c->key};
    start.connection = f->id, start.upstream = f->upstream;
    start.t_arrive = t_arrive, start.partial = partial;
    start.pipelined = flow_first_open(f) != NULL;
    struct exchange *x = exchange_new(&start);
    if (!x) return NULL;
    append(f, x);
    flow_protocol(f, "http1");
    return x;
}

static void unlinger(struct exchange *x) {
    struct dissect *d = x->flow->d;
    if (!x->lingers) return;
    x->lingers = false;
    *(x->older ? &x->older->newer : &d->oldest) = x->newer;
    *(x->newer ? &x->newer->older : &d->newest) = x->older;
    x->older = x->newer = NULL;
}

static void linger(struct exchange *x) {
    struct dissect *d = x->flow->d;
    x->lingers = true;
    x->older = d->newest;
    *(d->newest ? &d->newest->newer : &d->oldest) = x;
    d->newest = x;
}

void flow_free_exchange(struct flow *f, struct exchange *x) {
    unlinger(x);
    for (int i = 0; i < N_FLOW_PLACES; i++)
        if (f->place[i] == x) f->place[i] = x->next;
    *(x->prev ? &x->prev->next : &f->first) = x->next;
    *(x->next ? &x->next->prev : &f->last) = x->prev;
    if (f->up == x) f->up = NULL;
    if (f->down == x) f->down = NULL;
    exchange_free(x);
}

void flow_end(struct flow *f, struct exchange *x, const struct exchange_end *end) {
    if (x->over) return;
    exchange_over(x, end);
    f->n_open--;
    if (!end->whole) x->delivered = true; /* nothing to wait for */
    if (f->down == x) f->down = NULL;
    linger(x);
    struct exchange *next = flow_first_open(f);
    if (next) exchange_forwarded(next, true, end->t_ns);
}

void flow_end_all(struct flow *f, const struct exchange_end *end) {
    struct exchange *x;
    while ((x = flow_first_open(f))) flow_end(f, x, end);
}

void flow_tidy(struct dissect *d, int64_t now_ns) {
    struct exchange *x;
    while ((x = d->oldest) && now_ns - x->a.t_ns > LINGER_NS) {
        /* one whose delivery or request is still awaited stays with its flow alone */
        unlinger(x);
        if (x->delivered && x->up_done) flow_free_exchange(x->flow, x);
    }
}
