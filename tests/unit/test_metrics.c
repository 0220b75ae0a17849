/* The worked examples of the definitions that concern one request, through attribution and SQL. */
#include "tests/unit/kit_db.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>

static void near(double seen, double right) {
    if (!(fabs(seen - right) <= 0.001 * fmax(1, fabs(right)))) fail_msg("%.6f, right is %.6f", seen, right);
}

static double ms(struct kit *k, const char *column) {
    return kit_number(k, 1, column) / 1e6;
}
static void absent(struct kit *k, const char *column) {
    assert_true(isnan(kit_number(k, 1, column)));
}
static void word(struct kit *k, const char *column, const char *right) {
    const char *seen = kit_word(k, 1, column);
    assert_non_null(seen);
    assert_string_equal(seen, right);
}

/* An event with a count of token ids: tokens told exactly. */
static void tokens(struct kit *k, double t_ms, int n, uint32_t choice) {
    struct tok_event e = {.what = TOK_CONTENT,
                          .choice = choice,
                          .text_bytes = 4,
                          .wire_bytes = 50,
                          .running = -1,
                          .ids = n,
                          .logprobs = -1};
    kit_event(k, 1, t_ms, &e);
}

static void running(struct kit *k, double t_ms, uint32_t what, uint32_t bytes, int64_t count) {
    struct tok_event e = {
        .what = what, .text_bytes = bytes, .wire_bytes = 50, .running = count, .ids = -1, .logprobs = -1};
    kit_event(k, 1, t_ms, &e);
}

static void begin(struct kit *k) {
    kit_open(k);
    kit_request(k, 1, 0);
}
static void done(struct kit *k, double end_ms) {
    kit_end(k, 1, end_ms);
    kit_done(k);
}

static void example_1_single_tokens(void **state) {
    struct kit k;
    begin(&k);
    for (int i = 0; i <= 100; i++) tokens(&k, 800 + 20 * i, 1, 0);
    kit_int(&k, 1, F_output_tokens_told, 101);
    done(&k, 2800);
    near(ms(&k, "ttft_server_ns"), 800);
    near(ms(&k, "tpot_ns"), 20);
    near(kit_number(&k, 1, "decode_tps"), 50);
    near(kit_number(&k, 1, "e2e_tps"), 36.07);
    kit_close(&k);
}

static void example_2_several_tokens_an_arrival(void **state) {
    struct kit k;
    begin(&k);
    tokens(&k, 100, 1, 0);
    tokens(&k, 150, 3, 0);
    tokens(&k, 200, 2, 0);
    kit_int(&k, 1, F_output_tokens_told, 6);
    done(&k, 200);
    near(ms(&k, "tpot_ns"), 20);
    near(kit_query(&k, "SELECT AVG(gap_ns) / 1e6 FROM gaps"), 50);
    near(kit_query(&k, "SELECT SUM(gap_ns) / SUM(tokens) / 1e6 FROM gaps"), 20);
    near(kit_query(&k, "SELECT MIN(1.0 * gap_ns / tokens) / 1e6 FROM gaps"), 16.67);
    near(kit_query(&k, "SELECT MAX(1.0 * gap_ns / tokens) / 1e6 FROM gaps"), 25);
    near(kit_number(&k, 1, "tokens_per_arrival"), 2.5);
    kit_close(&k);
}

static void example_3_first_arrival_of_several(void **state) {
    struct kit k;
    begin(&k);
    tokens(&k, 100, 4, 0);
    tokens(&k, 140, 4, 0);
    kit_int(&k, 1, F_output_tokens_told, 8);
    done(&k, 140);
    near(ms(&k, "tpot_ns"), 10);
    near(kit_number(&k, 1, "decode_tps"), 100);
    kit_close(&k);
}

static void example_4_one_token(void **state) {
    struct kit k;
    begin(&k);
    tokens(&k, 50, 1, 0);
    kit_int(&k, 1, F_output_tokens_told, 1);
    done(&k, 50);
    near(ms(&k, "ttft_server_ns"), 50);
    absent(&k, "tpot_ns");
    absent(&k, "decode_tps");
    assert_int_equal((int)kit_query(&k, "SELECT COUNT(*) FROM gaps"), 0);
    kit_close(&k);
}

static void example_5_queueing_before_and_upload(void **state) {
    struct kit k;
    begin(&k);
    kit_int(&k, 1, F_arrive_wall_ns, 1800000000250000000);
    kit_int(&k, 1, F_queue_start_wall_ns, 1800000000000000000);
    kit_ms(&k, 1, F_t_received_ns, 30);
    kit_ms(&k, 1, F_t_forwarded_ns, 30);
    tokens(&k, 500, 1, 0);
    done(&k, 600);
    near(ms(&k, "client_queue_ns"), 250);
    near(ms(&k, "ttft_queued_ns"), 750);
    near(ms(&k, "ttft_client_ns"), 500);
    near(ms(&k, "ttft_server_ns"), 470);
    near(ms(&k, "upload_ns"), 30);
    kit_close(&k);
}

