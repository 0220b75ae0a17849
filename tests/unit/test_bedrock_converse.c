/* What Bedrock's Converse says, field by field; then frames on the wire: Converse's own, those that wrap
 * another model's events, exceptions, and damaged ones. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"
#include "tests/unit/kit_aws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* JSON with ' for ". Valid until the third call after it. */
static const char *q(const char *text) {
    static char copies[3][4096];
    static int next;
    char *p = copies[next = (next + 1) % 3];
    snprintf(p, sizeof copies[0], "%s", text);
    for (char *c = p; *c; c++)
        if (*c == '\'') *c = '"';
    return p;
}

static void a_request_in_full(void **state) {
    begin();
    asked("/model/arn%3Aaws%3Abedrock%3Aeu%2Fpetrel-1/converse-stream",
          q("{'system':[{'text':'abc'},{'cachePoint':{'type':'default'}}],'messages':["
            "{'role':'user','content':[{'text':'\\u00e9'},{'image':{'format':'png','source':{'bytes':'xx'}}},"
            "{'document':{}},{'video':{}}]},"
            "{'role':'assistant','content':[{'reasoningContent':{'reasoningText':{'text':'hm'}}},"
            "{'toolUse':{'toolUseId':'t','name':'f','input':{'text':'long'}}}]},"
            "{'role':'user','content':[{'toolResult':{'toolUseId':'t','content':[{'text':'1234'},{'json':{'a'"
            ":1}}]"
            "}}]}],"
            "'inferenceConfig':{'maxTokens':7,'temperature':0.5},'toolConfig':{'tools':[{},{}]}}"));
    end();
    hold_text(F_api, "bedrock-converse");
    hold_text(F_model, "arn:aws:bedrock:eu/petrel-1");
    hold(F_stream, 1);
    hold(F_max_tokens, 7);
    hold(F_messages, 4);
    hold(F_messages_system, 1);
    hold(F_messages_user, 1);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_images, 3);
    hold(F_prompt_bytes, 3 + 2 + 2 + 4 + 7);
    hold(F_tools, 2);
    double t = 0;
    assert_true(fake_real(1, F_temperature, &t) && t > 0.49 && t < 0.51);
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {"/model/m/converse-stream", "{\"messages\":[]}", "bedrock-converse"},
        {"/model/m/converse/", "not json", "bedrock-converse"},
        {"/converse", "{}", "other"},
        {"/model/m/invoke-with-response-stream", "{\"messages\":[],\"inferenceConfig\":{}}",
         "bedrock-converse"},
        {"/model/m/invoke", "{\"prompt\":\"x\"}", "other"},
        {"/model/m/invoke", "{\"anthropic_version\":\"v\",\"messages\":[]}", "anthropic-messages"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
    begin();
    asked("/model/anthropic.claude%zz%/converse", "{}"); /* what is no code stays as it is */
    end();
    hold_text(F_model, "anthropic.claude%zz%");
    hold(F_stream, 0);
}

