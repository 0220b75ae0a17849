/* What OpenAI's Responses and their emulations say, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_request_in_full(void **state) {
    begin();
    asked("/v1/responses",
          "{\"model\":\"m\",\"stream\":true,\"max_output_tokens\":5,\"instructions\":\"abc\",\"tools\":[{}],"
          "\"text\":{\"format\":{\"type\":\"json_schema\"}},\"input\":["
          "{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"\\u00e9\"},{\"type\":\"input_"
          "image\",\"image_url\":\"u\"}]},"
          "{\"type\":\"reasoning\",\"summary\":[]},"
          "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},"
          "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"1234\"},"
          "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":"
          "\"x\"}]}"
          "]}");
    end();
    hold_text(F_api, "openai-responses");
    hold_text(F_model, "m");
    hold_text(F_schema, "json_schema");
    hold(F_stream, 1);
    hold(F_max_tokens, 5);
    hold(F_messages, 4);
    hold(F_messages_system, 1);
    hold(F_messages_user, 1);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_images, 1);
    hold(F_prompt_bytes, 3 + 2 + 4 + 1);
    hold(F_tools, 1);
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/v1/responses", "{\"input\":\"x\"}", "openai-responses"},
        {"/openai/responses/", "not json", "openai-responses"},
        {"/v1/responses/r/cancel", "{}", "other"},
        {"/v1/responses/input_tokens", "{\"input\":\"x\"}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void deltas_of_every_kind(void **state) {
    static const struct {
        const char *type;
        uint32_t what, bytes;
    } rows[] = {
        {"response.output_text.delta", TOK_CONTENT, 2},
        {"response.refusal.delta", TOK_REFUSAL, 2},
        {"response.reasoning_text.delta", TOK_REASONING, 2},
        {"response.reasoning_summary_text.delta", TOK_SUMMARY, 0},
        {"response.function_call_arguments.delta", TOK_TOOL, 2},
        {"response.mcp_call_arguments.delta", TOK_TOOL, 2},
        {"response.custom_tool_call_input.delta", TOK_TOOL, 2},
        {"response.code_interpreter_call_code.delta", TOK_TOOL, 2},
        {"response.audio.delta", TOK_AUDIO, 0},
        {"response.audio.transcript.delta", TOK_AUDIO, 2},
        {"response.not_known_yet.delta", TOK_CONTENT, 2},
    };
    char text[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        snprintf(text, sizeof text, "{\"type\":\"%s\",\"output_index\":0,\"delta\":\"\"}", rows[i].type);
        event(text);
        for (int k = 0; k < 2; k++) { /* the second one may come from a template */
            snprintf(text, sizeof text,
                     "{\"type\":\"%s\",\"sequence_number\":%d,\"output_index\":0,\"delta\":"
                     "\"{}\"}",
                     rows[i].type, k);
            event(text);
        }
        snprintf(text, sizeof text, "{\"type\":\"%.*s.done\",\"text\":\"{}\",\"arguments\":\"{}\"}",
                 (int)(strlen(rows[i].type) - strlen(".delta")), rows[i].type);
        event(text);
        end();
        assert_int_equal(n_events(), 2);
        hold_event(0, rows[i].what, rows[i].bytes, -1);
        hold_event(1, rows[i].what, rows[i].bytes, -1);
        hold(F_text_bytes, rows[i].what & (TOK_CONTENT | TOK_REFUSAL) ? 4 : 0);
        hold(F_reasoning_bytes, rows[i].what == TOK_REASONING ? 4 : 0);
        hold(F_tool_calls, rows[i].what == TOK_TOOL ? 1 : -1);
    }
}

static void calls_by_index(void **state) {
    begin();
    event("{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\","
          "\"id\":\"fc\",\"call_id\":\"c\",\"name\":\"look\",\"arguments\":\"\"}}");
    event("{\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"item_id\":\"fc\","
          "\"delta\":"
          "\"{}\"}");
    event("{\"type\":\"response.function_call_arguments.done\",\"output_index\":0,\"arguments\":\"{}\"}");
    event("{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\","
          "\"name\":\"look\",\"arguments\":\"{}\"}}");
    event(
        "{\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"custom_tool_call\","
        "\"name\":\"sh\",\"input\":\"\"}}");
    event("{\"type\":\"response.custom_tool_call_input.delta\",\"output_index\":1,\"delta\":\"ls -l\"}");
    event("{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":"
          "\"function_call\",\"name\":\"look\",\"arguments\":\"{}\"}]}}");
    end();
    assert_int_equal(n_events(), 5);
    hold_event(0, TOK_TOOL, 4, -1);
    hold_event(1, TOK_TOOL, 2, -1);
    hold_event(2, TOK_TOOL, 2, -1);
    hold_event(3, TOK_TOOL, 5, -1);
    hold_event(4, TOK_FINISH | TOK_STOP, 0, -1);
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1); /* free text is not judged */
    hold(F_output_tokens_told, -1);
}

