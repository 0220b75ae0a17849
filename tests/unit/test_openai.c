/* What requests and answers of the OpenAI family say, field by field. */
#include "tests/unit/fake_trw.h"

#include "recorder/dissect/dialect.h"
#include "recorder/dissect/heads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t key[32] = {9};
static struct shared *shared;
static struct pool pool = {.limit = 1 << 24};
static struct answer a;

static void begin(void) {
    fake_reset();
    a = (struct answer){
        .trw = fake_trw(), .shared = shared, .pool = &pool, .key = key, .id = 1, .status = 200};
    a.dialect = &dialect_openai_chat;
    a.may_generate = true;
    a.echo_bytes = -1;
    trw_begin(a.trw, SUBJECT_R, 1);
}
static void asked(const char *path, const char *body) {
    answer_take_request(&a, "POST", path, body, strlen(body), true);
}
static void event(const char *data) {
    a.streamed = true;
    a.t_ns++;
    answer_take_event(
        &a,
        &(struct event){.data = data, .n_data = strlen(data), .name = "", .wire_bytes = strlen(data) + 8});
}
static void body(const char *text) {
    answer_take_body(&a, text, strlen(text), true);
}
static void end(void) {
    answer_end(&a);
    answer_free(&a);
    trw_end(a.trw, SUBJECT_R, 1);
    assert_false(fake_misused());
    assert_int_equal(pool.used, 0);
}
static void hold(enum fact f, int64_t right) {
    int64_t seen = fake_get(1, f, -1);
    if (seen != right)
        fail_msg("%s is %lld, right is %lld", fact_infos[f].name, (long long)seen, (long long)right);
}
static void hold_text(enum fact f, const char *right) {
    const char *seen = fake_str(1, f);
    if (!seen || strcmp(seen, right) != 0) fail_msg("%s is %s, right is %s", fact_infos[f].name, seen, right);
}
static void hold_event(size_t i, uint32_t what, uint32_t text_bytes, int64_t running) {
    size_t n;
    const struct tok_event *e = fake_events(&n);
    if (i >= n) fail_msg("there are only %zu events", n);
    assert_int_equal(e[i].what, what);
    assert_int_equal(e[i].text_bytes, text_bytes);
    assert_int_equal(e[i].running, running);
}
static size_t n_events(void) {
    size_t n;
    fake_events(&n);
    return n;
}

static void a_request_in_full(void **state) {
    begin();
    asked("/v1/chat/completions", "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":"
                                  "true},\"max_tokens\":5,\"max_completion_tokens\":7,\"n\":2,"
                                  "\"temperature\":0.5,\"lora_path\":\"ad\",\"messages\":[{\"role\":"
                                  "\"developer\",\"content\":\"abc\"},{\"role\":\"user\",\"content\":"
                                  "[{\"type\":\"text\",\"text\":\"\\u00e9\"},{\"type\":\"image_url\",\"image_"
                                  "url\":{}}]},{\"role\":\"assistant\",\"content\":null,"
                                  "\"tool_calls\":[]},{\"role\":\"tool\",\"content\":\"xy\"}],\"tools\":[{},{"
                                  "}],\"response_format\":{\"type\":\"json_schema\"},"
                                  "\"prediction\":{\"type\":\"content\"}}");
    end();
    hold_text(F_api, "openai-chat");
    hold_text(F_model, "m");
    hold_text(F_adapter, "ad");
    hold_text(F_schema, "json_schema");
    hold(F_stream, 1);
    hold(F_include_usage, 1);
    hold(F_max_tokens, 7);
    hold(F_n, 2);
    hold(F_messages, 4);
    hold(F_messages_system, 1);
    hold(F_messages_user, 1);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_images, 1);
    hold(F_prompt_bytes, 7);
    hold(F_tools, 2);
    hold(F_prediction, 1);
    double t = 0;
    assert_true(fake_real(1, F_temperature, &t) && t > 0.49 && t < 0.51);
    assert_false(fake_holds("abc"));
}

