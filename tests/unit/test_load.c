/* From what a trace tells to rows: outcomes, what is lost, cold and warm, concurrency. */
#include "tests/unit/kit_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

static void word(struct kit *k, uint64_t id, const char *column, const char *right) {
    const char *seen = kit_word(k, id, column);
    if (!seen || !right) {
        if (seen || right)
            fail_msg("request %d: %s is %s, right is %s", (int)id, column, seen ? seen : "absent",
                     right ? right : "absent");
        return;
    }
    if (strcmp(seen, right) != 0) fail_msg("request %d: %s is %s, right is %s", (int)id, column, seen, right);
}

static void finish(struct kit *k, uint64_t id) {
    recording_ops.end(&k->r, SUBJECT_R, id);
}

/* ---- outcomes, in the order of their rule */

struct outcome_case {
    const char *right;
    const char *api; /* NULL: a chat */
    int status;      /* 0: none */
    const char *finish, *end_by;
    int stream_error, body_whole, streamed, typed_end, unread, no_first_byte, open;
};

static void outcomes(void **state) {
    static const struct outcome_case cases[] = {
        {.right = "upstream_refused", .end_by = "refused"},
        {.right = "http_error", .status = 429, .end_by = "complete", .stream_error = 1},
        {.right = "http_error", .status = 301, .end_by = "complete", .body_whole = 1},
        {.right = "stream_error",
         .status = 200,
         .end_by = "complete",
         .stream_error = 1,
         .finish = "stop",
         .streamed = 1},
        {.right = "stream_error", .status = 200, .end_by = "complete", .finish = "stop,error", .streamed = 1},
        {.right = "stream_error", .status = 200, .end_by = "complete", .finish = "abort", .streamed = 1},
        {.right = "ok", .status = 200, .end_by = "upstream_reset", .finish = "stop", .streamed = 1},
        {.right = "ok", .status = 200, .end_by = "complete", .body_whole = 1},
        {.right = "client_abort", .status = 200, .end_by = "client_reset", .streamed = 1},
        {.right = "client_abort", .end_by = "client_fin", .no_first_byte = 1},
        {.right = "upstream_reset", .end_by = "upstream_reset", .no_first_byte = 1},
        {.right = "upstream_reset", .end_by = "upstream_fin", .no_first_byte = 1},
        {.right = "upstream_timeout", .end_by = "upstream_timeout"},
        {.right = "in_flight", .status = 200, .streamed = 1, .open = 1},
        {.right = "in_flight", .status = 200, .end_by = "stop", .streamed = 1},
        {.right = "truncated", .status = 200, .end_by = "upstream_fin", .streamed = 1},
        {.right = "truncated", .status = 200, .end_by = "complete", .streamed = 1, .body_whole = 1},
        {.right = "ok", .status = 200, .end_by = "complete", .streamed = 1, .body_whole = 1, .typed_end = 1},
        {.right = "lost", .status = 200, .end_by = "complete", .streamed = 1, .body_whole = 1, .unread = 1},
        {.right = "truncated", .status = 200, .end_by = "upstream_fin", .streamed = 1, .unread = 1},
        {.right = "ok", .status = 200, .finish = "stop", .end_by = "complete", .streamed = 1, .unread = 1},
        {.right = "ok", .api = "other", .status = 204, .end_by = "complete", .body_whole = 1},
        {.right = "http_error", .api = "other", .status = 404, .end_by = "complete", .body_whole = 1},
        {.right = "upgraded", .api = "upgraded", .status = 101, .end_by = "client_fin"},
    };
    struct kit k;
    kit_open(&k);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct outcome_case *c = &cases[i];
        uint64_t id = i + 1;
        recording_ops.begin(&k.r, SUBJECT_R, id, false);
        kit_ms(&k, id, F_t_arrive_ns, 1);
        kit_text(&k, id, F_api, c->api ? c->api : "openai-chat");
        if (c->status) kit_int(&k, id, F_status, c->status);
        if (!c->no_first_byte) kit_ms(&k, id, F_t_first_byte_ns, 2);
        if (c->finish) kit_text(&k, id, F_finish_reason, c->finish);
        if (c->stream_error) kit_int(&k, id, F_stream_error, 1);
        if (c->streamed) kit_int(&k, id, F_streamed, 1);
        if (c->unread) kit_int(&k, id, F_answer_unread, 1);
        if (c->typed_end) kit_int(&k, id, F_typed_end, 1);
        kit_int(&k, id, F_body_whole, c->body_whole);
        if (c->end_by) kit_text(&k, id, F_end_by, c->end_by);
        if (!c->open) finish(&k, id);
    }
    kit_done(&k);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) word(&k, i + 1, "outcome", cases[i].right);
    word(&k, 1, "status", NULL);
    kit_close(&k);
}

