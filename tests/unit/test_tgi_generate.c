/* TGI's native API, field by field. */
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
static void hold_real(enum fact f, double right) {
    double seen = -1;
    assert_true(fake_real(1, f, &seen));
    assert_true(seen > right - 1e-9 && seen < right + 1e-9);
}

static void requests_are_known_by_path_and_fields(void **state) {
    static const struct row rows[] = {
        {"/generate", "{\"inputs\":\"x\"}", "tgi-generate"},
        {"/generate_stream", "{\"inputs\":\"x\"}", "tgi-generate"},
        {"/generate_stream", "not json", "tgi-generate"},
        {"/", "{\"inputs\":\"x\",\"parameters\":{}}", "tgi-generate"},
        {"/", "{\"inputs\":\"x\",\"stream\":true}", "tgi-generate"},
        {"/invocations", "{\"inputs\":\"x\",\"parameters\":{}}", "tgi-generate"},
        {"/", "{\"inputs\":\"x\"}", "other"}, /* embeddings are asked so, too */
        {"/embed", "{\"inputs\":\"x\",\"parameters\":{}}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void a_request_to_tgi(void **state) {
    ask("/",
        "{\"inputs\":\"abc\",\"stream\":true,\"parameters\":{\"max_new_tokens\":5,\"temperature\":0.7,"
        "\"adapter_id\":\"ad\",\"return_full_text\":true,\"grammar\":{\"type\":\"json\",\"value\":{}}}}");
    end();
    hold(F_prompt_bytes, 3);
    hold(F_max_tokens, 5);
    hold(F_stream, 1);
    hold(F_echo, 1);
    hold_text(F_adapter, "ad");
    hold_text(F_schema, "json_schema");
    hold_real(F_temperature, 0.7);
    ask("/generate", "{\"inputs\":\"abc\",\"parameters\":null}");
    end();
    hold(F_max_tokens, -1);
    hold(F_echo, -1);
    assert_false(fake_holds("abc"));
}

static void a_token_is_one_by_contract(void **state) {
    ask("/generate_stream", "{\"inputs\":\"x\"}");
    event("{\"index\":1,\"token\":{\"id\":5,\"text\":\"ab\",\"logprob\":-0.5,\"special\":false},\"generated_"
          "text\":"
          "null,\"details\":null}");
    event("{\"index\":2,\"token\":{\"id\":6,\"text\":\"c\",\"logprob\":-1.25e-7,\"special\":false},"
          "\"generated_text\":"
          "null,\"details\":null}");
    event("{\"index\":3,\"token\":{\"id\":7,\"text\":\"\",\"logprob\":-0.5,\"special\":false},\"generated_"
          "text\":null,"
          "\"details\":null}");
    event("{\"index\":4,\"token\":{\"id\":2,\"text\":\"</"
          "s>\",\"logprob\":null,\"special\":true},\"generated_text\":"
          "\"abc\",\"details\":{\"finish_reason\":\"eos_token\",\"generated_tokens\":4,\"input_length\":3}}");
    end();
    hold_event(0, TOK_CONTENT | TOK_CONTRACT, 2, -1);
    hold_event(1, TOK_CONTENT | TOK_CONTRACT, 1, -1);
    hold_event(2, TOK_CONTRACT, 0, -1);
    hold_event(3, TOK_CONTRACT | TOK_FINISH | TOK_STOP, 0, -1);
    hold(F_text_bytes, 3);
    hold(F_output_tokens_told, 4);
    hold(F_prompt_tokens, 3);
    hold(F_typed_end, 1);
    hold_text(F_finish_reason, "eos_token");
}

static void a_stream_of_tgi_without_details(void **state) {
    ask("/generate_stream", "{\"inputs\":\"x\"}");
    event(
        "{\"token\":{\"id\":5,\"text\":\"ab\",\"logprob\":-0.5,\"special\":false},\"generated_text\":\"ab\","
        "\"details\":null}");
    event("{\"ping\":1}");
    end();
    hold_event(0, TOK_CONTENT | TOK_CONTRACT, 2, -1);
    hold(F_typed_end, 1);
    hold(F_output_tokens_told, -1);
    hold_text(F_finish_reason, NULL);
    ask("/generate_stream", "{\"inputs\":\"x\"}");
    event("{\"error\":\"cuda\",\"error_type\":\"generation\"}");
    end();
    hold(F_stream_error, 1);
    hold(F_typed_end, -1);
    hold(F_choices, -1); /* no choice was seen */
    hold_text(F_error_type, "generation");
}

static void whole_answers_of_tgi(void **state) {
    ask("/generate", "{\"inputs\":\"abc\",\"parameters\":{\"best_of\":2}}");
    body("{\"generated_text\":\"one\",\"details\":{\"finish_reason\":\"length\",\"generated_tokens\":4,"
         "\"best_of_sequences\":[{\"generated_text\":\"four\",\"finish_reason\":\"stop_sequence\","
         "\"generated_tokens\":3}]}}");
    end();
    hold(F_choices, 2);
    hold(F_output_tokens_told, 7);
    hold(F_text_bytes, 7);
    hold_text(F_finish_reason, "length,stop_sequence");
    ask("/", "{\"inputs\":\"abc\",\"parameters\":{\"return_full_text\":true}}");
    body("[{\"generated_text\":\"abcde\"}]");
    end();
    hold_text(F_api, "tgi-generate");
    hold(F_text_bytes, 2); /* without the prompt */
    hold(F_output_tokens_told, -1);
    ask("/foo", "{}");
    body("[{\"generated_text\":\"\"}]");
    end();
    hold_text(F_api, "tgi-generate");
    ask("/generate", "{\"inputs\":\"abc\"}");
    status(422);
    body("{\"error\":\"too long\",\"error_type\":\"validation\"}");
    end();
    hold_text(F_error_type, "validation");
    hold(F_error_bytes, 8);
    hold(F_choices, -1);
}

static void odd_tokens_tell_nothing_wrong(void **state) {
    ask("/generate_stream", "{\"inputs\":\"x\"}");
    event("{\"token\":7}");
    event("{\"token\":[]}");
    event("{\"token\":{\"id\":1,\"text\":7,\"special\":\"no\"},\"details\":{\"finish_reason\":7,\"generated_"
          "tokens\":-4,"
          "\"input_length\":1.5},\"generated_text\":7}");
    body("[7,{\"generated_text\":null},{\"generated_text\":\"a\",\"details\":[{\"generated_tokens\":5}]}]");
    end();
    hold_event(0, TOK_CONTRACT, 0, -1);
    hold(F_output_tokens_told, -1);
    hold(F_prompt_tokens, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_known_by_path_and_fields),
        cmocka_unit_test(a_request_to_tgi),
        cmocka_unit_test(a_token_is_one_by_contract),
        cmocka_unit_test(a_stream_of_tgi_without_details),
        cmocka_unit_test(whole_answers_of_tgi),
        cmocka_unit_test(odd_tokens_tell_nothing_wrong),
    };
    fake_answer_start(&dialect_other);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
