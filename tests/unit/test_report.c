/* Whole screens against golden files, and figures of the report that can be worked out by hand.
 *
 * UPDATE_GOLDEN=1 in the environment rewrites the golden files: look at the difference before it is kept. */
#include "tests/unit/fake_trace_db.h"

#include "analyzer/report_by.h"
#include "analyzer/source.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/test_report_XXXXXX";

static void near(double seen, double right, double tolerance) {
    if (!(fabs(seen - right) <= tolerance)) fail_msg("%.9g, right is %.9g", seen, right);
}

/* A gathered report of the database at path, as the command line options words ask. */
struct opened {
    struct args o;
    struct source s;
    struct report r;
    const char *words[8];
};

static void open_report(struct opened *x, const char *where) {
    static const struct args_spec spec = {"report", OPT_SOURCE, NULL, "", "a trace"};
    memset(x, 0, sizeof *x);
    x->words[0] = "report";
    x->words[1] = "v.trc"; /* the name that is printed; what is read is the database */
    assert_int_equal(args_parse(&x->o, 2, (char **)x->words, &spec), -1);
    x->o.source.where = where;
    x->o.source.quiet = true;
    char *input = path;
    assert_int_equal(source_open(&x->s, &input, 1, &x->o.source), 0);
    assert_int_equal(report_gather(&x->r, x->s.db, &x->o), 0);
}

static void close_report(struct opened *x) {
    report_free(&x->r);
    source_close(&x->s);
}

