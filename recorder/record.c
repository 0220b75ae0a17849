/* Its one hard idea: this process must outlive both its own disk and its parent. While the trace cannot be
 * begun, pieces are taken and counted as not recorded, so that the ring never fills; when the forwarder is
 * gone without a word, what it left in the ring is still recorded and the trace sealed. */
#include "recorder/record.h"

#include "recorder/dissect.h"
#include "recorder/key.h"
#include "recorder/keyhash.h"
#include "recorder/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Looking at the ring is what a quiet machine pays for recording, and 64 streams that are looked at once in
 * two engine steps are still warm in the cache at the second. trw_tick closes a block at the second look, so
 * that nothing is older than twice this when it is out of the process. */
enum { POLL_MS = 48 };
/* When so much comes that the ring would be full in BUSY_RING_MS, the next look is soon: on processors that
 * are all busy a wake-up can wait for tens of milliseconds; short and frequent turns are let in sooner. */
enum { BUSY_POLL_MS = 5, BUSY_RING_MS = 1500 };
enum { DRAIN_BATCH = 4096, NAMES_TRIED = 100 };
#define SECOND_NS       1000000000LL
#define REOPEN_NS       (10 * SECOND_NS)
#define OLDEST_PIECE_NS (3600 * SECOND_NS) /* beyond, t_ns is no time */

