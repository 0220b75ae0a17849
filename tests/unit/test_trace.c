/* What goes in comes out: every kind of row with its extremes, through the writer, the file and the reader.
 */
#include "tests/unit/test_trace_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a text but those of blocks and open lines, sorted: what was told, without where. */
static char *sorted_lines(const char *text) {
    char *copy = strdup(text), *save = NULL, **lines = malloc(sizeof *lines * (strlen(text) + 1));
    size_t n = 0, size = 1;
    for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        if (strncmp(l, "block ", 6) == 0 || strncmp(l, "open ", 5) == 0) continue;
        lines[n++] = l;
        size += strlen(l) + 1;
    }
    qsort(lines, n, sizeof *lines, by_text);
    char *out = calloc(1, size), *to = out;
    for (size_t i = 0; i < n; i++) to += sprintf(to, "%s\n", lines[i]);
    free(lines);
    free(copy);
    return out;
}

static char *all_told(const struct told *t) {
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    for (int i = 0; i < TOLD_BLOCKS; i++)
        if (t->block[i]) fputs(t->block[i], out);
    fclose(out);
    return text;
}

/* Rows go to the writer and, as they should come back, to a text. */
struct both {
    struct trw *w;
    struct told want;
    int fd;
    struct trw_state state;
};

static void both_open(struct both *b) {
    memset(b, 0, sizeof *b);
    b->fd = tools_file();
    b->w = tools_open(b->fd, &b->state);
    told_block(&b->want, 1, 0, 0);
}

/* Closes and compares. */
static void both_close(struct both *b) {
    struct told got;
    assert_int_equal(trw_close(b->w), 0);
    told_close_block(&b->want);
    assert_int_equal(told_fd(&got, b->fd), TRR_SEALED);
    char *got_text = all_told(&got), *a = sorted_lines(b->want.block[1]), *c = sorted_lines(got_text);
    assert_string_equal(a, c);
    free(got_text);
    free(a);
    free(c);
    told_free(&got);
    told_free(&b->want);
    close(b->fd);
}

static int64_t to_100ns(int64_t ns) {
    return from_tick(to_tick(ns));
}

static void both_event(struct both *b, struct tok_event e) {
    trw_event(b->w, &e);
    e.t_ns = to_100ns(e.t_ns);
    told_events(&b->want, e.request, &e, 1);
}
static void both_int(struct both *b, uint64_t id, enum fact f, int64_t v) {
    trw_int(b->w, id, f, v);
    told_int(&b->want, id, f, fact_infos[f].type == FACT_TIME ? to_100ns(v) : v);
}
static void both_str(struct both *b, uint64_t id, enum fact f, const char *p, size_t n) {
    trw_str(b->w, id, f, p, n);
    told_str(&b->want, id, f, p, n);
}
static void both_begin(struct both *b, enum subject s, uint64_t id) {
    trw_begin(b->w, s, id);
    told_begin(&b->want, s, id, false);
}
static void both_end(struct both *b, enum subject s, uint64_t id) {
    trw_end(b->w, s, id);
    told_end(&b->want, s, id);
}

static const int64_t extremes[] = {INT64_MIN,
                                   INT64_MIN + 1,
                                   -100,
                                   -99,
                                   -1,
                                   0,
                                   1,
                                   99,
                                   100,
                                   127,
                                   128,
                                   255,
                                   256,
                                   65535,
                                   65536,
                                   INT32_MAX,
                                   (int64_t)UINT32_MAX + 1,
                                   INT64_MAX - 1,
                                   INT64_MAX};
#define N_EXTREMES (sizeof extremes / sizeof *extremes)