/* ---- what is lost */

static void a_partial_request_is_in_no_figure(void **state) {
    struct kit k;
    kit_open(&k);
    recording_ops.open_line(&k.r, 9, 3, KIT_T0_NS);
    kit_ms(&k, 9, F_t_end_ns, 5);
    kit_content(&k, 9, 4, 3);
    finish(&k, 9);
    kit_done(&k);
    assert_int_equal((int)kit_query(&k, "SELECT COUNT(*) FROM requests"), 0);
    assert_int_equal((int)kit_query(&k, "SELECT count FROM losses WHERE loss = 'partial_request'"), 1);
    kit_close(&k);
}

static void facts_of_an_unknown_request_make_no_row(void **state) {
    struct kit k;
    kit_open(&k);
    kit_ms(&k, 5, F_t_delivered_ns, 5);
    kit_content(&k, 5, 4, 3);
    finish(&k, 5);
    kit_done(&k);
    assert_int_equal((int)kit_query(&k, "SELECT COUNT(*) FROM request_facts"), 0);
    kit_close(&k);
}

static void a_line_that_counts_more_events_tells_that_some_are_lost(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 10, 3);
    kit_content(&k, 1, 20, 3);
    kit_block(&k);
    recording_ops.open_line(&k.r, 1, 5, KIT_T0_NS);
    kit_content(&k, 1, 90, 3);
    kit_int(&k, 1, F_output_tokens_told, 6);
    kit_end(&k, 1, 100);
    kit_request(&k, 2, 0);
    kit_content(&k, 2, 10, 3);
    kit_block(&k);
    recording_ops.open_line(&k.r, 2, 1, KIT_T0_NS);
    kit_end(&k, 2, 100);
    kit_done(&k);
    word(&k, 1, "outcome", "ok");
    word(&k, 1, "itl_absent", "lost");
    assert_int_equal((int)kit_number(&k, 1, "arrivals"), 2);
    assert_int_equal((int)kit_number(&k, 1, "output_tokens"), 6);
    assert_true(isnan(kit_number(&k, 1, "tpot_ns")));
    assert_true(isnan(kit_number(&k, 1, "tail_ns")));
    assert_int_equal((int)kit_number(&k, 1, "e2e_client_ns / 1000000"), 100);
    word(&k, 2, "itl_absent", NULL);
    kit_close(&k);
}

static void open_across_missing_blocks_is_lost(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 10, 3);
    kit_request(&k, 2, 0);
    kit_content(&k, 2, 10, 3);
    recording_ops.gap(&k.r, 2, 3, KIT_T0_NS + 20000000, KIT_T0_NS + 80000000);
    kit_block(&k);
    recording_ops.open_line(&k.r, 1, 9, KIT_T0_NS); /* 2 has no line: it ended in the gap */
    kit_request(&k, 3, 90);
    kit_end(&k, 3, 95);
    kit_ms(&k, 1, F_t_end_ns, 99);
    kit_text(&k, 1, F_end_by, "complete");
    finish(&k, 1);
    kit_block(&k);
    kit_done(&k);
    word(&k, 1, "outcome", "lost");
    word(&k, 2, "outcome", "lost");
    word(&k, 3, "outcome", "ok");
    word(&k, 1, "losses", "blocks_missing");
    word(&k, 3, "losses", NULL);
    assert_int_equal((int)kit_query(&k, "SELECT count FROM losses WHERE loss = 'blocks_missing'"), 3);
    assert_true(kit_query(&k, "SELECT from_wall_ns FROM losses") == 1800000000020000000.0);
    kit_close(&k);
}

