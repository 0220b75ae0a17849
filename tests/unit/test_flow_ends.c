/* How requests end: who left first, and what the connection did afterwards. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_flow.h"
#include "tests/unit/fake_trw.h"

static void a_half_closed_client_is_not_gone(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    drive_fin(&v, DIR_UP);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, STOP);
    at(&v, 5000, DIR_DOWN, LAST);
    end(&v);
    hold_text(1, F_end_by, "complete");
    absent(1, F_t_client_gone_ns);
    hold(1, F_t_client_fin_ns, 2000);
    hold(1, F_body_whole, 1);
}

/* llama.cpp was seen to end the body with its last chunk, but without [DONE], when the client had left a
 * second before: the request read as truncated, as if the engine had failed. */
static void a_body_ended_for_a_client_that_left_is_its_leaving(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    v.now_ns = 4500;
    drive_fin(&v, DIR_UP);
    at(&v, 5000, DIR_DOWN, LAST);
    end(&v);
    hold_text(1, F_end_by, "client_fin");
    hold(1, F_t_client_gone_ns, 4500);
    hold(1, F_t_end_ns, 4500);
}

/* A client that leaves is seen as end of input; the reset follows when the next bytes reach it. */
static void a_client_that_leaves_is_gone_since_its_fin(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    v.now_ns = 4500;
    drive_fin(&v, DIR_UP);
    event(&v, 5000, DELTA("B"));
    v.now_ns = 5100;
    drive_reset(&v, DIR_UP, EPIPE);
    event(&v, 6000, STOP);
    end(&v);
    hold(1, F_t_client_gone_ns, 4500);
    hold(1, F_t_end_ns, 4500);
    hold_text(1, F_end_by, "client_reset");
    hold(1, F_end_errno, EPIPE);
    hold(1, F_body_whole, 0);
    absent(1, F_finish_reason);
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
}

static void a_client_fin_explains_a_cut(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    v.now_ns = 2500;
    drive_fin(&v, DIR_UP);
    v.now_ns = 3000;
    drive_fin(&v, DIR_DOWN);
    end(&v);
    hold_text(1, F_end_by, "client_fin");
    hold(1, F_t_client_gone_ns, 2500);
    absent(1, F_t_first_byte_ns);
    absent(1, F_body_whole);
}

static void ends_by_the_upstream(void **state) {
    static const struct {
        int error;
        const char *by;
    } rows[] = {{0, "upstream_fin"}, {ECONNRESET, "upstream_reset"}, {ETIMEDOUT, "upstream_timeout"}};
    for (int i = 0; i < 3; i++) {
        struct drive v;
        begin(&v);
        drive_post(&v, "/v1/chat/completions", "", CHAT);
        at(&v, 3000, DIR_DOWN, SSE);
        event(&v, 4000, DELTA("A"));
        v.now_ns = 5000;
        if (rows[i].error)
            drive_reset(&v, DIR_DOWN, rows[i].error);
        else
            drive_fin(&v, DIR_DOWN);
        end(&v);
        hold_text(1, F_end_by, rows[i].by);
        hold(1, F_t_end_ns, 5000);
        hold(1, F_body_whole, 0);
        hold(1, F_end_errno, rows[i].error ? rows[i].error : -1);
        absent(1, F_t_client_gone_ns);
    }
}

static void a_body_may_end_with_the_connection(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " DELTA("A") "\n\ndata: " STOP
                                                                                     "\n\n");
    v.now_ns = 5000;
    drive_fin(&v, DIR_DOWN);
    end(&v);
    hold_text(1, F_end_by, "complete");
    hold(1, F_t_end_ns, 5000);
    hold(1, F_body_whole, 1);
    hold_text(1, F_finish_reason, "stop");
}

static void what_comes_after_the_end_is_noted(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    drive_piece(&v, (struct piece){.kind = PIECE_DELIVERED, .off = v.off[DIR_DOWN]}, NULL);
    drive_reset(&v, DIR_DOWN, ECONNRESET);
    end(&v);
    hold_text(1, F_end_by, "complete");
    hold_text(1, F_after_end, "upstream_reset");
}

static void a_refused_request_has_no_status(void **state) {
    struct drive v;
    begin(&v);
    drive_piece(&v,
                (struct piece){.kind = PIECE_CONNECTED, .t2_ns = 2100, .t_ns = 2200, .value = ECONNREFUSED},
                NULL);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    v.now_ns = 3000;
    drive_piece(&v, (struct piece){.kind = PIECE_ANSWERED, .value = 502, .value2 = ECONNREFUSED}, NULL);
    end(&v);
    absent(1, F_status);
    hold(1, F_sent_status, 502);
    hold_text(1, F_end_by, "refused");
    hold(1, F_end_errno, ECONNREFUSED);
    hold(1, F_connect_errno, ECONNREFUSED);
    hold_text(1, F_model, "m");
}

static void what_runs_at_the_stop_is_told_so(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    dissect_stop(v.d, 9000);
    drive_stop(&v);
    assert_false(fake_misused());
    hold_text(1, F_end_by, "stop");
    hold(1, F_t_end_ns, 9000);
    assert_int_equal(fake_ended(SUBJECT_R), 1);
    assert_int_equal(fake_ended(SUBJECT_C), 1);
}

static void a_close_of_our_own_is_a_stop(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    drive_piece(&v, (struct piece){.kind = PIECE_CLOSE, .value = 1}, NULL);
    drive_stop(&v);
    hold_text(1, F_end_by, "stop");
}

/* A client half-closed, took ten tokens for 200 ms, then the upstream went away: seen as the client's leaving
 * at its FIN, before the first token. And the engine's own [DONE] without a finish reason read the same. */
