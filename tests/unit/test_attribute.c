/* Tokens of events and arrivals: tables of events with what each must become. */
#include "analyzer/attribute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T   TOK_CONTENT
#define R   TOK_REASONING
#define FIN (TOK_FINISH | TOK_STOP)
#define MS  1000000

/* One event: ms, what, bytes, running, ids, logprobs; reads and choices are told apart. */
struct ev {
    int t_ms;
    uint32_t what, bytes;
    int64_t running;
    int32_t ids, logprobs;
    uint32_t choice;
};

#define TEXT(ms, n)                                                                                          \
    { ms, T, n, -1, -1, -1, 0 }
#define FINISH(ms)                                                                                           \
    { ms, FIN, 0, -1, -1, -1, 0 }
#define RUN(ms, what, n, c)                                                                                  \
    { ms, what, n, c, -1, -1, 0 }

static struct attribute_facts facts(void) {
    return (struct attribute_facts){.t_end_ns = ATTRIBUTE_NONE,
                                    .cut_ns = ATTRIBUTE_NONE,
                                    .t_first_summary_ns = ATTRIBUTE_NONE,
                                    .output_tokens_told = ATTRIBUTE_NONE,
                                    .reasoning_tokens = ATTRIBUTE_NONE,
                                    .reasoning_bytes = ATTRIBUTE_NONE,
                                    .rejected_prediction_tokens = ATTRIBUTE_NONE,
                                    .streamed = true,
                                    .window_ns = MS};
}

static struct attributor attributor;
static struct attribute_events events;

static struct attribution run(const struct ev *e, size_t n, const struct attribute_facts *f) {
    struct attribution a;
    attribute_free(&events);
    for (size_t i = 0; i < n; i++) {
        struct tok_event t = {.t_ns = (int64_t)e[i].t_ms * MS,
                              .read = (uint64_t)e[i].t_ms,
                              .choice = e[i].choice,
                              .what = e[i].what,
                              .text_bytes = e[i].bytes,
                              .wire_bytes = 10,
                              .running = e[i].running,
                              .ids = e[i].ids,
                              .logprobs = e[i].logprobs};
        assert_true(attribute_push(&events, &t, 1));
    }
    assert_true(attribute(&attributor, &events, f, &a));
    return a;
}
#define RUN_EVENTS(list, f) run(list, sizeof(list) / sizeof *(list), f)

static void is(const struct attribution *a, const char *source, const char *grade, const uint32_t *tokens,
               size_t n) {
    const char *seen = token_source_name(a->source);
    assert_non_null(seen);
    assert_string_equal(seen, source);
    assert_string_equal(a->grade, grade);
    assert_int_equal(a->n_arrivals, n);
    for (size_t i = 0; i < n; i++)
        if (a->arrivals[i].tokens != tokens[i])
            fail_msg("arrival %zu has %u tokens, right is %u", i, a->arrivals[i].tokens, tokens[i]);
}
#define IS(a, source, grade, ...)                                                                            \
    do {                                                                                                     \
        static const uint32_t right[] = {__VA_ARGS__};                                                       \
        is(a, source, grade, right, sizeof right / sizeof *right);                                           \
    } while (0)

/* ---- rule 5 */

struct prorated {
    const char *title;
    int64_t total;
    int n;
    uint32_t bytes[8], tokens[8];
};

