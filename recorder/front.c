/* Descriptors are counted, not discovered: a client needs two, and a few must stay free for what else the
 * process opens. When they run out accepting pauses, clients wait in the kernel's backlog, and nobody who is
 * connected notices. */
#include "recorder/front.h"
#include "recorder/clocks.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FDS_SPARE = 16, FDS_OF_RELAY = 2, ACCEPT_BATCH = 64, CHECK_MS = 50, PAUSE_MS = 100 };
#define IDLE_NS NS_PER_S

/* One listening socket in the loop. */
struct front_door {
    uv_poll_t poll;
    struct front *front;
    size_t pair;
    int fd;
};

static void on_timer(uv_timer_t *timer);

/* -- accepting */

static bool fds_left(const struct front *f) {
    return f->fd_base + f->relays->n * FDS_OF_RELAY + FDS_OF_RELAY + FDS_SPARE <= f->fd_limit;
}

static void on_knock(uv_poll_t *poll, int status, int events);

static void watch_doors(struct front *f, bool on) {
    for (size_t i = 0; i < f->n_doors; i++) {
        if (on)
            uv_poll_start(&f->doors[i].poll, UV_READABLE, on_knock);
        else
            uv_poll_stop(&f->doors[i].poll);
    }
}

static void pause_accepting(struct front *f) {
    if (f->paused || f->state >= FRONT_CLOSED) return;
    f->paused = true;
    f->pause = (struct tap_gap){.from_ns = clocks_mono(), .pieces = 1};
    watch_doors(f, false);
    uv_timer_start(&f->timer, on_timer, PAUSE_MS, PAUSE_MS);
}

static void go_on_accepting(struct front *f) {
    if (!f->paused || !fds_left(f)) return;
    f->paused = false;
    f->pause.to_ns = clocks_mono();
    tap_loss(f->relays->tap, LOSS_fds_exhausted, f->pause, 0);
    if (f->state < FRONT_CLOSED) watch_doors(f, true);
}

/* Accepts one client. False: there is none, or no way to take it. */
static bool accept_one(struct front *f, struct front_door *d) {
    union addr_any peer = {0};
    socklen_t n = sizeof peer;
    if (!fds_left(f)) {
        pause_accepting(f);
        return false;
    }
    int fd = accept4(d->fd, &peer.sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        if (n == 0 || peer.sa.sa_family == AF_UNIX) peer.sa.sa_family = AF_UNIX;
        relay_new(f->relays, fd, &peer, d->pair, &f->pairs[d->pair].upstream);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting(f);
    return errno == ECONNABORTED || errno == EINTR;
}

static void on_knock(uv_poll_t *poll, int status, int events) {
    struct front_door *d = poll->data;
    relays_awake(d->front->relays, clocks_mono());
    for (int i = 0; i < ACCEPT_BATCH; i++)
        if (!accept_one(d->front, d)) return;
}

/* -- start */

static size_t count_fds(void) {
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (!d) return FDS_SPARE;
    while (readdir(d)) n++;
    closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}

/* As many as the system lets this process have; returns how many. */
static size_t raise_fd_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return 1024;
    struct rlimit more = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) == 0) limit = more;
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : limit.rlim_cur;
}

bool front_start(struct front *f) {
    for (size_t i = 0; i < f->n_pairs; i++) f->n_doors += f->pairs[i].listen.n;
    f->doors = calloc(f->n_doors, sizeof *f->doors);
    if (!f->doors) return false;
    struct front_door *d = f->doors;
    for (size_t i = 0; i < f->n_pairs; i++) {
        for (size_t k = 0; k < f->pairs[i].listen.n; k++, d++) {
            *d = (struct front_door){.front = f, .pair = i, .fd = f->pairs[i].listen.fd[k]};
            if (uv_poll_init(f->loop, &d->poll, d->fd) != 0) return false;
            d->poll.data = d;
        }
    }
    uv_timer_init(f->loop, &f->timer);
    f->timer.data = f;
    f->fd_limit = raise_fd_limit();
    f->fd_base = count_fds();
    watch_doors(f, true);
    return true;
}

/* -- the end */

static void shut_doors(struct front *f) {
    for (size_t i = 0; i < f->n_doors; i++) {
        while (accept_one(f, &f->doors[i])) {
        } /* whoever is in the backlog has been told "connected" */
        uv_poll_stop(&f->doors[i].poll);
    }
    for (size_t i = 0; i < f->n_pairs; i++) listen_close(&f->pairs[i].listen);
}

static void set_limit(struct front *f) {
    int64_t now = clocks_mono();
    f->limit_ns = f->drain_ns > INT64_MAX - now ? INT64_MAX : now + f->drain_ns;
}

static void check(struct front *f) {
    int64_t now = clocks_mono();
    if (f->state == FRONT_LEAVING && relays_idle(f->relays, IDLE_NS, now)) front_close(f);
    if (f->state == FRONT_STOPPED) return;
    if (f->state == FRONT_CLOSED) relays_drain(f->relays);
    if (now >= f->limit_ns)
        front_stop(f);
    else if (f->state == FRONT_CLOSED && f->relays->n == 0)
        front_stop(f);
}

static void on_timer(uv_timer_t *timer) {
    struct front *f = timer->data;
    relays_awake(f->relays, clocks_mono());
    go_on_accepting(f);
    if (f->state != FRONT_RUNNING)
        check(f);
    else if (!f->paused)
        uv_timer_stop(timer);
}

void front_leave(struct front *f) {
    f->state = FRONT_LEAVING;
    set_limit(f);
    uv_timer_start(&f->timer, on_timer, 0, CHECK_MS);
}

void front_close(struct front *f) {
    if (f->state == FRONT_RUNNING) set_limit(f);
    shut_doors(f);
    f->state = FRONT_CLOSED;
    relays_drain(f->relays);
    uv_timer_start(&f->timer, on_timer, 0, CHECK_MS);
}

void front_stop(struct front *f) {
    if (f->state == FRONT_STOPPED) return;
    if (f->state < FRONT_CLOSED) shut_doors(f);
    f->state = FRONT_STOPPED;
    uv_timer_stop(&f->timer);
    relays_stop(f->relays);
    f->on_stopped(f->ctx);
}

/* The timer looks again: relays end in the middle of callbacks, where nothing else may be ended. */
void front_on_end(struct front *f) {
    if (f->paused || f->state == FRONT_CLOSED) uv_timer_start(&f->timer, on_timer, 0, CHECK_MS);
}
