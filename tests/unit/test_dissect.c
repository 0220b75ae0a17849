/* Flows as the forwarder tells them: times, pairing, ends, and what happens when pieces are missing. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
#define SSE  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define LAST "0\r\n\r\n"

static void begin(struct drive *v) {
    drive_start(v);
    v->now_ns = 2000;
}

static void end(struct drive *v) {
    drive_close(v);
    drive_stop(v);
    assert_false(fake_misused());
    assert_int_equal(fake_begun(SUBJECT_R), fake_ended(SUBJECT_R));
    assert_int_equal(fake_begun(SUBJECT_C), fake_ended(SUBJECT_C));
}

static void at(struct drive *v, int64_t t_ns, enum dir dir, const char *text) {
    v->now_ns = t_ns;
    drive_text(v, dir, text);
}

/* A chunk around an event, so that sizes need not be counted by hand. */
static void event(struct drive *v, int64_t t_ns, const char *data) {
    char text[2048];
    snprintf(text, sizeof text, "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
    at(v, t_ns, DIR_DOWN, text);
}

#define DELTA(text)                                                                                          \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"}}]" \
    "}"
#define STOP                                                                                                 \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"        \
    "\"stop\"}]}"

static void hold(uint64_t id, enum fact f, int64_t right) {
    int64_t seen = fake_get(id, f, -1);
    if (seen != right)
        fail_msg("request %d: %s is %lld, right is %lld", (int)id, fact_infos[f].name, (long long)seen,
                 (long long)right);
}
static void hold_text(uint64_t id, enum fact f, const char *right) {
    const char *seen = fake_str(id, f);
    if (!seen || strcmp(seen, right) != 0)
        fail_msg("request %d: %s is %s, right is %s", (int)id, fact_infos[f].name, seen ? seen : "absent",
                 right);
}
static void absent(uint64_t id, enum fact f) {
    int64_t v;
    if (fake_int(id, f, &v) || fake_str(id, f))
        fail_msg("request %d: %s was told", (int)id, fact_infos[f].name);
}

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

static void shed_bytes_lose_the_request_and_no_other(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "X-Request-Id: one\r\n", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    v.now_ns = 5000;
    struct piece shed = {.kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_shed = 500};
    drive_piece(&v, shed, NULL);
    v.off[DIR_DOWN] += 500;
    v.now_ns = 6000;
    shed.off = v.off[DIR_DOWN], shed.n_shed = 100, shed.end_at = v.off[DIR_DOWN] + 100;
    drive_piece(&v, shed, NULL);
    v.off[DIR_DOWN] += 100;
    v.now_ns = 7000;
    drive_post(&v, "/v1/chat/completions", "X-Request-Id: two\r\n", CHAT);
    v.now_ns = 8000;
    const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    struct piece d = {
        .kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_bytes = (uint32_t)strlen(answer)};
    d.head_at = v.off[DIR_DOWN], d.end_at = d.head_at + d.n_bytes;
    drive_piece(&v, d, answer);
    end(&v);
    hold(1, F_t_end_ns, 6000);
    absent(1, F_body_whole);
    assert_true(fake_loss_count(LOSS_queue_full) >= 1);
    size_t n;
    assert_int_equal(fake_losses(&n)[0].request, 1);
    hold_text(2, F_request_id, "two");
    hold(2, F_status, 200);
    hold_text(2, F_end_by, "complete");
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
    assert_int_equal(fake_begun(SUBJECT_R), 2);
}

static void an_end_that_was_not_seen_is_lost(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    v.off[DIR_DOWN] += 5000; /* pieces that were not even queued */
    v.now_ns = 7000;
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    /* the answer's head: the forwarder says where it begins */
    const char *answer = "tail of the first\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    struct piece d = {
        .kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_bytes = (uint32_t)strlen(answer)};
    d.head_at = d.off + 19;
    v.now_ns = 8000;
    drive_piece(&v, d, answer);
    end(&v);
    hold_text(1, F_end_by, "lost");
    absent(1, F_t_end_ns);
    hold(2, F_status, 200);
    hold(2, F_t_end_ns, 8000);
    assert_int_equal(fake_loss_count(LOSS_pieces_dropped), 1);
}