static void golden(const char *name, const char *text) {
    char file[512], *right;
    snprintf(file, sizeof file, "%s/golden/%s", TEST_SOURCE_DIR, name);
    if (getenv("UPDATE_GOLDEN")) {
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        return;
    }
    FILE *f = fopen(file, "r");
    if (!f) fail_msg("%s is missing", file);
    right = calloc(1, 1 << 20);
    assert_true(fread(right, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    assert_string_equal(text, right);
    free(right);
}

/* Rules of every screen: no line wider than the terminal, no trailing blank, at most 60 lines. */
static void check_shape(const char *text, size_t columns) {
    size_t lines = 0;
    for (const char *p = text; *p; lines++) {
        char line[2048];
        size_t n = strcspn(p, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, p);
        if (show_width(line) > columns) fail_msg("wider than %zu: %s", columns, line);
        if (n && p[n - 1] == ' ') fail_msg("a blank trails: %s|", line);
        p += n + (p[n] == '\n');
    }
    assert_true(lines <= 60);
}

static char *text_of(struct opened *x, struct show_mode m) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_int_equal(report_text(&x->r, x->s.db, &x->o, &m, f), 0);
    fclose(f);
    return text;
}

static void check_text(struct opened *x, struct show_mode m, const char *name) {
    char *text = text_of(x, m);
    check_shape(text, (size_t)m.columns);
    golden(name, text);
    free(text);
}

static void a_busy_trace_prints_as_its_golden_screens(void **unused) {
    struct opened x;
    fake_db_busy(path);
    open_report(&x, NULL);
    check_text(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"}, "report_busy_100.txt");
    check_text(&x, (struct show_mode){.utf8 = true, .columns = 76, .zone = "UTC"}, "report_busy_76.txt");
    check_text(&x, (struct show_mode){.utf8 = false, .columns = 100, .zone = "UTC"}, "report_busy_ascii.txt");
    char *narrow = text_of(&x, (struct show_mode){.utf8 = true, .columns = 60, .zone = "UTC"});
    assert_null(strstr(narrow, "95 % of p99")); /* the interval goes after from -> to */
    free(narrow);
    close_report(&x);
}

static void few_requests_are_rows_of_their_own(void **unused) {
    struct opened x;
    fake_db_few(path);
    open_report(&x, NULL);
    check_text(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"}, "report_few_100.txt");
    close_report(&x);
}

static void json_csv_and_markdown_are_as_golden(void **unused) {
    struct opened x;
    char *text = NULL;
    size_t size = 0;
    fake_db_busy(path);
    open_report(&x, NULL);
    FILE *f = open_memstream(&text, &size);
    report_json(&x.r, f);
    fclose(f);
    golden("report_busy.json", text);
    free(text);
    f = open_memstream(&text, &size);
    report_csv(&x.r, f);
    fclose(f);
    golden("report_busy.csv", text);
    free(text);
    f = open_memstream(&text, &size);
    report_markdown(&x.r, x.s.db, &x.o, &(struct show_mode){.zone = "UTC"}, f);
    fclose(f);
    golden("report_busy.md", text);
    free(text);
    close_report(&x);
}

/* Colour says nothing by itself: without its codes the text is the same. */
static void colour_changes_no_word(void **unused) {
    struct opened x;
    fake_db_busy(path);
    open_report(&x, NULL);
    char *plain = text_of(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"});
    char *coloured =
             text_of(&x, (struct show_mode){.utf8 = true, .colour = true, .columns = 100, .zone = "UTC"}),
         *to = coloured;
    assert_non_null(strstr(coloured, "\033[1;31mLOST\033[0m"));
    for (char *c = coloured; *c; c++) {
        if (*c == '\033')
            c += strcspn(c, "m");
        else
            *to++ = *c;
    }
    *to = 0;
    assert_string_equal(plain, coloured);
    free(plain);
    free(coloured);
    close_report(&x);
}

/* By the rules in fake_trace_db.c. 400 requests: i mod 50 = 7 fails (8), i mod 97 = 5 leaves (5, 102, 199,
 * 296, 393), 400 runs: 386 ok. Of the ok i mod 20 = 3 (20) are not streamed: 366 with ttft. Gaps are 40 to 50
 * ms of 2 tokens. */
static void figures_are_those_worked_out_by_hand(void **unused) {
    struct opened x;
    fake_db_busy(path);
    open_report(&x, NULL);
    const struct report *r = &x.r;
    size_t p99 = report_percentile(r, .99);
    assert_int_equal(r->n, 400);
    assert_int_equal(r->n_other, 12);
    assert_int_equal(r->by_outcome[OUTCOME_ok], 386);
    assert_int_equal(r->by_outcome[OUTCOME_http_error], 8);
    assert_int_equal(r->by_outcome[OUTCOME_client_abort], 5);
    assert_int_equal(r->by_outcome[OUTCOME_in_flight], 1);
    assert_int_equal(r->with_tokens, 366);
    assert_int_equal(r->not_streamed, 20);
    const struct summary *itl = report_find(r, "itl"), *gap = report_find(r, "chunk_gap"),
                         *ttft = report_find(r, "ttft_server");
    assert_int_equal(ttft->n, 366);
    assert_int_equal(itl->n, 366 * 62);
    assert_int_equal(gap->n, 366 * 31);
    near(gap->max, 50, 1e-9);
    near(itl->min, 20, 1e-9);
    near(itl->mean, gap->mean / 2, 1e-9); /* equal k: the same mean a token */
    near(report_find(r, "itl_burst")->mean, itl->mean, 1e-9);
    near(r->tokens_per_arrival, 2, 1e-9);
    assert_true(isinf(ttft->p_all[p99])); /* 8 of 394 that could have it never got it: above 1 % */
    near(r->through.window_s, 205, 1e-9); /* one is in flight: to the trace's end */
    near(r->through.output / r->through.window_s, 386 * 64 / 205.0, 1e-9);
    assert_int_equal(report_find(r, "itl_prorated")->n, 0);
    assert_int_equal(r->cache[CACHE_hit].n + r->cache[CACHE_miss].n, 366);
    near(r->cache[CACHE_hit].cached / r->cache[CACHE_hit].prompt_of_cached, .6, 1e-12);
    close_report(&x);
}

static struct fake_request plain(double at_s, double ttft_ms, double end_ms) {
    static struct fake_arrival a[64][2];
    static int used;
    struct fake_arrival *mine = a[used++ % 64];
    mine[0] = (struct fake_arrival){ttft_ms, 1, 0};
    mine[1] = (struct fake_arrival){end_ms - 1, 1, 0};
    return (struct fake_request){.at_s = at_s,
                                 .api = "openai-chat",
                                 .path = "/v1/chat/completions",
                                 .model = "m",
                                 .end_by = "complete",
                                 .status = 200,
                                 .streamed = 1,
                                 .ended = 1,
                                 .finished = 1,
                                 .forwarded = 0,
                                 .first_byte = 1,
                                 .end = end_ms,
                                 .intended = -1,
                                 .prompt = 10,
                                 .cached = -1,
                                 .output = 2,
                                 .attempt = 1,
                                 .load = -1,
                                 .prefill = -1,
                                 .drafted = -1,
                                 .accepted = -1,
                                 .steps = -1,
                                 .token_source = "running_usage",
                                 .grade = "exact",
                                 .arrivals = mine,
                                 .n_arrivals = 2};
}

static void finish(sqlite3 *db) {
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Example 10: A 10 steps, 30 of 30; B 90 steps, 45 of 270. Pooled 1 + 75 / 100 and 75 / 300. */
static void speculation_is_pooled_and_per_request(void **unused) {
    struct opened x;
    sqlite3 *db = fake_db_new(path, 10);
    struct fake_request a = plain(0, 10, 100), b = plain(1, 10, 100);
    a.drafted = 30, a.accepted = 30, a.steps = 10;
    b.drafted = 270, b.accepted = 45, b.steps = 90;
    fake_db_add(db, 1, &a);
    fake_db_add(db, 2, &b);
    finish(db);
    open_report(&x, NULL);
    near(x.r.spec.length_pooled, 1.75, 1e-12);
    near(x.r.spec.length_median, 2.75, 1e-12); /* of two: their mean */
    near(x.r.spec.rate_pooled, .25, 1e-12);
    near(x.r.spec.rate_median, .58333333, 1e-8);
    close_report(&x);
}

/* Examples 11 and 16: ten requests that end every 0.1 s from 0.5 s on, ttft 100, 200 ... 1000. */
static void rates_leave_the_first_end_out(void **unused) {
    struct opened x;
    sqlite3 *db = fake_db_new(path, 10);
    for (int i = 0; i < 10; i++) {
        struct fake_request f = plain(.4 - .05 * i + .1 * i - .35, 100 * (i + 1), 100 * (i + 1) + 2);
        f.at_s = 0;
        f.end = 500 + 100 * i;
        f.arrivals = NULL;
        f.n_arrivals = 0;
        fake_db_add(db, i + 1, &f);
    }
    finish(db);
    open_report(&x, NULL);
    near(x.r.through.completion_rate, 10, 1e-9);
    near(x.r.through.completed, 10, 0);
    near(x.r.through.window_s, 1.4, 1e-9);
    assert_int_equal(x.r.through.highest_concurrency, 10);
    close_report(&x);
}

/* Examples 12 and 13 through the database: two of ten have no token. */
static void tails_count_who_never_got_a_token(void **unused) {
    for (int abort = 0; abort < 2; abort++) {
        struct opened x;
        sqlite3 *db = fake_db_new(path, 10);
        for (int i = 0; i < 10; i++) {
            struct fake_request f = plain(.1 * i, 100 * (i + 1), 100 * (i + 1) + 2);
            if (i >= 8) {
                f.n_arrivals = 0, f.finished = 0, f.output = -1, f.status = -1, f.first_byte = -1;
                f.end_by = abort ? "client_fin" : "upstream_reset";
                f.end = i == 8 ? 150 : 450;
            }
            fake_db_add(db, i + 1, &f);
        }
        finish(db);
        open_report(&x, NULL);
        const struct summary *s = report_find(&x.r, "ttft_client");
        size_t p50 = report_percentile(&x.r, .5), p90 = report_percentile(&x.r, .9);
        near(s->p[p90], 730, 1e-9);
        near(s->p_all[p50], 500, 0);
        if (abort)
            near(s->p_all[p90], 800, 0);
        else
            assert_true(isinf(s->p_all[p90]));
        close_report(&x);
    }
}

/* i mod 5 < 3 are hits, where the request is ok. */
static void groups_are_of_the_values_of_columns(void **unused) {
    struct opened x;
    struct groups g;
    char *text = NULL;
    size_t size = 0;
    fake_db_busy(path);
    open_report(&x, NULL);
    assert_int_equal(groups_read(&g, &x.r, x.s.db, "outcome"), 0);
    assert_int_equal(g.n, 4);
    assert_string_equal(g.v[0].values[0], "ok");
    assert_int_equal(g.v[0].n, 386);
    size_t hits = 0;
    for (int i = 1; i <= 400; i++) hits += i % 5 < 3 && i % 50 != 7 && i % 97 != 5 && i != 400;
    assert_int_equal(g.v[0].hits, hits);
    near(g.v[0].s[GROUP_TTFT].max, report_find(&x.r, "ttft_server")->max, 0);
    groups_free(&g);
    assert_int_equal(groups_read(&g, &x.r, x.s.db, "hit_band,outcome"), 0);
    const struct show_mode m = {.utf8 = true, .columns = 100, .zone = "UTC"};
    FILE *f = open_memstream(&text, &size);
    assert_int_equal(groups_text(&g, &(struct page){&x.r, x.s.db, &x.o, &m, f}), 0);
    fclose(f);
    check_shape(text, 100);
    golden("report_by_100.txt", text);
    free(text);
    groups_free(&g);
    assert_int_equal(groups_read(&g, &x.r, x.s.db, "modle"), 2);
    groups_free(&g);
    close_report(&x);
}

/* Two tokens by guess must not move what is exact. */
static void grades_are_never_pooled(void **unused) {
    struct opened x;
    sqlite3 *db = fake_db_new(path, 100);
    for (int i = 0; i < 30; i++) {
        struct fake_request f = plain(i, 10, i % 3 == 0 ? 1011 : 111);
        if (i % 3 == 0) f.grade = "prorated", f.token_source = "prorated";
        fake_db_add(db, i + 1, &f);
    }
    finish(db);
    open_report(&x, NULL);
    near(report_find(&x.r, "itl")->max, 100, 1e-9);
    near(report_find(&x.r, "itl_prorated")->min, 1000, 1e-9);
    near(report_find(&x.r, "tpot_prorated")->grade_share, 10 / 30.0, 1e-9);
    assert_int_equal(report_find(&x.r, "chunk_gap")->n, 30);
    assert_int_equal(x.r.stalls.gaps, 10); /* above 5 times the median gap of the model (100) and 200 ms */
    char *text = text_of(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"});
    assert_non_null(strstr(text, " itl_prorated 33.3 %"));
    free(text);
    close_report(&x);
}

static void a_report_of_nothing_says_why(void **unused) {
    static const struct {
        const char *where, *says;
    } c[] = {{"request > 1000", "0 requests: --where, --from, --to or --last leave out all 412 of the trace"},
             {"generation = 0", "0 generations: all 12 requests are other (/health, /v1/models)"}};
    for (int i = 0; i < 2; i++) {
        struct opened x;
        fake_db_busy(path);
        open_report(&x, c[i].where);
        char *text = text_of(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"});
        if (!strstr(text, c[i].says)) fail_msg("%s", text);
        free(text);
        close_report(&x);
    }
    struct opened x;
    finish(fake_db_new(path, 10));
    open_report(&x, NULL);
    char *text = text_of(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"});
    assert_non_null(strstr(text, "nothing came in while this was recorded"));
    free(text);
    close_report(&x);
}

/* A name from traffic with terminal codes and a shell's characters does nothing on the screen. */
static void names_from_traffic_are_escaped(void **unused) {
    struct opened x;
    sqlite3 *db = fake_db_new(path, 10);
    struct fake_request f = plain(0, 10, 100);
    f.model = "evil\033[2J\xe2\x80\xae";
    f.user_agent = "\033]0;title\007";
    fake_db_add(db, 1, &f);
    finish(db);
    open_report(&x, NULL);
    char *text = text_of(&x, (struct show_mode){.utf8 = true, .columns = 100, .zone = "UTC"});
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_non_null(strstr(text, "evil\\x1b"));
    free(text);
    close_report(&x);
}

static int make_path(void **unused) {
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **unused) {
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_trace_prints_as_its_golden_screens),
        cmocka_unit_test(few_requests_are_rows_of_their_own),
        cmocka_unit_test(json_csv_and_markdown_are_as_golden),
        cmocka_unit_test(colour_changes_no_word),
        cmocka_unit_test(figures_are_those_worked_out_by_hand),
        cmocka_unit_test(speculation_is_pooled_and_per_request),
        cmocka_unit_test(rates_leave_the_first_end_out),
        cmocka_unit_test(tails_count_who_never_got_a_token),
        cmocka_unit_test(groups_are_of_the_values_of_columns),
        cmocka_unit_test(grades_are_never_pooled),
        cmocka_unit_test(a_report_of_nothing_says_why),
        cmocka_unit_test(names_from_traffic_are_escaped),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
