/* The writer against disks that fail. The system calls are replaced below, so that every fault comes when the
 * test wants it; one test lets the kernel fail for real. */
#include "tests/unit/test_trace_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

/* ---- the disk */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    int error; /* of writes, once `room` bytes are written */
    size_t room;
    size_t at_most; /* bytes a write accepts, 0: all */
    bool held;      /* writes wait */
    _Atomic int sync_error, syncs;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

ssize_t pwrite(int fd, const void *p, size_t n, off_t at) {
    pthread_mutex_lock(&disk.lock);
    while (disk.held) pthread_cond_wait(&disk.change, &disk.lock);
    if (disk.at_most && n > disk.at_most) n = disk.at_most;
    if (disk.error && n > disk.room) n = disk.room;
    disk.room -= disk.error ? n : 0;
    int e = disk.error && n == 0 ? disk.error : 0;
    pthread_mutex_unlock(&disk.lock);
    if (e) {
        errno = e;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, p, n, at);
}

int fdatasync(int fd) {
    int e = disk.sync_error;
    disk.syncs++;
    errno = e;
    return e ? -1 : 0;
}

static void disk_set(int error, size_t room) {
    pthread_mutex_lock(&disk.lock);
    disk.error = error;
    disk.room = room;
    pthread_mutex_unlock(&disk.lock);
}

static void disk_hold(bool held) {
    pthread_mutex_lock(&disk.lock);
    disk.held = held;
    pthread_cond_broadcast(&disk.change);
    pthread_mutex_unlock(&disk.lock);
}

/* ---- a writer on it */

struct run {
    int fd;
    struct trw_state state;
    struct trw *w;
    int64_t now_ns;
    uint64_t reads, lines_failed, lines_works;
    char last_line[256];
};

static void on_change(void *ctx, const char *line) {
    struct run *r = ctx;
    if (!line) {
        r->lines_works++;
        return;
    }
    snprintf(r->last_line, sizeof r->last_line, "%s", line);
    r->lines_failed++;
}

static void run_open(struct run *r, int fd, uint64_t min_free) {
    char err[200];
    memset(r, 0, sizeof *r);
    r->fd = fd;
    struct trw_config c = {.fd = fd,
                           .state = &r->state,
                           .head = tools_head,
                           .flush_interval_ns = 50000000,
                           .min_free_bytes = min_free,
                           .on_change = on_change,
                           .ctx = r};
    r->w = trw_open(&c, err, sizeof err);
    assert_non_null(r->w);
    r->now_ns = 1000000000;
    trw_tick(r->w, r->now_ns);
    trw_begin(r->w, SUBJECT_R, 1);
    trw_int(r->w, 1, F_status, 200);
}

/* One block of n events. */
static void run_block(struct run *r, int n) {
    for (int i = 0; i < n; i++) {
        struct tok_event e = tools_event(1, r->now_ns += 1000, ++r->reads);
        trw_event(r->w, &e);
    }
    r->now_ns += 200000000;
    trw_tick(r->w, r->now_ns);
}

static void nap_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct trw_totals totals_of(struct run *r) {
    struct trw_totals t;
    trw_totals(r->w, &t);
    return t;
}

/* Blocks, some of them lost, until one more block than `blocks` is written. */
static void run_until_written(struct run *r, uint64_t blocks) {
    for (int i = 0; i < 300 && totals_of(r).blocks <= blocks; i++) {
        run_block(r, 10);
        nap_ms(10);
    }
    assert_true(totals_of(r).blocks > blocks);
}

/* Closes, reads; every event was told or is in the loss. */
static void run_close(struct run *r, int result, enum loss loss, struct told *got) {
    run_block(r, 0);
    trw_flush(r->w);
    run_block(r, 0);
    assert_int_equal(trw_close(r->w), result);
    enum trr_state s = told_fd(got, r->fd);
    if (result == 0) assert_int_equal(s, TRR_SEALED);
    assert_int_equal(got->n_damages + got->n_gaps, 0);
    assert_int_equal(got->n_events + got->loss_count[loss], r->reads);
    assert_true(got->loss_rows[loss] > 0);
    close(r->fd);
}

static void a_full_disk_is_a_loss_and_writing_resumes(int error, size_t room, enum loss loss) {
    struct run r;
    struct told got;
    run_open(&r, tools_file(), 0);
    run_block(&r, 100);
    trw_flush(r.w);
    disk_set(error, room);
    run_block(&r, 50);
    run_block(&r, 50);
    for (int i = 0; i < 100 && !r.lines_failed; i++) {
        nap_ms(5);
        run_block(&r, 1);
    }
    assert_int_equal(r.lines_failed, 1);
    assert_non_null(strstr(r.last_line, strerror(error)));
    assert_true(totals_of(&r).lost_blocks >= 2);
    struct stat st;
    assert_int_equal(fstat(r.fd, &st), 0);
    assert_int_equal(st.st_size, r.state.good_bytes); /* cut back */
    disk_set(0, 0);
    run_until_written(&r, totals_of(&r).blocks);
    run_close(&r, 0, loss, &got);
    assert_int_equal(r.lines_failed, 1);
    assert_int_equal(r.lines_works, 1);
    assert_int_equal(got.loss_rows[loss], 1);
    assert_true(got.n_snapshots > 0); /* what is open is told once more */
    told_free(&got);
}

static void disk_full_resumes(void **unused) {
    a_full_disk_is_a_loss_and_writing_resumes(ENOSPC, 0, LOSS_disk_full);
}
static void quota_in_the_middle_of_a_block_resumes(void **unused) {
    a_full_disk_is_a_loss_and_writing_resumes(EDQUOT, 30, LOSS_disk_full);
}
static void input_output_error_resumes(void **unused) {
    a_full_disk_is_a_loss_and_writing_resumes(EIO, 60, LOSS_write_failed);
}

