/* Gemini's streams on the wire: an array of answers, an object in its place, and errors that stand bare among
 * events. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A response to a streamed request, read in steps of that many bytes (0: at once). Bodies are chunked. */
static void answer_on_wire(const char *head, const char *text, size_t step, bool whole) {
    struct drive v;
    char *wire = NULL;
    int n = asprintf(&wire, "HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n%s", head,
                     strlen(text), text, whole ? "0\r\n\r\n" : "");
    assert_true(n > 0);
    drive_start(&v);
    v.now_ns = 2000;
    drive_post(&v, "/v1beta/models/lumen:streamGenerateContent", "", "{\"contents\":[]}");
    v.now_ns = 10000;
    drive_cut(&v, DIR_DOWN, wire, (size_t)n, step ? step : (size_t)n);
    drive_fin(&v, DIR_DOWN);
    drive_close(&v);
    drive_stop(&v);
    assert_false(fake_misused());
    free(wire);
}

static void an_array_is_a_stream(void **state) {
    const char *text =
        "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ab\"}]}}],\"usageMetadata\":"
        "{\"candidatesTokenCount\":1}}\n,\r\n{\"candidates\":[{\"content\":{\"parts\":[{\"text\":"
        "\"c]\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"candidatesTokenCount\":3}}\n]\n";
    for (size_t step = 0; step < 40; step++) {
        answer_on_wire("200 OK\r\nContent-Type: application/json; charset=UTF-8", text, step, true);
        hold(F_streamed, 1);
        hold(F_events, 2);
        hold(F_typed_end, 1);
        hold(F_body_whole, 1);
        hold(F_output_tokens_told, 3);
        hold_event(0, TOK_CONTENT, 2, 1);
        hold_event(1, TOK_CONTENT | TOK_FINISH | TOK_STOP, 2, 3);
        assert_int_equal(n_events(), 2);
    }
}

/* An array without its end is no whole answer, whatever the transfer says. */
static void an_array_that_is_torn(void **state) {
    const char *text = "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ab\"}]}}]}\n,";
    answer_on_wire("200 OK\r\nContent-Type: application/json", text, 7, true);
    hold(F_typed_end, -1);
    hold(F_event_cut, -1);
    assert_int_equal(n_events(), 1);
    answer_on_wire("200 OK\r\nContent-Type: application/json",
                   "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ab\"}]}}]},{\"candid", 7, false);
    hold(F_typed_end, -1);
    hold(F_event_cut, 1);
    hold(F_events, 1);
    hold(F_body_whole, 0);
    assert_int_equal(n_events(), 1);
}

static void an_object_in_its_place_is_whole(void **state) {
    const char *error = "{\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}";
    for (size_t step = 0; step < 9; step++) {
        answer_on_wire("200 OK\r\nContent-Type: application/json", error, step, true);
        hold(F_streamed, 0);
        hold(F_events, -1);
        hold(F_stream_error, 1);
        hold_text(F_error_type, "UNAVAILABLE");
        answer_on_wire(
            "429 Too Many\r\nContent-Type: application/json",
            "[{\"error\":{\"code\":429,\"message\":\"quota\",\"status\":\"RESOURCE_EXHAUSTED\"}}]\n", step,
            true);
        hold(F_streamed, 0);
        hold(F_events, -1);
        hold(F_stream_error, -1);
        hold_text(F_error_type, "RESOURCE_EXHAUSTED");
        hold(F_error_bytes, 5);
    }
}

/* An error's JSON stands bare between the events of a stream, over several lines. */
static void a_bare_error_in_an_event_stream(void **state) {
    static const char *const texts[] = {
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ab\"}]}}]}\r\n\r\n{\n  \"error\": {\n   "
        " "
        "\"code\": 503,\n    \"message\": \"overloaded: again\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n",
        "data: "
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ab\"}]}}]}\n\n{\r\n\"error\":\r\n{\"code\":"
        "503,"
        "\r\n\"message\":\"overloaded: again\",\r\n\"status\":\"UNAVAILABLE\"}}\r\n\r\n",
    };
    for (int i = 0; i < 2; i++)
        for (size_t step = 0; step < 40; step++) {
            answer_on_wire("200 OK\r\nContent-Type: text/event-stream", texts[i], step, true);
            hold(F_stream_error, 1);
            hold_text(F_error_type, "UNAVAILABLE");
            hold_text(F_error_code, "503");
            hold(F_error_bytes, 17);
            assert_int_equal(n_events(), 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_a_stream),
        cmocka_unit_test(an_array_that_is_torn),
        cmocka_unit_test(an_object_in_its_place_is_whole),
        cmocka_unit_test(a_bare_error_in_an_event_stream),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
