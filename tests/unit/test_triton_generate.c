/* Triton's generate extension, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void ask(const char *path, const char *text) {
    begin();
    asked(path, text);
}
static void hold_choice(size_t i, uint32_t right) {
    size_t n;
    assert_int_equal(fake_events(&n)[i].choice, right);
}
static void requests_are_known_by_path_and_fields(void **state) {
    static const struct row rows[] = {
        {"/v2/models/m/generate", "{\"text_input\":\"x\"}", "triton-generate"},
        {"/v2/models/m/versions/1/generate_stream", "{\"my_input\":\"x\"}", "triton-generate"},
        {"/v2/models/m/generate_stream", "not json", "triton-generate"},
        {"/gw/generate_stream", "{\"text_input\":\"x\"}", "triton-generate"},
        {"/v2/models/m/infer", "{\"inputs\":[]}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void a_request_to_triton(void **state) {
    ask("/v2/models/vllm/generate",
        "{\"text_input\":\"abcd\",\"max_tokens\":20,\"image\":[\"a\"],\"parameters\":{\"stream\":true,"
        "\"temperature\":0.5}}");
    end();
    hold(F_prompt_bytes, 4);
    hold(F_max_tokens, 20);
    hold(F_stream, 1);
    hold(F_images, 1);
    hold_text(F_model, "vllm");
    ask("/v2/models/m/generate", "{\"text_input\":[\"ab\",\"c\"]}");
    end();
    hold(F_prompts, 2);
    hold(F_prompt_bytes, 3);
}

static void triton_tells_what_it_was_asked_for(void **state) {
    size_t n;
    ask("/v2/models/m/generate_stream", "{\"text_input\":\"x\"}");
    event("{\"finish_reason\":\"None\",\"model_name\":\"m\",\"num_input_tokens\":6,\"num_output_tokens\":1,"
          "\"text_output\":\"a\",\"cumulative_logprob\":-0.5}");
    event("{\"finish_reason\":\"None\",\"model_name\":\"m\",\"num_input_tokens\":6,\"num_output_tokens\":1,"
          "\"text_output\":\"bcd\",\"cumulative_logprob\":-1.75}");
    event("{\"finish_reason\":\"length\",\"model_name\":\"m\",\"num_input_tokens\":6,\"num_output_tokens\":2,"
          "\"text_output\":\"\",\"cumulative_logprob\":-2}");
    end();
    hold_text(F_response_model, "m");
    hold_text(F_finish_reason, "length");
    hold(F_prompt_tokens, 6);
    hold(F_output_tokens_told, -1); /* of the whole it says nothing */
    hold(F_text_bytes, 4);
    hold_event(1, TOK_CONTENT, 3, -1);
    hold_event(2, TOK_FINISH, 0, -1);
    assert_int_equal(fake_events(&n)[0].ids, 1);
    assert_int_equal(fake_events(&n)[2].ids, 2);
    assert_true(dialect_triton_generate.ends_with_body);
}

static void a_list_is_one_choice_an_element(void **state) {
    ask("/v2/models/m/generate", "{\"text_input\":\"x\"}");
    body("{\"model_name\":\"m\",\"text_output\":[\"ab\",\"c\"],\"num_output_tokens\":[3,2],\"finish_reason\":"
         "[\"stop\","
         "\"length\"]}");
    end();
    hold(F_choices, 2);
    hold(F_text_bytes, 3);
    hold(F_output_tokens_told, 5);
    hold_text(F_finish_reason, "stop,length");
    ask("/v2/models/m/generate_stream", "{\"text_input\":\"x\"}");
    event("{\"sequence_index\":1,\"text_output\":\"a\"}");
    event("{\"sequence_index\":0,\"text_output\":\"b\"}");
    event("{\"text_output\":[\"c\",\"dd\"]}");
    event("{\"error\":\"gone\"}");
    end();
    hold_event(0, TOK_CONTENT, 1, -1);
    hold_choice(0, 1);
    hold_event(1, TOK_CONTENT, 1, -1);
    hold_event(3, TOK_CONTENT, 2, -1);
    hold_choice(3, 1);
    hold(F_stream_error, 1);
}

static void odd_outputs_tell_nothing(void **state) {
    ask("/v2/models/m/generate_stream", "{\"text_input\":\"x\"}");
    event("{\"text_output\":7}");
    event("{\"text_output\":null,\"model_name\":7}");
    event("{\"text_output\":\"a\",\"num_output_tokens\":-1,\"num_input_tokens\":\"x\",\"finish_reason\":7,"
          "\"sequence_index\":-5}");
    event("{\"text_output\":[null,7,[]],\"num_output_tokens\":[99999999999]}");
    event("[]");
    end();
    size_t n;
    fake_events(&n);
    assert_int_equal(n, 1);
    assert_int_equal(fake_events(&n)[0].ids, -1);
    hold(F_prompt_tokens, -1);
    hold_text(F_finish_reason, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_known_by_path_and_fields),
        cmocka_unit_test(a_request_to_triton),
        cmocka_unit_test(triton_tells_what_it_was_asked_for),
        cmocka_unit_test(a_list_is_one_choice_an_element),
        cmocka_unit_test(odd_outputs_tell_nothing),
    };
    fake_answer_start(&dialect_other);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
