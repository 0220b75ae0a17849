/* What requests and answers of llama.cpp's own completion API say, field by field. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void requests(void **state) {
    begin();
    asked("/completion", "{\"prompt\":\"h\\u00e9\",\"n_predict\":64,\"stream\":true,\"temperature\":0.5,"
                         "\"n_cmpl\":2,\"image_data\":[{\"data\":\"QUJD\",\"id\":1}],\"grammar\":\"root ::= "
                         "x\"}");
    end();
    hold_text(F_api, "llamacpp-completion");
    hold_text(F_schema, "grammar");
    hold(F_prompt_bytes, 3);
    hold(F_prompts, -1);
    hold(F_max_tokens, 64);
    hold(F_stream, 1);
    hold(F_n, 2);
    hold(F_images, 1);
    assert_false(fake_holds("QUJD"));
    begin();
    asked("/infill", "{\"input_prefix\":\"ab\",\"input_suffix\":\"c\",\"prompt\":\"d\",\"n_predict\":-1,"
                     "\"input_extra\":[{\"filename\":\"f\",\"text\":\"efg\"},7],\"json_schema\":{\"a\":1}}");
    end();
    hold_text(F_api, "llamacpp-completion");
    hold_text(F_schema, "json_schema");
    hold(F_prompt_bytes, 7);
    hold(F_max_tokens, -1); /* -1 is none */
}