static void a_recorder_that_restarted_lost_what_was_open(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 10, 3);
    kit_block(&k);
    kit_request(&k, 2, 90);
    recording_ops.loss(&k.r, LOSS_recorder_restarted, KIT_T0_NS + 20000000, KIT_T0_NS + 80000000, 1, 0, 0);
    kit_block(&k);
    recording_ops.open_line(&k.r, 2, 0, KIT_T0_NS);
    kit_end(&k, 2, 95);
    kit_done(&k);
    word(&k, 1, "outcome", "lost");
    word(&k, 2, "outcome", "ok");
    assert_int_equal((int)kit_number(&k, 2, "lost"), 0);
    kit_close(&k);
}

static void a_loss_in_the_block_of_the_end_still_counts(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 10, 3);
    kit_content(&k, 1, 60, 3);
    kit_end(&k, 1, 100);
    recording_ops.loss(&k.r, LOSS_queue_full, KIT_T0_NS + 20000000, KIT_T0_NS + 50000000, 7, 700, 1);
    kit_done(&k);
    word(&k, 1, "itl_absent", "lost");
    assert_int_equal((int)kit_number(&k, 1, "arrivals"), 1);
    word(&k, 1, "losses", "queue_full");
    kit_close(&k);
}

static void a_missing_part_loses_what_ended_in_it(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 10, 3);
    kit_request(&k, 2, 0);
    kit_content(&k, 2, 10, 3);
    recording_part(&k.r, 2, "kit-2.trc");
    kit_block(&k);
    recording_ops.open_line(&k.r, 2, 1, KIT_T0_NS);
    recording_ops.begin(&k.r, SUBJECT_R, 2, true);
    kit_end(&k, 2, 100);
    kit_done(&k);
    word(&k, 1, "outcome", "lost");
    word(&k, 2, "outcome", "ok");
    word(&k, 2, "itl_absent", NULL);
    kit_close(&k);
}

static void a_part_alone_keeps_the_facts_of_its_snapshot(void **state) {
    struct kit k;
    kit_open(&k);
    recording_ops.open_line(&k.r, 1, 4, KIT_T0_NS);
    kit_request(&k, 1, 0);
    kit_content(&k, 1, 50, 3);
    kit_end(&k, 1, 100);
    kit_done(&k);
    word(&k, 1, "outcome", "ok");
    word(&k, 1, "itl_absent", "lost");
    assert_int_equal((int)kit_number(&k, 1, "arrivals"), 0);
    assert_int_equal((int)kit_number(&k, 1, "e2e_client_ns / 1000000"), 100);
    kit_close(&k);
}

/* ---- concurrency */

