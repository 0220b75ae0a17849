/* What requests to /generate of SGLang and LMDeploy ask, and the counts, times and ends of their answers. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void ask(const char *path, const char *text) {
    begin();
    asked(path, text);
}
static void hold_choice(size_t i, uint32_t right) {
    size_t n;
    assert_int_equal(fake_events(&n)[i].choice, right);
}
static void hold_real(enum fact f, double right) {
    double seen = -1;
    assert_true(fake_real(1, f, &seen));
    assert_true(seen > right - 1e-9 && seen < right + 1e-9);
}

static void requests_are_known_by_path_and_fields(void **state) {
    static const struct row rows[] = {
        {"/generate", "{\"text\":\"x\",\"sampling_params\":{}}", "sglang-generate"},
        {"/gw/generate/", "{\"text\":\"x\",\"sampling_params\":{}}", "sglang-generate"},
        {"/generate", "{\"input_ids\":[1,2],\"sampling_params\":{}}", "sglang-generate"},
        {"/generate", "{\"input_ids\":[1,2]}", "sglang-generate"},
        {"/generate", "not json", "sglang-generate"},
        {"/generate", "{\"prompt\":\"x\"}", "lmdeploy-generate"},
        {"/generate", "{\"input_ids\":[1,2],\"max_tokens\":5}", "lmdeploy-generate"},
        {"/v1/generate", "{\"prompt\":\"x\"}", "other"}, /* Cohere and others */
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void the_answer_tells_which_of_two(void **state) {
    ask("/generate", "{\"input_ids\":[1]}");
    hold_text(F_api, "sglang-generate");
    body("{\"text\":\"x\",\"output_ids\":[7],\"meta_info\":{\"prompt_tokens\":1,\"completion_tokens\":1,"
         "\"finish_reason\":{\"type\":\"length\"}}}");
    end();
    hold_text(F_api, "lmdeploy-generate");
    ask("/v1/embeddings", "{}"); /* SGLang's embeddings have no completion_tokens */
    body("{\"embedding\":[0.1],\"meta_info\":{\"id\":\"x\",\"prompt_tokens\":3}}");
    end();
    hold_text(F_api, "other");
}

static void a_request_to_sglang(void **state) {
    ask("/generate", "{\"text\":[\"ab\",\"\\u00e9\"],\"stream\":true,\"image_data\":[\"u\",\"v\"],"
                     "\"audio_data\":\"w\",\"video_data\":null,\"lora_path\":\"ad\",\"sampling_params\":{"
                     "\"max_new_tokens\":8,\"temperature\":0.25,\"n\":2,\"regex\":\"a+\"}}");
    end();
    hold(F_prompts, 2);
    hold(F_prompt_bytes, 4);
    hold(F_images, 3);
    hold(F_max_tokens, 8);
    hold(F_n, 2);
    hold(F_stream, 1);
    hold_text(F_adapter, "ad");
    hold_text(F_schema, "regex");
    hold_real(F_temperature, 0.25);
    ask("/generate", "{\"input_ids\":[[1,2],[3]],\"lora_path\":[\"x\"],\"sampling_params\":[{\"n\":2},{}]}");
    end();
    hold(F_prompts, 2);
    hold(F_prompt_bytes, -1);
    hold(F_images, -1);
    hold(F_n, -1);
    hold_text(F_adapter, NULL);
    ask("/generate", "{\"input_ids\":[1,2],\"sampling_params\":{\"n\":0,\"max_new_tokens\":-1,"
                     "\"temperature\":\"hot\"}}");
    end();
    hold(F_prompts, -1);
    hold(F_n, -1);
    hold(F_max_tokens, -1);
}

static void a_request_to_lmdeploy(void **state) {
    ask("/generate", "{\"prompt\":\"abc\",\"stream\":false,\"max_tokens\":9,\"temperature\":0.5,"
                     "\"image_data\":{\"url\":\"u\"}}");
    end();
    hold(F_prompt_bytes, 3);
    hold(F_stream, 0);
    hold(F_max_tokens, 9);
    hold(F_images, 1);
    hold_real(F_temperature, 0.5);
}

