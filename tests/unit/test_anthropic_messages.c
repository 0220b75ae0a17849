/* What Anthropic's Messages and their emulations say, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_request_in_full(void **state) {
    begin();
    asked("/v1/messages",
          "{\"model\":\"m\",\"stream\":true,\"max_tokens\":5,\"temperature\":0.5,\"system\":[{\"type\":"
          "\"text\","
          "\"text\":\"abc\"}],\"tools\":[{},{}],\"output_config\":{\"format\":{\"type\":\"json_schema\"}},"
          "\"messages\":["
          "{\"role\":\"user\",\"content\":\"\\u00e9\"},"
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":\"tool_"
          "use\",\"id\":\"t\",\"name\":\"f\",\"input\":{\"text\":\"long\"}}]},"
          "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{"
          "\"type\":\"text\",\"text\":\"1234\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":"
          "\"xx\"}}]}]},"
          "{\"role\":\"user\",\"content\":[{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":"
          "\"67\"}"
          "},{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"u\"}}]}]}");
    end();
    hold_text(F_api, "anthropic-messages");
    hold_text(F_model, "m");
    hold_text(F_schema, "json_schema");
    hold(F_stream, 1);
    hold(F_max_tokens, 5);
    hold(F_messages, 5);
    hold(F_messages_system, 1);
    hold(F_messages_user, 2);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_images, 2);
    hold(F_prompt_bytes, 3 + 2 + 2 + 4 + 2);
    hold(F_tools, 2);
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/v1/messages", "{\"messages\":[]}", "anthropic-messages"},
        {"/anthropic/v1/messages/", "not json", "anthropic-messages"},
        {"/v1/threads/t/messages", "{\"role\":\"user\",\"content\":\"x\"}", "other"},
        {"/v1/messages/count_tokens", "{\"messages\":[]}", "other"},
        {"/v1/projects/p/locations/l/publishers/anthropic/models/x:streamRawPredict",
         "{\"anthropic_version\":\"v\",\"messages\":[]}", "anthropic-messages"},
        {"/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
         "{\"anthropic_version\":\"v\",\"messages\":[]}", "other"},
        {"/model/x/invoke", "{\"anthropic_version\":\"v\",\"messages\":[]}", "anthropic-messages"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void a_tool_call(void **state) {
    begin();
    event(
        "{\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"model\":\"m\",\"usage\":{\"input_tokens\":5,"
        "\"output_tokens\":1,\"service_tier\":\"standard\"}}}");
    event(
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\","
        "\"name\":\"look\",\"input\":{}}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_"
          "json\":\"\"}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_"
          "json\":\"{\\\"a\\\":\"}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_"
          "json\":\"1}\"}}");
    event("{\"type\":\"content_block_stop\",\"index\":0}");
    /* one without arguments, by the server */
    event("{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"server_tool_use\","
          "\"id\":"
          "\"s\",\"name\":\"web\",\"input\":{}}}");
    event("{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"web_search_tool_"
          "result\","
          "\"tool_use_id\":\"s\",\"content\":[{\"type\":\"web_search_result\",\"title\":\"x\"}]}}");
    event(
        "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}"
        "}");
    event("{\"type\":\"message_stop\"}");
    end();
    assert_int_equal(n_events(), 5);
    hold_event(0, TOK_TOOL, 4, -1);
    hold_event(1, TOK_TOOL, 5, -1);
    hold_event(2, TOK_TOOL, 2, -1);
    hold_event(3, TOK_TOOL, 3, -1);
    hold_event(4, TOK_FINISH | TOK_STOP, 0, -1);
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1);
    hold(F_stop_finishes, 1);
    hold(F_typed_end, 1);
    hold(F_prompt_tokens, 5);
    hold(F_output_tokens_told, 9);
    hold(F_cached_tokens, -1);
    hold_text(F_finish_reason, "tool_use");
    hold_text(F_response_id, "i");
    hold_text(F_service_tier, "standard");
}

static void arguments_that_are_no_json(void **state) {
    begin();
    event("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"name\":"
          "\"f\"}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{\\\"a\\\":\"}}");
    event("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}");
    end();
    hold(F_tool_args_valid, 0);
    hold(F_stop_finishes, 0); /* the length's */
    hold_event(2, TOK_FINISH, 0, -1);
    hold(F_output_tokens_told, -1);
}

static void counts_of_the_cache(void **state) {
    begin();
    event(
        "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":"
        "200,\"cache_creation_input_tokens\":null,\"output_tokens\":4}}}");
    event("{\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"cache_creation_input_tokens\":3000,\"output_"
          "tokens\":7}}");
    end();
    hold(F_prompt_tokens, 3210);
    hold(F_cached_tokens, 200);
    hold(F_cache_write_tokens, 3000);
    hold(F_output_tokens_told, 7);
    begin(); /* zeros in place of what is not known yet, and again at the end */
    event("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}");
    event("{\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":12,\"output_tokens\":7}}");
    event("{\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":0,\"output_tokens\":9}}");
    end();
    hold(F_prompt_tokens, 12);
    hold(F_output_tokens_told, 9);
    begin(); /* nothing but placeholders */
    event("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":3}}}");
    end();
    hold(F_prompt_tokens, -1);
    hold(F_output_tokens_told, -1);
}