static void an_answer_in_events(void **state) {
    begin();
    asked("/model/m/converse-stream", "{}");
    named("messageStart", q("{'role':'assistant','p':'ab'}"));
    named("contentBlockDelta",
          q("{'contentBlockIndex':0,'delta':{'reasoningContent':{'text':'hm'}},'p':'a'}"));
    named("contentBlockDelta",
          q("{'contentBlockIndex':0,'delta':{'reasoningContent':{'signature':'c2ln'}}}"));
    named("contentBlockDelta",
          q("{'contentBlockIndex':0,'delta':{'reasoningContent':{'redactedContent':'eA=='}}}"));
    named("contentBlockStop", q("{'contentBlockIndex':0}"));
    named("contentBlockDelta", q("{'contentBlockIndex':1,'delta':{'text':'a\\u00e9'}}"));
    named("contentBlockDelta", q("{'contentBlockIndex':1,'delta':{'text':''}}"));
    named("contentBlockStart",
          q("{'contentBlockIndex':2,'start':{'toolUse':{'toolUseId':'t','name':'look'}}}"));
    named("contentBlockDelta", q("{'contentBlockIndex':2,'delta':{'toolUse':{'input':'{'}}}"));
    named("contentBlockDelta", q("{'contentBlockIndex':2,'delta':{'toolUse':{'input':'}'}}}"));
    named("contentBlockStart",
          q("{'contentBlockIndex':3,'start':{'toolUse':{'toolUseId':'u','name':'now'}}}"));
    named("contentBlockDelta", q("{'contentBlockIndex':3,'delta':{'toolUse':{'input':''}}}"));
    named("somethingNew", q("{'x':1}"));
    named("messageStop", q("{'stopReason':'tool_use'}"));
    named("metadata",
          q("{'usage':{'inputTokens':5,'outputTokens':20,'totalTokens':25,'cacheReadInputTokens':30,"
            "'cacheWriteInputTokens':2},'metrics':{'latencyMs':412},'serviceTier':{'type':'priority'}}"));
    end();
    hold_event(0, TOK_REASONING | TOK_SUMMARY, 2, -1);
    hold_event(1, TOK_SUMMARY, 0, -1);
    hold_event(2, TOK_CONTENT, 3, -1);
    hold_event(3, TOK_TOOL, 4, -1);
    hold_event(4, TOK_TOOL, 1, -1);
    hold_event(5, TOK_TOOL, 1, -1);
    hold_event(6, TOK_TOOL, 3, -1);
    hold_event(7, TOK_FINISH | TOK_STOP, 0, -1);
    assert_int_equal(n_events(), 8);
    hold_text(F_finish_reason, "tool_use");
    hold_text(F_service_tier, "priority");
    hold(F_prompt_tokens, 37);
    hold(F_cached_tokens, 30);
    hold(F_cache_write_tokens, 2);
    hold(F_output_tokens_told, 20);
    hold(F_reported_total_ns, 412000000);
    hold(F_typed_end, 1);
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1);
    hold(F_text_bytes, 3);
    hold(F_reasoning_bytes, 2);
}

/* Events that differ in text and padding alone are not parsed; the facts must not show it. */
static void many_alike(void **state) {
    char text[256];
    begin();
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, "{'contentBlockIndex':%d,'delta':{'text':'%.*s'},'p':'%.*s'}", i / 20,
                 1 + i % 9, "abcdefghi", i % 7, "xxxxxxx");
        named("contentBlockDelta", q(text));
    }
    end();
    assert_int_equal(n_events(), 40);
    for (size_t i = 0; i < 40; i++) hold_event(i, TOK_CONTENT, 1 + i % 9, -1);
    hold_text(F_api, "bedrock-converse");
}

/* Invoked models that speak this shape put each event under its name. */
static void events_under_a_key(void **state) {
    begin();
    event(q("{'messageStart':{'role':'assistant'}}"));
    event(q("{'contentBlockDelta':{'delta':{'text':'ab'},'contentBlockIndex':0}}"));
    event(q("{'messageStop':{'stopReason':'max_tokens'}}"));
    event(q("{'metadata':{'usage':{'inputTokens':5,'outputTokens':1},'metrics':{}}}"));
    end();
    hold_text(F_api, "bedrock-converse");
    hold_event(0, TOK_CONTENT, 2, -1);
    hold_event(1, TOK_FINISH, 0, -1);
    hold(F_prompt_tokens, 5);
    hold(F_cached_tokens, -1);
    hold(F_typed_end, 1);
}

static void odd_values(void **state) {
    static const char *const rows[] = {
        "{'contentBlockIndex':0,'delta':null}",
        "{'contentBlockIndex':'x','delta':{'text':5,'toolUse':7,'reasoningContent':'x'}}",
        "{'contentBlockIndex':9223372036854775807,'delta':[{'text':'x'}]}",
        "{'contentBlockIndex':0,'start':{'toolUse':{'name':7}}}",
        "{'contentBlockIndex':0,'start':'x'}",
        "{'stopReason':null}",
        "{'stopReason':''}",
        "{'usage':{'inputTokens':'5','outputTokens':-1,'cacheReadInputTokens':-2,'cacheWriteInputTokens':{}}"
        "}",
        "{'usage':{'inputTokens':9223372036854775807,'cacheReadInputTokens':1}}",
        "{'metadata':{'usage':[],'metrics':{'latencyMs':'x'}}}",
        "{'delta':{'text':''}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        event(q(rows[i]));
        body(q(rows[i]));
        end();
        assert_int_equal(n_events(), 0);
        hold(F_output_tokens_told, -1);
        hold(F_prompt_tokens, -1);
        hold(F_cache_write_tokens, -1);
        hold_text(F_finish_reason, NULL);
    }
}