/* llama.cpp: no index, no sequence; an item may have no id but its call's. */
static void calls_by_name(void **state) {
    begin();
    event(
        "{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"call_id\":\"fc_1\","
        "\"name\":\"f\",\"arguments\":\"\"}}");
    event("{\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"fc_1\",\"delta\":\"{\"}");
    event("{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"id\":\"fc_2\","
          "\"call_"
          "id\":\"call_2\",\"name\":\"g\",\"arguments\":\"\"}}");
    event("{\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"fc_2\",\"delta\":\"{}\"}");
    event("{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}");
    end();
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 0); /* the first one's */
}

static void timings_beside_the_response(void **state) {
    begin();
    event(
        "{\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"A\",\"timings\":{\"cache_n\":"
        "4,\"prompt_n\":6,\"prompt_ms\":20.5,\"predicted_n\":1,\"predicted_ms\":0.1}}");
    event(
        "{\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"B\",\"timings\":{\"cache_n\":"
        "4,\"prompt_n\":6,\"prompt_ms\":20.5,\"predicted_n\":3,\"predicted_ms\":9.5}}");
    event(
        "{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":"
        "10,\"output_tokens\":4,\"input_tokens_details\":{\"cached_tokens\":4}}},\"timings\":{\"cache_n\":4,"
        "\"prompt_n\":6,\"prompt_ms\":20.5,\"predicted_n\":4,\"predicted_ms\":12.0}}");
    end();
    hold_event(0, TOK_CONTENT, 1, 1);
    hold_event(1, TOK_CONTENT, 1, 3);
    hold_event(2, TOK_FINISH | TOK_STOP, 0, 4);
    hold(F_prompt_tokens, 10);
    hold(F_cached_tokens, 4);
    hold(F_output_tokens_told, 4);
    hold(F_reported_prefill_ns, 20500000);
    hold(F_reported_decode_ns, 12000000);
}

static void ends(void **state) {
    static const struct {
        const char *event, *finish;
        int64_t stops, error;
    } rows[] = {
        {"{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}", "completed", 1, -1},
        {"{\"type\":\"response.completed\",\"response\":{}}", "completed", 1, -1},
        {"{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{"
         "\"reason\":\"max_output_tokens\"}}}",
         "max_output_tokens", 0, -1},
        {"{\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"content_"
         "filter\"}"
         "}}",
         "content_filter", 1, -1},
        {"{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_"
         "error\","
         "\"message\":\"busy\"}}}",
         "failed", 1, 1},
        {"{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\"}}", "failed", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        event("{\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"m\",\"status\":\"in_"
              "progress\",\"usage\":null,\"error\":null}}");
        event(rows[i].event);
        end();
        hold_text(F_finish_reason, rows[i].finish);
        hold_text(F_response_id, "r");
        hold(F_stop_finishes, rows[i].stops);
        hold(F_stream_error, rows[i].error);
        hold(F_typed_end, 1);
        assert_int_equal(n_events(), 1);
    }
    hold_text(F_error_code, NULL);
}

static void errors(void **state) {
    begin(); /* at the root, as OpenAI writes them */
    named("error", "{\"type\":\"error\",\"code\":\"rate\",\"message\":\"busy\",\"param\":\"p\"}");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, 4);
    hold_text(F_error_code, "rate");
    hold_text(F_error_param, "p");
    hold_text(F_error_type, NULL);
    begin(); /* without a name */
    event("{\"type\":\"error\",\"code\":\"rate\",\"message\":\"busy\"}");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, 4);
    begin(); /* in the response */
    event(
        "{\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"busy!"
        "\"}}}");
    end();
    hold_text(F_error_code, "server_error");
    hold(F_error_bytes, 5);
    begin(); /* before a stream */
    status(429);
    body("{\"error\":{\"type\":\"t\",\"message\":\"busy\"}}");
    end();
    hold(F_stream_error, -1);
    hold_text(F_error_type, "t");
    hold_text(F_finish_reason, NULL);
}

static void log_probabilities(void **state) {
    size_t n;
    begin();
    event(
        "{\"type\":\"response.output_text.delta\",\"delta\":\"A\",\"logprobs\":[{\"token\":\"A\"},{\"token\":"
        "\"\"}]}");
    event("{\"type\":\"response.output_text.delta\",\"delta\":\"B\",\"logprobs\":[]}");
    end();
    assert_int_equal(fake_events(&n)[0].logprobs, 2);
    assert_int_equal(fake_events(&n)[1].logprobs, -1);
}

