/* What requests and answers of Ollama's own API say, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void begin_chat(void) {
    begin();
    asked("/api/chat", "{\"model\":\"asked\"}");
}
static void begin_generate(void) {
    begin();
    asked("/api/generate", "{\"model\":\"asked\"}");
}
static void (*const begin_both[])(void) = {begin_chat, begin_generate};

static void a_chat_request_in_full(void **state) {
    begin();
    asked("/api/chat",
          "{\"model\":\"wren:3b\",\"messages\":[{\"role\":\"system\",\"content\":\"ab\"},"
          "{\"role\":\"user\",\"content\":\"\\u00e9\",\"images\":[\"QUJD\",\"QUJD\"]},"
          "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
          "\"arguments\":{}}}]},{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"xyz\"}],\"tools\":[{}],"
          "\"format\":{\"type\":\"object\"},\"options\":{\"num_predict\":40,\"temperature\":0.5},"
          "\"keep_alive\":0}");
    end();
    hold_text(F_api, "ollama-chat");
    hold_text(F_model, "wren:3b");
    hold_text(F_schema, "json_schema");
    hold(F_messages, 4);
    hold(F_messages_system, 1);
    hold(F_messages_user, 1);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_prompt_bytes, 7);
    hold(F_images, 2);
    hold(F_tools, 1);
    hold(F_max_tokens, 40);
    hold(F_stream, -1); /* nothing was said */
    double t = 0;
    assert_true(fake_real(1, F_temperature, &t) && t > 0.49 && t < 0.51);
    assert_false(fake_holds("QUJD"));
}