static void short_writes_are_gone_on_with(void **unused) {
    struct run r;
    struct told got;
    disk.at_most = 7;
    run_open(&r, tools_file(), 0);
    for (int i = 0; i < 20; i++) run_block(&r, 20);
    assert_int_equal(trw_close(r.w), 0);
    disk.at_most = 0;
    assert_int_equal(told_fd(&got, r.fd), TRR_SEALED);
    assert_int_equal(got.n_events, r.reads);
    told_free(&got);
    close(r.fd);
}

/* The disk stands still: the caller does not, the queue fills, and the loss is told. */
static void a_slow_disk_never_holds_the_caller(void **unused) {
    struct run r;
    struct told got;
    run_open(&r, tools_file(), 0);
    run_block(&r, 10);
    trw_flush(r.w);
    disk_hold(true);
    for (int i = 0; i < 200; i++) run_block(&r, 10);
    trw_loss(r.w, LOSS_bad_json, 1, 2, 3, 4, 1); /* a loss told in a block that is dropped is told later */
    run_block(&r, 10);
    assert_true(totals_of(&r).lost_blocks > 100);
    disk_hold(false);
    run_until_written(&r, totals_of(&r).blocks);
    run_close(&r, 0, LOSS_writer_behind, &got);
    assert_int_equal(got.loss_count[LOSS_bad_json], 3);
    assert_true(got.n_snapshots > 0);
    told_free(&got);
}

static int file_on_disk(void) {
    char path[] = "/tmp/test_trace_disk.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void little_free_space_is_a_full_disk(void **unused) {
    struct run r;
    struct told got;
    run_open(&r, file_on_disk(), UINT64_MAX);
    run_block(&r, 100);
    nap_ms(50);
    run_block(&r, 1);
    assert_int_equal(r.lines_failed, 1);
    assert_int_equal(totals_of(&r).blocks, 0);
    assert_int_equal(trw_close(r.w), -1);
    assert_int_equal(told_fd(&got, r.fd), TRR_SEALED);
    assert_int_equal(got.n_events, 0);
    told_free(&got);
    close(r.fd);
}

static void after_a_failed_sync_only_a_new_file_will_do(void **unused) {
    struct run r;
    struct told got;
    char err[200];
    run_open(&r, tools_file(), 0);
    run_block(&r, 30);
    trw_flush(r.w);
    assert_false(trw_needs_new_file(r.w));
    uint64_t reads = r.reads;
    disk.sync_error = EIO;
    run_block(&r, 1);
    trw_flush(r.w);
    assert_true(trw_needs_new_file(r.w));
    disk.sync_error = 0;
    int syncs = disk.syncs;
    struct stat before, after;
    assert_int_equal(fstat(r.fd, &before), 0);
    run_block(&r, 30);
    nap_ms(1200);
    run_block(&r, 30);
    nap_ms(100);
    assert_int_equal(fstat(r.fd, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(syncs, disk.syncs);
    int old = r.fd;
    r.fd = tools_file();
    assert_int_equal(trw_rotate(r.w, r.fd, err, sizeof err), 0);
    assert_false(trw_needs_new_file(r.w));
    assert_int_equal(told_fd(&got, old), TRR_GROWING); /* not sealed */
    assert_int_equal(got.n_events, reads + 1);
    r.reads -= got.n_events;
    told_free(&got);
    close(old);
    run_block(&r, 10);
    run_close(&r, 0, LOSS_write_failed, &got);
    told_free(&got);
}

static void syncs_come_at_least_every_interval(void **unused) {
    struct run r;
    run_open(&r, tools_file(), 0);
    int syncs = disk.syncs;
    run_block(&r, 10);
    for (int i = 0; i < 200 && disk.syncs == syncs; i++) nap_ms(10);
    assert_true(disk.syncs > syncs);
    nap_ms(200);
    syncs = disk.syncs;
    nap_ms(200); /* nothing new: no sync */
    assert_int_equal(disk.syncs, syncs);
    assert_int_equal(trw_close(r.w), 0);
    close(r.fd);
}

/* The kernel's own refusal: a limit on the size of files, raised later. */
static void a_limit_on_file_size_is_a_full_disk(void **unused) {
    struct run r;
    struct told got;
    struct rlimit old, low;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    run_open(&r, file_on_disk(), 0);
    run_block(&r, 100);
    trw_flush(r.w);
    low = old;
    low.rlim_cur = r.state.good_bytes + 100; /* in the middle of the next block */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    run_block(&r, 2000);
    nap_ms(100);
    run_block(&r, 1);
    assert_int_equal(r.lines_failed, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    run_until_written(&r, totals_of(&r).blocks);
    run_close(&r, 0, LOSS_disk_full, &got);
    assert_int_equal(r.lines_works, 1);
    told_free(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disk_full_resumes),
        cmocka_unit_test(quota_in_the_middle_of_a_block_resumes),
        cmocka_unit_test(input_output_error_resumes),
        cmocka_unit_test(short_writes_are_gone_on_with),
        cmocka_unit_test(a_slow_disk_never_holds_the_caller),
        cmocka_unit_test(little_free_space_is_a_full_disk),
        cmocka_unit_test(after_a_failed_sync_only_a_new_file_will_do),
        cmocka_unit_test(syncs_come_at_least_every_interval),
        cmocka_unit_test(a_limit_on_file_size_is_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