static void a_whole_answer(void **state) {
    begin();
    body(q("{'output':{'message':{'role':'assistant','content':[{'reasoningContent':{'reasoningText':{'text':"
           "'hm'"
           "}}},{'text':'abc'},{'toolUse':{'toolUseId':'t','name':'f','input':{'a':1}}}]}},'stopReason':'end_"
           "turn',"
           "'usage':{'inputTokens':5,'outputTokens':6,'totalTokens':11},'metrics':{'latencyMs':3}}"));
    end();
    hold_text(F_api, "bedrock-converse");
    hold_text(F_finish_reason, "end_turn");
    hold(F_output_tokens_told, 6);
    hold(F_prompt_tokens, 5);
    hold(F_text_bytes, 3);
    hold(F_reasoning_bytes, 2);
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 1);
    hold(F_reported_total_ns, 3000000);
    assert_int_equal(n_events(), 0);
}

/* -- frames on the wire */
static void frames_on_wire(const char *path, const char *request, const struct aws_bytes *b, size_t step) {
    struct drive v;
    char head[256];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nContent-Length: "
                     "%zu\r\n\r\n",
                     b->n);
    drive_start(&v);
    v.now_ns = 2000;
    drive_post(&v, path, "", request);
    v.now_ns = 10000;
    drive_bytes(&v, DIR_DOWN, head, (size_t)n);
    drive_cut(&v, DIR_DOWN, b->p, b->n, step ? step : b->n);
    drive_fin(&v, DIR_DOWN);
    drive_close(&v);
    drive_stop(&v);
    assert_false(fake_misused());
}

static void an_exception_is_an_error_of_the_stream(void **state) {
    struct aws_bytes b = {0}, headers = {0};
    aws_event(&b, "contentBlockDelta", q("{'contentBlockIndex':0,'delta':{'text':'ab'}}"));
    aws_exception(&b, "throttlingException", q("{'message':'Too many tokens'}"));
    frames_on_wire("/model/m/converse-stream", "{}", &b, 5);
    hold(F_streamed, 1);
    hold(F_events, 2);
    hold(F_stream_error, 1);
    hold_text(F_error_type, "throttlingException");
    hold(F_error_bytes, 15);
    assert_int_equal(n_events(), 1);
    assert_false(fake_holds("Too many"));
    assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
    free(b.p);

    b = (struct aws_bytes){0}; /* an error has no payload: its headers say all */
    aws_header(&headers, ":message-type", "error");
    aws_header(&headers, ":error-code", "InternalFailure");
    aws_frame(&b, headers.p, headers.n, "", 0);
    frames_on_wire("/model/m/converse-stream", "{}", &b, 0);
    hold(F_stream_error, 1);
    hold_text(F_error_type, "InternalFailure");
    assert_int_equal(fake_loss_count(LOSS_bad_json), 0);
    free(b.p);
    free(headers.p);
}

static void a_damaged_frame_is_a_loss(void **state) {
    struct aws_bytes b = {0};
    size_t first = aws_event(&b, "contentBlockDelta", q("{'contentBlockIndex':0,'delta':{'text':'ab'}}"));
    size_t second = aws_event(&b, "contentBlockDelta", q("{'contentBlockIndex':0,'delta':{'text':'cd'}}"));
    aws_event(&b, "messageStop", q("{'stopReason':'end_turn'}"));
    b.p[first + second - 10] ^= 1;
    for (size_t step = 0; step < 20; step++) {
        frames_on_wire("/model/m/converse-stream", "{}", &b, step);
        assert_int_equal(n_events(), 2);
        hold(F_events, 3);
        hold(F_body_unread_bytes, (int64_t)second);
        hold_text(F_finish_reason, "end_turn");
        assert_int_equal(fake_loss_count(LOSS_body_unread), 1);
    }
    b.p[first + 3] ^= 1;
    for (size_t step = 0; step < 20; step++) {
        frames_on_wire("/model/m/converse-stream", "{}", &b, step);
        assert_int_equal(n_events(), 1);
        hold(F_events, 1);
        hold(F_event_cut, 1);
        hold(F_body_unread_bytes, (int64_t)(b.n - first));
        assert_int_equal(fake_loss_count(LOSS_body_unread), 1);
    }
    free(b.p);
}

