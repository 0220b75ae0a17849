/* A ring of jobs between two threads. Waking a thread costs more than most jobs, so each side is woken only
 * when it sleeps and there is enough for it: the thread when some jobs or events wait, the caller when half
 * of the ring is free again. */
#include "analyzer/load_work.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    RING = 256,
    WAKE_JOBS = 32, /* as many, or so many events, wake the thread */
    WAKE_EVENTS = 32 << 10,
    SPARES = 64,             /* arrays of events kept for later requests */
    SPARE_EVENTS_MAX = 4096, /* longer ones are not kept: all of them together stay below 8 MiB */
    EVENTS_MAX = 2 << 20     /* waiting in the ring: 64 MiB */
};

struct work {
    struct store *store;
    struct wall *wall;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t more, fewer;
    bool closing, thread_sleeps, caller_sleeps;
    struct work_job jobs[RING];
    uint64_t done, end; /* ordinals: the oldest job not done, one past the newest */
    uint64_t n_events;  /* of the requests among them */
    struct attribute_events spares[SPARES];
    size_t n_spares;
    /* of the thread */
    struct attributor attributor;
    unsigned char *blob;
    size_t blob_room;
    bool no_memory;
};

/* ---- jobs */

static void keep(struct work *w, struct attribute_events *v) {
    if (v->room == 0) return;
    pthread_mutex_lock(&w->lock);
    if (w->n_spares < SPARES && v->room <= SPARE_EVENTS_MAX) {
        w->spares[w->n_spares++] = (struct attribute_events){.e = v->e, .room = v->room};
        *v = (struct attribute_events){0};
    }
    pthread_mutex_unlock(&w->lock);
}

static bool run_request(struct work *w, struct open_subject *o, const struct attribute_facts *facts,
                        int64_t base_ns) {
    struct store_request r = {.o = o, .base_ns = base_ns};
    if (!attribute(&w->attributor, &o->events, facts, &r.a)) return false;
    size_t bound = arrivals_bound(r.a.n_arrivals);
    if (bound > 0) {
        if (!attribute_room((void **)&w->blob, &w->blob_room, bound, 1)) return false;
        r.blob_bytes = arrivals_encode(r.a.arrivals, r.a.n_arrivals, base_ns, w->blob);
        r.blob = w->blob;
    }
    store_request(w->store, &r);
    return true;
}

static void run(struct work *w, struct work_job *j) {
    switch (j->kind) {
    case WORK_REQUEST:
        w->no_memory |= !run_request(w, j->request.o, &j->request.facts, j->request.base_ns);
        keep(w, &j->request.o->events);
        open_drop(j->request.o);
        break;
    case WORK_CONNECTION:
        store_connection(w->store, j->connection);
        open_drop(j->connection);
        break;
    case WORK_SPANS:
        store_spans(w->store, j->spans.at, j->spans.n);
        free(j->spans.at);
        break;
    case WORK_LOSS:
        store_loss(w->store, j->loss.l, j->loss.from_ns, j->loss.to_ns, j->loss.count, j->loss.bytes,
                   j->loss.request, j->loss.file);
        break;
    case WORK_ANCHOR:
        w->no_memory |= !wall_add(w->wall, j->anchor.mono_ns, j->anchor.wall_ns);
        store_anchor(w->store, j->anchor.mono_ns, j->anchor.wall_ns, j->anchor.uncertainty_ns);
        break;
    case WORK_FACT: store_recorder_fact(w->store, j->fact.f, j->fact.value); break;
    }
}

/* ---- the thread */

static uint64_t events_of(const struct work_job *j) {
    return j->kind == WORK_REQUEST ? j->request.o->events.n : 0;
}

static void wake_caller(struct work *w) {
    if (!w->caller_sleeps || w->end - w->done > RING / 2) return;
    w->caller_sleeps = false;
    pthread_cond_signal(&w->fewer);
}

static void *thread_main(void *arg) {
    struct work *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->done == w->end && !w->closing) {
            w->thread_sleeps = true;
            pthread_cond_wait(&w->more, &w->lock);
        }
        w->thread_sleeps = false;
        if (w->done == w->end) break;
        struct work_job *j = &w->jobs[w->done % RING]; /* not written to before it is done */
        uint64_t n_events = events_of(j);
        pthread_mutex_unlock(&w->lock);
        run(w, j);
        pthread_mutex_lock(&w->lock);
        w->done++;
        w->n_events -= n_events;
        wake_caller(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- the caller */

struct work *work_open(struct store *s, struct wall *wall) {
    struct work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->store = s;
    w->wall = wall;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    pthread_cond_init(&w->fewer, NULL);
    w->has_thread = pthread_create(&w->thread, NULL, thread_main, w) == 0;
    return w;
}

/* Until at most n jobs with few enough events are left. The lock is held. */
static void wait_for(struct work *w, uint64_t n) {
    while (w->end - w->done > n || w->n_events > EVENTS_MAX) {
        w->caller_sleeps = true;
        if (w->thread_sleeps) pthread_cond_signal(&w->more);
        pthread_cond_wait(&w->fewer, &w->lock);
    }
}

void work_push(struct work *w, const struct work_job *j) {
    if (!w->has_thread) {
        struct work_job own = *j;
        run(w, &own);
        return;
    }
    pthread_mutex_lock(&w->lock);
    wait_for(w, RING - 1);
    w->n_events += events_of(j);
    w->jobs[w->end++ % RING] = *j;
    bool wake = w->thread_sleeps && (w->end - w->done >= WAKE_JOBS || w->n_events >= WAKE_EVENTS);
    pthread_mutex_unlock(&w->lock);
    if (wake) pthread_cond_signal(&w->more);
}

void work_wait(struct work *w) {
    pthread_mutex_lock(&w->lock);
    wait_for(w, 0);
    pthread_mutex_unlock(&w->lock);
}

bool work_close(struct work *w) {
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread) pthread_join(w->thread, NULL);
    for (size_t i = 0; i < w->n_spares; i++) attribute_free(&w->spares[i]);
    attributor_free(&w->attributor);
    free(w->blob);
    pthread_cond_destroy(&w->more);
    pthread_cond_destroy(&w->fewer);
    pthread_mutex_destroy(&w->lock);
    bool good = !w->no_memory;
    free(w);
    return good;
}

void work_reuse(struct work *w, struct attribute_events *v) {
    if (v->room > 0) return;
    pthread_mutex_lock(&w->lock);
    if (w->n_spares > 0) *v = w->spares[--w->n_spares];
    pthread_mutex_unlock(&w->lock);
}