static void concurrent_counts_the_others_at_arrival(void **state) {
    struct kit k;
    kit_open(&k);
    static const struct {
        double arrive, end;
        int right;
    } cases[] = {{0, 100, 0}, {10, 20, 1},   {20, 30, 1},   {25, 40, 2},
                 {25, 50, 3}, {100, 110, 0}, {105, 105, 1}, {105, 120, 1}};
    for (size_t i = 0; i < 8; i++) kit_request(&k, i + 1, cases[i].arrive);
    for (size_t i = 0; i < 8; i++) kit_end(&k, i + 1, cases[i].end);
    kit_request(&k, 9, 105);
    kit_text(&k, 9, F_api, "other");
    kit_end(&k, 9, 120);
    kit_done(&k);
    /* 4 and 5 arrive together: each is another at the other's arrival */
    assert_int_equal((int)kit_number(&k, 1, "concurrent"), 0);
    assert_int_equal((int)kit_number(&k, 2, "concurrent"), 1);
    assert_int_equal((int)kit_number(&k, 3, "concurrent"), 1);
    assert_int_equal((int)kit_number(&k, 4, "concurrent"), 3);
    assert_int_equal((int)kit_number(&k, 5, "concurrent"), 3);
    assert_int_equal((int)kit_number(&k, 6, "concurrent"), 0);
    assert_int_equal((int)kit_number(&k, 7, "concurrent"), 2);
    assert_int_equal((int)kit_number(&k, 8, "concurrent"), 1);
    assert_true(isnan(kit_number(&k, 9, "concurrent")));
    kit_close(&k);
}

/* ---- cold, warm, hit */

static void answered(struct kit *k, uint64_t id, double arrive_ms, double end_ms) {
    kit_request(k, id, arrive_ms);
    kit_content(k, id, end_ms, 3);
    kit_end(k, id, end_ms);
}

static void a_load_told_by_the_engine_is_cold_and_the_next_are_warmup(void **state) {
    struct kit k;
    kit_open(&k);
    static const double load_ms[] = {8912, 31, 28, 30, 9377, 33};
    for (int i = 0; i < 6; i++) {
        kit_request(&k, (uint64_t)i + 1, 100000 * i);
        kit_int(&k, (uint64_t)i + 1, F_reported_load_ns, (int64_t)(load_ms[i] * 1e6));
        kit_end(&k, (uint64_t)i + 1, 100000 * i + 5000);
    }
    kit_done(&k);
    static const char *const right[] = {"cold", "warmup", "warmup", "warmup", "cold", "warmup"};
    for (int i = 0; i < 6; i++) word(&k, (uint64_t)i + 1, "cache_class", right[i]);
    kit_close(&k);
}

static void one_load_alone_is_cold_from_a_second_on(void **state) {
    static const struct {
        int64_t ms;
        const char *right;
    } cases[] = {{999, "unreported"}, {1000, "cold"}};
    for (int i = 0; i < 2; i++) {
        struct kit k;
        kit_open(&k);
        kit_request(&k, 1, 0);
        kit_int(&k, 1, F_reported_load_ns, cases[i].ms * 1000000);
        kit_end(&k, 1, 5000);
        kit_done(&k);
        word(&k, 1, "cache_class", cases[i].right);
        kit_close(&k);
    }
}

static void after_a_refusal_all_before_the_first_answer_are_cold(void **state) {
    struct kit k;
    kit_open(&k);
    answered(&k, 1, 0, 50);
    kit_request(&k, 2, 1000);
    kit_text(&k, 2, F_end_by, "refused");
    kit_ms(&k, 2, F_t_end_ns, 1001);
    finish(&k, 2);
    answered(&k, 3, 2000, 9000);
    answered(&k, 4, 5000, 7000);
    answered(&k, 5, 7500, 7600);
    answered(&k, 6, 60000, 60100);
    answered(&k, 7, 70000, 70100);
    answered(&k, 8, 80000, 80100);
    answered(&k, 9, 90000, 90100);
    kit_done(&k);
    static const char *const right[] = {"unreported", NULL,     "cold",       "cold",      "warmup",
                                        "warmup",     "warmup", "unreported", "unreported"};
    for (int i = 0; i < 9; i++) word(&k, (uint64_t)i + 1, "cache_class", right[i]);
    kit_close(&k);
}

static void loading_503_is_a_start(void **state) {
    struct kit k;
    kit_open(&k);
    kit_request(&k, 1, 0);
    kit_int(&k, 1, F_status, 503);
    kit_int(&k, 1, F_loading, 1);
    kit_end(&k, 1, 5);
    answered(&k, 2, 100, 900);
    kit_done(&k);
    word(&k, 1, "outcome", "http_error");
    word(&k, 2, "cache_class", "cold");
    kit_close(&k);
}