static void prompts_of_all_shapes(void **state) {
    static const struct {
        const char *prompt;
        int64_t prompts, bytes, media;
    } rows[] = {
        {"\"abc\"", -1, 3, -1},
        {"[1,2,3]", -1, 0, -1},
        {"[1,\"ab\",2,\"c\"]", -1, 3, -1},
        {"[\"ab\",1]", -1, 2, -1},
        {"[\"ab\",\"c\"]", 2, 3, -1},
        {"[[1,2],\"c\",[3,\"de\"]]", 3, 3, -1},
        {"[\"one\"]", 1, 3, -1},
        {"{\"prompt_string\":\"ab<__media__>\",\"multimodal_data\":[\"QUJD\",\"QUJD\"]}", -1, 13, 2},
        {"[]", -1, 0, -1},
        {"null", -1, 0, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"prompt\":%s}", rows[i].prompt);
        begin();
        asked("/completion", text);
        end();
        hold(F_prompts, rows[i].prompts);
        hold(F_prompt_bytes, rows[i].bytes);
        hold(F_images, rows[i].media);
    }
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/completion", "{\"prompt\":\"x\"}", "llamacpp-completion"},
        {"/completion", "", "llamacpp-completion"},
        {"/completions", "{\"prompt\":\"x\",\"n_predict\":4}", "llamacpp-completion"},
        {"/completions", "{\"prompt\":\"x\",\"model\":\"m\"}", "openai-completions"},
        {"/v1/completions", "{\"prompt\":\"x\",\"n_predict\":4}", "openai-completions"},
        {"/v1/chat/completions", "{\"messages\":[],\"n_predict\":4}", "openai-chat"},
        {"/v1/embeddings", "{\"input\":\"x\"}", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
    begin(); /* the answer shows what the path did not */
    asked("/completions", "{\"prompt\":\"x\"}");
    event("{\"index\":0,\"content\":\"A\",\"tokens\":[],\"stop\":false,\"tokens_predicted\":1}");
    end();
    hold_text(F_api, "llamacpp-completion");
    hold_event(0, TOK_CONTENT, 1, 1);
}

static void events_tell_a_running_count(void **state) {
    begin();
    event("{\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":false,\"tokens_predicted\":0,"
          "\"prompt_progress\":{\"total\":24,\"cache\":8,\"processed\":8,\"time_ms\":0}}");
    event("{\"index\":0,\"content\":\"A\",\"tokens\":[1],\"stop\":false,\"id_slot\":0,"
          "\"tokens_predicted\":1,\"tokens_evaluated\":24}");
    event("{\"index\":0,\"content\":\"BC\",\"tokens\":[22],\"stop\":false,\"id_slot\":0,"
          "\"tokens_predicted\":2,\"tokens_evaluated\":24}");
    event("{\"index\":0,\"content\":\"\\u00e9\",\"tokens\":[3,4],\"stop\":false,\"id_slot\":0,"
          "\"tokens_predicted\":4,\"tokens_evaluated\":24}");
    event("{\"index\":0,\"content\":\"\",\"tokens\":[2],\"stop\":false,\"id_slot\":0,"
          "\"tokens_predicted\":5,\"tokens_evaluated\":24}");
    end();
    assert_int_equal(n_events(), 4);
    hold_event(0, TOK_CONTENT, 1, 1);
    hold_event(1, TOK_CONTENT, 2, 2);
    hold_event(2, TOK_CONTENT, 2, 4);
    hold_event(3, 0, 0, 5);
    size_t n;
    for (size_t i = 0; i < 4; i++) assert_int_equal(fake_events(&n)[i].ids, -1);
    hold(F_output_tokens_told, 5);
    hold(F_prompt_tokens, 24);
    hold(F_typed_end, -1);
    hold(F_text_bytes, 5);
}

static void the_last_event(void **state) {
    begin();
    event("{\"index\":0,\"content\":\"A\",\"stop\":false,\"tokens_predicted\":1,\"tokens_evaluated\":24}");
    event("{\"index\":0,\"content\":\"\",\"tokens\":[],\"id_slot\":0,\"stop\":true,\"model\":\"m\","
          "\"tokens_predicted\":6,\"tokens_evaluated\":24,\"generation_settings\":{\"seed\":7},\"prompt\":"
          "\"secret\",\"truncated\":false,\"stop_type\":\"word\",\"stopping_word\":\"secret\","
          "\"tokens_cached\":29,\"timings\":{\"cache_n\":8,\"prompt_n\":16,\"prompt_ms\":92.5,"
          "\"predicted_n\":6,\"predicted_ms\":150.0,\"draft_n\":10,\"draft_n_accepted\":3}}");
    end();
    hold_event(1, TOK_FINISH | TOK_STOP, 0, 6);
    hold_text(F_finish_reason, "word");
    hold_text(F_response_model, "m");
    hold(F_typed_end, 1);
    hold(F_output_tokens_told, 6);
    hold(F_prompt_tokens, 24);
    hold(F_cached_tokens, 8);
    hold(F_draft_tokens, 10);
    hold(F_accepted_tokens, 3);
    hold(F_reported_prefill_ns, 92500000);
    hold(F_reported_decode_ns, 150000000);
    assert_false(fake_holds("secret"));
}

static void reasons_to_stop(void **state) {
    static const struct {
        const char *said, *reason;
        uint32_t what;
    } rows[] = {
        {"\"stop_type\":\"eos\"", "eos", TOK_FINISH | TOK_STOP},
        {"\"stop_type\":\"limit\"", "limit", TOK_FINISH},
        {"\"stop_type\":\"word\"", "word", TOK_FINISH | TOK_STOP},
        {"\"stop_type\":\"none\"", "none", TOK_FINISH | TOK_STOP},
        {"\"stopped_eos\":true,\"stopped_word\":false,\"stopped_limit\":false", "eos", TOK_FINISH | TOK_STOP},
        {"\"stopped_eos\":false,\"stopped_word\":true", "word", TOK_FINISH | TOK_STOP},
        {"\"stopped_limit\":true", "limit", TOK_FINISH},
        {"\"stop_type\":\"\",\"stopped_limit\":true", "limit", TOK_FINISH},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"content\":\"\",\"stop\":true,%s,\"tokens_predicted\":3}",
                 rows[i].said);
        begin();
        event(text);
        end();
        hold_text(F_finish_reason, rows[i].reason);
        hold_event(0, rows[i].what, 0, 3);
        hold(F_stop_finishes, (rows[i].what & TOK_STOP) != 0);
        hold(F_typed_end, 1);
    }
    begin(); /* none told */
    event("{\"content\":\"\",\"stop\":true,\"stopped_eos\":false}");
    end();
    hold_text(F_finish_reason, NULL);
    hold(F_typed_end, 1);
    assert_int_equal(n_events(), 0);
}

