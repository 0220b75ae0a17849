/* Bodies that are not what their heads say. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CHAT   "/v1/chat/completions"
#define OLLAMA "/api/chat"
#define LINE_1                                                                                               \
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"a}\\\"\"},\"done\":false}\n"
#define LINE_2                                                                                               \
    "{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":" \
    "2}\n"
#define DELTA                                                                                                \
    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}"
#define SSE "data: " DELTA "\n\ndata: [DONE]\n\n"
#define WHOLE                                                                                                \
    "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"hello\"},"         \
    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}"

static void hold(enum fact f, int64_t right, const char *fields, size_t step) {
    int64_t seen = fake_get(1, f, -1);
    if (seen != right)
        fail_msg("%s, reads of %zu: %s is %lld, right is %lld", fields, step, fact_infos[f].name,
                 (long long)seen, (long long)right);
}

/* Each read comes 1000 ns after the one before; the first at 1000. */
static void exchange(const char *path, const char *fields, const char *body, size_t step) {
    struct drive v;
    char head[512];
    size_t n = strlen(body);
    drive_start(&v);
    drive_post(&v, path, "", "{\"model\":\"m\",\"messages\":[]}");
    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", fields, n);
    drive_text(&v, DIR_DOWN, head);
    for (size_t i = 0; i < n; i += step) {
        v.now_ns = 1000 * (int64_t)(i / step + 1);
        drive_bytes(&v, DIR_DOWN, body + i, n - i < step ? n - i : step);
    }
    drive_close(&v);
    drive_stop(&v);
}

static const char *const types[] = {"",
                                    "Content-Type: application/json\r\n",
                                    "Content-Type: text/json\r\n",
                                    "Content-Type: text/plain\r\n",
                                    "Content-Type: text/html\r\n",
                                    "Content-Type: application/x-ndjson\r\n",
                                    "Content-Type: text/event-stream\r\n"};
enum { N_TYPES = sizeof types / sizeof *types };

static void lines_of_json_are_events_under_any_type(void **state) {
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t step = 1; step <= strlen(LINE_1 LINE_2); step++) {
            exchange(OLLAMA, types[t], LINE_1 LINE_2, step);
            hold(F_streamed, 1, types[t], step);
            hold(F_output_tokens_told, 2, types[t], step);
            hold(F_events, 2, types[t], step);
            assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
            size_t n;
            const struct tok_event *e = fake_events(&n);
            assert_int_equal(n, 2);
            /* the first counts from when it came, not from when the second showed what it is */
            assert_int_equal(e[0].t_ns, 1000 * (int64_t)((strlen(LINE_1) - 1) / step + 1));
        }
}

static void fields_are_an_event_stream_under_any_type(void **state) {
    static const char *const begins[] = {"",  ": ping\n\n", "event: x\n", "retry: 3\n\n", "\xef\xbb\xbf",
                                         "\n"};
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            for (size_t step = 1; step <= 40; step++) {
                char body[512];
                snprintf(body, sizeof body, "%s" SSE, begins[i]);
                exchange(CHAT, types[t], body, step);
                hold(F_streamed, 1, types[t], step);
                hold(F_events, 2, types[t], step);
                hold(F_text_bytes, 1, types[t], step);
            }
}

static void one_object_is_a_whole_body_under_any_type(void **state) {
    static const char *const ends[] = {"", "\n", "\r\n \n"};
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            for (size_t step = 1; step <= strlen(WHOLE) + 4; step++) {
                if (strstr(types[t], "ndjson")) continue; /* one line is one event there */
                char body[512];
                snprintf(body, sizeof body, "%s%s", WHOLE, ends[i]);
                exchange(CHAT, types[t], body, step);
                hold(F_streamed, 0, types[t], step);
                hold(F_output_tokens_told, 3, types[t], step);
                assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
            }
}

static void a_generation_that_cannot_be_read_is_said(void **state) {
    exchange(CHAT, "Content-Type: text/html\r\n", "<html>log in</html>", 7);
    assert_int_equal(fake_loss_count(LOSS_bad_json), 1);
    exchange(CHAT, "", "even so", 1);
    assert_int_equal(fake_loss_count(LOSS_bad_json), 1);
    exchange("/v1/audio/speech", "Content-Type: audio/mpeg\r\n", "data: \x01\x02", 3);
    assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
    hold(F_streamed, 0, "audio", 3);
}

static void a_word_that_is_no_coding_hides_nothing(void **state) {
    exchange(CHAT, "Content-Type: application/json\r\nContent-Encoding: UTF-8\r\n", WHOLE, 9);
    hold(F_output_tokens_told, 3, "UTF-8", 9);
}

static void a_total_before_a_stream_is_none(void **state) {
    static const char *const body[] = {SSE, WHOLE};
    for (size_t t = 0; t < N_TYPES; t++)
        for (int whole = 0; whole < 2; whole++) {
            if (whole && (strstr(types[t], "ndjson") || strstr(types[t], "event"))) continue;
            char fields[256];
            snprintf(fields, sizeof fields, "%sopenai-processing-ms: 412\r\nx-queue-time: 2\r\n", types[t]);
            exchange(CHAT, fields, body[whole], 50);
            hold(F_reported_total_ns, whole ? 412000000 : -1, fields, 50);
            hold(F_reported_queue_ns, 2000000, fields, 50);
        }
}

static void request_ids_have_two_names(void **state) {
    exchange(CHAT, "request-id: req_1\r\n", WHOLE, 50);
    assert_string_equal(fake_str(1, F_response_request_id), "req_1");
    exchange(CHAT, "request-id: req_1\r\nx-request-id: req_2\r\n", WHOLE, 50);
    assert_string_equal(fake_str(1, F_response_request_id), "req_2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_json_are_events_under_any_type),
        cmocka_unit_test(fields_are_an_event_stream_under_any_type),
        cmocka_unit_test(one_object_is_a_whole_body_under_any_type),
        cmocka_unit_test(a_generation_that_cannot_be_read_is_said),
        cmocka_unit_test(a_word_that_is_no_coding_hides_nothing),
        cmocka_unit_test(a_total_before_a_stream_is_none),
        cmocka_unit_test(request_ids_have_two_names),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
