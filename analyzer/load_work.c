/* A ring of jobs. Both threads take the oldest one that nobody has begun; jobs leave in the order in which
 * they came, so that the rows of a database do not depend on who was faster. */
#include "analyzer/load_work.h"

#include <pthread.h>
#include <stdlib.h>

enum { RING = 64 };
enum job_state { WAITING, RUNNING, DONE };

struct work {
    pthread_t thread;
    bool has_thread, closing;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct work_job jobs[RING];
    enum job_state states[RING];
    uint64_t first, next, end; /* ordinals: oldest not taken, oldest not begun, one past the newest */
    struct attributor own;     /* of the caller's thread */
};

static void run(struct work_job *j, struct attributor *a) {
    j->no_memory = !attribute(a, &j->o->events, &j->facts, &j->a);
    attribute_free(&j->o->events);
    if (j->no_memory || j->a.n_arrivals == 0) return;
    j->blob = malloc(arrivals_bound(j->a.n_arrivals));
    if (!j->blob)
        j->no_memory = true;
    else
        j->blob_bytes = arrivals_encode(j->a.arrivals, j->a.n_arrivals, j->base_ns, j->blob);
    j->a.arrivals = NULL;
}

/* Begins and does the oldest job that waits. The lock is held on entry and on return. */
static void run_next(struct work *w, struct attributor *a) {
    size_t i = w->next++ % RING;
    w->states[i] = RUNNING;
    pthread_mutex_unlock(&w->lock);
    run(&w->jobs[i], a);
    pthread_mutex_lock(&w->lock);
    w->states[i] = DONE;
    pthread_cond_broadcast(&w->changed);
}

static void *thread_main(void *arg) {
    struct work *w = arg;
    struct attributor a = {0};
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->next == w->end && !w->closing) pthread_cond_wait(&w->changed, &w->lock);
        if (w->next == w->end) break;
        run_next(w, &a);
    }
    pthread_mutex_unlock(&w->lock);
    attributor_free(&a);
    return NULL;
}

struct work *work_open(void) {
    struct work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->has_thread = pthread_create(&w->thread, NULL, thread_main, w) == 0;
    return w;
}

void work_close(struct work *w) {
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread) pthread_join(w->thread, NULL);
    attributor_free(&w->own);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

bool work_has_room(struct work *w) {
    return w->end - w->first < RING;
} /* only the caller moves either */

void work_push(struct work *w, const struct work_job *j) {
    pthread_mutex_lock(&w->lock);
    w->jobs[w->end % RING] = *j;
    w->states[w->end % RING] = WAITING;
    w->end++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

bool work_take(struct work *w, struct work_job *j, bool wait) {
    pthread_mutex_lock(&w->lock);
    size_t i = w->first % RING;
    while (wait && w->first < w->end && w->states[i] != DONE) {
        if (w->next < w->end)
            run_next(w, &w->own);
        else
            pthread_cond_wait(&w->changed, &w->lock);
    }
    bool done = w->first < w->end && w->states[i] == DONE;
    if (done) {
        *j = w->jobs[i];
        w->first++;
    }
    pthread_mutex_unlock(&w->lock);
    return done;
}