static void a_resumed_flow_goes_on_with_the_next_message(void **state) {
    struct drive v;
    begin(&v);
    struct piece open = {.kind = PIECE_OPEN, .flow = 7, .flags = PIECE_RESUMED, .off = 100, .value2 = 2000};
    drive_piece(&v, open, NULL);
    struct piece d = {.kind = PIECE_DATA, .flow = 7, .dir = DIR_DOWN, .off = 2000, .n_bytes = 4};
    drive_piece(&v, d, "rest");
    const char *request = "GET /health HTTP/1.1\r\n\r\n",
               *answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct piece up = {.kind = PIECE_DATA, .flow = 7, .dir = DIR_UP, .off = 100, .head_at = 100};
    up.n_bytes = (uint32_t)strlen(request);
    drive_piece(&v, up, request);
    d.off = 2004, d.head_at = 2004, d.n_bytes = (uint32_t)strlen(answer);
    drive_piece(&v, d, answer);
    end(&v);
    hold(1, F_status, 200);
    hold(1, F_connection, 7);
    assert_int_equal(fake_begun(SUBJECT_R), 1);
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
}

static void an_answer_to_an_unseen_request_is_partial(void **state) {
    struct drive v;
    begin(&v);
    v.off[DIR_UP] += 500; /* the request was lost whole */
    at(&v, 2000, DIR_UP, "rest of its body");
    const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    at(&v, 3000, DIR_DOWN, answer);
    end(&v);
    hold(1, F_partial, 1);
    hold(1, F_status, 200);
    absent(1, F_t_arrive_ns);
    assert_int_equal(fake_loss_count(LOSS_unsolicited), 0);
}

static void a_lost_upload_does_not_lose_the_answer(void **state) {
    struct drive v;
    begin(&v);
    at(&v, 2000, DIR_UP,
       "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: "
       "100000\r\n\r\n{\"model\":\"m\",\"stream\":true,");
    struct piece shed = {
        .kind = PIECE_DATA, .dir = DIR_UP, .off = v.off[DIR_UP], .n_shed = 99973, .t2_ns = 2600};
    shed.end_at = shed.off + shed.n_shed;
    v.now_ns = 2500;
    drive_piece(&v, shed, NULL);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    event(&v, 5000, STOP);
    at(&v, 5000, DIR_DOWN, LAST);
    end(&v);
    hold(1, F_t_received_ns, 2500);
    hold(1, F_t_forwarded_ns, 2600);
    hold(1, F_request_cut, 1);
    hold(1, F_stream, 1);
    hold_text(1, F_model, "m");
    hold_text(1, F_finish_reason, "stop");
    hold_text(1, F_end_by, "complete");
}

/* The forwarder tells the sum of what it left out, before or behind the pieces that show it. */
static void each_lost_byte_counts_once(void **state) {
    for (int before = 0; before < 2; before++) {
        struct drive v;
        struct piece sum = {
            .kind = PIECE_LOSS, .value = LOSS_pieces_dropped, .t2_ns = 4000, .off = 3, .value2 = 500};
        begin(&v);
        drive_post(&v, "/v1/chat/completions", "", CHAT);
        at(&v, 3000, DIR_DOWN, SSE);
        if (before) drive_piece(&v, sum, NULL);
        v.off[DIR_DOWN] += 500;
        at(&v, 4000, DIR_DOWN, "rest");
        if (!before) drive_piece(&v, sum, NULL);
        v.off[DIR_UP] += 70; /* another one, which nobody has told yet */
        at(&v, 5000, DIR_UP, "rest");
        end(&v);
        size_t n;
        const struct fake_loss *l = fake_losses(&n);
        uint64_t bytes = 0;
        for (size_t i = 0; i < n; i++) bytes += l[i].bytes, assert_int_equal(l[i].request, 1);
        assert_int_equal(bytes, 570);
        assert_int_equal(fake_loss_count(LOSS_pieces_dropped), 4);
        hold_text(1, F_end_by, "lost");
    }
}

static void a_loss_told_late_concerns_no_later_request(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    struct piece shed = {.kind = PIECE_DATA, .dir = DIR_DOWN, .n_shed = 100, .end_at = 100};
    drive_piece(&v, shed, NULL);
    v.off[DIR_DOWN] = 100;
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    drive_piece(&v, (struct piece){.kind = PIECE_LOSS, .value = LOSS_queue_full, .off = 1, .value2 = 100},
                NULL);
    drive_piece(
        &v, (struct piece){.kind = PIECE_LOSS, .flow = 99, .value = LOSS_queue_full, .off = 7, .value2 = 9},
        NULL);
    end(&v);
    size_t n;
    const struct fake_loss *l = fake_losses(&n);
    assert_int_equal(n, 2);
    assert_int_equal(l[0].request, 1);
    assert_int_equal(l[1].request, 0); /* of a flow that is gone */
    assert_int_equal(fake_begun(SUBJECT_C), 1);
}