static void prorated_totals(void **state) {
    static const struct prorated cases[] = {
        {"equal texts, ties to the earlier", 13, 4, {1, 1, 1, 1}, {4, 3, 3, 3}},
        {"two equal texts", 15, 2, {9, 9}, {8, 7}},
        {"fewer tokens than events", 3, 5, {1, 9, 9, 9, 9}, {1, 0, 1, 1, 0}},
        {"no bytes at all: events weigh the same", 5, 2, {0, 0}, {3, 2}},
        {"azure-chat.sse", 9, 2, {21, 17}, {5, 4}},
        {"openai-chat-tools-stream.sse", 15, 6, {11, 2, 4, 3, 5, 2}, {5, 2, 2, 2, 3, 1}},
        {"sglang-chat-stream.sse", 8, 4, {3, 8, 12, 1}, {2, 2, 3, 1}},
        {"openrouter-chat.sse", 5, 3, {5, 4, 10}, {2, 1, 2}},
        {"sse-framing-torture.sse", 9, 4, {2, 9, 4, 14}, {1, 3, 2, 3}},
        {"vllm-stream-interval.sse", 12, 4, {4, 19, 16, 7}, {2, 4, 4, 2}},
        {"a total as large as is believed", 2147483647, 2, {1, 1}, {1073741824, 1073741823}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ev e[9];
        uint32_t right[8];
        size_t n = 0;
        for (int j = 0; j < cases[i].n; j++) {
            e[j] = (struct ev)TEXT(10 * j, cases[i].bytes[j]);
            if (cases[i].tokens[j]) right[n++] = cases[i].tokens[j];
        }
        e[cases[i].n] = (struct ev)FINISH(900);
        struct attribute_facts f = facts();
        f.output_tokens_told = cases[i].total;
        struct attribution a = run(e, (size_t)cases[i].n + 1, &f);
        print_message("  %s\n", cases[i].title);
        is(&a, "prorated", "prorated", right, n);
    }
}

static void a_stop_token_arrives_with_the_finish(void **state) {
    static const struct ev e[] = {TEXT(10, 4), TEXT(20, 4), FINISH(35), FINISH(40)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 3;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "exact", 1, 1, 1);
    assert_int_equal(a.arrivals[2].t_ns, 35 * MS);
    assert_int_equal(a.arrivals[2].events, 0);
    assert_int_equal(a.token_events, 2);
}

static void length_finish_has_no_stop_token(void **state) {
    static const struct ev e[] = {TEXT(10, 4), TEXT(20, 4), {30, TOK_FINISH, 0, -1, -1, -1, 0}};
    struct attribute_facts f = facts();
    f.output_tokens_told = 3;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "prorated", 2, 1);
}

static void a_stop_with_text_has_no_token_of_its_own(void **state) {
    static const struct ev e[] = {TEXT(10, 4), {20, T | FIN, 4, -1, -1, -1, 0}};
    struct attribute_facts f = facts();
    f.output_tokens_told = 2;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "exact", 1, 1);
}

static void an_absurd_total_is_kept_and_not_shared(void **state) {
    static const struct ev e[] = {TEXT(10, 4), TEXT(20, 4)};
    struct attribute_facts f = facts();
    f.output_tokens_told = INT64_MAX;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "events", "events", 1, 1);
    assert_int_equal(a.output_tokens, INT64_MAX);
    f.output_tokens_told = 0;
    a = RUN_EVENTS(e, &f);
    IS(&a, "events", "events", 1, 1);
    assert_int_equal(a.output_tokens, 0);
}

static void nothing_told_counts_events(void **state) {
    static const struct ev e[] = {TEXT(10, 4), TEXT(20, 4), FINISH(30)};
    struct attribute_facts f = facts();
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "events", "events", 1, 1);
    assert_int_equal(a.output_tokens, 2);
    assert_int_equal(a.token_mismatch, ATTRIBUTE_NONE);
}

/* ---- running counts */

static void a_running_count_bears_where_it_rises(void **state) {
    /* text without a rise bears none, a rise without text bears */
    static const struct ev e[] = {RUN(10, T, 3, 0), RUN(20, T, 3, 1), RUN(30, T, 3, 1), RUN(40, 0, 0, 3),
                                  RUN(50, FIN, 0, 4)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 4;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "running_usage", "exact", 1, 2, 1);
    assert_int_equal(a.t_first_token_ns, 20 * MS);
}

static void a_count_that_starts_late_is_a_total(void **state) {
    static const struct ev e[] = {RUN(10, T, 3, 0), RUN(20, T, 3, 0), RUN(30, T, 3, 5)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 3;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "exact", 1, 1, 1);
}

