/* Flows as the forwarder tells them: times, pairing of answers, tunnels, other protocols, floods. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_flow.h"
#include "tests/unit/fake_trw.h"

static void times_of_a_stream(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    event(&v, 5000, DELTA("B"));
    event(&v, 6000, STOP);
    at(&v, 7000, DIR_DOWN, LAST);
    v.now_ns = 7100;
    drive_piece(&v, (struct piece){.kind = PIECE_DELIVERED, .off = v.off[DIR_DOWN]}, NULL);
    end(&v);
    hold(1, F_t_arrive_ns, 2000);
    hold(1, F_t_received_ns, 2000);
    hold(1, F_t_forwarded_ns, 2001);
    hold(1, F_t_first_byte_ns, 3000);
    hold(1, F_t_end_ns, 7000);
    hold(1, F_t_delivered_ns, 7100);
    hold(1, F_events, 3);
    hold(1, F_response_bytes, (int64_t)v.off[DIR_DOWN]);
    hold(1, F_request_bytes, (int64_t)v.off[DIR_UP]);
    hold_text(1, F_end_by, "complete");
    hold_text(1, F_stamp_source, "clock");
    size_t n;
    const struct tok_event *e = fake_events(&n);
    assert_int_equal(n, 3);
    assert_int_equal(e[0].t_ns, 4000);
    assert_int_equal(e[1].read, e[0].read + 1);
    assert_int_equal(e[2].what, TOK_FINISH | TOK_STOP);
    hold(1, F_stop_finishes, 1);
}

static void forwarding_may_be_told_later(void **state) {
    struct drive v;
    begin(&v);
    const char *text = "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    struct piece d = {
        .kind = PIECE_DATA, .dir = DIR_UP, .n_bytes = (uint32_t)strlen(text), .flags = PIECE_KERNEL_TIME};
    drive_piece(&v, d, text);
    absent(1, F_t_forwarded_ns);
    drive_piece(&v, (struct piece){.kind = PIECE_WROTE, .dir = DIR_UP, .off = strlen(text) - 1, .t_ns = 2500},
                NULL);
    absent(1, F_t_forwarded_ns);
    drive_piece(&v, (struct piece){.kind = PIECE_WROTE, .dir = DIR_UP, .off = strlen(text), .t_ns = 2600},
                NULL);
    hold(1, F_t_forwarded_ns, 2600);
    end(&v);
    hold_text(1, F_stamp_source, "kernel");
}

static void pipelined_answers_pair_in_order(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP,
       "GET /v1/models HTTP/1.1\r\nX-Request-Id: one\r\n\r\nGET /health HTTP/1.1\r\nX-Request-Id: "
       "two\r\n\r\n");
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
    end(&v);
    hold_text(1, F_request_id, "one");
    hold(1, F_status, 200);
    hold_text(2, F_request_id, "two");
    hold(2, F_status, 404);
    hold(2, F_pipelined, 1);
    absent(1, F_pipelined);
    hold(1, F_t_forwarded_ns, 2001);
    hold(2, F_t_forwarded_ns, 3000); /* the server began with it when it had answered the first */
    hold_text(1, F_api, "other");
    assert_int_equal(fake_begun(SUBJECT_R), 2);
}

static void interim_responses_are_not_the_response(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP,
       "POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 100 Continue\r\n\r\n");
    at(&v, 4000, DIR_UP, "{}");
    at(&v, 5000, DIR_DOWN, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    end(&v);
    hold(1, F_expect_continue, 1);
    hold(1, F_t_received_ns, 4000);
    hold(1, F_t_forwarded_ns, 4001);
    hold(1, F_t_first_byte_ns, 5000);
    hold(1, F_status, 200);
    assert_int_equal(fake_begun(SUBJECT_R), 1);
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
}