static void check_6(struct kit *k, const char *source, const char *grade) {
    near(ms(k, "ttfb_server_ns"), 30);
    near(ms(k, "ttft_server_ns"), 500);
    near(ms(k, "ttfa_server_ns"), 620);
    near(ms(k, "tpot_ns"), 15);
    near(kit_query(k, "SELECT MIN(1.0 * gap_ns / tokens) / 1e6 FROM gaps"), 15);
    near(kit_query(k, "SELECT MAX(1.0 * gap_ns / tokens) / 1e6 FROM gaps"), 15);
    near(kit_query(k, "SELECT AVG(gap_ns) / 1e6 FROM gaps"), 60);
    near(ms(k, "tail_ns"), 70);
    near(ms(k, "e2e_server_ns"), 750);
    word(k, "token_source", source);
    word(k, "grade", grade);
    assert_int_equal((int)kit_number(k, 1, "output_tokens"), 16);
    /* upload + forward_lag + ttft_server + gaps + tail = e2e_client */
    near(
        kit_number(
            k, 1,
            "(upload_ns + forward_lag_ns + ttft_server_ns + (SELECT SUM(gap_ns) FROM gaps) + tail_ns) / 1e6"),
        ms(k, "e2e_client_ns"));
    kit_close(k);
}

static void example_6_reasoning_then_answer(void **state) {
    struct kit k;
    begin(&k);
    kit_ms(&k, 1, F_t_first_byte_ns, 30);
    running(&k, 500, TOK_REASONING, 8, 4);
    running(&k, 560, TOK_REASONING, 8, 8);
    running(&k, 620, TOK_CONTENT, 8, 12);
    running(&k, 680, TOK_CONTENT, 8, 16);
    running(&k, 740, TOK_FINISH | TOK_STOP, 0, 16);
    running(&k, 745, 0, 0, 16);
    kit_int(&k, 1, F_output_tokens_told, 16);
    kit_end(&k, 1, 750);
    kit_done(&k);
    check_6(&k, "running_usage", "exact");
}

static void example_7_a_total_only_at_the_end(void **state) {
    struct kit k;
    begin(&k);
    kit_ms(&k, 1, F_t_first_byte_ns, 30);
    running(&k, 500, TOK_REASONING, 8, -1);
    running(&k, 560, TOK_REASONING, 8, -1);
    running(&k, 620, TOK_CONTENT, 8, -1);
    running(&k, 680, TOK_CONTENT, 8, -1);
    running(&k, 740, TOK_FINISH | TOK_STOP, 0, -1);
    running(&k, 745, 0, 0, 16);
    kit_int(&k, 1, F_output_tokens_told, 16);
    kit_end(&k, 1, 750);
    kit_done(&k);
    check_6(&k, "prorated", "prorated");
}

static void example_8_hidden_reasoning(void **state) {
    struct kit k;
    begin(&k);
    for (int i = 0; i < 100; i++) kit_content(&k, 1, 9000 + 10 * i, 4);
    kit_int(&k, 1, F_output_tokens_told, 1000);
    kit_int(&k, 1, F_reasoning_tokens, 900);
    done(&k, 10000);
    near(ms(&k, "ttft_server_ns"), 9000);
    assert_int_equal((int)kit_number(&k, 1, "hidden_tokens"), 900);
    near(ms(&k, "tpot_ns"), 10);
    word(&k, "grade", "exact");
    kit_close(&k);
}

static void example_9_two_events_in_one_read(void **state) {
    struct kit k;
    begin(&k);
    struct tok_event e = {.read = 7,
                          .what = TOK_CONTENT,
                          .text_bytes = 4,
                          .wire_bytes = 50,
                          .running = -1,
                          .ids = 1,
                          .logprobs = -1};
    kit_event(&k, 1, 100, &e);
    kit_event(&k, 1, 100, &e);
    e.read = 8;
    kit_event(&k, 1, 130, &e);
    kit_int(&k, 1, F_output_tokens_told, 3);
    done(&k, 130);
    assert_int_equal((int)kit_number(&k, 1, "arrivals"), 2);
    assert_int_equal((int)kit_number(&k, 1, "tokens_first"), 2);
    near(ms(&k, "tpot_ns"), 30);
    near(kit_query(&k, "SELECT MAX(gap_ns) / 1e6 FROM gaps"), 30);
    assert_int_equal(
        (int)kit_query(&k, "SELECT events * 100 + reads * 10 + tokens FROM arrivals WHERE arrival = 0"), 212);
    kit_close(&k);
}

static void example_14_two_choices(void **state) {
    struct kit k;
    begin(&k);
    for (int i = 0; i < 3; i++) {
        tokens(&k, 100 + 40 * i, 1, 0);
        tokens(&k, 110 + 40 * i, 1, 1);
    }
    kit_int(&k, 1, F_output_tokens_told, 6);
    done(&k, 190);
    near(ms(&k, "tpot_ns"), 40);
    near(kit_query(&k, "SELECT MIN(gap_ns) / 1e6 FROM gaps"), 40);
    near(kit_query(&k, "SELECT MAX(gap_ns) / 1e6 FROM gaps"), 40);
    near(ms(&k, "ttft_server_ns"), 100);
    assert_int_equal((int)kit_number(&k, 1, "series"), 2);
    kit_close(&k);
}