static void pauses_and_late_reads_are_spans(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    drive_piece(&v, (struct piece){.kind = PIECE_PAUSE, .dir = DIR_DOWN, .t_ns = 3500, .value = 4096}, NULL);
    drive_piece(&v, (struct piece){.kind = PIECE_RESUME, .dir = DIR_DOWN, .t_ns = 4500, .t2_ns = 3500}, NULL);
    struct piece late = {
        .kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_bytes = 5, .t_ns = 5000};
    late.late_ns = 2000000;
    drive_piece(&v, late, LAST);
    drive_piece(&v, (struct piece){.kind = PIECE_PAUSE, .dir = DIR_UP, .t_ns = 6000}, NULL);
    v.now_ns = 7000;
    end(&v);
    size_t n;
    const struct fake_span *s = fake_spans(&n);
    assert_int_equal(n, 4);
    assert_int_equal(s[0].fact, F_c_paused);
    assert_int_equal(s[0].value, DIR_DOWN);
    assert_int_equal(s[1].fact, F_paused);
    assert_int_equal(s[1].t0_ns, 3500);
    assert_int_equal(s[1].t1_ns, 4500);
    assert_int_equal(s[1].value, 4096);
    assert_int_equal(s[2].fact, F_late_read);
    assert_int_equal(s[2].t1_ns, 2005000);
    assert_int_equal(s[3].fact, F_c_paused); /* a pause that lasted until the end */
    assert_int_equal(s[3].t1_ns, 7000);
}

static void secrets_are_only_hashed(void **state) {
    struct drive v;
    char clients[3][64];
    for (int i = 0; i < 3; i++) {
        begin(&v);
        drive_post(&v, "/v1/chat/completions?key=test-0003#test-0003",
                   i == 2 ? "x-api-key: sk-test-0004\r\n"
                          : "Authorization: Bearer sk-test-0001\r\nCookie: sid=test-0002\r\n",
                   CHAT);
        at(&v, 3000, DIR_DOWN, "HTTP/1.1 200 OK\r\nSet-Cookie: test-0002\r\nContent-Length: 0\r\n\r\n");
        end(&v);
        snprintf(clients[i], sizeof clients[i], "%s", fake_str(1, F_client));
        assert_false(fake_holds("test-000"));
        hold_text(1, F_path, "/v1/chat/completions");
    }
    assert_string_equal(clients[0], clients[1]);
    assert_string_not_equal(clients[0], clients[2]);
}

static void a_client_without_credential_is_its_address(void **state) {
    struct drive v;
    char hash[2][64];
    begin(&v);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in in = {
            .sin_family = AF_INET, .sin_port = (in_port_t)i, .sin_addr.s_addr = 0x0100007f};
        drive_piece(&v, (struct piece){.kind = PIECE_OPEN, .flow = 10 + (uint64_t)i, .n_bytes = sizeof in},
                    &in);
        snprintf(hash[i], sizeof hash[i], "%s", fake_str(10 + (uint64_t)i, F_c_client));
    }
    end(&v);
    assert_string_equal(hash[0], hash[1]); /* the port does not count */
    assert_int_equal(strlen(hash[0]), 16);
}

static void large_bodies_are_counted_and_scanned(void **state) {
    struct drive v;
    size_t n = 20u << 20;
    char head[256], *part = malloc(1 << 16);
    memset(part, 'y', 1 << 16);
    begin(&v);
    const char *first =
        "{\"model\":\"m\",\"stream\":true,\"max_tokens\":7,\"messages\":[{\"role\":\"user\",\"content\":\"";
    snprintf(head, sizeof head, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s",
             n + strlen(first), first);
    at(&v, 2000, DIR_UP, head);
    for (size_t i = 0; i < n; i += 1 << 16) drive_bytes(&v, DIR_UP, part, 1 << 16);
    free(part);
    at(&v, 3000, DIR_DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    end(&v);
    hold(1, F_request_body_bytes, (int64_t)(n + strlen(first)));
    hold(1, F_request_cut, 1);
    hold_text(1, F_model, "m");
    hold(1, F_max_tokens, 7);
    hold(1, F_stream, 1);
    hold(1, F_messages, 1);
    assert_int_equal(fake_loss_count(LOSS_body_unread), 1);
    hold(1, F_body_unread_bytes, (int64_t)(n + strlen(first)));
}

static void an_unknown_coding_is_named(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\nContent-Length: "
       "4\r\n\r\nabcd");
    end(&v);
    hold_text(1, F_undecodable, "br");
    hold(1, F_response_body_bytes, 4);
    assert_int_equal(fake_loss_count(LOSS_undecodable), 1);
    assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
}

