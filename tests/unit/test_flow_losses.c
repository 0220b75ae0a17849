/* What happens when pieces are missing, late, or begin in the middle. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_flow.h"
#include "tests/unit/fake_trw.h"

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
        cmocka_unit_test(shed_bytes_lose_the_request_and_no_other),
        cmocka_unit_test(an_end_that_was_not_seen_is_lost),
        cmocka_unit_test(a_resumed_flow_goes_on_with_the_next_message),
        cmocka_unit_test(an_answer_to_an_unseen_request_is_partial),
        cmocka_unit_test(a_lost_upload_does_not_lose_the_answer),
        cmocka_unit_test(each_lost_byte_counts_once),
        cmocka_unit_test(a_loss_told_late_concerns_no_later_request),
        cmocka_unit_test(pauses_and_late_reads_are_spans),
        cmocka_unit_test(what_the_recorder_lost_has_not_failed),
        cmocka_unit_test(a_flow_known_by_its_pieces_is_still_opened),
        cmocka_unit_test(a_resumed_flow_has_its_bytes),
        cmocka_unit_test(a_body_that_lost_bytes_keeps_its_size),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
