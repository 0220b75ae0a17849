/* What is told of heads and bodies, and what never is. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_flow.h"
#include "tests/unit/fake_trw.h"

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
    hold(1, F_answer_unread, 1);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_only_hashed),
        cmocka_unit_test(a_client_without_credential_is_its_address),
        cmocka_unit_test(large_bodies_are_counted_and_scanned),
        cmocka_unit_test(an_unknown_coding_is_named),
        cmocka_unit_test(odd_names_are_made_valid),
        cmocka_unit_test(a_queue_header_comes_with_the_wall_clock),
        cmocka_unit_test(counts_are_kept),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
