/* What LM Studio's own chat says, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_request_in_full(void **state) {
    begin();
    asked("/api/v1/chat",
          "{\"model\":\"m\",\"stream\":true,\"max_output_tokens\":5,\"system_prompt\":\"abc\",\"input\":[{"
          "\"type\":\"text\",\"content\":\"\\u00e9\"},{\"type\":\"image\",\"data_url\":\"data:x\"}]}");
    end();
    hold_text(F_api, "lmstudio-chat");
    hold_text(F_model, "m");
    hold(F_stream, 1);
    hold(F_max_tokens, 5);
    hold(F_messages, 2);
    hold(F_messages_system, 1);
    hold(F_messages_user, 1);
    hold(F_images, 1);
    hold(F_prompt_bytes, 5);
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/api/v1/chat", "{\"input\":\"x\"}", "lmstudio-chat"},
        {"/lm/api/v1/chat/", "not json", "lmstudio-chat"},
        {"/api/v1/chats", "{\"input\":\"x\"}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void a_tool_call_between_reasoning_and_answer(void **state) {
    begin();
    event("{\"type\":\"chat.start\",\"model_instance_id\":\"m\"}");
    event("{\"type\":\"reasoning.start\"}");
    event("{\"type\":\"reasoning.delta\",\"content\":\"so\"}");
    event("{\"type\":\"reasoning.end\"}");
    event("{\"type\":\"tool_call.start\",\"tool\":\"look\",\"provider_info\":{\"type\":\"plugin\"}}");
    event("{\"type\":\"tool_call.arguments\",\"tool\":\"look\",\"arguments\":{}}");
    event("{\"type\":\"tool_call.arguments\",\"tool\":\"look\",\"arguments\":{\"a\":1}}");
    event("{\"type\":\"tool_call.success\",\"tool\":\"look\",\"arguments\":{\"a\":1},\"output\":\"long\"}");
    event("{\"type\":\"tool_call.start\",\"tool\":\"look\"}");
    event("{\"type\":\"tool_call.failure\",\"reason\":\"none\",\"metadata\":{\"tool_name\":\"look\"}}");
    event("{\"type\":\"message.delta\",\"content\":\"A\"}");
    event("{\"type\":\"message.delta\",\"content\":\"BC\"}"); /* from a template */
    event("{\"type\":\"message.delta\",\"content\":7}");
    event("{\"type\":\"chat.end\",\"result\":{\"output\":[{\"type\":\"message\",\"content\":\"ABC\"}],"
          "\"stats\":{\"input_tokens\":3,\"total_output_tokens\":9,\"reasoning_output_tokens\":2,\"time_to_"
          "first_token_seconds\":0.5},\"response_id\":\"r\"}}");
    end();
    assert_int_equal(n_events(), 6);
    hold_event(0, TOK_REASONING, 2, -1);
    hold_event(1, TOK_TOOL, 4, -1);
    hold_event(2, TOK_TOOL, 7, -1);
    hold_event(3, TOK_TOOL, 4, -1);
    hold_event(4, TOK_CONTENT, 1, -1);
    hold_event(5, TOK_CONTENT, 2, -1);
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1);
    hold(F_text_bytes, 3);
    hold(F_reasoning_bytes, 2);
    hold(F_prompt_tokens, 3);
    hold(F_output_tokens_told, 9);
    hold(F_reasoning_tokens, 2);
    hold(F_reported_ttft_ns, 500000000);
    hold(F_loading, -1);
    hold(F_typed_end, 1);
    hold_text(F_response_id, "r");
    hold_text(F_response_model, "m");
}

static void a_load_that_is_cut(void **state) {
    begin();
    event("{\"type\":\"model_load.start\",\"model_instance_id\":\"m\"}");
    event("{\"type\":\"model_load.progress\",\"progress\":0.5}");
    end();
    hold(F_loading, 1);
    hold(F_reported_load_ns, -1);
    hold(F_typed_end, -1);
    assert_int_equal(n_events(), 0);
}

static void an_error_in_the_middle(void **state) {
    begin();
    event("{\"type\":\"message.delta\",\"content\":\"A\"}");
    named("error", "{\"type\":\"error\",\"error\":{\"type\":\"internal_error\",\"message\":\"busy\",\"code\":"
                   "\"c\",\"param\":\"p\"}}");
    event(
        "{\"type\":\"chat.end\",\"result\":{\"stats\":{\"input_tokens\":-3,\"total_output_tokens\":\"x\"}}}");
    end();
    hold(F_stream_error, 1);
    hold(F_prompt_tokens, -1);
    hold(F_output_tokens_told, -1);
    hold_text(F_error_type, "internal_error");
    hold_text(F_error_code, "c");
    hold_text(F_error_param, "p");
}

static void names_without_types(void **state) {
    begin();
    named("reasoning.delta", "{\"content\":\"A\"}");
    named("message.delta", "{\"content\":\"BC\"}"); /* equal but for its name */
    named("chat.end", "{}");
    end();
    hold_event(0, TOK_REASONING, 1, -1);
    hold_event(1, TOK_CONTENT, 2, -1);
    hold(F_typed_end, 1);
}

static void a_whole_answer(void **state) {
    begin();
    body(
        "{\"model_instance_id\":\"m\",\"output\":[{\"type\":\"reasoning\",\"content\":\"hm\"},{\"type\":"
        "\"tool_call\",\"tool\":\"f\",\"arguments\":{\"a\":1},\"output\":\"long\"},{\"type\":\"message\","
        "\"content\":\"Yes\"},{\"type\":\"invalid_tool_call\",\"reason\":\"r\"}],\"stats\":{\"input_tokens\":"
        "3,\"total_output_tokens\":8,\"model_load_time_seconds\":1.5}}");
    end();
    hold(F_prompt_tokens, 3);
    hold(F_output_tokens_told, 8);
    hold(F_text_bytes, 3);
    hold(F_reasoning_bytes, 2);
    hold(F_tool_calls, 1);
    hold(F_loading, 1);
    hold(F_reported_load_ns, 1500000000);
    hold_text(F_response_model, "m");
    assert_int_equal(n_events(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_in_full),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(a_tool_call_between_reasoning_and_answer),
        cmocka_unit_test(a_load_that_is_cut),
        cmocka_unit_test(an_error_in_the_middle),
        cmocka_unit_test(names_without_types),
        cmocka_unit_test(a_whole_answer),
    };
    fake_answer_start(&dialect_lmstudio_chat);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