static void odd_names_are_made_valid(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "",
               "{\"model\":\"a\xff"
               "b\",\"messages\":[]}");
    end(&v);
    hold_text(1, F_model,
              "a\xef\xbf\xbd"
              "b");
    hold(1, F_json_repairs, 1);
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

static void a_queue_header_comes_with_the_wall_clock(void **state) {
    struct drive v;
    begin(&v);
    drive_piece(&v, (struct piece){.kind = PIECE_CLOCK, .t_ns = 1500, .t2_ns = 1790000000000001500}, NULL);
    drive_post(&v, "/v1/chat/completions",
               "X-Queue-Start: 1789999999500\r\nX-Request-Start: t=1789999999.250\r\n", CHAT);
    end(&v);
    hold(1, F_queue_start_wall_ns, 1789999999250000000);
    hold(1, F_arrive_wall_ns, 1790000000000002000);
    hold_text(1, F_queue_header, "t=1789999999.250");
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

static void counts_are_kept(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    assert_int_equal(v.shared->counts.running, 1);
    at(&v, 3000, DIR_DOWN, SSE);
    event(&v, 4000, DELTA("A"));
    event(&v, 5000, STOP);
    at(&v, 6000, DIR_DOWN, LAST);
    assert_int_equal(v.shared->counts.running, 0);
    assert_int_equal(v.shared->counts.requests, 1);
    assert_int_equal(v.shared->counts.ok, 1);
    assert_int_equal(v.shared->counts.token_events, 1);
    assert_int_equal(v.shared->counts.output_tokens, 1);
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

/* A request of which the recorder lost pieces was counted as failed: the line of status blamed the engine. */
static void what_the_recorder_lost_has_not_failed(void **state) {
    struct drive v;
    begin(&v);
    drive_post(&v, "/v1/chat/completions", "", CHAT);
    at(&v, 3000, DIR_DOWN, SSE);
    struct piece shed = {.kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_shed = 100};
    shed.end_at = shed.off + 100;
    drive_piece(&v, shed, NULL);
    hold_text(1, F_end_by, "complete");
    assert_int_equal(v.shared->counts.requests, 1);
    assert_int_equal(v.shared->counts.lost_requests, 1);
    assert_int_equal(v.shared->counts.failed, 0);
    end(&v);
}

/* After a restart of the recorder the first pieces of a flow made it known before its OPEN came: that was
 * passed over, and no later request of the flow had an upstream. */
static void a_flow_known_by_its_pieces_is_still_opened(void **state) {
    struct drive v;
    begin(&v);
    struct piece d = {.kind = PIECE_DATA, .flow = 7, .dir = DIR_DOWN, .off = 2000, .n_bytes = 4};
    drive_piece(&v, d, "rest");
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
    struct piece open = {.kind = PIECE_OPEN, .flow = 7, .flags = PIECE_RESUMED, .off = 100, .value2 = 2004};
    open.n_bytes = sizeof in;
    drive_piece(&v, open, &in);
    absent(7, F_t_connect_ns); /* it was accepted long before */
    hold_text(7, F_c_upstream, "127.0.0.1:8000");
    hold_text(7, F_c_listen, "127.0.0.1:8001");
    assert_non_null(fake_str(7, F_c_client));
    const char *request = "GET /health HTTP/1.1\r\n\r\n", *answer = "HTTP/1.1 204 No\r\n\r\n";
    struct piece up = {.kind = PIECE_DATA, .flow = 7, .dir = DIR_UP, .off = 100, .head_at = 100};
    up.n_bytes = (uint32_t)strlen(request);
    drive_piece(&v, up, request);
    d.off = 2004, d.head_at = 2004, d.n_bytes = (uint32_t)strlen(answer);
    drive_piece(&v, d, answer);
    drive_piece(&v, (struct piece){.kind = PIECE_CLOSE, .flow = 7}, NULL);
    end(&v);
    hold_text(1, F_upstream, "127.0.0.1:8000");
    hold_text(1, F_client, fake_str(7, F_c_client));
    hold(1, F_status, 204);
    hold(7, F_bytes_up, 100 + (int64_t)strlen(request));
    assert_int_equal(fake_loss_count(LOSS_pieces_dropped), 0);
}

/* A flow that is resumed and closes without another byte told the bytes of none. */
static void a_resumed_flow_has_its_bytes(void **state) {
    struct drive v;
    begin(&v);
    struct piece open = {.kind = PIECE_OPEN, .flow = 7, .flags = PIECE_RESUMED, .off = 100, .value2 = 2000};
    drive_piece(&v, open, NULL);
    drive_piece(&v, (struct piece){.kind = PIECE_CLOSE, .flow = 7}, NULL);
    end(&v);
    hold(7, F_bytes_up, 100);
    hold(7, F_bytes_down, 2000);
    absent(7, F_t_connect_ns);
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

/* A large upload of which the recorder shed a part was told smaller than it was. */
static void a_body_that_lost_bytes_keeps_its_size(void **state) {
    struct drive v;
    size_t n = 20u << 20;
    char head[256], *part = calloc(1, 1 << 16);
    begin(&v);
    snprintf(head, sizeof head, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", n);
    at(&v, 2000, DIR_UP, head);
    size_t left = n - 1000;
    for (size_t k; left > 0; left -= k) k = left < 1 << 16 ? left : 1 << 16, drive_bytes(&v, DIR_UP, part, k);
    free(part);
    struct piece shed = {.kind = PIECE_DATA, .dir = DIR_UP, .off = v.off[DIR_UP], .n_shed = 1000};
    shed.end_at = shed.off + 1000;
    drive_piece(&v, shed, NULL);
    at(&v, 3000, DIR_DOWN,
       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n");
    shed = (struct piece){.kind = PIECE_DATA, .dir = DIR_DOWN, .off = v.off[DIR_DOWN], .n_shed = 500};
    shed.end_at = shed.off + 500;
    hold(1, F_body_unread_bytes, (int64_t)n);
    hold(1, F_request_body_bytes, (int64_t)n);
    drive_piece(&v, shed, NULL);
    end(&v);
    hold(1, F_response_body_bytes, 500);
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
        cmocka_unit_test(a_half_closed_client_is_not_gone),
        cmocka_unit_test(a_body_ended_for_a_client_that_left_is_its_leaving),
        cmocka_unit_test(a_client_that_leaves_is_gone_since_its_fin),
        cmocka_unit_test(a_client_fin_explains_a_cut),
        cmocka_unit_test(ends_by_the_upstream),
        cmocka_unit_test(a_body_may_end_with_the_connection),
        cmocka_unit_test(what_comes_after_the_end_is_noted),
        cmocka_unit_test(a_refused_request_has_no_status),
        cmocka_unit_test(an_answer_may_come_before_the_request_is_whole),
        cmocka_unit_test(an_answer_to_half_a_head_has_its_request),
        cmocka_unit_test(shed_bytes_lose_the_request_and_no_other),
        cmocka_unit_test(an_end_that_was_not_seen_is_lost),
        cmocka_unit_test(a_resumed_flow_goes_on_with_the_next_message),
        cmocka_unit_test(an_answer_to_an_unseen_request_is_partial),
        cmocka_unit_test(a_lost_upload_does_not_lose_the_answer),
        cmocka_unit_test(each_lost_byte_counts_once),
        cmocka_unit_test(a_loss_told_late_concerns_no_later_request),
        cmocka_unit_test(pauses_and_late_reads_are_spans),
        cmocka_unit_test(secrets_are_only_hashed),
        cmocka_unit_test(a_client_without_credential_is_its_address),
        cmocka_unit_test(large_bodies_are_counted_and_scanned),
        cmocka_unit_test(an_unknown_coding_is_named),
        cmocka_unit_test(odd_names_are_made_valid),
        cmocka_unit_test(what_runs_at_the_stop_is_told_so),
        cmocka_unit_test(a_close_of_our_own_is_a_stop),
        cmocka_unit_test(a_queue_header_comes_with_the_wall_clock),
        cmocka_unit_test(many_requests_on_one_connection_do_not_pile_up),
        cmocka_unit_test(counts_are_kept),
        cmocka_unit_test(a_flood_of_requests_is_bounded),
        cmocka_unit_test(answered_requests_are_no_flood),
        cmocka_unit_test(a_client_that_takes_answers_after_its_fin_is_there),
        cmocka_unit_test(a_client_that_left_long_before_the_answer_is_gone_since_its_fin),
        cmocka_unit_test(a_half_closed_client_leaves_with_its_reset),
        cmocka_unit_test(a_stream_of_another_api_ends_as_framed),
        cmocka_unit_test(what_the_recorder_lost_has_not_failed),
        cmocka_unit_test(a_flow_known_by_its_pieces_is_still_opened),
        cmocka_unit_test(a_resumed_flow_has_its_bytes),
        cmocka_unit_test(an_answer_cut_in_its_head_has_begun),
        cmocka_unit_test(a_request_cut_in_its_head_is_seen),
        cmocka_unit_test(a_body_that_lost_bytes_keeps_its_size),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