/* Servers of before: counts come at the end, and timings leave the cached part of the prompt out. */
static void totals_of_old_servers(void **state) {
    begin();
    event("{\"content\":\"A\",\"multimodal\":false,\"slot_id\":0,\"stop\":false}");
    event("{\"content\":\"\",\"slot_id\":0,\"stop\":true,\"tokens_predicted\":2,\"tokens_evaluated\":20,"
          "\"stopped_eos\":true,\"timings\":{\"prompt_n\":5,\"prompt_ms\":1.5,\"predicted_n\":2}}");
    end();
    hold_event(0, TOK_CONTENT, 1, -1);
    hold(F_output_tokens_told, 2);
    hold(F_prompt_tokens, 20);
    hold(F_cached_tokens, -1);
    begin(); /* nothing but timings */
    event("{\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"timings\":{\"cache_n\":3,\"prompt_n\":5,"
          "\"predicted_n\":2}}");
    end();
    hold(F_output_tokens_told, 2);
    hold(F_prompt_tokens, 8);
    hold(F_cached_tokens, 3);
}

static void wrong_values_tell_nothing(void **state) {
    begin();
    event(
        "{\"index\":-3,\"content\":\"A\",\"stop\":false,\"tokens_predicted\":-1,\"tokens_evaluated\":null}");
    event("{\"index\":\"x\",\"content\":\"A\",\"stop\":false,\"tokens_predicted\":\"1\",\"timings\":[]}");
    event("{\"content\":5,\"stop\":true,\"tokens_predicted\":99999999999999999999,\"stop_type\":7,"
          "\"tokens_evaluated\":1.5,\"timings\":{\"cache_n\":\"x\",\"prompt_ms\":-1,\"predicted_ms\":null}}");
    end();
    assert_int_equal(n_events(), 2);
    hold_event(0, TOK_CONTENT, 1, -1);
    hold_event(1, TOK_CONTENT, 1, -1);
    hold(F_output_tokens_told, -1);
    hold(F_prompt_tokens, -1);
    hold(F_cached_tokens, -1);
    hold(F_reported_prefill_ns, -1);
    hold(F_reported_decode_ns, -1);
    hold(F_choices, 1);
    hold(F_typed_end, 1);
}

/* Each choice has its own count; the total is their sum, wherever the stream is cut. */
static void choices_are_added(void **state) {
    static const struct {
        const char *event;
        int64_t total;
    } rows[] = {
        {"{\"index\":0,\"content\":\"A\",\"stop\":false,\"tokens_predicted\":1,\"tokens_evaluated\":24}", 1},
        {"{\"index\":0,\"content\":\"B\",\"stop\":false,\"tokens_predicted\":2,\"tokens_evaluated\":24}", 2},
        {"{\"index\":1,\"content\":\"C\",\"stop\":false,\"tokens_predicted\":1,\"tokens_evaluated\":24}", 3},
        {"{\"index\":0,\"content\":\"D\",\"stop\":false,\"tokens_predicted\":4,\"tokens_evaluated\":24}", 5},
        {"{\"index\":1,\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":2,"
         "\"tokens_evaluated\":24,\"timings\":{\"cache_n\":8,\"prompt_n\":16,\"predicted_n\":2,\"draft_n\":4,"
         "\"draft_n_accepted\":1}}",
         6},
        {"{\"index\":0,\"content\":\"\",\"stop\":true,\"stop_type\":\"limit\",\"tokens_predicted\":5,"
         "\"tokens_evaluated\":24,\"timings\":{\"cache_n\":8,\"prompt_n\":16,\"predicted_n\":5,\"draft_n\":6,"
         "\"draft_n_accepted\":2}}",
         7},
    };
    enum { N = sizeof rows / sizeof *rows };
    for (size_t cut = 1; cut <= N; cut++) {
        begin();
        asked("/completion", "{\"prompt\":\"x\",\"n_cmpl\":2}");
        for (size_t i = 0; i < cut; i++) event(rows[i].event);
        end();
        hold(F_output_tokens_told, rows[cut - 1].total);
        hold(F_prompt_tokens, 24); /* they share it */
    }
    hold(F_cached_tokens, 8);
    hold(F_draft_tokens, 10);
    hold(F_accepted_tokens, 3);
    hold(F_choices, 2);
    hold_text(F_finish_reason, "limit,eos");
    size_t n;
    assert_int_equal(fake_events(&n)[2].choice, 1);
    hold_event(3, TOK_CONTENT, 1, 4);
}