/* A frame whose payload is {"bytes": base64 of text, "p": padding}. */
static void wrap(struct aws_bytes *to, const char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char payload[8192] = "{\"bytes\":\"";
    size_t n = strlen(payload), len = strlen(text);
    for (size_t i = 0; i < len; i += 3) {
        unsigned bits = 0;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (i + k < len ? (unsigned char)text[i + k] : 0u);
        for (size_t k = 0; k < 4; k++) payload[n++] = i + k <= len ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    snprintf(payload + n, sizeof payload - n, "\",\"p\":\"abc\"}");
    aws_event(to, "chunk", payload);
}

static void wrapped_events_are_read(void **state) {
    struct aws_bytes b = {0};
    wrap(&b, q("{'type':'message_start','message':{'id':'i','model':'m','usage':{'input_tokens':7,'output_"
               "tokens':1,"
               "'cache_read_input_tokens':3}}}"));
    wrap(&b, q("{'type':'content_block_delta','index':0,'delta':{'type':'text_delta','text':'ab'}}"));
    wrap(&b,
         q("{'type':'content_block_delta','index':0,'delta':{'type':'text_delta','text':'c\\u00e9\\\\'}}"));
    wrap(&b, q("{'type':'message_delta','delta':{'stop_reason':'end_turn'},'usage':{'output_tokens':9}}"));
    wrap(&b, q("{'type':'message_stop','amazon-bedrock-invocationMetrics':{'inputTokenCount':7,'"
               "outputTokenCount':9,"
               "'invocationLatency':412,'firstByteLatency':80}}"));
    for (size_t step = 0; step < 20; step++) {
        frames_on_wire("/model/m/invoke-with-response-stream",
                       "{\"anthropic_version\":\"v\",\"messages\":[]}", &b, step);
        hold_text(F_api, "anthropic-messages");
        hold(F_stream, 1);
        hold(F_events, 5);
        hold_event(0, TOK_CONTENT, 2, -1);
        hold_event(1, TOK_CONTENT, 4, -1);
        hold(F_output_tokens_told, 9);
        hold(F_prompt_tokens, 10);
        hold(F_typed_end, 1);
        hold(F_reported_ttft_ns, 80000000);
        hold(F_reported_total_ns, 412000000);
        assert_int_equal(fake_loss_count(LOSS_body_unread) + fake_loss_count(LOSS_bad_json), 0);
    }
    free(b.p);
}

/* A model whose own events are not known: its counts are those of Bedrock. */
static void counts_of_other_models(void **state) {
    struct aws_bytes b = {0};
    wrap(&b, q("{'generation':'ab','prompt_token_count':5,'stop_reason':null}"));
    wrap(&b,
         q("{'generation':'','stop_reason':'stop','amazon-bedrock-invocationMetrics':{'inputTokenCount':5,"
           "'outputTokenCount':2,'cacheReadInputTokenCount':4,'cacheWriteInputTokenCount':1,'"
           "invocationLatency':"
           "9,'firstByteLatency':8}}"));
    frames_on_wire("/model/m/invoke-with-response-stream", "{\"prompt\":\"x\"}", &b, 3);
    hold_text(F_model, "m");
    hold(F_events, 2);
    hold(F_prompt_tokens, 10);
    hold(F_cached_tokens, 4);
    hold(F_cache_write_tokens, 1);
    hold(F_output_tokens_told, 2);
    hold(F_reported_total_ns, 9000000);
    free(b.p);
}

static void what_cannot_be_unwrapped(void **state) {
    struct aws_bytes b = {0};
    size_t bad = aws_event(&b, "chunk", q("{'bytes':'e30_!'}"));
    aws_event(&b, "chunk", q("{'bytes':7}"));
    aws_event(&b, "chunk", q("{'bytes':''}"));
    aws_event(&b, "chunk", q("{'bytes':'eyJ"));
    frames_on_wire("/model/m/invoke-with-response-stream", "{}", &b, 0);
    hold(F_events, 4);
    hold(F_body_unread_bytes, (int64_t)bad);
    assert_int_equal(fake_loss_count(LOSS_body_unread), 1);
    assert_int_equal(n_events(), 0);
    free(b.p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_in_full),
        cmocka_unit_test(paths_and_bodies),
        cmocka_unit_test(an_answer_in_events),
        cmocka_unit_test(many_alike),
        cmocka_unit_test(events_under_a_key),
        cmocka_unit_test(odd_values),
        cmocka_unit_test(a_whole_answer),
        cmocka_unit_test(an_exception_is_an_error_of_the_stream),
        cmocka_unit_test(a_damaged_frame_is_a_loss),
        cmocka_unit_test(wrapped_events_are_read),
        cmocka_unit_test(counts_of_other_models),
        cmocka_unit_test(what_cannot_be_unwrapped),
    };
    fake_answer_start(&dialect_bedrock_converse);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
