/* Measures what the trace costs: bytes in the file for each event, ns to append one, ns to read one. Run with
 * -v it prints them. The bounds are promises of the design: at most 4 bytes an event in the file, everything
 * counted, for 64 streams of one event per 20 ms each, flushed every 100 ms. */
#include "schema/trr.h"
#include "schema/trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STREAMS 64
#define STEP_NS 20000000

static uint64_t seed = 88172645463325252u;
static uint64_t rnd(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static double clock_s(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Anonymous file with a writer on it. */
struct file {
    int fd;
    struct trw_state state;
    struct trw *w;
};

static void file_open(struct file *f) {
    static const char *const head[] = {"host", "test", NULL};
    char err[200] = "";
    f->fd = memfd_create("trace", MFD_CLOEXEC);
    memset(&f->state, 0, sizeof f->state);
    f->w = trw_open(
        &(struct trw_config){.fd = f->fd, .state = &f->state, .head = head, .flush_interval_ns = 1000000000},
        err, sizeof err);
    assert_non_null(f->w);
}

static struct trr *reader(const struct file *f) {
    char path[64], err[200] = "";
    enum trr_state state;
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    struct trr *r = trr_open(path, &state, err, sizeof err);
    assert_non_null(r);
    return r;
}

struct stream {
    int64_t next_ns; /* without its jitter */
    struct tok_event e;
};

/* One event of a stream: a template of 180 bytes around its text. */
static void say(struct file *f, struct stream *s, int64_t jitter_ns) {
    s->e.t_ns = s->next_ns + (int64_t)rnd(2 * (uint64_t)jitter_ns) - jitter_ns;
    s->e.read++;
    s->e.what = TOK_CONTENT;
    s->e.text_bytes = 1 + (uint32_t)rnd(8);
    s->e.wire_bytes = s->e.text_bytes + 182;
    s->e.running = s->e.ids = s->e.logprobs = -1;
    trw_event(f->w, &s->e);
    s->next_ns += STEP_NS;
}

static int by_next(const void *a, const void *b) {
    int64_t x = ((const struct stream *)a)->next_ns, y = ((const struct stream *)b)->next_ns;
    return (x > y) - (x < y);
}

/* Runs STREAMS streams for `seconds` of their own time. A shared step: all within 1 ms, else random phases.
 */
static double bytes_per_event(bool shared_step, int seconds) {
    struct file f;
    struct stream s[STREAMS];
    int64_t now_ns = 1000000000000;
    file_open(&f);
    for (int i = 0; i < STREAMS; i++) {
        s[i] = (struct stream){.next_ns = now_ns + (int64_t)rnd(shared_step ? 500000 : STEP_NS)};
        s[i].e.request = 1000 + (uint64_t)i * 3 + rnd(3);
        s[i].e.read = 1;
        trw_begin(f.w, SUBJECT_R, s[i].e.request);
        /* They began at different times: each has a number of events of its own behind it. */
        int64_t from_ns = s[i].next_ns;
        for (uint64_t n = rnd(1500), k = 0; k < n; k++) {
            s[i].next_ns = from_ns - (int64_t)(n - k) * STEP_NS;
            say(&f, &s[i], 50000);
        }
        s[i].next_ns = from_ns;
    }
    trw_flush(f.w);
    struct trw_totals before, after;
    trw_totals(f.w, &before);
    qsort(s, STREAMS, sizeof *s, by_next);
    for (int step = 0; step < seconds * 50; step++) {
        for (int i = 0; i < STREAMS; i++) say(&f, &s[i], 50000);
        now_ns += STEP_NS;
        if (step % 5 == 4) trw_flush(f.w);
    }
    trw_totals(f.w, &after);
    uint64_t events = after.events - before.events, blocks = after.blocks - before.blocks;
    double each = (double)(after.file_bytes - before.file_bytes) / (double)events;
    print_message("%s: %.3f bytes an event, %.1f events a block\n", shared_step ? "one step" : "phases", each,
                  (double)events / (double)blocks);
    assert_int_equal(trw_close(f.w), 0);
    close(f.fd);
    return each;
}

static void random_phases_take_at_most_4_bytes(void **unused) {
    assert_true(bytes_per_event(false, 20) <= 4.0);
}

static void a_shared_step_takes_at_most_4_bytes(void **unused) {
    assert_true(bytes_per_event(true, 20) <= 4.0);
}

static void count_events(void *ctx, uint64_t request, const struct tok_event *e, size_t n) {
    *(uint64_t *)ctx += n;
}

/* Prints speeds; what it asserts is that every event comes back. */
static void many_events_come_back(void **unused) {
    enum { EVENTS = 5000000, REQUESTS = 16 };
    struct file f;
    struct stream s[REQUESTS] = {0};
    file_open(&f);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        s[i].e.request = i + 1;
        s[i].next_ns = 1000000000 + (int64_t)rnd(STEP_NS);
        trw_begin(f.w, SUBJECT_R, i + 1);
    }
    struct tok_event *all = malloc(sizeof *all * 100000);
    double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID), append = 0;
    for (int i = 0; i < EVENTS; i++) {
        say(&f, &s[i % REQUESTS], 50000);
        if (i % 50000 == 0) trw_flush(f.w);
    }
    trw_flush(f.w);
    cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    struct trw_totals totals;
    trw_totals(f.w, &totals);
    for (int i = 0; i < 100000; i++) all[i] = s[i % REQUESTS].e;
    for (int rounds = 0; rounds < 10; rounds++) {
        trw_flush(f.w);
        double t = clock_s(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 100000; i++) trw_event(f.w, &all[i]);
        append += clock_s(CLOCK_THREAD_CPUTIME_ID) - t;
    }
    free(all);
    assert_int_equal(trw_close(f.w), 0);
    struct trr *r = reader(&f);
    uint64_t n = 0;
    double t = clock_s(CLOCK_THREAD_CPUTIME_ID);
    assert_int_equal(trr_read(r, INT64_MIN, INT64_MAX, &(struct trr_ops){.events = count_events}, &n),
                     TRR_SEALED);
    t = clock_s(CLOCK_THREAD_CPUTIME_ID) - t;
    print_message(
        "%.3f bytes an event; CPU of writing %.1f ns (of the caller's thread %.1f), of reading %.1f ns\n",
        (double)totals.file_bytes / EVENTS, cpu * 1e9 / EVENTS, append * 1e9 / 1000000, t * 1e9 / (double)n);
    assert_int_equal(n, EVENTS + 1000000);
    trr_close(r);
    close(f.fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_phases_take_at_most_4_bytes),
                                       cmocka_unit_test(a_shared_step_takes_at_most_4_bytes),
                                       cmocka_unit_test(many_events_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