static void a_count_that_one_text_lacks_is_a_total(void **state) {
    static const struct ev e[] = {RUN(10, T, 3, 1), RUN(20, T, 3, -1), RUN(30, T, 3, 5)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 3;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "exact", 1, 1, 1);
}

static void running_counts_are_kept_per_choice(void **state) {
    static const struct ev e[] = {{10, T, 3, 1, -1, -1, 0},
                                  {20, T, 3, 2, -1, -1, 1},
                                  {30, T, 3, 4, -1, -1, 0},
                                  {40, T, 3, 3, -1, -1, 1},
                                  {50, 0, 0, 7, -1, -1, 0}};
    struct attribute_facts f = facts();
    f.output_tokens_told = 7; /* said under choice 0 at the end: the total of both */
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "running_usage", "exact", 1, 3, 2, 1);
    assert_int_equal(a.arrivals[1].choice, 0);
    assert_int_equal(a.arrivals[2].choice, 1);
    assert_int_equal(a.token_mismatch, ATTRIBUTE_NONE);
}

/* ---- other sources */

static void token_ids_come_first(void **state) {
    static const struct ev e[] = {{10, T, 3, 1, 1, 1, 0}, {20, T, 3, 2, 3, 1, 0}, {30, FIN, 0, 2, 1, -1, 0}};
    struct attribute_facts f = facts();
    f.output_tokens_told = 9;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "token_ids", "exact", 1, 3, 1);
    assert_int_equal(a.output_tokens, 9);
    assert_int_equal(a.token_mismatch, 4);
}

static void a_contract_is_one_token_an_event(void **state) {
    static const struct ev e[] = {{10, T | TOK_CONTRACT, 3, -1, -1, -1, 0},
                                  {20, TOK_CONTRACT | FIN, 0, -1, -1, -1, 0}};
    struct attribute_facts f = facts();
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "engine_event", "exact", 1, 1);
    assert_int_equal(a.output_tokens, 2);
}

static void logprobs_count_visible_tokens(void **state) {
    static const struct ev e[] = {{10, T, 3, -1, -1, 1, 0}, {20, T, 3, -1, -1, 2, 0}, FINISH(30)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 4; /* the stop token has no log probability: no mismatch */
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "logprobs", "exact", 1, 2);
    assert_int_equal(a.token_mismatch, ATTRIBUTE_NONE);
}

static void an_echoed_prompt_is_no_output(void **state) {
    static const struct ev e[] = {{30, T | TOK_ECHO, 20, -1, -1, -1, 0}, TEXT(130, 4), TEXT(150, 4)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 2;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "prorated", "exact", 1, 1);
    assert_int_equal(a.t_first_token_ns, 130 * MS);
}

static void hidden_tokens_are_in_no_arrival(void **state) {
    static const struct ev unseen[] = {TEXT(10, 4), TEXT(20, 4)};
    static const struct ev seen[] = {{10, R, 4, -1, -1, -1, 0}, TEXT(20, 4)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 102;
    f.reasoning_tokens = 100;
    struct attribution a = RUN_EVENTS(unseen, &f);
    IS(&a, "prorated", "exact", 1, 1);
    assert_int_equal(a.hidden_tokens, 100);
    a = RUN_EVENTS(seen, &f);
    IS(&a, "prorated", "prorated", 51, 51);
    assert_int_equal(a.hidden_tokens, 0);
    f.prediction = true;
    f.rejected_prediction_tokens = 90;
    a = RUN_EVENTS(seen, &f);
    IS(&a, "prorated", "prorated", 6, 6);
    assert_int_equal(a.hidden_tokens, 90);
}

/* Gemini's running count leaves thoughts out, its total takes them in. */
static void a_running_count_without_the_hidden_ones_is_no_mismatch(void **state) {
    static const struct ev e[] = {{10, T, 4, 2, -1, -1, 0}, {20, T, 4, 5, -1, -1, 0}};
    struct attribute_facts f = facts();
    f.output_tokens_told = 17;
    f.reasoning_tokens = 12;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "running_usage", "exact", 2, 3);
    assert_int_equal(a.hidden_tokens, 12);
    assert_int_equal(a.token_mismatch, ATTRIBUTE_NONE);
    f.output_tokens_told = 18;
    a = RUN_EVENTS(e, &f);
    assert_int_equal(a.token_mismatch, 13);
}