static void prompts_are_added(void **state) {
    begin();
    asked("/completion", "{\"prompt\":[\"a\",\"b\"]}");
    body("[{\"index\":1,\"content\":\"AB\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":2,"
         "\"tokens_evaluated\":10,\"timings\":{\"cache_n\":4,\"prompt_n\":6,\"predicted_n\":2}},"
         "{\"index\":0,\"content\":\"C\",\"stop\":true,\"stop_type\":\"limit\",\"tokens_predicted\":1,"
         "\"tokens_evaluated\":7,\"timings\":{\"cache_n\":0,\"prompt_n\":7,\"predicted_n\":1}}]");
    end();
    assert_int_equal(n_events(), 0);
    hold(F_prompts, 2);
    hold(F_prompt_tokens, 17);
    hold(F_cached_tokens, 4);
    hold(F_output_tokens_told, 3);
    hold(F_text_bytes, 3);
    hold_text(F_finish_reason, "limit,eos");
}

static void probabilities_and_timings_of_each_token(void **state) {
    begin();
    event("{\"index\":0,\"content\":\"A\",\"stop\":false,\"tokens_predicted\":1,\"completion_probabilities\":"
          "[{\"id\":1,\"token\":\"A\",\"logprob\":-0.1}],\"timings\":{\"cache_n\":2,\"prompt_n\":3,"
          "\"prompt_ms\":4.0,\"predicted_n\":1,\"predicted_ms\":0.5}}");
    end();
    size_t n;
    assert_int_equal(fake_events(&n)[0].logprobs, 1);
    hold(F_cached_tokens, 2); /* known although the end was cut off */
    hold(F_prompt_tokens, 5);
    hold(F_reported_prefill_ns, 4000000);
}

static void an_error_in_the_middle(void **state) {
    begin();
    event("{\"index\":0,\"content\":\"A\",\"stop\":false,\"tokens_predicted\":1}");
    event("{\"error\":{\"code\":500,\"message\":\"compute\",\"type\":\"server_error\"}}");
    end();
    assert_int_equal(n_events(), 1);
    hold(F_stream_error, 1);
    hold_text(F_error_type, "server_error");
    hold_text(F_error_code, "500");
    hold(F_typed_end, -1);
    hold(F_choices, 1);
}

/* The echo of a long prompt is not parsed: what stands behind it is read. */
static void a_large_echo_is_not_parsed(void **state) {
    enum { IDS = 150000 };
    static const char head[] = "{\"index\":0,\"content\":\"A\",\"prompt\":[1",
                      tail[] = "],\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":9}";
    char *text = malloc(sizeof head + sizeof tail + 6 * IDS), *p = text + sprintf(text, "%s", head);
    for (int i = 0; i < IDS; i++) p += sprintf(p, ",%d", i % 10000);
    strcpy(p, tail);
    begin();
    body(text);
    end();
    hold(F_output_tokens_told, 9);
    hold(F_body_unread_bytes, -1);
    free(text);
}

static void odd_events_do_no_harm(void **state) {
    static const char *const events[] = {"7",
                                         "[]",
                                         "[[]]",
                                         "null",
                                         "{}",
                                         "{\"content\":null,\"stop\":false}",
                                         "{\"stop\":0}",
                                         "{\"status\":\"x\"}"};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        begin();
        event(events[i]);
        body(events[i]);
        end();
        assert_int_equal(n_events(), 0);
        hold(F_choices, -1);
        hold(F_typed_end, -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(prompts_of_all_shapes),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(events_tell_a_running_count),
        cmocka_unit_test(the_last_event),
        cmocka_unit_test(reasons_to_stop),
        cmocka_unit_test(totals_of_old_servers),
        cmocka_unit_test(wrong_values_tell_nothing),
        cmocka_unit_test(choices_are_added),
        cmocka_unit_test(prompts_are_added),
        cmocka_unit_test(probabilities_and_timings_of_each_token),
        cmocka_unit_test(an_error_in_the_middle),
        cmocka_unit_test(a_large_echo_is_not_parsed),
        cmocka_unit_test(odd_events_do_no_harm),
    };
    fake_answer_start(&dialect_llamacpp_completion);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