static void some_answers_have_no_body(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "HEAD /a HTTP/1.1\r\n\r\n");
    at(&v, 2100, DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    at(&v, 2200, DIR_UP, "POST /b HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    at(&v, 2300, DIR_DOWN, "HTTP/1.1 204 No\r\n\r\n");
    at(&v, 2400, DIR_UP, "GET /c HTTP/1.1\r\n\r\n");
    at(&v, 2500, DIR_DOWN, "HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n");
    hold(1, F_t_end_ns, 2100);
    hold(2, F_t_end_ns, 2300);
    hold(3, F_t_end_ns, 2500);
    end(&v);
    assert_int_equal(fake_begun(SUBJECT_R), 3);
}

static void surplus_bytes_are_no_answer(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "GET /v1/models HTTP/1.1\r\n\r\n");
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad");
    at(&v, 3500, DIR_DOWN, "more, and no HTTP");
    at(&v, 4000, DIR_UP, "GET /health HTTP/1.1\r\n\r\n");
    at(&v, 5000, DIR_DOWN, "HTTP/1.1 201 OK\r\nContent-Length: 4\r\n\r\ngood");
    end(&v);
    hold(1, F_response_body_bytes, 2);
    hold(2, F_status, 201);
    hold(2, F_t_first_byte_ns, 5000);
    size_t n;
    const struct fake_loss *l = fake_losses(&n);
    assert_int_equal(n, 2);
    assert_int_equal(l[0].loss, LOSS_unsolicited);
    assert_int_equal(l[0].bytes, strlen("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad"));
    assert_int_equal(l[0].request, 0);
    assert_int_equal(l[1].bytes, strlen("more, and no HTTP"));
}

static void an_upgrade_makes_a_tunnel(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "GET /v1/realtime HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x05hello");
    at(&v, 4000, DIR_UP, "GET / HTTP/1.1\r\n\r\n");
    at(&v, 5000, DIR_DOWN,
       "\x81\x03"
       "bye");
    v.now_ns = 6000;
    drive_fin(&v, DIR_DOWN);
    v.now_ns = 6500;
    end(&v);
    hold_text(1, F_api, "upgraded");
    hold(1, F_status, 101);
    hold(1, F_t_end_ns, 6500);
    hold_text(1, F_protocol, "websocket");
    assert_int_equal(fake_begun(SUBJECT_R), 1);
    assert_int_equal(fake_loss_count(LOSS_unsolicited) + fake_loss_count(LOSS_opaque_flow), 0);
}

static void an_upgrade_that_is_not_taken_is_a_plain_request(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    at(&v, 5000, DIR_DOWN, LAST);
    end(&v);
    hold_text(1, F_api, "openai-chat");
    hold(1, F_messages, 1);
    hold_text(1, F_end_by, "complete");
}

static void connect_makes_a_tunnel(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "CONNECT host:443 HTTP/1.1\r\n\r\n");
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 200 OK\r\n\r\n");
    at(&v, 4000, DIR_UP, "\x16\x03\x01");
    end(&v);
    hold_text(1, F_api, "upgraded");
    hold_text(1, F_protocol, "connect");
}

static void other_protocols_are_opaque(void **state) {
    static const struct {
        const char *bytes, *protocol;
    } rows[] = {{"\x16\x03\x01 hello", "tls"},
                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "h2"},
                {"\x01\x02 garbage", "raw"}};
    for (int i = 0; i < 3; i++)
        for (int cut = 0; cut < 2; cut++) {
            struct drive v;
            begin(&v);
            drive_cut(&v, DIR_UP, rows[i].bytes, strlen(rows[i].bytes), cut ? 1 : 99);
            at(&v, 3000, DIR_DOWN, "anything");
            end(&v);
            hold_text(1, F_protocol, rows[i].protocol);
            assert_non_null(fake_str(1, F_opaque_why));
            assert_int_equal(fake_begun(SUBJECT_R), 0);
            assert_int_equal(fake_loss_count(LOSS_opaque_flow), 1);
            assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
            hold(1, F_bytes_up, (int64_t)strlen(rows[i].bytes));
            hold(1, F_bytes_down, 8);
        }
}

static void an_answer_may_come_before_the_request_is_whole(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP,
       "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{\"model\":\"big\",");
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    v.now_ns = 100000000000;
    drive_piece(&v, (struct piece){.kind = PIECE_CLOCK, .t2_ns = 5}, NULL);
    end(&v);
    hold(1, F_status, 413);
    hold(1, F_t_end_ns, 3000);
    hold_text(1, F_api, "openai-chat");
    hold_text(1, F_model, "big");
    hold(1, F_request_cut, 1);
    absent(1, F_t_received_ns);
}

static void an_answer_to_half_a_head_has_its_request(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP, "POST /v1/chat/completions HTTP/1.1\r\nX-Long: aaaaaaaa");
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 431 Too Large\r\nContent-Length: 0\r\n\r\n");
    end(&v);
    hold(1, F_status, 431);
    hold(1, F_t_arrive_ns, 2000);
}