static void all_of_meta_info(void **state) {
    ask("/generate", "{\"text\":\"x\"}");
    event("{\"text\":\"a\",\"output_ids\":[1],\"meta_info\":{\"id\":\"r1\",\"finish_reason\":null,"
          "\"prompt_tokens\":9,\"cached_tokens\":8,\"num_retractions\":0,\"completion_tokens\":1,"
          "\"queue_time\":0.5,\"e2e_latency\":0.1}}");
    event("{\"text\":\"ab\",\"output_ids\":[1,2],\"meta_info\":{\"id\":\"r1\",\"finish_reason\":{\"type\":"
          "\"length\",\"length\":2},\"prompt_tokens\":9,\"cached_tokens\":8,\"num_retractions\":2,"
          "\"completion_tokens\":2,\"e2e_latency\":0.25,\"queue_time\":0.004,\"spec_verify_ct\":3,"
          "\"spec_accept_length\":2.5,\"spec_num_correct_drafts\":3,\"spec_num_proposed_drafts\":9,"
          "\"spec_correct_drafts_histogram\":[1,1,1],\"reasoning_tokens\":1}}");
    event("[DONE]");
    end();
    hold_text(F_response_id, "r1");
    hold(F_prompt_tokens, 9);
    hold(F_cached_tokens, 8);
    hold(F_preemptions, 2);
    hold(F_output_tokens_told, 2);
    hold(F_reported_total_ns, 250000000);
    hold(F_reported_queue_ns, 4000000);
    hold(F_spec_steps, 3);
    hold(F_accepted_tokens, 3);
    hold(F_draft_tokens, 9);
    hold(F_reasoning_tokens, -1); /* their text stands in the answer */
    hold_text(F_spec_histogram, "1,1,1");
    hold_real(F_reported_accept_length, 2.5);
    hold_text(F_finish_reason, "length");
    hold(F_stop_finishes, 0);
    hold(F_done_marker, 1);
    hold_event(1, TOK_CONTENT | TOK_FINISH, 1, 2);
}

static void an_unfinished_stream_has_no_times_of_the_whole(void **state) {
    ask("/generate", "{\"text\":\"x\"}");
    event("{\"text\":\"a\",\"meta_info\":{\"id\":\"r\",\"finish_reason\":null,\"completion_tokens\":1,"
          "\"e2e_latency\":0.1}}");
    end();
    hold(F_reported_total_ns, -1);
    hold_text(F_finish_reason, NULL);
}

static void older_names(void **state) {
    ask("/generate", "{\"text\":\"x\"}");
    body("{\"text\":\"ab\",\"meta_info\":{\"id\":\"r\",\"finish_reason\":\"stop\",\"prompt_tokens\":9,"
         "\"completion_tokens\":2,\"total_retractions\":1,\"spec_verify_ct\":2,\"spec_accept_token_num\":3,"
         "\"spec_draft_token_num\":8,\"spec_accept_histogram\":[0,1,1]}}");
    end();
    hold(F_preemptions, 1);
    hold(F_accepted_tokens, 3);
    hold(F_draft_tokens, 8);
    hold(F_text_bytes, 2);
    hold_text(F_spec_histogram, "0,1,1");
    hold_text(F_finish_reason, "stop");
}

#define OF(index, text, meta)                                                                                \
    "{\"index\":" #index ",\"text\":\"" text "\",\"meta_info\":{\"id\":\"r\"," meta "}}"
#define COUNTS(prompt, cached, output, finish)                                                               \
    "\"prompt_tokens\":" #prompt ",\"cached_tokens\":" #cached ",\"completion_tokens\":" #output             \
    ",\"finish_reason\":" finish

static void a_batch_streams_with_indexes(void **state) {
    ask("/generate", "{\"text\":[\"x\",\"y\"],\"stream\":true,\"sampling_params\":{\"n\":2}}");
    event(OF(2, "b", COUNTS(20, 5, 1, "null"))); /* the second prompt's first choice */
    event(OF(0, "a", COUNTS(10, 0, 1, "null")));
    event(OF(1, "c", COUNTS(10, 10, 1, "null")));
    event(OF(3, "d", COUNTS(20, 20, 1, "null")));
    event(OF(0, "ab", COUNTS(10, 0, 2, "{\"type\":\"length\"}")));
    event(OF(2, "bcd", COUNTS(20, 5, 4, "{\"type\":\"stop\"}")));
    end();
    hold(F_choices, 4);
    hold(F_prompt_tokens, 30);
    hold(F_cached_tokens, 5);
    hold(F_output_tokens_told, 8);
    hold(F_text_bytes, 7);
    hold_text(F_finish_reason, "length,stop");
    hold_event(0, TOK_CONTENT, 1, 1);
    hold_choice(0, 2);
    hold_event(4, TOK_CONTENT | TOK_FINISH, 1, 2);
    hold_event(5, TOK_CONTENT | TOK_FINISH | TOK_STOP, 2, 4);
    hold_choice(5, 2);
}