static void a_generate_request_in_full(void **state) {
    begin();
    asked("/ollama/api/generate",
          "{\"model\":\"wren:3b\",\"stream\":false,\"system\":\"ab\",\"prompt\":\"cde\",\"suffix\":\"f\","
          "\"images\":[\"QUJD\"],\"context\":[1,2,3],\"raw\":true,\"format\":\"json\","
          "\"options\":{\"num_predict\":-1,\"temperature\":\"hot\"}}");
    end();
    hold_text(F_api, "ollama-generate");
    hold_text(F_schema, "json_object");
    hold(F_stream, 0);
    hold(F_prompt_bytes, 6);
    hold(F_images, 1);
    hold(F_max_tokens, -1);
    double t;
    assert_false(fake_real(1, F_temperature, &t));
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/api/chat", "{\"model\":\"m\"}", "ollama-chat"},
        {"/api/chat/", "{\"model\":\"m\",\"messages\":[]}", "ollama-chat"},
        {"/api/generate", "{\"model\":\"m\",\"format\":\"\"}", "ollama-generate"},
        {"/v1/chat/completions", "{\"model\":\"m\",\"messages\":[]}", "openai-chat"},
        {"/api/tags", "{\"model\":\"m\"}", "other"},
        {"/api/embed", "{\"model\":\"m\",\"input\":\"x\"}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
    assert_ptr_equal(dialect_of_request("POST", "/api/chat", NULL), &dialect_ollama_chat);
    assert_ptr_equal(dialect_of_request("POST", "/api/generate", NULL), &dialect_ollama_generate);
    struct json_doc d = json_open("{\"inputs\":\"hi\"}", 15); /* another API's body at that path */
    assert_ptr_not_equal(dialect_of_request("POST", "/api/generate", d.root), &dialect_ollama_generate);
    json_close(&d);
}

static void answers_tell_their_api(void **state) {
    static const struct {
        const char *event, *api;
    } rows[] = {
        {"{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}", "ollama-chat"},
        {"{\"response\":\"\",\"done\":true,\"done_reason\":\"load\"}", "ollama-generate"},
        {"{\"message\":\"x\",\"done\":true}", NULL},
        {"{\"response\":\"x\"}", NULL},
        {"{\"error\":\"x\"}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        event(rows[i].event);
        end();
        hold_text(F_api, rows[i].api);
    }
}

static void lines_of_a_chat(void **state) {
    begin_chat();
    event("{\"model\":\"m\",\"created_at\":\"1\",\"message\":{\"role\":\"assistant\",\"content\":\"\","
          "\"thinking\":\"a\\u003cb\"},\"done\":false}");
    event("{\"model\":\"m\",\"created_at\":\"2\",\"message\":{\"role\":\"assistant\",\"content\":\"\","
          "\"thinking\":\"cd\"},\"done\":false}");
    event(
        "{\"model\":\"m\",\"created_at\":\"3\",\"message\":{\"role\":\"assistant\",\"content\":\"\\u00e9\"},"
        "\"done\":false}");
    event("{\"model\":\"m\",\"created_at\":\"44\",\"message\":{\"role\":\"assistant\",\"content\":\"xyz\"},"
          "\"done\":false}");
    event("{\"model\":\"m\",\"created_at\":\"5\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
          "\"done\":false}"); /* says nothing */
    event("{\"model\":\"m\",\"created_at\":\"6\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
          "\"done\":true,\"done_reason\":\"stop\",\"total_duration\":412345678901,\"load_duration\":21,"
          "\"prompt_eval_count\":26,\"prompt_eval_duration\":22,\"eval_count\":7,\"eval_duration\":23}");
    end();
    assert_int_equal(n_events(), 5);
    hold_event(0, TOK_REASONING, 3, -1);
    hold_event(1, TOK_REASONING, 2, -1);
    hold_event(2, TOK_CONTENT, 2, -1);
    hold_event(3, TOK_CONTENT, 3, -1);
    hold_event(4, TOK_FINISH | TOK_STOP, 0, -1);
    hold_text(F_model, "asked");
    hold_text(F_response_model, "m");
    hold_text(F_finish_reason, "stop");
    hold(F_typed_end, 1);
    hold(F_stop_finishes, 1);
    hold(F_text_bytes, 5);
    hold(F_reasoning_bytes, 5);
    hold(F_prompt_tokens, 26);
    hold(F_output_tokens_told, 7);
    hold(F_cached_tokens, -1);
    hold(F_reported_total_ns, 412345678901);
    hold(F_reported_load_ns, 21);
    hold(F_reported_prefill_ns, 22);
    hold(F_reported_decode_ns, 23);
}

static void what_is_left_out_is_absent(void **state) {
    static const char *const ends[] = {
        "{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"length\"}",
        "{\"model\":7,\"response\":null,\"done\":true,\"done_reason\":\"length\",\"eval_count\":null,"
        "\"prompt_eval_count\":\"3\",\"load_duration\":\"x\",\"eval_duration\":null,\"context\":{}}",
        "{\"response\":\"\",\"done\":true,\"done_reason\":\"length\",\"eval_count\":-1,"
        "\"prompt_eval_count\":-5,\"total_duration\":-1,\"eval_duration\":-2,\"prompt_eval_duration\":1e30,"
        "\"load_duration\":99999999999999999999}",
    };
    static const enum fact absent[] = {F_output_tokens_told, F_prompt_tokens,       F_reported_load_ns,
                                       F_reported_total_ns,  F_reported_prefill_ns, F_reported_decode_ns};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        begin_generate();
        event("{\"response\":\"A\",\"done\":false}");
        event(ends[i]);
        end();
        for (size_t f = 0; f < sizeof absent / sizeof *absent; f++) hold(absent[f], -1);
        hold_event(0, TOK_CONTENT, 1, -1);
        hold_event(1, TOK_FINISH, 0, -1); /* no stop: it ran into the limit */
        hold(F_stop_finishes, 0);
        hold(F_typed_end, 1);
    }
}

static void an_end_without_a_reason(void **state) {
    begin_chat(); /* releases of before name none, and leave the message out */
    event("{\"model\":\"m\",\"message\":{\"content\":\"A\"},\"done\":false}");
    event("{\"model\":\"m\",\"done\":true,\"eval_count\":2}");
    end();
    hold(F_typed_end, 1);
    hold_text(F_finish_reason, NULL);
    hold(F_output_tokens_told, 2);
    assert_int_equal(n_events(), 1);
}

static void loading_bears_no_token(void **state) {
    static const char *const reasons[] = {"load", "unload"};
    for (int i = 0; i < 2; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"%s\"}", reasons[i]);
        begin_generate();
        body(text);
        end();
        hold_text(F_finish_reason, reasons[i]);
        hold(F_output_tokens_told, -1);
        hold(F_loading, -1);
        hold(F_typed_end, 1);
        assert_int_equal(n_events(), 0);
    }
}

static void tool_calls_come_whole(void **state) {
    begin_chat();
    event("{\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"fab\",\"arguments\":"
          "{\"q\":\"\\u00e9\",\"n\":[1,2.5,true,null]}}}]},\"done\":false}");
    event(
        "{\"message\":{\"content\":\"x\",\"tool_calls\":[{\"function\":{\"name\":\"g\",\"arguments\":{}}},"
        "{\"function\":{\"index\":1,\"name\":\"h\",\"arguments\":{}}},{\"function\":7},3]},\"done\":false}");
    event("{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":30}");
    end();
    hold_event(0, TOK_TOOL, 3 + 32, -1); /* {"q":"é","n":[1,2.5,true,null]} */
    hold_event(1, TOK_CONTENT | TOK_TOOL, 1 + 3 + 3, -1);
    hold_event(2, TOK_FINISH | TOK_STOP, 0, -1);
    hold(F_tool_calls, 3);
    hold(F_tool_args_valid, 1);
    hold(F_text_bytes, 1);
    assert_false(fake_holds("fab"));
    begin_chat(); /* a text that is no JSON */
    event("{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]},\"done\":true,"
          "\"done_reason\":\"stop\"}");
    end();
    hold_event(0, TOK_TOOL | TOK_FINISH | TOK_STOP, 2, -1);
    hold(F_stop_finishes, 0); /* its event has text */
    hold(F_tool_args_valid, 0);
}