static void odd_counts(void **state) {
    begin();
    event("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":\"5\",\"cache_read_input_"
          "tokens\""
          ":-2,\"output_tokens\":1}}}");
    event("{\"type\":\"message_delta\",\"usage\":{\"input_tokens\":9223372036854775807,\"cache_read_input_"
          "tokens\":9223372036854775807,\"cache_creation_input_tokens\":9223372036854775807,\"output_"
          "tokens\":-1"
          "}}");
    event("{\"type\":\"message_delta\",\"usage\":{\"input_tokens\":9223372036854775807}}");
    event("{\"type\":\"message_delta\",\"usage\":[]}");
    event("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":5}}");
    event("{\"type\":\"message_start\",\"message\":7}");
    event("{\"type\":\"content_block_start\"}");
    event("{\"type\":\"content_block_delta\",\"index\":\"x\",\"delta\":{\"text\":7,\"thinking\":null}}");
    event("{\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"text\":\"\"}}");
    end();
    hold(F_prompt_tokens, -1);
    hold(F_output_tokens_told, -1);
    assert_int_equal(n_events(), 0);
}

static void thinking(void **state) {
    begin();
    event(
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":"
        "\"\"}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":"
          "\"so\"}}");
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":"
          "\" then\"}}"); /* from a template */
    event(
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":"
        "\"c2ln\"}}");
    event(
        "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"A\"}}");
    event(
        "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"BC\"}}");
    event(
        "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"citations_delta\",\"citation\":{"
        "\"cited_text\":\"x\"}}}");
    event("{\"type\":\"a_new_kind\",\"delta\":{\"text\":\"x\"}}");
    end();
    assert_int_equal(n_events(), 4);
    hold_event(0, TOK_REASONING | TOK_SUMMARY, 2, -1);
    hold_event(1, TOK_REASONING | TOK_SUMMARY, 5, -1);
    hold_event(2, TOK_CONTENT, 1, -1);
    hold_event(3, TOK_CONTENT, 2, -1);
    hold(F_reasoning_bytes, 7);
    hold(F_text_bytes, 3);
    begin(); /* thought, but not shown */
    event(
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":"
        "\"\"}}");
    event(
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":"
        "\"c2ln\"}}");
    event("{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\","
          "\"data\":\"xyz\"}}");
    end();
    assert_int_equal(n_events(), 2);
    hold_event(0, TOK_SUMMARY, 0, -1);
    hold_event(1, TOK_SUMMARY, 0, -1);
}

static void an_error_in_the_middle(void **state) {
    begin();
    event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"A\"}}");
    event("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, 4);
    hold(F_typed_end, -1);
    hold_text(F_error_type, "overloaded_error");
}

static void names_without_types(void **state) {
    begin();
    named("content_block_delta", "{\"index\":0,\"delta\":{\"text\":\"A\"}}");
    named("ping", "{\"index\":0,\"delta\":{\"text\":\"B\"}}"); /* equal but for its name */
    named("message_stop", "{}");
    end();
    assert_int_equal(n_events(), 1);
    hold(F_typed_end, 1);
}

static void a_whole_answer(void **state) {
    begin();
    body("{\"id\":\"i\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":"
         "\"thinking\",\"thinking\":\"hm\"},{\"type\":\"text\",\"text\":\"Yes\"},{\"type\":\"tool_use\","
         "\"id\":"
         "\"t\",\"name\":\"f\",\"input\":{\"a\":1}}],\"stop_reason\":\"tool_use\",\"usage\":{\"input_"
         "tokens\":3,"
         "\"cache_read_input_tokens\":4,\"output_tokens\":8}}");
    end();
    hold(F_prompt_tokens, 7);
    hold(F_output_tokens_told, 8);
    hold(F_text_bytes, 3);
    hold(F_reasoning_bytes, 2);
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 1);
    hold(F_stop_finishes, 0);
    hold_text(F_finish_reason, "tool_use");
    assert_int_equal(n_events(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_in_full),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(a_tool_call),
        cmocka_unit_test(arguments_that_are_no_json),
        cmocka_unit_test(counts_of_the_cache),
        cmocka_unit_test(odd_counts),
        cmocka_unit_test(thinking),
        cmocka_unit_test(an_error_in_the_middle),
        cmocka_unit_test(names_without_types),
        cmocka_unit_test(a_whole_answer),
    };
    fake_answer_start(&dialect_anthropic_messages);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
