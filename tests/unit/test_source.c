/* Whole inputs: files that were written by the writer, parts in any order, databases made by load, wrong
 * files. */
#include "analyzer/commands.h"
#include "analyzer/db.h"
#include "analyzer/source.h"
#include "schema/trw.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define T0 1000000000000LL
#define MS 1000000LL

static char folder[] = "/tmp/test_source-XXXXXX";
static char path_a[64], path_b[64], path_other[64], path_db[64];

static int create(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void begin(struct trw *w, uint64_t id, int64_t t_ms) {
    trw_begin(w, SUBJECT_R, id);
    trw_int(w, id, F_t_arrive_ns, T0 + t_ms * MS);
    trw_int(w, id, F_t_forwarded_ns, T0 + t_ms * MS);
    trw_int(w, id, F_status, 200);
    trw_int(w, id, F_streamed, 1);
    trw_str(w, id, F_api, "openai-chat", 11);
}

static void token(struct trw *w, uint64_t id, int64_t t_ms) {
    struct tok_event e = {.request = id,
                          .t_ns = T0 + t_ms * MS,
                          .read = (uint64_t)t_ms,
                          .what = TOK_CONTENT,
                          .text_bytes = 4,
                          .wire_bytes = 90,
                          .running = -1,
                          .ids = 1,
                          .logprobs = -1};
    trw_event(w, &e);
}

static void end(struct trw *w, uint64_t id, int64_t t_ms) {
    trw_int(w, id, F_t_end_ns, T0 + t_ms * MS);
    trw_str(w, id, F_finish_reason, "stop", 4);
    trw_str(w, id, F_end_by, "complete", 8);
    trw_end(w, SUBJECT_R, id);
}

/* Two parts: request 1 runs over both, 2 in the first, 3 in the second, 4 to the end. */
static int make_traces(void **state) {
    static const char *const head[] = {"recorder", "tracerec 0.1.0", "source",         "proxy",       "name",
                                       "pod-1",    "upstream.0",     "127.0.0.1:8000", "note.engine", "x",
                                       NULL};
    assert_non_null(mkdtemp(folder));
    snprintf(path_a, sizeof path_a, "%s/b-first.trc", folder);
    snprintf(path_b, sizeof path_b, "%s/a-second.trc", folder);
    snprintf(path_other, sizeof path_other, "%s/other.txt", folder);
    snprintf(path_db, sizeof path_db, "%s/x.sqlite", folder);
    struct trw_state st = {0};
    int a = create(path_a), b = create(path_b);
    char err[200];
    struct trw_config c = {.fd = a, .state = &st, .head = head, .flush_interval_ns = 1000000000};
    struct trw *w = trw_open(&c, err, sizeof err);
    assert_non_null(w);
    trw_anchor(w, T0, 1800000000000000000, 100);
    begin(w, 1, 0);
    begin(w, 2, 5);
    for (int t = 10; t <= 50; t += 10) token(w, 1, t);
    token(w, 2, 30);
    end(w, 2, 40);
    trw_flush(w);
    assert_int_equal(trw_rotate(w, b, err, sizeof err), 0);
    close(a);
    begin(w, 3, 60);
    begin(w, 4, 61);
    token(w, 1, 70);
    token(w, 3, 80);
    end(w, 3, 90);
    end(w, 1, 100);
    trw_loss(w, LOSS_unsolicited, T0 + 70 * MS, T0 + 71 * MS, 1, 10, 0);
    assert_int_equal(trw_close(w), 0);
    close(b);
    int other = create(path_other);
    assert_int_equal(write(other, "POST /v1/x\x1b[31m", 15), 15);
    close(other);
    return 0;
}

static int remove_traces(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* Runs with stderr into text. */
static char said[4096];
static int kept_stderr;
static FILE *caught;
static void catch_stderr(void) {
    fflush(stderr);
    kept_stderr = dup(STDERR_FILENO);
    caught = tmpfile();
    dup2(fileno(caught), STDERR_FILENO);
}
static void release_stderr(void) {
    fflush(stderr);
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    rewind(caught);
    size_t n = fread(said, 1, sizeof said - 1, caught);
    said[n] = 0;
    fclose(caught);
}

static int open_inputs(struct source *s, char **inputs, size_t n) {
    struct source_options o = {.arrival_window_ns = MS};
    catch_stderr();
    int status = source_open(s, inputs, n, &o);
    release_stderr();
    return status;
}

static void is(struct source *s, const char *sql, int64_t right) {
    int64_t seen = db_number(s->db, sql, -999);
    if (seen != right) fail_msg("%s: %lld, right is %lld", sql, (long long)seen, (long long)right);
}

static void check_both_parts(struct source *s) {
    is(s, "SELECT COUNT(*) FROM requests", 4);
    is(s, "SELECT COUNT(*) FROM requests WHERE outcome = 'ok'", 3);
    is(s, "SELECT arrivals FROM requests WHERE request = 1", 6);
    is(s, "SELECT tpot_ns FROM requests WHERE request = 1", 12000000);
    is(s, "SELECT COUNT(*) FROM requests WHERE request = 1 AND itl_absent IS NULL AND losses IS NULL", 1);
    is(s, "SELECT COUNT(*) FROM requests WHERE request = 4 AND outcome = 'in_flight'", 1);
    is(s, "SELECT arrived_wall_ns FROM requests WHERE request = 2", 1800000000005000000);
    is(s,
       "SELECT COUNT(*) FROM traces WHERE state = 'sealed' AND source = 'proxy to 127.0.0.1:8000' AND "
       "recorder = 'pod-1'",
       2);
    is(s, "SELECT COUNT(DISTINCT value) FROM notes WHERE key = 'engine'", 1);
    is(s, "SELECT from_wall_ns FROM losses WHERE loss = 'unsolicited'", 1800000000070000000);
    is(s, "SELECT COUNT(*) FROM arrivals WHERE request = 1", 6);
    is(s, "SELECT SUM(gap_ns) FROM gaps WHERE request = 1", 60000000);
}

static void parts_in_any_order_are_one_recording(void **state) {
    char *orders[][2] = {{path_a, path_b}, {path_b, path_a}};
    for (int i = 0; i < 2; i++) {
        struct source s;
        assert_int_equal(open_inputs(&s, orders[i], 2), 0);
        check_both_parts(&s);
        assert_string_equal(said, "");
        source_close(&s);
    }
}

static void a_folder_gives_its_traces(void **state) {
    struct source s;
    char *inputs[] = {folder};
    assert_int_equal(open_inputs(&s, inputs, 1), 0);
    check_both_parts(&s);
    source_close(&s);
}

static void the_same_part_twice_is_loaded_once_and_said(void **state) {
    struct source s;
    char *inputs[] = {path_a, path_b, path_a};
    assert_int_equal(open_inputs(&s, inputs, 3), 0);
    check_both_parts(&s);
    assert_non_null(strstr(said, "loaded once\n"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    source_close(&s);
}

static void the_second_part_alone_has_no_arrivals_of_what_began_before(void **state) {
    struct source s;
    char *inputs[] = {path_b};
    assert_int_equal(open_inputs(&s, inputs, 1), 0);
    is(&s, "SELECT COUNT(*) FROM requests", 3);
    is(&s, "SELECT arrivals FROM requests WHERE request = 1 AND itl_absent = 'lost'", 0);
    is(&s, "SELECT e2e_client_ns FROM requests WHERE request = 1", 100000000);
    source_close(&s);
}

static int load(char **args) {
    int n = 0;
    while (args[n]) n++;
    catch_stderr();
    int status = cmd_load(n, args);
    release_stderr();
    return status;
}

static void a_database_is_made_once_and_appended_to(void **state) {
    struct source s;
    struct stat st;
    char *first[] = {(char[]){"load"}, path_a, (char[]){"-o"}, path_db, NULL};
    char *both[] = {(char[]){"load"}, path_a, path_b, (char[]){"--rows"}, (char[]){"-o"}, path_db, NULL};
    char *again[] = {(char[]){"load"}, path_b, (char[]){"--append"}, (char[]){"-o"}, path_db, NULL};
    char *input[] = {path_db};
    assert_int_equal(load(both), 0);
    assert_int_equal(stat(path_db, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(load(first), 2);
    assert_non_null(strstr(said, "exists already"));
    assert_int_equal(open_inputs(&s, input, 1), 0);
    check_both_parts(&s);
    source_close(&s);
    assert_int_equal(load(again), 0);
    assert_non_null(strstr(said, "loaded once"));
    assert_int_equal(open_inputs(&s, input, 1), 0);
    check_both_parts(&s);
    assert_int_not_equal(db_exec(s.db, "DELETE FROM request_facts"), SQLITE_OK);
    source_close(&s);
    unlink(path_db);
}

static void databases_of_others_are_left_alone(void **state) {
    sqlite3 *db;
    struct source s;
    char *append[] = {(char[]){"load"}, path_a, (char[]){"--append"}, (char[]){"-o"}, path_db, NULL};
    char *input[] = {path_db};
    assert_int_equal(sqlite3_open(path_db, &db), SQLITE_OK);
    assert_int_equal(db_exec(db, "CREATE TABLE t (a)"), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(load(append), 2);
    assert_non_null(strstr(said, "database of another program"));
    assert_int_equal(open_inputs(&s, input, 1), 2);
    assert_non_null(strstr(said, "database of another program"));
    unlink(path_db);
}

static void wrong_files_have_one_line_and_their_status(void **state) {
    struct source s;
    char cut[80], missing[80];
    snprintf(cut, sizeof cut, "%s/cut", folder);
    snprintf(missing, sizeof missing, "%s/none.trc", folder);
    char *inputs[] = {path_other, missing, cut};
    assert_int_equal(open_inputs(&s, inputs, 1), 2);
    assert_non_null(strstr(
        said,
        "other.txt: not a trace (begins \"POST /v1/\"); give a .trc, a folder of them, or a .sqlite\n"));
    assert_int_equal(open_inputs(&s, inputs + 1, 1), 2);
    assert_non_null(strstr(said, "no such file"));
    close(create(cut));
    assert_int_equal(open_inputs(&s, inputs + 2, 1), 3);
    assert_non_null(strstr(said, "empty"));
    unlink(cut);
}

/* A trace cut anywhere is read as far as it is whole, or refused; it never crashes and never says 0. */
static void a_trace_cut_at_every_length(void **state) {
    char cut[80];
    static char bytes[1 << 16];
    snprintf(cut, sizeof cut, "%s/cut", folder);
    int fd = open(path_b, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_true(size > 200 && size < (ssize_t)sizeof bytes);
    for (ssize_t n = 0; n < size; n += 7) {
        struct source s;
        char *input[] = {cut};
        fd = create(cut);
        assert_int_equal(write(fd, bytes, (size_t)n), n);
        close(fd);
        int status = open_inputs(&s, input, 1);
        assert_true(status == 3 || status == 2 ||
                    (status == 0 && (s.exit_status == 3 || strstr(said, "not closed"))));
        if (status == 0) source_close(&s);
    }
    unlink(cut);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_in_any_order_are_one_recording),
        cmocka_unit_test(a_folder_gives_its_traces),
        cmocka_unit_test(the_same_part_twice_is_loaded_once_and_said),
        cmocka_unit_test(the_second_part_alone_has_no_arrivals_of_what_began_before),
        cmocka_unit_test(a_database_is_made_once_and_appended_to),
        cmocka_unit_test(databases_of_others_are_left_alone),
        cmocka_unit_test(wrong_files_have_one_line_and_their_status),
        cmocka_unit_test(a_trace_cut_at_every_length),
    };
    return cmocka_run_group_tests(tests, make_traces, remove_traces);
}