static void facts_come_back(void **unused) {
    struct both b;
    char text[FACT_STR_MAX];
    memset(text, 'x', sizeof text);
    both_open(&b);
    both_begin(&b, SUBJECT_R, 7);
    both_begin(&b, SUBJECT_C, UINT64_MAX);
    both_begin(&b, SUBJECT_R, 3);
    for (size_t i = 0; i < N_EXTREMES; i++) {
        both_int(&b, 7, F_prompt_tokens, extremes[i]);
        both_int(&b, 3, F_t_arrive_ns, extremes[i]);
        both_int(&b, UINT64_MAX, F_bytes_up, extremes[i]);
        both_int(&b, 0, F_bytes_forwarded, extremes[i]);
    }
    static const double reals[] = {0, -0.0, 1e-310, DBL_MAX, -DBL_MIN, INFINITY, 0.1};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        trw_real(b.w, 7, F_temperature, reals[i]);
        told_real(&b.want, 7, F_temperature, reals[i]);
    }
    both_str(&b, 7, F_model, "", 0);
    both_str(&b, 7, F_path, "/v1/chat/completions", 20);
    both_str(&b, 3, F_path, "/v1/chat/completions", 20);
    both_str(&b, 3, F_user_agent, text, sizeof text);
    both_str(&b, 3, F_user_agent, text, sizeof text - 1);
    both_end(&b, SUBJECT_R, 7);
    both_end(&b, SUBJECT_C, UINT64_MAX);
    both_close(&b);
}

static void every_fact_of_the_catalogue_comes_back(void **unused) {
    struct both b;
    both_open(&b);
    for (int f = 0; f < N_FACTS; f++) {
        uint64_t id = fact_infos[f].subject == SUBJECT_T ? 0 : 5;
        switch (fact_infos[f].type) {
        case FACT_STR: both_str(&b, id, (enum fact)f, fact_infos[f].name, strlen(fact_infos[f].name)); break;
        case FACT_REAL:
            trw_real(b.w, id, (enum fact)f, f * 0.5);
            told_real(&b.want, id, (enum fact)f, f * 0.5);
            break;
        case FACT_SPAN:
            trw_span(b.w, id, (enum fact)f, f * 1000, f * 2000, -f);
            told_span(&b.want, id, (enum fact)f, f * 1000, f * 2000, -f);
            break;
        default: both_int(&b, id, (enum fact)f, f * 100);
        }
    }
    both_close(&b);
}

static void losses_anchors_and_distributions_come_back(void **unused) {
    struct both b;
    struct hist *h = calloc(1, sizeof *h);
    both_open(&b);
    for (int l = 0; l < N_LOSSES; l++) {
        trw_loss(b.w, (enum loss)l, -5000, 12300 * l, UINT64_MAX, (uint64_t)l, 9);
        told_loss(&b.want, (enum loss)l, -5000, 12300 * l, UINT64_MAX, (uint64_t)l, 9);
    }
    for (size_t i = 0; i < N_EXTREMES; i++) {
        trw_anchor(b.w, extremes[i], extremes[N_EXTREMES - 1 - i], 35);
        told_anchor(&b.want, extremes[i], extremes[N_EXTREMES - 1 - i], 35);
    }
    for (int name = 0; name < N_HISTS; name++) {
        for (int i = 0; i < 60; i++) hist_add(h, (INT64_C(1) << i) + name, 77);
        trw_hist(b.w, (enum hist_name)name, h);
        told_hist(&b.want, (enum hist_name)name, h);
    }
    free(h);
    both_close(&b);
}

static void events_with_extreme_fields_come_back(void **unused) {
    struct both b;
    both_open(&b);
    both_begin(&b, SUBJECT_R, 12);
    for (size_t i = 0; i < N_EXTREMES; i++)
        for (size_t j = 0; j < N_EXTREMES; j++) {
            struct tok_event e = {.request = (uint64_t)extremes[j],
                                  .t_ns = extremes[i],
                                  .read = (uint64_t)extremes[(i + j) % N_EXTREMES],
                                  .choice = (uint32_t)extremes[i],
                                  .what = TOK_ALL,
                                  .text_bytes = (uint32_t)extremes[j],
                                  .wire_bytes = (uint32_t)extremes[(i + 2 * j) % N_EXTREMES],
                                  .running = extremes[(3 * i + j) % N_EXTREMES],
                                  .ids = (int32_t)extremes[i],
                                  .logprobs = (int32_t)extremes[j]};
            both_event(&b, e);
        }
    both_close(&b);
}