struct recorder {
    const struct record_config *c;
    struct trw *trw;
    struct dissect *dissect;
    uint8_t key[KEY_BYTES];
    int fd;    /* of the trace being written, -1: none */
    bool busy; /* much came before the last look */
    int64_t next_open_ns, next_stats_ns;
    int64_t unrecorded_from_ns; /* since when pieces are dropped for want of a trace; 0: they are not */
    uint64_t unrecorded_pieces, unrecorded_bytes;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int64_t cpu_ns(int who) {
    struct rusage u;
    getrusage(who, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SECOND_NS +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void cannot_write(struct recorder *r, const char *why) {
    snprintf(r->c->shared->trace_error, sizeof r->c->shared->trace_error, "%s", why);
    r->c->shared->trace_status = TRACE_FAILING;
}

static void on_change(void *ctx, const char *line) {
    struct recorder *r = ctx;
    if (line) {
        cannot_write(r, line);
    } else {
        r->c->shared->trace_status = TRACE_WRITING;
    }
}

static bool begin_trace(struct recorder *r, int64_t now) {
    const struct record_config *c = r->c;
    struct trw_config config = {
        .fd = r->fd,
        .state = &c->shared->trw,
        .head = c->head,
        .flush_interval_ns = c->flush_interval_ns,
        .min_free_bytes = c->min_free_bytes,
        .on_change = on_change,
        .ctx = r,
    };
    char err[200];
    r->trw = trw_open(&config, err, sizeof err);
    if (!r->trw) {
        cannot_write(r, err);
        return false;
    }
    struct dissect_config d = {r->trw, c->shared, c->upstreams, c->listens, c->n_pairs, r->key};
    r->dissect = dissect_new(&d);
    c->shared->trace_status = TRACE_WRITING;
    if (r->unrecorded_from_ns)
        trw_loss(r->trw, LOSS_not_recording, r->unrecorded_from_ns, now, r->unrecorded_pieces,
                 r->unrecorded_bytes, 0);
    r->unrecorded_from_ns = 0;
    return r->dissect != NULL;
}

/* Makes the file of a part. Its name is kept where a restarted recorder process finds it: the state in shared
 * memory says which part is being written, so that a kill in the middle of a rotation leaves name and state
 * agreeing. */
static int open_part(struct recorder *r, const char *path, uint64_t part, char *err, size_t err_size) {
    char *kept = r->c->shared->trace_path[part & 1];
    int fd = output_open(path, err, err_size);
    if (fd >= 0) snprintf(kept, sizeof r->c->shared->trace_path[0], "%s", path);
    return fd;
}

/* Tries to begin the trace, every 10 s while it cannot be begun. */
static void want_trace(struct recorder *r, int64_t now) {
    char err[150], line[sizeof r->c->shared->trace_error];
    if (r->dissect || now < r->next_open_ns) return;
    r->next_open_ns = now + REOPEN_NS;
    if (r->fd < 0) r->fd = open_part(r, r->c->trace_path, 0, err, sizeof err);
    if (r->fd >= 0) {
        begin_trace(r, now);
        return;
    }
    snprintf(line, sizeof line, "%.100s: %s", r->c->trace_path, err);
    cannot_write(r, line);
}

/* The next part's file. A process killed in a rotation may have left one of that name, with nothing in it. */
static int open_next(struct recorder *r, char *err, size_t err_size) {
    uint64_t part = r->c->shared->trw.part + 1;
    char path[PATH_MAX];
    for (unsigned number = (unsigned)part; number < part + NAMES_TRIED; number++) {
        if (!output_next_part(r->c->trace_path, r->c->trace_dir, number, path, sizeof path)) break;
        int fd = open_part(r, path, part, err, err_size);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Goes on in a next part; when that cannot be begun, in the old one. */
static void rotate(struct recorder *r) {
    char err[200] = "no name is left for it";
    if (!r->trw) return;
    int fd = open_next(r, err, sizeof err);
    if (fd >= 0 && trw_rotate(r->trw, fd, err, sizeof err) >= 0) {
        close(r->fd);
        r->fd = fd;
        return;
    }
    if (fd >= 0) close(fd);
    fprintf(stderr, "tracerec: no next part of %s: %s; recording goes on in the one before\n",
            r->c->trace_path, err);
}

static void take(struct recorder *r, const struct piece *p) {
    if (!r->dissect) {
        if (!r->unrecorded_from_ns) r->unrecorded_from_ns = p->t_ns;
        r->unrecorded_pieces++;
        r->unrecorded_bytes += p->n_bytes + p->n_shed;
        r->c->shared->counts.loss[LOSS_not_recording]++;
    } else if (p->kind == PIECE_ROTATE) {
        rotate(r);
    } else {
        dissect_piece(r->dissect, p, piece_bytes(p));
    }
}

/* Empties the ring, a bounded number of pieces at a time. True: there was something. */
static bool drain(struct recorder *r) {
    const struct piece *p = ring_peek(r->c->ring);
    if (!p) return false;
    int64_t now = now_ns();
    if (p->t_ns > 0 && now - p->t_ns < OLDEST_PIECE_NS)
        hist_add(&r->c->shared->hists[HIST_drain], now - p->t_ns, now);
    for (int i = 0; p && i < DRAIN_BATCH; i++, p = ring_peek(r->c->ring)) {
        take(r, p);
        ring_pop(r->c->ring);
    }
    return true;
}

static void tell_stats(struct recorder *r) {
    if (!r->trw) return;
    struct shared *s = r->c->shared;
    for (int i = 0; i < N_HISTS; i++) {
        if (s->hists[i].count) trw_hist(r->trw, (enum hist_name)i, &s->hists[i]);
    }
    trw_int(r->trw, 0, F_queue_high_water_bytes, (int64_t)ring_high_water(r->c->ring));
    trw_int(r->trw, 0, F_queue_size_bytes, (int64_t)ring_size(r->c->ring));
    trw_int(r->trw, 0, F_bytes_forwarded, (int64_t)s->forwarded_bytes);
    trw_int(r->trw, 0, F_recorder_cpu_ns, cpu_ns(RUSAGE_SELF));
    trw_int(r->trw, 0, F_forwarder_cpu_ns, (int64_t)s->forwarder_cpu_ns);
}

static void breathe(struct recorder *r, int64_t now) {
    want_trace(r, now);
    if (!r->trw) return;
    trw_tick(r->trw, now);
    if (trw_needs_new_file(r->trw) && now >= r->next_open_ns) {
        r->next_open_ns = now + REOPEN_NS;
        rotate(r);
    }
    struct trw_totals t;
    trw_totals(r->trw, &t);
    r->c->shared->counts.file_bytes = t.file_bytes;
    for (int i = 0; i < N_LOSSES; i++) {
        if (t.lost[i]) r->c->shared->counts.loss[i] = t.lost[i];
    }
    if (now >= r->next_stats_ns) {
        r->next_stats_ns = now + 10 * SECOND_NS;
        tell_stats(r);
    }
}

static void sleep_on_ring(struct recorder *r, size_t came) {
    struct pollfd wait = {.fd = ring_wake_fd(r->c->ring), .events = POLLIN};
    int slept_ms = r->busy ? BUSY_POLL_MS : POLL_MS;
    r->busy = came / (size_t)slept_ms > ring_size(r->c->ring) / BUSY_RING_MS;
    if (poll(&wait, 1, r->busy ? BUSY_POLL_MS : POLL_MS) <= 0) return;
    uint64_t wakes;
    (void)!read(wait.fd, &wakes, sizeof wakes);
}

static int finish(struct recorder *r) {
    if (!r->dissect) return 1;
    dissect_stop(r->dissect, now_ns());
    dissect_free(r->dissect);
    tell_stats(r);
    int rc = trw_close(r->trw);
    close(r->fd);
    return rc == 0 ? 0 : 1;
}

static void ignore_signals(void) {
    int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
}

int record_run(const struct record_config *c) {
    struct recorder r = {.c = c, .fd = c->trace_fd};
    ignore_signals();
    char warm[KEYHASH_CHARS];
    key_load(r.key);
    keyhash(r.key, "", "", 0, warm); /* the library reads its files at first use: now, not in a burst */
    const char *path = c->shared->trace_path[c->shared->trw.part & 1];
    if (*path) r.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool last = false;
    breathe(&r, now_ns()); /* begins the trace: nothing may be taken before */
    for (size_t came = 0;;) {
        came += ring_used(c->ring);
        bool some = drain(&r);
        breathe(&r, now_ns()); /* after the drain, so that a block takes what came since the last look */
        if (some) continue;
        if (last) break;
        /* Look once more after seeing the end: the last pieces may have come between the two looks. */
        last = ring_closed(c->ring) || getppid() != c->shared->forwarder_pid;
        if (!last) sleep_on_ring(&r, came);
        came = 0;
    }
    return finish(&r);
}