static void a_whole_batch_is_an_array(void **state) {
    ask("/generate", "{\"text\":[\"x\",\"y\"]}");
    body("[{\"text\":\"ab\",\"meta_info\":{\"id\":\"r\",\"spec_verify_ct\":2," COUNTS(
        3, 1, 4, "{\"type\":\"stop\"}") "}},{\"text\":\"c\",\"meta_info\":{\"id\":\"s\",\"spec_verify_ct\":"
                                        "5," COUNTS(5, 2, 6, "{\"type\":\"length\"}") "}},7,null]");
    end();
    hold_text(F_api, "sglang-generate");
    hold(F_prompt_tokens, 8);
    hold(F_cached_tokens, 3);
    hold(F_output_tokens_told, 10);
    hold(F_spec_steps, 7);
    hold(F_text_bytes, 3);
    hold_text(F_finish_reason, "stop,length");
    hold_text(F_response_id, "r");
}

static void an_abort_is_an_error(void **state) {
    ask("/generate", "{\"text\":\"x\"}");
    event("{\"text\":\"\",\"meta_info\":{\"id\":\"r\",\"finish_reason\":{\"type\":\"abort\",\"message\":\"no "
          "room\","
          "\"status_code\":400},\"completion_tokens\":0}}");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, 7);
    hold_text(F_finish_reason, "abort");
    assert_false(fake_holds("no room"));
    ask("/generate", "{\"text\":\"x\"}");
    event("{\"text\":\"a\",\"meta_info\":{\"id\":\"r\",\"finish_reason\":null,\"completion_tokens\":1}}");
    event("{\"error\":{\"message\":\"bad\"}}");
    event("[DONE]");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, 3);
    hold(F_output_tokens_told, 1);
    hold_text(F_finish_reason, NULL);
}

static void odd_values_tell_nothing(void **state) {
    static const struct {
        const char *number, *text; /* where a number is meant, where a text is */
    } odd[] = {{"null", "null"}, {"\"7\"", "7"},   {"-1", "-1"},
               {"1.5", "1.5"},   {"true", "true"}, {"9223372036854775807", "{}"},
               {"[]", "[]"},     {"{}", "{}"},     {"99999999999999999999", "99999999999999999999"},
               {"1e300", "[[]]"}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const char *n = odd[i].number, *t = odd[i].text;
        char data[1024];
        size_t n_events;
        snprintf(
            data, sizeof data,
            "{\"text\":%s,\"output_ids\":%s,\"index\":%s,\"meta_info\":{\"id\":\"r\",\"finish_reason\":%s,"
            "\"prompt_tokens\":%s,\"cached_tokens\":%s,\"completion_tokens\":%s,\"total_retractions\":%s}}",
            t, t, n, t, n, n, n, n);
        ask("/generate", "{\"text\":\"x\"}");
        event(data);
        event(data);
        body(data);
        end();
        hold(F_prompt_tokens, -1);
        hold(F_cached_tokens, -1);
        hold(F_output_tokens_told, -1);
        hold(F_preemptions, -1);
        hold_text(F_finish_reason, NULL);
        fake_events(&n_events);
        assert_int_equal(n_events, 0);
    }
    ask("/generate", "{\"text\":\"x\"}");
    event("{}");
    event("[]");
    event("7");
    event("{\"meta_info\":7}");
    event("{\"text\":\"x\"}");
    body("[[],7]");
    end();
    hold(F_choices, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_known_by_path_and_fields),
        cmocka_unit_test(the_answer_tells_which_of_two),
        cmocka_unit_test(a_request_to_sglang),
        cmocka_unit_test(a_request_to_lmdeploy),
        cmocka_unit_test(all_of_meta_info),
        cmocka_unit_test(an_unfinished_stream_has_no_times_of_the_whole),
        cmocka_unit_test(older_names),
        cmocka_unit_test(a_batch_streams_with_indexes),
        cmocka_unit_test(a_whole_batch_is_an_array),
        cmocka_unit_test(an_abort_is_an_error),
        cmocka_unit_test(odd_values_tell_nothing),
    };
    fake_answer_start(&dialect_other);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