static void the_body_wins_over_the_path(void **state) {
    static const struct {
        const char *path, *body, *api;
    } rows[] = {
        {"/v1/chat/completions", "{\"messages\":[]}", "openai-chat"},
        {"/v1/chat/completions/", "not json", "openai-chat"},
        {"/openai/deployments/d/chat/completions", "{\"messages\":[]}", "openai-chat"},
        {"/v1/completions", "{\"prompt\":\"x\"}", "openai-completions"},
        {"/v1/completions", "{\"messages\":[]}", "openai-chat"},
        {"/v1/chat/completions", "{\"prompt\":\"x\"}", "openai-completions"},
        {"/v1/embeddings", "{\"input\":\"x\"}", "other"},
        {"/v1/messages", "{\"messages\":[]}", "anthropic-messages"},
        {"/completion", "{\"prompt\":\"x\"}", "llamacpp-completion"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        asked(rows[i].path, rows[i].body);
        end();
        if (strcmp(fake_str(1, F_api), rows[i].api) != 0)
            fail_msg("%s %s is %s", rows[i].path, rows[i].body, fake_str(1, F_api));
    }
    begin();
    answer_take_request(&a, "GET", "/v1/chat/completions", "", 0, true);
    event("{\"object\":\"chat.completion\",\"choices\":[]}");
    end();
    hold_text(F_api, "other");
    begin(); /* a gateway's path: the answer tells */
    asked("/llm", "{\"messages\":[]}");
    event("{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}");
    end();
    hold_text(F_api, "openai-chat");
    hold_event(0, TOK_CONTENT, 1, -1);
}

static void a_deployment_is_the_model(void **state) {
    begin();
    asked("/openai/deployments/orca/chat/completions", "{\"messages\":[]}");
    end();
    hold_text(F_model, "orca");
    begin();
    asked("/v1/chat/completions", "{}");
    event("{\"model\":\"\",\"choices\":[]}");
    event("{\"model\":\"told\",\"choices\":[]}");
    end();
    hold_text(F_model, "told");
    hold_text(F_response_model, "told");
}

static void tool_calls_are_counted_by_index(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":"
          "\"look\",\"arguments\":\"\"}}]}}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{"
          "\\\"a\\\":\"}}]}}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
          "\"1}\"}},"
          "{\"index\":1,\"function\":{\"name\":\"b\",\"arguments\":\"{}\"}}]}}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}");
    end();
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1);
    assert_int_equal(n_events(), 4);
    hold_event(0, TOK_TOOL, 4, -1);
    hold_event(1, TOK_TOOL, 5, -1);
    hold_event(2, TOK_TOOL, 5, -1);
    hold_text(F_finish_reason, "tool_calls");
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{"
          "\\\"a\\\"\"}},\"finish_reason\":\"function_call\"}]}");
    end();
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 0);
}

static void free_text_for_a_tool_is_not_judged(void **state) {
    begin();
    event(
        "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"type\":\"custom\",\"custom\":{"
        "\"name\":\"sql\",\"input\":\"SELECT\"}}]},\"finish_reason\":\"tool_calls\"}]}");
    end();
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, -1);
}

static void arguments_may_come_as_values(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\","
          "\"arguments\":"
          "{\"a\":1}}}]},\"finish_reason\":\"tool_calls\"}]}");
    end();
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 1);
    hold_event(0, TOK_TOOL | TOK_FINISH | TOK_STOP, 1 + 7, -1);
}

/* A number that is known to be wrong is not told. */
static void more_than_are_told_apart_are_not_counted(void **state) {
    char text[200];
    begin();
    for (int i = 0; i <= ANSWER_CHOICES_MAX; i++) {
        snprintf(text, sizeof text,
                 "{\"choices\":[{\"index\":%d,\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{"
                 "\"name\":\"f\"}}]}}]}",
                 i, i);
        event(text);
    }
    event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}");
    end();
    hold(F_tool_calls, -1);
    hold(F_tool_args_valid, -1);
    hold(F_choices, -1);
}

/* Each choice of a stream tells its own count: a stream that ends without a usage of all tells no total. */
static void counts_of_choices_add_up(void **state) {
    static const char *const events[] = {
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1}}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}],\"usage\":{\"completion_tokens\":1}}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"c\"}}],\"usage\":{\"completion_tokens\":2}}",
        "{\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_"
        "tokens\":1}}"};
    begin();
    for (int i = 0; i < 4; i++) event(events[i]);
    end();
    hold(F_output_tokens_told, 3);
    begin();
    for (int i = 0; i < 4; i++) event(events[i]);
    event("{\"choices\":[],\"usage\":{\"completion_tokens\":5}}");
    end();
    hold(F_output_tokens_told, 5);
}