static void hits_and_misses_as_told(void **state) {
    struct kit k;
    kit_open(&k);
    static const int cached[] = {64, -1, -1, 64, 0, -1, 64, -1};
    static const char *const paths[] = {"/a", "/a", "/b", "/c", "/c", "/c", "/d", "/d"};
    static const char *const right[] = {"hit",  "miss_inferred", "unreported", "hit",
                                        "miss", "unreported",    "hit",        "unreported"};
    for (int i = 0; i < 8; i++) {
        uint64_t id = (uint64_t)i + 1;
        kit_request(&k, id, 10 * i);
        kit_text(&k, id, F_path, paths[i]);
        if (i != 6 && i != 7) kit_text(&k, id, F_server, "uvicorn");
        kit_int(&k, id, F_prompt_tokens, 256);
        if (cached[i] >= 0) kit_int(&k, id, F_cached_tokens, cached[i]);
        kit_content(&k, id, 10 * i + 2, 3);
        kit_end(&k, id, 10 * i + 5);
    }
    kit_done(&k);
    for (int i = 0; i < 8; i++) word(&k, (uint64_t)i + 1, "cache_class", right[i]);
    assert_true(kit_number(&k, 1, "hit_ratio") == 0.25);
    word(&k, 1, "hit_band", "0-25");
    assert_true(fabs(kit_number(&k, 2, "prefill_tps") - 128000) < 1);
    assert_true(isnan(kit_number(&k, 3, "prefill_tps")));
    kit_close(&k);
}

/* ---- connections */

static void the_first_request_of_a_connection_has_the_connect(void **state) {
    struct kit k;
    kit_open(&k);
    recording_ops.begin(&k.r, SUBJECT_C, 3, false);
    kit_ms(&k, 3, F_t_connect_ns, 1);
    kit_ms(&k, 3, F_t_upstream_start_ns, 2);
    kit_ms(&k, 3, F_t_upstream_connected_ns, 5);
    for (uint64_t id = 1; id <= 2; id++) {
        kit_request(&k, id, 10);
        kit_int(&k, id, F_connection, 3);
        kit_end(&k, id, 20);
    }
    kit_done(&k);
    assert_int_equal((int)(kit_number(&k, 1, "upstream_connect_ns") / 1e6), 3);
    assert_true(isnan(kit_number(&k, 2, "upstream_connect_ns")));
    assert_int_equal((int)kit_query(&k, "SELECT requests FROM connections"), 2);
    kit_close(&k);
}

/* They are stored many at a time: more than are handed over at once, and some left. */
static void spans_are_all_kept_in_their_order(void **state) {
    enum { N = 1111 };
    struct kit k;
    kit_open(&k);
    for (int64_t i = 0; i < N; i++) {
        recording_ops.fact_span(&k.r, 5, F_late_read, KIT_T0_NS + i * 1000, KIT_T0_NS + i * 1000 + i, i);
        if (i % 100 == 0) kit_block(&k);
    }
    recording_ops.fact_span(&k.r, 0, F_marker, KIT_T0_NS, KIT_T0_NS, 7);
    kit_done(&k);
    static const char right[] =
        "SELECT COUNT(*) FROM spans WHERE name = 'late_read' AND subject = 'connection' AND id = 5 AND "
        "length(recording) = 36 AND value = rowid - 1 AND from_ns = 1000000000000 + 1000 * value AND "
        "to_ns = from_ns + value";
    assert_int_equal((int)kit_query(&k, right), N);
    assert_int_equal((int)kit_query(&k, "SELECT COUNT(*) FROM spans"), N + 1);
    assert_int_equal((int)kit_query(&k, "SELECT value FROM spans WHERE subject = 'recording'"), 7);
    kit_close(&k);
}