/* Streams as they are: interleaved, some events sharing a read, choices, running totals, over many blocks. */
static void streams_come_back_over_many_blocks(void **unused) {
    struct both b;
    unsigned r = 1;
    both_open(&b);
    for (uint64_t id = 40; id > 0; id--) both_begin(&b, SUBJECT_R, id * 5);
    struct tok_event e[41];
    for (uint64_t id = 1; id <= 40; id++) e[id] = tools_event(id * 5, 5000000000 + (int64_t)id * 1000, 1);
    for (int i = 0; i < 4000; i++) {
        uint64_t id = 1 + (r = r * 1103515245 + 12345) / 65536 % 40;
        e[id].read += r >> 7 & 1;
        e[id].t_ns += (r >> 7 & 1) * (r >> 5);
        e[id].choice = id % 7 == 0 ? r >> 9 & 3 : 0;
        e[id].running = id % 3 == 0 ? (e[id].running < 0 ? 1 : e[id].running + 1) : -1;
        e[id].ids = id % 5 == 0 ? 1 + (int)(r >> 11 & 1) : -1;
        e[id].what = i % 500 == 499 ? TOK_FINISH | TOK_STOP : TOK_REASONING;
        e[id].text_bytes = r >> 13 & 15;
        e[id].wire_bytes = e[id].text_bytes + 180 + (r >> 17 & 1);
        both_event(&b, e[id]);
        if (i % 300 == 299) trw_flush(b.w);
        if (i == 2000) both_end(&b, SUBJECT_R, 25);
    }
    both_close(&b);
}

static void ten_thousand_open_requests_have_their_lines(void **unused) {
    enum { OPEN = 10000 };
    struct told got;
    struct trw_state state = {0};
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    for (uint64_t id = OPEN; id > 0; id--) {
        struct tok_event e = tools_event(id, (int64_t)id * 1000, 1);
        trw_begin(w, SUBJECT_R, id);
        if (id % 2) trw_event(w, &e);
    }
    trw_begin(w, SUBJECT_C, 1);
    trw_flush(w);
    trw_end(w, SUBJECT_R, 500);
    trw_flush(w);
    trw_end(w, SUBJECT_R, 501);
    assert_int_equal(trw_close(w), 0);
    assert_int_equal(told_fd(&got, fd), TRR_SEALED);
    /* The block before the last has all of them, the last one without 500. */
    const char *all = got.block[got.n_blocks - 1], *last = got.block[got.n_blocks];
    size_t n = 0;
    for (const char *p = all; (p = strstr(p, "\nopen ")); p++) n++;
    assert_int_equal(n, OPEN);
    assert_non_null(strstr(all, "\nopen 499 1 499000\n"));
    assert_non_null(strstr(all, "\nopen 500 0 0\n"));
    assert_null(strstr(last, "\nopen 500 "));
    assert_non_null(strstr(last, "\nopen 501 1 501000\n"));
    told_free(&got);
    close(fd);
}

static void a_long_text_is_cut_at_a_character_and_counted(void **unused) {
    char text[FACT_STR_MAX + 100];
    struct told got;
    struct trw_state state = {0};
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    memset(text, 'a', sizeof text);
    memcpy(text + FACT_STR_MAX - 1, "\xe2\x82\xac", 3); /* a character over the border */
    trw_str(w, 1, F_model, text, sizeof text);
    assert_int_equal(trw_close(w), 0);
    assert_int_equal(told_fd(&got, fd), TRR_SEALED);
    assert_non_null(strstr(got.block[1], "model 1 1023:aaa"));
    assert_int_equal(got.loss_count[LOSS_fact_cut], 1);
    told_free(&got);
    close(fd);
}