static void many_requests_on_one_connection_do_not_pile_up(void **state) {
    struct drive v;
    begin(&v);
    for (int i = 0; i < 1000; i++) {
        v.now_ns += 1000000;
        drive_text(&v, DIR_UP, "GET /health HTTP/1.1\r\n\r\n");
        drive_text(&v, DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    assert_true(fake_begun(SUBJECT_R) - fake_ended(SUBJECT_R) < 100);
    assert_int_equal(v.shared->counts.other, 1000);
    end(&v);
}

/* A client sent 40,000 tiny requests to a server that never answers: each piece walked all of them, and each
 * took 5 KB. Now 1,024 wait, and the flow is opaque from there on. */
static void a_flood_of_requests_is_bounded(void **state) {
    enum { N = 5000, OPEN_MAX = 1024 };
    static const char get[] = "GET /health HTTP/1.1\r\n\r\n", no[] = "HTTP/1.1 204 No\r\n\r\n";
    struct drive v;
    begin(&v);
    for (int i = 0; i < N; i++) drive_text(&v, DIR_UP, get);
    assert_int_equal(fake_begun(SUBJECT_R), OPEN_MAX);
    hold(OPEN_MAX, F_t_received_ns, 2000);
    absent(OPEN_MAX, F_t_forwarded_ns); /* the server has others before it */
    hold_text(1, F_opaque_why, "more than 1,024 requests waiting");
    hold_text(1, F_protocol, "http1");
    assert_int_equal(fake_loss_count(LOSS_opaque_flow), 1);
    /* those that wait get their answers; the rest of the answers belong to requests that were not read */
    v.now_ns = 3000;
    for (int i = 0; i < N; i++) drive_text(&v, DIR_DOWN, no);
    hold(OPEN_MAX, F_status, 204);
    hold(OPEN_MAX, F_t_forwarded_ns, 3000);
    hold_text(OPEN_MAX, F_end_by, "complete");
    v.now_ns = 3500;
    drive_piece(&v, (struct piece){.kind = PIECE_DELIVERED, .off = v.off[DIR_DOWN]}, NULL);
    hold(1, F_t_delivered_ns, 3500);
    hold(OPEN_MAX, F_t_delivered_ns, 3500);
    end(&v);
    assert_int_equal(fake_begun(SUBJECT_R), OPEN_MAX);
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
    assert_int_equal(fake_loss_count(LOSS_opaque_flow), 1);
    hold(1, F_bytes_up, (int64_t)(N * strlen(get)));
    hold(1, F_bytes_down, (int64_t)(N * strlen(no)));
}

/* 1,024 is a bound on what waits, not on a connection's life. */
static void answered_requests_are_no_flood(void **state) {
    struct drive v;
    begin(&v);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 1000; k++) drive_text(&v, DIR_UP, "GET /health HTTP/1.1\r\n\r\n");
        for (int k = 0; k < 1000; k++) drive_text(&v, DIR_DOWN, "HTTP/1.1 204 No\r\n\r\n");
    }
    end(&v);
    assert_int_equal(fake_begun(SUBJECT_R), 3000);
    absent(1, F_opaque_why);
    hold(3000, F_status, 204);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_a_stream),
        cmocka_unit_test(forwarding_may_be_told_later),
        cmocka_unit_test(pipelined_answers_pair_in_order),
        cmocka_unit_test(interim_responses_are_not_the_response),
        cmocka_unit_test(some_answers_have_no_body),
        cmocka_unit_test(surplus_bytes_are_no_answer),
        cmocka_unit_test(an_upgrade_makes_a_tunnel),
        cmocka_unit_test(an_upgrade_that_is_not_taken_is_a_plain_request),
        cmocka_unit_test(connect_makes_a_tunnel),
        cmocka_unit_test(other_protocols_are_opaque),
        cmocka_unit_test(an_answer_may_come_before_the_request_is_whole),
        cmocka_unit_test(an_answer_to_half_a_head_has_its_request),
        cmocka_unit_test(many_requests_on_one_connection_do_not_pile_up),
        cmocka_unit_test(a_flood_of_requests_is_bounded),
        cmocka_unit_test(answered_requests_are_no_flood),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