static void templates_skip_what_changes(void **state) {
    begin();
    event("{\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"x\",\"delta\":\"A\","
          "\"obfuscation\":\"abc\"}");
    event(
        "{\"type\":\"response.output_text.delta\",\"sequence_number\":15,\"item_id\":\"yy\",\"delta\":\"BC\","
        "\"obfuscation\":\"\"}");
    event("{\"type\":\"response.reasoning_text.delta\",\"sequence_number\":16,\"item_id\":\"yy\",\"delta\":"
          "\"D\",\"obfuscation\":\"\"}");
    named("response.output_text.delta", "{\"delta\":\"E\"}");
    named("response.reasoning_text.delta", "{\"delta\":\"F\"}"); /* equal but for its name */
    end();
    hold_event(0, TOK_CONTENT, 1, -1);
    hold_event(1, TOK_CONTENT, 2, -1);
    hold_event(2, TOK_REASONING, 1, -1);
    hold_event(3, TOK_CONTENT, 1, -1);
    hold_event(4, TOK_REASONING, 1, -1);
}

static void odd_events(void **state) {
    begin();
    event("{\"type\":\"response.completed\",\"response\":7}");
    event("{\"type\":\"response.output_text.delta\",\"delta\":7}");
    event("{\"type\":\"response.output_text.delta\"}");
    event("{\"type\":\"response.output_item.added\",\"item\":{\"name\":7}}");
    event("{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":-1,\"output_tokens\":"
          "\"9\""
          ",\"input_tokens_details\":null}}}");
    event("{\"type\":\"response.mcp_call.arguments.delta\",\"output_index\":-9223372036854775807,\"delta\":{"
          "\"a\":1}}");
    end();
    hold(F_prompt_tokens, -1);
    hold(F_output_tokens_told, -1);
    hold(F_cached_tokens, -1);
    assert_int_equal(n_events(), 2);
    hold_event(1, TOK_TOOL, 0, -1);
}

static void a_whole_answer(void **state) {
    begin();
    body(
        "{\"id\":\"r\",\"object\":\"response\",\"model\":\"m\",\"status\":\"completed\",\"error\":null,"
        "\"output\":[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"s\"}],"
        "\"content"
        "\":[{\"type\":\"reasoning_text\",\"text\":\"hm\"}]},{\"type\":\"message\",\"content\":[{\"type\":"
        "\"output_text\",\"text\":\"Yes\"},{\"type\":\"refusal\",\"refusal\":\"N\"}]},{\"type\":\"function_"
        "call"
        "\",\"name\":\"f\",\"arguments\":\"{}\"}],\"usage\":{\"input_tokens\":3,\"output_tokens\":8,\"output_"
        "tokens_details\":{\"reasoning_tokens\":2},\"input_tokens_details\":{\"cached_tokens\":0}}}");
    end();
    hold(F_prompt_tokens, 3);
    hold(F_cached_tokens, 0);
    hold(F_output_tokens_told, 8);
    hold(F_reasoning_tokens, 2);
    hold(F_text_bytes, 4);
    hold(F_reasoning_bytes, 2);
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 1);
    hold(F_stream_error, -1);
    hold_text(F_finish_reason, "completed");
    begin(); /* made in the background: not over */
    body("{\"id\":\"r\",\"object\":\"response\",\"status\":\"queued\",\"output\":[]}");
    end();
    hold_text(F_finish_reason, NULL);
    begin();
    body("{\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":\"c\",\"message\":\"busy\"}}");
    end();
    hold(F_stream_error, 1);
}

/* Only arguments are JSON; what a tool said is no output of the model. */
static void what_a_shell_runs_is_free_text(void **state) {
    begin();
    event("{\"type\":\"response.shell_call_command.delta\",\"output_index\":0,\"delta\":\"ls -l\"}");
    event("{\"type\":\"response.shell_call_output_content.delta\",\"output_index\":1,\"delta\":{\"stdout\":"
          "\"a\"}}");
    event(
        "{\"type\":\"response.completed\",\"response\":{\"object\":\"response\",\"status\":\"completed\"}}");
    end();
    assert_int_equal(n_events(), 2);
    hold_event(0, TOK_TOOL, 5, -1);
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_shell_runs_is_free_text),
        cmocka_unit_test(a_request_in_full),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(deltas_of_every_kind),
        cmocka_unit_test(calls_by_index),
        cmocka_unit_test(calls_by_name),
        cmocka_unit_test(timings_beside_the_response),
        cmocka_unit_test(ends),
        cmocka_unit_test(errors),
        cmocka_unit_test(log_probabilities),
        cmocka_unit_test(templates_skip_what_changes),
        cmocka_unit_test(odd_events),
        cmocka_unit_test(a_whole_answer),
    };
    fake_answer_start(&dialect_openai_responses);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