static void matched_stop_counts_as_null_too(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"matched_stop\":null}]}");
    end();
    hold(F_matched_stop_seen, 1);
}

static void a_negative_number_is_no_count(void **state) {
    begin();
    event(
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":-1,\"prompt_tokens_details\":"
        "{\"cached_tokens\":-7},\"completion_tokens_details\":{\"reasoning_tokens\":-3}}}");
    end();
    hold(F_prompt_tokens, -1);
    hold(F_output_tokens_told, -1);
    assert_int_equal(fake_get(1, F_cached_tokens, 99), 99);
    assert_int_equal(fake_get(1, F_reasoning_tokens, 99), 99);
}

static void only_a_model_is_loaded(void **state) {
    static const struct {
        const char *text;
        int loading;
    } rows[] = {{"Loading model", 1},
                {"model m is currently loading", 1},
                {"system overloading, model busy", -1},
                {"Error downloading image for the model", -1},
                {"loading the page failed", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[128];
        begin();
        snprintf(body, sizeof body, "{\"error\":{\"message\":\"%s\",\"code\":503}}", rows[i].text);
        a.status = 503;
        answer_take_body(&a, body, strlen(body), true);
        end();
        hold(F_loading, rows[i].loading);
    }
}

static void details_of_groq_are_read(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":{"
          "\"prompt_tokens\":64,"
          "\"completion_tokens\":5,\"completion_tokens_details\":{\"reasoning_tokens\":3},"
          "\"prompt_tokens_details\":{\"cached_tokens\":9}}}}");
    end();
    hold(F_cached_tokens, 9);
    hold(F_reasoning_tokens, 3);
    hold(F_stop_finishes, 1);
    hold(F_length_finishes, 0);
}

static void arguments_of_a_cut_answer_are_not_judged(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\","
          "\"arguments\":\"{\"}}]}}]}");
    end();
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, -1);
}

static void an_echo_is_no_output(void **state) {
    begin();
    asked("/v1/completions", "{\"prompt\":\"hi\",\"echo\":true}");
    event("{\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\"hi\"}],\"usage\":{"
          "\"completion_tokens\":0}}");
    event("{\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" "
          "A\"}],\"usage\":{\"completion_tokens\":1}}");
    event("{\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":\" "
          "BC\"}],\"usage\":{\"completion_tokens\":2}}");
    end();
    hold(F_echo, 1);
    hold_event(0, TOK_ECHO, 2, 0);
    hold_event(1, TOK_CONTENT, 2, 1);
    hold_event(2, TOK_CONTENT, 3, 2);
    hold(F_text_bytes, 5);
    begin(); /* the prompt and the first token in one event */
    asked("/v1/completions", "{\"prompt\":\"hi\",\"echo\":true}");
    event("{\"choices\":[{\"index\":0,\"text\":\"h\"}]}");
    event("{\"choices\":[{\"index\":0,\"text\":\"i A\"}]}");
    end();
    hold_event(0, TOK_ECHO, 1, -1);
    hold_event(1, TOK_CONTENT, 2, -1);
    begin(); /* token ids: the length of its text is not known, it is the first event */
    asked("/v1/completions", "{\"prompt\":[1,2],\"echo\":true}");
    event("{\"choices\":[{\"index\":0,\"text\":\"hello\"}]}");
    event("{\"choices\":[{\"index\":0,\"text\":\" A\"}]}");
    end();
    hold_event(0, TOK_ECHO, 5, -1);
    hold_event(1, TOK_CONTENT, 2, -1);
}

static void choices_have_their_own_finish(void **state) {
    begin();
    event("{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}},{\"index\":0,\"delta\":{\"content\":"
          "\"yy\"}}]}");
    event("{\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"length\"}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"z\"},\"finish_reason\":\"stop\"}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"); /* said again: not counted
                                                                                       again */
    end();
    hold_text(F_finish_reason, "stop,length");
    hold(F_choices, 2);
    hold(F_finished_choices, 2);
    hold(F_stop_finishes, 0); /* the stop's event had text */
    size_t n;
    const struct tok_event *e = fake_events(&n);
    assert_int_equal(e[0].choice, 1);
    assert_int_equal(e[1].choice, 0);
}