static void a_failure_ends_the_stream(void **state) {
    begin_chat();
    event("{\"model\":\"m\",\"message\":{\"content\":\"A\"},\"done\":false}");
    event("{\"error\":\"runner gone\"}");
    end();
    assert_int_equal(n_events(), 1);
    hold(F_stream_error, 1);
    hold(F_error_bytes, 11);
    hold(F_typed_end, -1);
    hold(F_choices, 1);
    begin_generate(); /* before anything else */
    event("{\"error\":\"runner gone\"}");
    end();
    hold(F_stream_error, 1);
    hold(F_choices, -1);
    assert_false(fake_holds("gone"));
}

static void log_probabilities_are_counted(void **state) {
    size_t n;
    begin_generate();
    event("{\"response\":\"AB\",\"done\":false,\"logprobs\":[{\"token\":\"A\",\"logprob\":-0.1},"
          "{\"token\":\"B\",\"logprob\":-0.2}]}");
    event("{\"response\":\"C\",\"done\":false,\"logprobs\":[{\"token\":\"C\",\"logprob\":-0.3}]}");
    end();
    assert_int_equal(fake_events(&n)[0].logprobs, 2);
    assert_int_equal(fake_events(&n)[1].logprobs, 1);
}

/* More ids than a parser may have values: what stands behind them is read nevertheless. */
static void a_large_context_is_not_parsed(void **state) {
    enum { IDS = 150000 };
    static const char head[] = "{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"context\":[1",
                      tail[] = "],\"prompt_eval_count\":26,\"eval_count\":7}";
    char *text = malloc(sizeof head + sizeof tail + 6 * IDS), *p = text + sprintf(text, "%s", head);
    for (int i = 0; i < IDS; i++) p += sprintf(p, ",%d", i % 10000);
    strcpy(p, tail);
    for (int streamed = 0; streamed < 2; streamed++) {
        begin_generate();
        streamed ? event(text) : body(text);
        end();
        hold(F_prompt_tokens, 26);
        hold(F_output_tokens_told, 7);
        hold(F_body_unread_bytes, -1);
        hold(F_typed_end, 1);
    }
    free(text);
}

static void a_whole_answer(void **state) {
    begin_chat();
    body("{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"AB\",\"thinking\":\"xyz\"},"
         "\"done\":true,\"done_reason\":\"stop\",\"eval_count\":4,\"prompt_eval_count\":0}");
    end();
    assert_int_equal(n_events(), 0);
    hold(F_text_bytes, 2);
    hold(F_reasoning_bytes, 3);
    hold(F_output_tokens_told, 4);
    hold(F_prompt_tokens, 0); /* told as zero */
    hold(F_typed_end, 1);
}

static void odd_lines_do_no_harm(void **state) {
    static const char *const lines[] = {
        "7",
        "[]",
        "[{\"response\":\"A\",\"done\":false}]",
        "null",
        "\"x\"",
        "{}",
        "{\"done\":1}",
        "{\"message\":[]}",
        "{\"message\":{\"content\":[1],\"thinking\":{},\"tool_calls\":{\"a\":1}}}",
        "{\"message\":{\"tool_calls\":[{}]},\"done\":false}",
        "{\"response\":5,\"done\":\"yes\"}",
        "{\"status\":\"pulling\",\"total\":5}"};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            begin_both[d]();
            event(lines[i]);
            end();
            assert_int_equal(n_events(), 0);
            hold(F_typed_end, -1);
            hold(F_stream_error, -1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_request_in_full),
        cmocka_unit_test(a_generate_request_in_full),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(answers_tell_their_api),
        cmocka_unit_test(lines_of_a_chat),
        cmocka_unit_test(what_is_left_out_is_absent),
        cmocka_unit_test(an_end_without_a_reason),
        cmocka_unit_test(loading_bears_no_token),
        cmocka_unit_test(tool_calls_come_whole),
        cmocka_unit_test(a_failure_ends_the_stream),
        cmocka_unit_test(log_probabilities_are_counted),
        cmocka_unit_test(a_large_context_is_not_parsed),
        cmocka_unit_test(a_whole_answer),
        cmocka_unit_test(odd_lines_do_no_harm),
    };
    fake_answer_start(&dialect_other);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
