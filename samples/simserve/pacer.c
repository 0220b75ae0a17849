/* The pacer: a timerfd, since the loop's own timers are whole milliseconds and a step may be 8.3. */
#include "samples/simserve/pacer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct pacer {
    uv_poll_t poll;
    struct engine *engine;
    int fd;
    enum engine_todo todo;
    uint64_t due_ns;
};

uint64_t pacer_now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void arm(struct pacer *p) {
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(p->due_ns / 1000000000u),
                                           .tv_nsec = (long)(p->due_ns % 1000000000u)}};

    timerfd_settime(p->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void plan(struct pacer *p, uint64_t from_ns) {
    uint64_t sleep_ns = 0;

    p->todo = engine_plan_step(p->engine, from_ns, &sleep_ns);
    p->due_ns = from_ns + sleep_ns;
    if (p->todo != ENGINE_NONE) arm(p);
}

/* More than 5 ms late (the machine was busy): begin afresh, or a burst of short steps would follow at once.
 */
static void on_timer(uv_poll_t *poll, int status, int events) {
    struct pacer *p = poll->data;
    uint64_t expirations;
    uint64_t now = pacer_now_ns();
    uint64_t due = p->due_ns;

    if (read(p->fd, &expirations, sizeof expirations) < 0) return; /* re-armed since; nothing is due */
    if (p->todo == ENGINE_STEP) engine_finish_step(p->engine, now);
    p->todo = ENGINE_NONE;
    plan(p, now - due < 5000000u ? due : pacer_now_ns());
}

struct pacer *pacer_new(uv_loop_t *loop, struct engine *engine) {
    struct pacer *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    p->engine = engine;
    p->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (p->fd < 0 || uv_poll_init(loop, &p->poll, p->fd) != 0) {
        if (p->fd >= 0) close(p->fd);
        free(p);
        return NULL;
    }
    p->poll.data = p;
    uv_poll_start(&p->poll, UV_READABLE, on_timer);
    return p;
}

void pacer_wake(struct pacer *p) {
    if (p->todo != ENGINE_STEP) plan(p, pacer_now_ns());
}

static void on_closed(uv_handle_t *handle) {
    struct pacer *p = handle->data;

    close(p->fd);
    free(p);
}

void pacer_close(struct pacer *p) {
    uv_close((uv_handle_t *)&p->poll, on_closed);
}