static void a_summary_sets_the_first_token_only(void **state) {
    static const struct ev e[] = {{5, TOK_SUMMARY, 40, -1, -1, -1, 0}, TEXT(30, 4), TEXT(50, 4)};
    struct attribute_facts f = facts();
    f.output_tokens_told = 2;
    struct attribution a = RUN_EVENTS(e, &f);
    assert_int_equal(a.t_first_token_ns, 5 * MS);
    assert_int_equal(a.t_first_answer_ns, 30 * MS);
    assert_int_equal(a.series_span_ns, 20 * MS);
    assert_string_equal(a.itl_absent, "summary_only");
    f.reasoning_tokens = 0;
    a = RUN_EVENTS(e, &f);
    assert_null(a.itl_absent);
}

/* ---- arrivals */

static void reads_within_the_window_are_one_arrival(void **state) {
    struct attribute_events v = {0};
    struct attribution a;
    static const int64_t t_us[] = {0, 600, 1000, 1001, 5000};
    for (size_t i = 0; i < 5; i++) {
        struct tok_event t = {.t_ns = t_us[i] * 1000,
                              .read = i,
                              .what = T,
                              .text_bytes = 1,
                              .wire_bytes = 7,
                              .running = -1,
                              .ids = 1,
                              .logprobs = -1};
        assert_true(attribute_push(&v, &t, 1));
    }
    struct attribute_facts f = facts();
    assert_true(attribute(&attributor, &v, &f, &a));
    IS(&a, "token_ids", "exact", 3, 1, 1);
    assert_int_equal(a.arrivals[0].reads, 3);
    assert_int_equal(a.arrivals[0].bytes, 21);
    attribute_free(&v);
    for (size_t i = 0; i < 5; i++) {
        struct tok_event t = {.t_ns = t_us[i] * 1000,
                              .read = i / 2,
                              .what = T,
                              .text_bytes = 1,
                              .running = -1,
                              .ids = 1,
                              .logprobs = -1};
        assert_true(attribute_push(&v, &t, 1));
    }
    f.window_ns = 0; /* then only the read counts */
    assert_true(attribute(&attributor, &v, &f, &a));
    IS(&a, "token_ids", "exact", 2, 2, 1);
    attribute_free(&v);
}

static void sixteen_tokens_at_once_are_buffered(void **state) {
    static const struct ev e[] = {{10, T, 3, -1, 16, -1, 0}}, fewer[] = {{10, T, 3, -1, 15, -1, 0}};
    struct attribute_facts f = facts();
    struct attribution a = RUN_EVENTS(e, &f);
    assert_true(a.buffered);
    assert_string_equal(a.itl_absent, "buffered");
    a = RUN_EVENTS(fewer, &f);
    assert_false(a.buffered);
    assert_null(a.itl_absent);
}

static void gaps_over_a_pause_are_backpressured(void **state) {
    static const struct ev e[] = {{10, T, 3, -1, 1, -1, 0},
                                  {20, T, 3, -1, 2, -1, 0},
                                  {50, T, 3, -1, 4, -1, 0},
                                  {60, T, 3, -1, 8, -1, 0}};
    static const struct attribute_pause pauses[] = {
        {5 * MS, 10 * MS}, {30 * MS, 31 * MS}, {65 * MS, 66 * MS}};
    struct attribute_facts f = facts();
    f.pauses = pauses;
    f.n_pauses = 3;
    f.t_end_ns = 70 * MS;
    struct attribution a = RUN_EVENTS(e, &f);
    assert_false(a.arrivals[1].backpressured);
    assert_true(a.arrivals[2].backpressured);
    assert_false(a.arrivals[3].backpressured);
    assert_int_equal(a.backpressured, 2); /* a gap and the end */
    assert_int_equal(a.series_span_ns, 20 * MS);
    assert_int_equal(a.series_tokens, 10);
}