static void example_10_accept_length(void **state) {
    struct kit k;
    begin(&k);
    kit_int(&k, 1, F_spec_steps, 10);
    kit_int(&k, 1, F_accepted_tokens, 30);
    kit_int(&k, 1, F_draft_tokens, 30);
    kit_end(&k, 1, 10);
    kit_request(&k, 2, 0);
    kit_int(&k, 2, F_spec_steps, 90);
    kit_int(&k, 2, F_accepted_tokens, 45);
    kit_int(&k, 2, F_draft_tokens, 270);
    kit_end(&k, 2, 10);
    kit_done(&k);
    near(kit_query(&k, "SELECT 1 + 1.0 * SUM(accepted_tokens) / SUM(verify_steps) FROM requests"), 1.75);
    near(kit_query(&k, "SELECT AVG(accept_length) FROM requests"), 2.75);
    near(kit_query(&k, "SELECT 100.0 * SUM(accepted_tokens) / SUM(draft_tokens) FROM requests"), 25);
    near(kit_query(&k, "SELECT 100 * AVG(accept_rate) FROM requests"), 58.3);
    kit_close(&k);
}

static void sglang_speculation_stands_in_prediction_fields(void **state) {
    struct kit k;
    begin(&k);
    kit_int(&k, 1, F_accepted_prediction_tokens, 6);
    kit_int(&k, 1, F_rejected_prediction_tokens, 6);
    kit_int(&k, 1, F_matched_stop_seen, 1);
    kit_end(&k, 1, 10);
    kit_request(&k, 2, 0);
    kit_int(&k, 2, F_accepted_prediction_tokens, 6);
    kit_int(&k, 2, F_rejected_prediction_tokens, 6);
    kit_int(&k, 2, F_prediction, 1);
    kit_end(&k, 2, 10);
    kit_request(&k, 3, 0);
    kit_int(&k, 3, F_accepted_prediction_tokens, 6);
    kit_int(&k, 3, F_rejected_prediction_tokens, 6);
    kit_end(&k, 3, 10);
    kit_done(&k);
    assert_int_equal((int)kit_number(&k, 1, "draft_tokens"), 12);
    assert_int_equal((int)kit_number(&k, 1, "accepted_tokens"), 6);
    absent(&k, "predicted_accepted");
    assert_int_equal((int)kit_number(&k, 2, "predicted_rejected"), 6);
    assert_true(isnan(kit_number(&k, 2, "draft_tokens")));
    assert_true(isnan(kit_number(&k, 3, "draft_tokens")));
    assert_true(isnan(kit_number(&k, 3, "predicted_accepted")));
    kit_close(&k);
}

static void early_response_has_no_server_figures(void **state) {
    struct kit k;
    begin(&k);
    kit_ms(&k, 1, F_t_forwarded_ns, 500);
    kit_int(&k, 1, F_status, 413);
    kit_end(&k, 1, 100);
    kit_done(&k);
    word(&k, "outcome", "http_error");
    absent(&k, "ttfb_server_ns");
    absent(&k, "e2e_server_ns");
    near(ms(&k, "e2e_client_ns"), 100);
    kit_close(&k);
}

static void a_header_after_the_arrival_is_a_clock_fault(void **state) {
    static const struct {
        int64_t ahead_ns;
        double queue_ms; /* NAN: absent */
    } cases[] = {{2000000, NAN}, {900000, 0}, {-3600000000001, NAN}, {-3600000000000, 3600000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit k;
        begin(&k);
        kit_int(&k, 1, F_arrive_wall_ns, 1800000000000000000);
        kit_int(&k, 1, F_queue_start_wall_ns, 1800000000000000000 + cases[i].ahead_ns);
        done(&k, 10);
        double seen = ms(&k, "client_queue_ns");
        if (isnan(cases[i].queue_ms))
            assert_true(isnan(seen));
        else
            near(seen, cases[i].queue_ms);
        assert_int_equal(
            (int)kit_query(
                &k, "SELECT COUNT(*) FROM losses WHERE loss = 'client_clock_skew' AND severity = 'odd'"),
            isnan(cases[i].queue_ms));
        kit_close(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_1_single_tokens),
        cmocka_unit_test(example_2_several_tokens_an_arrival),
        cmocka_unit_test(example_3_first_arrival_of_several),
        cmocka_unit_test(example_4_one_token),
        cmocka_unit_test(example_5_queueing_before_and_upload),
        cmocka_unit_test(example_6_reasoning_then_answer),
        cmocka_unit_test(example_7_a_total_only_at_the_end),
        cmocka_unit_test(example_8_hidden_reasoning),
        cmocka_unit_test(example_9_two_events_in_one_read),
        cmocka_unit_test(example_10_accept_length),
        cmocka_unit_test(example_14_two_choices),
        cmocka_unit_test(sglang_speculation_stands_in_prediction_fields),
        cmocka_unit_test(early_response_has_no_server_figures),
        cmocka_unit_test(a_header_after_the_arrival_is_a_clock_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