static void the_head_comes_back(void **unused) {
    enum trr_state s;
    char err[200], path[64];
    struct trw_state state = {.part = 3};
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    assert_int_equal(trw_close(w), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct trr *r = trr_open(path, &s, err, sizeof err);
    assert_non_null(r);
    const struct trr_head *h = trr_head(r);
    assert_int_equal(h->part, 3);
    assert_int_equal(h->format, 1);
    assert_int_equal(h->n_pairs, 2);
    assert_string_equal(h->pairs[0], "host");
    assert_string_equal(h->pairs[1], "unit");
    assert_string_equal(h->pairs[3], "");
    assert_memory_equal(h->recording, state.recording, 16);
    assert_int_equal(h->recording[6] >> 4, 4);
    trr_close(r);
    close(fd);
}

static void a_window_leaves_other_blocks_out(void **unused) {
    struct trw_state state = {0};
    struct told got = {0};
    enum trr_state s;
    char err[200], path[64];
    int fd = tools_file();
    struct trw *w = tools_open(fd, &state);
    for (int i = 1; i <= 10; i++) {
        struct tok_event e = tools_event(1, i * INT64_C(1000000), (uint64_t)i);
        trw_event(w, &e);
        trw_flush(w);
    }
    assert_int_equal(trw_close(w), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct trr *r = trr_open(path, &s, err, sizeof err);
    assert_int_equal(trr_read(r, 4000000, 6000000, &told_ops, &got), TRR_SEALED);
    told_close_block(&got);
    assert_int_equal(got.n_blocks, 3);
    assert_non_null(got.block[4]);
    assert_non_null(got.block[6]);
    struct trr_totals t;
    trr_totals(r, &t);
    assert_int_equal(t.blocks, 10);
    assert_int_equal(t.first_ns, 1000000);
    assert_int_equal(t.last_ns, 10000000);
    assert_int_equal(t.good_bytes, t.file_bytes);
    trr_close(r);
    told_free(&got);
    close(fd);
}

static enum trr_state open_state(const char *path) {
    enum trr_state s = TRR_SEALED;
    char err[200] = "";
    struct trr *r = trr_open(path, &s, err, sizeof err);
    assert_null(r);
    assert_true(err[0]);
    return s;
}

static void what_is_no_trace_is_told_apart(void **unused) {
    char dir[] = "/tmp/test_trace.XXXXXX", path[100], err[200];
    enum trr_state s;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(open_state(dir), TRR_IO);
    snprintf(path, sizeof path, "%s/none", dir);
    assert_int_equal(open_state(path), TRR_IO);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_state(path), TRR_IO);
    unlink(path);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(open_state(path), TRR_EMPTY);
    assert_int_equal(write(fd, "SQLite format 3", 16), 16);
    assert_int_equal(open_state(path), TRR_FOREIGN);
    assert_null(trr_open(path, &s, err, sizeof err));
    assert_non_null(strstr(err, "53 51 4c 69")); /* the first bytes are shown */
    if (geteuid() != 0) {
        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(open_state(path), TRR_IO);
    }
    close(fd);
    unlink(path);
    rmdir(dir);
    assert_int_equal(open_state("/dev/null"), TRR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_come_back),
        cmocka_unit_test(every_fact_of_the_catalogue_comes_back),
        cmocka_unit_test(losses_anchors_and_distributions_come_back),
        cmocka_unit_test(events_with_extreme_fields_come_back),
        cmocka_unit_test(streams_come_back_over_many_blocks),
        cmocka_unit_test(ten_thousand_open_requests_have_their_lines),
        cmocka_unit_test(a_long_text_is_cut_at_a_character_and_counted),
        cmocka_unit_test(the_head_comes_back),
        cmocka_unit_test(a_window_leaves_other_blocks_out),
        cmocka_unit_test(what_is_no_trace_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
