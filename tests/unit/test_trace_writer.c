/* The writer over time: killed and restarted, watched while it writes, moved to a next file. */
#include "tests/unit/test_trace_tools.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void nap_us(long us) {
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- killed and restarted */

/* Writes events of request `round`, reads 1, 2, 3 …, until killed. */
static void write_until_killed(int fd, struct trw_state *state, uint64_t round) {
    char err[200];
    struct trw_config c = {.fd = fd, .state = state, .head = tools_head, .flush_interval_ns = 20000000};
    struct trw *w = trw_open(&c, err, sizeof err);
    if (!w) _exit(3);
    trw_begin(w, SUBJECT_R, round);
    for (uint64_t i = 1;; i++) {
        struct tok_event e = tools_event(round, (int64_t)(round * 1000000000 + i * 1000), i);
        trw_event(w, &e);
        if (i % 20 == 0) trw_tick(w, (int64_t)(i * 10000000));
        if (i % 1000 == 0) trw_flush(w); /* never so fast that blocks are dropped */
    }
}

struct rounds {
    uint64_t next_read[100];
    uint64_t events;
};

static void in_a_row(void *ctx, uint64_t request, const struct tok_event *e, size_t n) {
    struct rounds *r = ctx;
    for (size_t i = 0; i < n; i++) assert_int_equal(e[i].read, ++r->next_read[request]);
    r->events += n;
}
static void no_damage(void *ctx, uint64_t offset, uint64_t bytes, const char *why) {
    fail_msg("damage at %" PRIu64 ": %s", offset, why);
}
static void no_gap(void *ctx, uint64_t first, uint64_t n, int64_t before_ns, int64_t after_ns) {
    fail_msg("blocks missing from %" PRIu64, first);
}

static void a_killed_writer_is_followed_by_another(void **unused) {
    enum { ROUNDS = 40 };
    struct trw_state *state =
        mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(state, MAP_FAILED);
    int fd = tools_file();
    srand(1);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) write_until_killed(fd, state, round);
        nap_us(1000 + rand() % 30000);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it was writing, it did not fail */
        if (round == 7 || round == 8) {   /* half a block behind the whole ones, as a write cut by the kill */
            uint64_t end = state->good_bytes;
            if (end)
                assert_int_equal(pwrite(fd, "\xe5TB\xb7 garbage", 12, (off_t)end + (round == 8) * 70), 12);
        }
    }
    assert_true(state->next_seq > 1);
    struct trw *w = tools_open(fd, state);
    assert_int_equal(trw_close(w), 0);
    char path[64], err[200];
    enum trr_state s;
    struct rounds seen = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct trr *r = trr_open(path, &s, err, sizeof err);
    assert_non_null(r);
    struct trr_ops ops = {.events = in_a_row, .damage = no_damage, .gap = no_gap};
    assert_int_equal(trr_read(r, INT64_MIN, INT64_MAX, &ops, &seen), TRR_SEALED);
    assert_true(seen.events > ROUNDS);
    struct trr_totals t;
    trr_totals(r, &t);
    assert_int_equal(t.blocks, state->next_seq - 1);
    trr_close(r);
    close(fd);
    munmap(state, sizeof *state);
}

/* The kill came after a block was written, and before the state said so: it is found, not cut or doubled. */
static void a_block_written_but_not_noted_is_kept(void **unused) {
    struct trw_state state = {0}, before;
    struct told got;
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    trw_begin(w, SUBJECT_R, 1);
    trw_flush(w);
    before = state;
    trw_begin(w, SUBJECT_R, 2);
    trw_flush(w);
    struct trw_state after = state;
    assert_int_equal(trw_close(w), 0);
    for (int noted = 0; noted < 3; noted++) {
        assert_int_equal(ftruncate(fd, (off_t)after.good_bytes), 0);
        state = before; /* nothing, the number alone, both */
        if (noted >= 1) state.next_seq = after.next_seq;
        if (noted >= 2) state.good_bytes = after.good_bytes;
        w = tools_open(fd, &state);
        assert_int_equal(state.good_bytes, after.good_bytes);
        trw_begin(w, SUBJECT_R, 3);
        assert_int_equal(trw_close(w), 0);
        assert_int_equal(told_fd(&got, fd), TRR_SEALED);
        assert_int_equal(got.n_blocks, 3);
        assert_int_equal(got.n_damages + got.n_gaps, 0);
        told_free(&got);
    }
    close(fd);
}