static void nothing_arrives_after_the_cut(void **state) {
    static const struct ev e[] = {TEXT(10, 3), TEXT(20, 3), TEXT(30, 3)};
    struct attribute_facts f = facts();
    f.cut_ns = 20 * MS;
    struct attribution a = RUN_EVENTS(e, &f);
    IS(&a, "events", "events", 1, 1);
    assert_null(a.itl_absent);
    f.lost = true;
    a = RUN_EVENTS(e, &f);
    assert_string_equal(a.itl_absent, "lost");
    assert_int_equal(a.output_tokens, ATTRIBUTE_NONE);
}

static void without_events_there_is_nothing(void **state) {
    struct attribute_facts f = facts();
    f.output_tokens_told = 7;
    struct attribution a = run(NULL, 0, &f);
    assert_null(token_source_name(a.source));
    assert_string_equal(a.itl_absent, "no_arrivals");
    assert_int_equal(a.output_tokens, 7);
    f.streamed = false;
    a = run(NULL, 0, &f);
    assert_string_equal(a.itl_absent, "not_streamed");
}

/* The sum of shares is the total, each event has at least one, whatever the bytes. */
static void random_shares_add_up(void **state) {
    unsigned seed = 7;
    for (int round = 0; round < 2000; round++) {
        struct ev e[40];
        int n = 1 + (int)(rand_r(&seed) % 40);
        for (int i = 0; i < n; i++)
            e[i] = (struct ev)TEXT(10 * i, rand_r(&seed) % 5 ? rand_r(&seed) % 50 + 1 : 1);
        struct attribute_facts f = facts();
        f.output_tokens_told = 1 + rand_r(&seed) % 200;
        struct attribution a = run(e, (size_t)n, &f);
        uint64_t sum = 0;
        for (size_t i = 0; i < a.n_arrivals; i++) sum += a.arrivals[i].tokens;
        assert_int_equal(sum, f.output_tokens_told);
        assert_int_equal(a.arrivals[0].t_ns, 0);
        if (f.output_tokens_told >= n) assert_int_equal(a.n_arrivals, n);
    }
}

static int free_all(void **state) {
    attribute_free(&events);
    attributor_free(&attributor);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prorated_totals),
        cmocka_unit_test(a_stop_token_arrives_with_the_finish),
        cmocka_unit_test(length_finish_has_no_stop_token),
        cmocka_unit_test(a_stop_with_text_has_no_token_of_its_own),
        cmocka_unit_test(an_absurd_total_is_kept_and_not_shared),
        cmocka_unit_test(nothing_told_counts_events),
        cmocka_unit_test(a_running_count_bears_where_it_rises),
        cmocka_unit_test(a_count_that_starts_late_is_a_total),
        cmocka_unit_test(a_count_that_one_text_lacks_is_a_total),
        cmocka_unit_test(running_counts_are_kept_per_choice),
        cmocka_unit_test(token_ids_come_first),
        cmocka_unit_test(a_contract_is_one_token_an_event),
        cmocka_unit_test(logprobs_count_visible_tokens),
        cmocka_unit_test(an_echoed_prompt_is_no_output),
        cmocka_unit_test(hidden_tokens_are_in_no_arrival),
        cmocka_unit_test(a_running_count_without_the_hidden_ones_is_no_mismatch),
        cmocka_unit_test(a_summary_sets_the_first_token_only),
        cmocka_unit_test(reads_within_the_window_are_one_arrival),
        cmocka_unit_test(sixteen_tokens_at_once_are_buffered),
        cmocka_unit_test(gaps_over_a_pause_are_backpressured),
        cmocka_unit_test(nothing_arrives_after_the_cut),
        cmocka_unit_test(without_events_there_is_nothing),
        cmocka_unit_test(random_shares_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, free_all);
}