/* Whatever a damaged trace tells, nothing crashes and the database stays whole. */
static void any_numbers_make_no_crash(void **state) {
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -1,       0, 1, 99,
                                  KIT_T0_NS, INT64_MAX - 1, INT64_MAX};
    unsigned seed = 3;
#define ANY odd[rand_r(&seed) % 9]
    struct kit k;
    kit_open(&k);
    for (int i = 0; i < 20000; i++) {
        uint64_t id = rand_r(&seed) % 20;
        enum fact f = (enum fact)(rand_r(&seed) % (N_FACTS + 2));
        struct tok_event e = {
            id,  ANY,          (uint64_t)ANY, (uint32_t)ANY % 7, (uint32_t)ANY, (uint32_t)ANY, (uint32_t)ANY,
            ANY, (int32_t)ANY, (int32_t)ANY};
        switch (rand_r(&seed) % 12) {
        case 0: recording_ops.begin(&k.r, (enum subject)(rand_r(&seed) % 4), id, rand_r(&seed) % 2); break;
        case 1: recording_ops.fact_int(&k.r, id, f, ANY); break;
        case 2: recording_ops.fact_real(&k.r, id, f, (double)ANY); break;
        case 3: recording_ops.fact_str(&k.r, id, f, "\xff\0'x", 4); break;
        case 4: recording_ops.fact_span(&k.r, id, f, ANY, ANY, ANY); break;
        case 5: kit_block(&k); break;
        case 6: recording_ops.open_line(&k.r, id, (uint64_t)ANY, ANY); break;
        case 7: recording_ops.end(&k.r, (enum subject)(rand_r(&seed) % 4), id); break;
        case 8:
            recording_ops.loss(&k.r, (enum loss)(rand_r(&seed) % (N_LOSSES + 2)), ANY, ANY, (uint64_t)ANY,
                               (uint64_t)ANY, id);
            break;
        case 9: recording_ops.gap(&k.r, 1, 1, ANY, ANY); break;
        case 10: recording_ops.anchor(&k.r, ANY, ANY, ANY); break;
        default: recording_ops.events(&k.r, id, &e, 1); break;
        }
    }
    kit_done(&k);
    assert_true(kit_query(&k, "SELECT COUNT(*) FROM request_facts") > 0);
    assert_true(kit_query(&k, "SELECT COUNT(*) + TOTAL(t_ns) FROM arrivals") < INFINITY);
    kit_query(&k, "SELECT COUNT(*) FROM (SELECT * FROM requests ORDER BY tpot_ns)");
    kit_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes),
        cmocka_unit_test(a_partial_request_is_in_no_figure),
        cmocka_unit_test(facts_of_an_unknown_request_make_no_row),
        cmocka_unit_test(a_line_that_counts_more_events_tells_that_some_are_lost),
        cmocka_unit_test(open_across_missing_blocks_is_lost),
        cmocka_unit_test(a_recorder_that_restarted_lost_what_was_open),
        cmocka_unit_test(a_loss_in_the_block_of_the_end_still_counts),
        cmocka_unit_test(a_missing_part_loses_what_ended_in_it),
        cmocka_unit_test(a_part_alone_keeps_the_facts_of_its_snapshot),
        cmocka_unit_test(concurrent_counts_the_others_at_arrival),
        cmocka_unit_test(a_load_told_by_the_engine_is_cold_and_the_next_are_warmup),
        cmocka_unit_test(one_load_alone_is_cold_from_a_second_on),
        cmocka_unit_test(after_a_refusal_all_before_the_first_answer_are_cold),
        cmocka_unit_test(loading_503_is_a_start),
        cmocka_unit_test(hits_and_misses_as_told),
        cmocka_unit_test(the_first_request_of_a_connection_has_the_connect),
        cmocka_unit_test(spans_are_all_kept_in_their_order),
        cmocka_unit_test(any_numbers_make_no_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