static void null_is_not_zero(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}],\"usage\":null}");
    event("{\"choices\":[],\"usage\":{\"prompt_tokens\":512,\"completion_tokens\":2,\"prompt_tokens_"
          "details\":null}}");
    event("{\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}"); /* zeros behind the
                                                                                          count */
    end();
    hold(F_cached_tokens, -1);
    hold(F_prompt_tokens, 512);
    hold(F_output_tokens_told, 2);
    assert_int_equal(n_events(), 1);
}

static void llama_timings(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}],\"timings\":{\"cache_n\":12,\"prompt_"
          "n\":20,\"prompt_ms\":80.5,"
          "\"predicted_n\":1,\"predicted_ms\":1.0,\"draft_n\":6,\"draft_n_accepted\":2}}");
    end();
    hold(F_prompt_tokens, 32);
    hold(F_cached_tokens, 12);
    hold(F_output_tokens_told, 1);
    hold(F_reported_prefill_ns, 80500000);
    hold(F_draft_tokens, 6);
    hold(F_accepted_tokens, 2);
    hold_event(0, TOK_CONTENT, 1, 1);
    begin(); /* usage holds where both tell */
    event("{\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":3,\"prompt_tokens_details\":"
          "{\"cached_tokens\":8}},"
          "\"timings\":{\"cache_n\":1,\"prompt_n\":2,\"predicted_n\":9}}");
    end();
    hold(F_prompt_tokens, 40);
    hold(F_cached_tokens, 8);
    hold(F_output_tokens_told, 3);
}

static void errors_are_told_without_their_text(void **state) {
    static const struct {
        const char *event, *type, *code;
        int64_t bytes;
    } rows[] = {
        {"{\"error\":{\"message\":\"engine "
         "stopped\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}",
         "InternalServerError", "500", 14},
        {"{\"error\":\"engine stopped\",\"error_type\":\"generation\"}", "generation", NULL, 14},
        {"{\"error\":{\"message\":\"engine stopped\",\"http_status_code\":422}}", NULL, "422", 14},
        {"{\"object\":\"error\",\"message\":\"engine stopped\",\"type\":\"T\",\"code\":\"c\"}", "T", "c", 14},
    };
    char hash[32] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        event(rows[i].event);
        end();
        hold(F_stream_error, 1);
        hold(F_error_bytes, rows[i].bytes);
        if (rows[i].type) hold_text(F_error_type, rows[i].type);
        if (rows[i].code) hold_text(F_error_code, rows[i].code);
        assert_false(fake_holds("stopped"));
        if (i == 0) snprintf(hash, sizeof hash, "%s", fake_str(1, F_error_hash));
        hold_text(F_error_hash, hash);
    }
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}],\"error\":null}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":\"abort\"}]}");
    end();
    hold(F_stream_error, 1);
    hold(F_error_bytes, -1);
    begin(); /* by its name */
    a.streamed = true;
    answer_take_event(&a, &(struct event){.data = "oops", .n_data = 4, .name = "error"});
    end();
    hold(F_stream_error, 1);
    hold(F_bad_events, 1);
    begin(); /* an error before the stream is an HTTP error */
    a.status = 400;
    body("{\"detail\":\"no such model\"}");
    end();
    hold(F_stream_error, -1);
    hold(F_error_bytes, 13);
}

static void a_whole_body_has_no_events(void **state) {
    begin();
    body("{\"id\":\"i\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":"
         "{\"content\":\"AB\",\"reasoning_content\":"
         "\"xyz\",\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":"
         "\"2\",\"function\":{\"name\":\"f\","
         "\"arguments\":\"\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":"
         "9007199254740993,\"completion_tokens\":2}}");
    end();
    assert_int_equal(n_events(), 0);
    hold(F_text_bytes, 2);
    hold(F_reasoning_bytes, 3);
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1); /* a call may have none */
    hold(F_prompt_tokens, 9007199254740993);
    hold_text(F_response_id, "i");
}

static void reasoning_refusal_and_audio(void **state) {
    begin();
    event("{\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"abc\"}}]}");
    event(
        "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"ab\",\"reasoning_content\":\"ab\"}}]}"); /* both
                                                                                                           names,
                                                                                                           one
                                                                                                           text
                                                                                                         */
    event("{\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"no\"}}]}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"audio\":{\"data\":\"AAAA\"}}}]}");
    event("{\"choices\":[{\"index\":0}]}"); /* a filter's event without delta */
    end();
    assert_int_equal(n_events(), 4);
    hold_event(0, TOK_REASONING, 3, -1);
    hold_event(1, TOK_REASONING, 2, -1);
    hold_event(2, TOK_REFUSAL, 2, -1);
    hold_event(3, TOK_AUDIO, 0, -1);
    hold(F_reasoning_bytes, 5);
    hold(F_text_bytes, 2);
}