static void a_client_that_takes_answers_after_its_fin_is_there(void **state) {
    static const struct {
        const char *by;
        int error;
        bool done;
    } rows[] = {{"upstream_reset", ECONNRESET, false}, {"upstream_fin", 0, false}, {"complete", 0, true}};
    for (int i = 0; i < 3; i++) {
        struct drive v;
        begin(&v);
        drive_post(&v, "/v1/chat/completions", "", CHAT);
        v.now_ns = 2500;
        drive_fin(&v, DIR_UP);
        at(&v, 3000, DIR_DOWN, SSE);
        for (int64_t k = 1; k <= 10; k++) event(&v, 3000 + 20000000 * k, DELTA("tok"));
        v.now_ns = 203000000;
        if (rows[i].done) event(&v, 203000000, "[DONE]");
        if (rows[i].done)
            at(&v, 203000000, DIR_DOWN, LAST);
        else if (rows[i].error)
            drive_reset(&v, DIR_DOWN, rows[i].error);
        else
            drive_fin(&v, DIR_DOWN);
        end(&v);
        hold_text(1, F_end_by, rows[i].by);
        hold(1, F_t_end_ns, 203000000);
        absent(1, F_t_client_gone_ns);
        size_t n;
        fake_events(&n);
        assert_int_equal(n, 10);
    }
}

/* An engine that reads its prompt for seconds writes to a client that has long left: its leaving was the FIN,
 * however late the first bytes and the reset that answers them. */
static void a_client_that_left_long_before_the_answer_is_gone_since_its_fin(void **state) {
    for (int reset = 0; reset < 2; reset++) {
        struct drive v;
        begin(&v);
        drive_post(&v, "/v1/chat/completions", "", CHAT);
        v.now_ns = 2500;
        drive_fin(&v, DIR_UP);
        at(&v, 5000000000, DIR_DOWN, SSE);
        event(&v, 5000000000, DELTA("A"));
        v.now_ns = 5000100000;
        if (reset)
            drive_reset(&v, DIR_UP, EPIPE);
        else
            at(&v, v.now_ns, DIR_DOWN, LAST);
        end(&v);
        hold_text(1, F_end_by, reset ? "client_reset" : "client_fin");
        hold(1, F_t_client_gone_ns, 2500);
        hold(1, F_t_end_ns, 2500);
    }
}

/* A client that took answers for long after its FIN left when it reset. */
static void a_half_closed_client_leaves_with_its_reset(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    v.now_ns = 2500;
    drive_fin(&v, DIR_UP);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    event(&v, 400000000, DELTA("B"));
    v.now_ns = 500000000;
    drive_reset(&v, DIR_UP, ECONNRESET);
    end(&v);
    hold_text(1, F_end_by, "client_reset");
    hold(1, F_t_client_gone_ns, 500000000);
}

/* A stream of no API that is known has no end sign that could be missing. */
static void a_stream_of_another_api_ends_as_framed(void **state) {
    struct drive v;
    begin(&v);
    drive_text(&v, DIR_UP, "GET /events HTTP/1.1\r\n\r\n");
    v.now_ns = 2500;
    drive_fin(&v, DIR_UP);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, "hello");
    at(&v, 5000, DIR_DOWN, LAST);
    end(&v);
    hold_text(1, F_end_by, "complete");
    absent(1, F_t_client_gone_ns);
}

/* An answer cut inside its head read as if the upstream had closed without a byte. */
static void an_answer_cut_in_its_head_has_begun(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-");
    v.now_ns = 4000;
    drive_fin(&v, DIR_DOWN);
    end(&v);
    hold(1, F_t_first_byte_ns, 3000);
    hold(1, F_response_bytes, (int64_t)v.off[DIR_DOWN]);
    hold_text(1, F_end_by, "upstream_fin");
    hold(1, F_t_end_ns, 4000);
    absent(1, F_status);
}

/* A request cut inside its head left no trace but its connection. */
static void a_request_cut_in_its_head_is_seen(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "POST /v1/chat/completions HTTP/1.1\r\nX-Long: aaaa");
    v.now_ns = 3000;
    drive_reset(&v, DIR_UP, ECONNRESET);
    end(&v);
    hold(1, F_t_arrive_ns, 2000);
    hold(1, F_t_end_ns, 3000);
    hold_text(1, F_api, "other");
    hold_text(1, F_end_by, "client_reset");
    absent(1, F_method);
    assert_int_equal(fake_begun(SUBJECT_R), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_half_closed_client_is_not_gone),
        cmocka_unit_test(a_body_ended_for_a_client_that_left_is_its_leaving),
        cmocka_unit_test(a_client_that_leaves_is_gone_since_its_fin),
        cmocka_unit_test(a_client_fin_explains_a_cut),
        cmocka_unit_test(ends_by_the_upstream),
        cmocka_unit_test(a_body_may_end_with_the_connection),
        cmocka_unit_test(what_comes_after_the_end_is_noted),
        cmocka_unit_test(a_refused_request_has_no_status),
        cmocka_unit_test(what_runs_at_the_stop_is_told_so),
        cmocka_unit_test(a_close_of_our_own_is_a_stop),
        cmocka_unit_test(a_client_that_takes_answers_after_its_fin_is_there),
        cmocka_unit_test(a_client_that_left_long_before_the_answer_is_gone_since_its_fin),
        cmocka_unit_test(a_half_closed_client_leaves_with_its_reset),
        cmocka_unit_test(a_stream_of_another_api_ends_as_framed),
        cmocka_unit_test(an_answer_cut_in_its_head_has_begun),
        cmocka_unit_test(a_request_cut_in_its_head_is_seen),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