static void a_foreign_file_is_not_gone_on_in(void **unused) {
    char err[200] = "";
    struct trw_state state = {.next_seq = 5, .good_bytes = 10};
    int fd = tools_file();
    assert_int_equal(write(fd, "something else", 14), 14);
    struct trw_config c = {.fd = fd, .state = &state, .head = tools_head};
    assert_null(trw_open(&c, err, sizeof err));
    assert_non_null(strstr(err, "head"));
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 14); /* untouched */
    close(fd);
}

/* ---- watched while it writes */

static void a_locked_file_is_growing(void **unused) {
    struct trw_state state = {0};
    struct told got;
    int fd = tools_file(), pipe_fd[2];
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(pipe(pipe_fd), 0);
    struct trw *w = tools_open(fd, &state);
    trw_begin(w, SUBJECT_R, 1);
    trw_flush(w);
    assert_int_equal(told_fd(&got, fd), TRR_GROWING);
    assert_int_equal(got.n_blocks, 1);
    told_free(&got);
    trw_begin(w, SUBJECT_R, 2);
    trw_flush(w);
    /* Half of the second block is there, or other bytes are: no damage while the writer lives. */
    uint64_t whole = state.good_bytes;
    for (int garbage = 0; garbage < 2; garbage++) {
        assert_int_equal(ftruncate(fd, (off_t)whole - 5), 0);
        if (garbage) assert_int_equal(pwrite(fd, "abc", 3, (off_t)whole - 10), 3);
        assert_int_equal(told_fd(&got, fd), TRR_GROWING);
        assert_int_equal(got.n_blocks, 1);
        assert_int_equal(got.n_damages, 0);
        told_free(&got);
    }
    /* The lock lives in the description that a child shares: it holds on while one of the two has it. */
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(pipe_fd[1]);
        (void)!read(pipe_fd[0], &byte, 1);
        _exit(0);
    }
    close(pipe_fd[0]);
    int other = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)whole - 30), 0);
    assert_int_equal(trw_close(w), 0); /* seals at good_bytes, behind a hole */
    assert_int_equal(ftruncate(fd, (off_t)whole - 30), 0);
    close(fd);
    assert_int_equal(told_fd(&got, other), TRR_GROWING);
    told_free(&got);
    close(pipe_fd[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(told_fd(&got, other), TRR_TORN);
    assert_int_equal(got.n_blocks, 1);
    told_free(&got);
    close(other);
}

static void two_writers_do_not_share_a_file(void **unused) {
    struct trw_state a = {0}, b = {0};
    char path[64], err[200] = "";
    int fd = tools_file();
    struct trw *w = tools_open(fd, &a);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    struct trw_config c = {.fd = again, .state = &b, .head = tools_head};
    assert_null(trw_open(&c, err, sizeof err));
    assert_non_null(strstr(err, "another program"));
    assert_int_equal(trw_close(w), 0);
    close(again);
    close(fd);
}

static void a_block_goes_out_when_it_is_90_ms_old(void **unused) {
    struct trw_state state = {0};
    struct trw_totals t;
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    trw_tick(w, 1000000000);
    trw_begin(w, SUBJECT_R, 1);
    trw_tick(w, 1089999999);
    nap_us(50000);
    trw_totals(w, &t);
    assert_int_equal(t.blocks, 0);
    trw_tick(w, 1090000000);
    for (int i = 0; i < 200 && !t.blocks; i++) {
        nap_us(10000);
        trw_totals(w, &t);
    }
    assert_int_equal(t.blocks, 1);
    assert_int_equal(trw_close(w), 0);
    close(fd);
}

/* ---- moved to a next file */

static void a_next_part_begins_with_what_is_open(void **unused) {
    struct trw_state state = {0};
    struct told got;
    char err[200];
    int fd[2] = {tools_file(), tools_file()};
    struct trw *w = tools_open(fd[0], &state);
    struct tok_event e = tools_event(2, 5000, 1);
    for (uint64_t id = 1; id <= 3; id++) {
        trw_begin(w, SUBJECT_R, id);
        trw_str(w, id, F_model, "first", 5);
        trw_int(w, id, F_t_arrive_ns, (int64_t)id * 100);
        trw_str(w, id, F_model, "second", 6);
    }
    trw_begin(w, SUBJECT_C, 2);
    trw_int(w, 2, F_bytes_up, 77);
    trw_span(w, 2, F_late_read, 100, 200, 1);
    trw_span(w, 2, F_late_read, 300, 400, 0);
    trw_real(w, 3, F_temperature, 0.25);
    trw_event(w, &e);
    trw_end(w, SUBJECT_R, 1);
    assert_int_equal(trw_rotate(w, fd[1], err, sizeof err), 0);
    trw_event(w, &e);
    assert_int_equal(trw_close(w), 0);
    assert_int_equal(told_fd(&got, fd[0]), TRR_SEALED);
    assert_int_equal(got.n_snapshots, 0);
    assert_int_equal(got.n_events, 1);
    told_free(&got);
    assert_int_equal(told_fd(&got, fd[1]), TRR_SEALED);
    assert_int_equal(got.n_snapshots, 3);
    assert_int_equal(got.n_events, 1);
    const char *s = got.block[1];
    assert_non_null(strstr(s, "begin 0 2 1\nbegin 0 3 1\nbegin 1 2 1\n"));
    assert_null(strstr(s, "begin 0 1 "));
    assert_null(strstr(s, "first"));
    assert_non_null(strstr(s, "model 2 6:second\n"));
    assert_non_null(strstr(s, "t_arrive_ns 3 300\n"));
    assert_non_null(strstr(s, "temperature 3 0x1p-2\n"));
    assert_non_null(strstr(s, "late_read 2 100 200 1\nlate_read 2 300 400 0\n"));
    assert_non_null(strstr(s, "open 2 1 5000\n"));
    assert_non_null(strstr(got.block[2], "open 2 1 5000\n"));
    assert_int_equal(state.part, 1);
    told_free(&got);
    close(fd[0]);
    close(fd[1]);
}

/* A recorder was killed in a rotation after the part's number was stored and before the lengths were: the
 * next one found the old part's length beside the new part's file and filled that with zeros up to it. */
static void a_kill_in_a_rotation_damages_no_part(void **unused) {
    struct trw_state state = {0}, mixed;
    struct told got;
    char err[200];
    int fd[2] = {tools_file(), tools_file()};
    struct trw *w = tools_open(fd[0], &state);
    for (uint64_t id = 1; id <= 200; id++) trw_begin(w, SUBJECT_R, id);
    trw_flush(w);
    mixed = state;
    assert_int_equal(trw_rotate(w, fd[1], err, sizeof err), 0);
    trw_begin(w, SUBJECT_R, 201);
    assert_int_equal(trw_close(w), 0);
    mixed.part = 1;
    assert_true(mixed.good_bytes != state.good_bytes);
    w = tools_open(fd[1], &mixed);
    trw_begin(w, SUBJECT_R, 202);
    assert_int_equal(trw_close(w), 0);
    assert_int_equal(told_fd(&got, fd[1]), TRR_SEALED);
    assert_int_equal(got.n_damages + got.n_gaps, 0);
    told_free(&got);
    mixed.part = 0; /* and the other part is not taken for it */
    struct trw_config c = {.fd = fd[1], .state = &mixed, .flush_interval_ns = 1000000000};
    assert_null(trw_open(&c, err, sizeof err));
    assert_non_null(strstr(err, "another part"));
    close(fd[0]);
    close(fd[1]);
}

static void a_large_snapshot_arrives_whole(void **unused) {
    enum { OPEN = 20000 };
    struct trw_state state = {0};
    struct told got;
    char err[200], text[300];
    int fd[2] = {tools_file(), tools_file()};
    struct trw *w = tools_open(fd[0], &state);
    memset(text, 'u', sizeof text);
    for (uint64_t id = 1; id <= OPEN; id++) {
        trw_begin(w, SUBJECT_R, id);
        snprintf(text, 20, "%" PRIu64, id);
        trw_str(w, id, F_user_agent, text, sizeof text);
        if (id % 1000 == 0) trw_flush(w);
    }
    assert_int_equal(trw_rotate(w, fd[1], err, sizeof err), 0);
    assert_int_equal(trw_close(w), 0);
    assert_int_equal(told_fd(&got, fd[1]), TRR_SEALED);
    assert_int_equal(got.n_snapshots, OPEN);
    assert_int_equal(got.loss_rows[LOSS_writer_behind], 0);
    told_free(&got);
    close(fd[0]);
    close(fd[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_writer_is_followed_by_another),
        cmocka_unit_test(a_block_written_but_not_noted_is_kept),
        cmocka_unit_test(a_foreign_file_is_not_gone_on_in),
        cmocka_unit_test(a_locked_file_is_growing),
        cmocka_unit_test(two_writers_do_not_share_a_file),
        cmocka_unit_test(a_block_goes_out_when_it_is_90_ms_old),
        cmocka_unit_test(a_next_part_begins_with_what_is_open),
        cmocka_unit_test(a_kill_in_a_rotation_damages_no_part),
        cmocka_unit_test(a_large_snapshot_arrives_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