static void what_is_no_json_is_counted(void **state) {
    begin();
    event("{nope");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}],\"usage\":{\"completion_tokens\":"
          "99999999999999999999}}");
    event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"logprobs\":{\"content\":[{\"logprob\":-"
          "Infinity}]}}]}");
    end();
    hold(F_bad_events, 1);
    hold(F_json_repairs, 1);
    assert_int_equal(fake_loss_count(LOSS_bad_json), 1);
    assert_int_equal(fake_loss_count(LOSS_number_too_large), 1);
    size_t n;
    assert_int_equal(fake_events(&n)[1].logprobs, 1);
}

/* -- heads */
static void queue_headers(void **state) {
    static const struct {
        const char *value;
        int64_t ns; /* -1: refused */
    } rows[] = {
        {"t=1790000000.123", 1790000000123000000},
        {"1790000000", 1790000000000000000},
        {"1790000000123", 1790000000123000000},
        {"t=1790000000123456", 1790000000123456000},
        {"1790000000123456789", 1790000000123456789},
        {"1790000000.1234567891", 1790000000123456789},
        {"", -1},
        {"t=", -1},
        {"x", -1},
        {"12345", -1},
        {"1790000000.1x", -1},
        {"-1790000000", -1},
        {"9999999999", -1},
        {"9999999999999999999", -1},
        {".5", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ns = -1;
        bool ok = head_queue_start(rows[i].value, &ns);
        if (ok != (rows[i].ns >= 0) || (ok && ns != rows[i].ns))
            fail_msg("%s: %lld", rows[i].value, (long long)ns);
    }
}

static void traceparents(void **state) {
    char trace[33], parent[17];
    const char *good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_true(head_traceparent(good, trace, parent));
    assert_string_equal(trace, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(parent, "b7ad6b7169203331");
    assert_true(
        head_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", trace, parent));
    static const char *const bad[] = {
        "",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(head_traceparent(bad[i], trace, parent));
}

static void paths_hide_queries(void **state) {
    static const struct {
        const char *target, *path;
    } rows[] = {{"/a/b?key=1", "/a/b"},
                {"/a#x", "/a"},
                {"http://user:pw@h:80/a?x", "/a"},
                {"http://h", "/"},
                {"http://h?key=1", "/"},
                {"*", "*"},
                {"", ""},
                {"/go?u=http://x/y", "/go"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct head h = {.field = -1};
        char path[64];
        head_target(&h, rows[i].target, strlen(rows[i].target));
        head_path(&h, path, sizeof path);
        assert_string_equal(path, rows[i].path);
        head_free(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_in_full),
        cmocka_unit_test(the_body_wins_over_the_path),
        cmocka_unit_test(a_deployment_is_the_model),
        cmocka_unit_test(tool_calls_are_counted_by_index),
        cmocka_unit_test(free_text_for_a_tool_is_not_judged),
        cmocka_unit_test(arguments_may_come_as_values),
        cmocka_unit_test(more_than_are_told_apart_are_not_counted),
        cmocka_unit_test(counts_of_choices_add_up),
        cmocka_unit_test(matched_stop_counts_as_null_too),
        cmocka_unit_test(details_of_groq_are_read),
        cmocka_unit_test(a_negative_number_is_no_count),
        cmocka_unit_test(only_a_model_is_loaded),
        cmocka_unit_test(arguments_of_a_cut_answer_are_not_judged),
        cmocka_unit_test(an_echo_is_no_output),
        cmocka_unit_test(choices_have_their_own_finish),
        cmocka_unit_test(null_is_not_zero),
        cmocka_unit_test(llama_timings),
        cmocka_unit_test(errors_are_told_without_their_text),
        cmocka_unit_test(a_whole_body_has_no_events),
        cmocka_unit_test(reasoning_refusal_and_audio),
        cmocka_unit_test(what_is_no_json_is_counted),
        cmocka_unit_test(queue_headers),
        cmocka_unit_test(traceparents),
        cmocka_unit_test(paths_hide_queries),
    };
    shared = calloc(1, sizeof *shared);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(shared);
    fake_reset();
    return failed;
}
