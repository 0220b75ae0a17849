/* What Gemini's requests and answers say, field by field; then its array of answers as a stream, on the wire.
 */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STREAM "/v1beta/models/lumen:streamGenerateContent"

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
    asked("/v1/projects/p/locations/l/publishers/google/models/lumen-3:streamGenerateContent",
          q("{'systemInstruction':{'parts':[{'text':'abc'}]},'contents':["
            "{'role':'user','parts':[{'text':'\\u00e9'},{'inlineData':{'mimeType':'image/png','data':'xx'}},"
            "{'fileData':{'fileUri':'gs://x'}}]},"
            "{'role':'model','parts':[{'functionCall':{'name':'f','args':{}}}]},"
            "{'role':'user','parts':[{'functionResponse':{'name':'f','response':{'r':1}}}]},"
            "{'parts':[{'text':'xy'}]}],"
            "'tools':[{'functionDeclarations':[{},{}]},{'googleSearch':{}}],"
            "'generationConfig':{'maxOutputTokens':7,'temperature':0.5,'candidateCount':2,"
            "'responseMimeType':'application/json','responseSchema':{'type':'OBJECT'}}}"));
    end();
    hold_text(F_api, "gemini-generate");
    hold_text(F_model, "lumen-3");
    hold_text(F_schema, "json_schema");
    hold(F_stream, 1);
    hold(F_max_tokens, 7);
    hold(F_n, 2);
    hold(F_messages, 5);
    hold(F_messages_system, 1);
    hold(F_messages_user, 2);
    hold(F_messages_assistant, 1);
    hold(F_messages_tool, 1);
    hold(F_images, 2);
    hold(F_prompt_bytes, 7);
    hold(F_tools, 3);
    double t = 0;
    assert_true(fake_real(1, F_temperature, &t) && t > 0.49 && t < 0.51);
    assert_false(fake_holds("abc"));
}

static void the_other_spelling(void **state) {
    begin();
    asked("/v1beta/models/lumen:generateContent",
          q("{'system_instruction':{'parts':[{'text':'abc'}]},'contents':[{'role':'function','parts':["
            "{'function_response':{}},{'inline_data':{}},{'file_data':{}}]}],"
            "'generation_config':{'max_output_tokens':9,'response_mime_type':'text/x.enum'},"
            "'tools':[{'function_declarations':[{}]}]}"));
    end();
    hold(F_stream, 0);
    hold(F_max_tokens, 9);
    hold(F_images, 2);
    hold(F_tools, 1);
    hold(F_messages_tool, 1);
    hold(F_messages_system, 1);
    hold_text(F_schema, "choice");
    begin();
    asked(STREAM, q("{'contents':{},'generationConfig':{'responseMimeType':'application/json',"
                    "'maxOutputTokens':'7','candidateCount':null},'tools':{}}"));
    end();
    hold_text(F_schema, "json_object");
    hold(F_max_tokens, -1);
    hold(F_n, -1);
    hold(F_tools, -1);
    hold(F_messages, 0);
}

static void paths_and_bodies(void **state) {
    static const struct row rows[] = {
        {STREAM, "{\"contents\":[]}", "gemini-generate"},
        {"/v1beta/models/x:generateContent/", "not json", "gemini-generate"},
        {"/v1beta/models/x:countTokens", "{\"contents\":[{\"parts\":[]}]}", "other"},
        {"/v1beta/models/x:embedContent", "{\"content\":{\"parts\":[]}}", "other"},
        {"/gateway/gemini", "{\"contents\":[{\"role\":\"user\",\"parts\":[]}]}", "gemini-generate"},
        {"/gateway", "{\"contents\":[\"x\"]}", "other"},
        {"/v1beta/openai/chat/completions", "{\"messages\":[]}", "openai-chat"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void thoughts_are_a_summary(void **state) {
    begin();
    asked(STREAM, "{}");
    event(q("{'candidates':[{'content':{'parts':[{'text':'hm','thought':true}]}}],'usageMetadata':"
            "{'promptTokenCount':40,'thoughtsTokenCount':12,'cachedContentTokenCount':8},'modelVersion':'v3',"
            "'responseId':'r1'}"));
    /* both in one event: the answer's bytes alone have a share of the total */
    event(q("{'candidates':[{'content':{'parts':[{'text':'hm','thought':true},{'text':'yes'}]}}],"
            "'usageMetadata':{'promptTokenCount':40,'candidatesTokenCount':2,'thoughtsTokenCount':13}}"));
    event(q("{'candidates':[{'content':{'parts':[{'text':'!'}]},'finishReason':'STOP'}],"
            "'usageMetadata':{'promptTokenCount':40,'candidatesTokenCount':3,'thoughtsTokenCount':13}}"));
    end();
    hold_event(0, TOK_SUMMARY, 0, -1);
    hold_event(1, TOK_SUMMARY | TOK_CONTENT, 3, 2);
    hold_event(2, TOK_CONTENT | TOK_FINISH | TOK_STOP, 1, 3);
    assert_int_equal(n_events(), 3);
    hold(F_output_tokens_told, 16);
    hold(F_reasoning_tokens, 13);
    hold(F_prompt_tokens, 40);
    hold(F_cached_tokens, 8);
    hold(F_reasoning_bytes, 0);
    hold(F_text_bytes, 4);
    hold_text(F_finish_reason, "STOP");
    hold_text(F_model, "lumen");
    hold_text(F_response_model, "v3");
    hold_text(F_response_id, "r1");
}

/* Events that differ in text and counts alone are not parsed: their totals must be the same, also when the
 * stream is cut behind one. */
static void totals_of_a_cut_stream(void **state) {
    char text[512];
    begin();
    asked(STREAM, "{}");
    for (int i = 1; i <= 40; i++) {
        snprintf(text, sizeof text,
                 "{'candidates':[{'content':{'parts':[{'text':'word'}],'role':'model'},'index':0}],"
                 "'usageMetadata':{'promptTokenCount':9,'candidatesTokenCount':%d,'totalTokenCount':%d,"
                 "'thoughtsTokenCount':%d}}",
                 2 * i, 9 + 2 * i + 5, i < 20 ? 5 : 6);
        event(q(text));
    }
    end();
    hold(F_output_tokens_told, 86);
    hold(F_reasoning_tokens, 6);
    hold(F_text_bytes, 160);
    assert_int_equal(n_events(), 40);
    for (int i = 0; i < 40; i++) hold_event((size_t)i, TOK_CONTENT, 4, 2 * (i + 1));
}

static void counts_that_are_missing_or_odd(void **state) {
    static const struct {
        const char *usage;
        int64_t output, prompt, reasoning;
    } rows[] = {
        {"null", -1, -1, -1},
        {"{}", -1, -1, -1},
        {"{'trafficType':'ON_DEMAND'}", -1, -1, -1},
        {"{'promptTokenCount':3}", -1, 3, -1},
        {"{'promptTokenCount':3,'thoughtsTokenCount':9}", 9, 3, 9}, /* it ended while it thought */
        {"{'promptTokenCount':0,'candidatesTokenCount':0}", 0, 0, -1},
        {"{'promptTokenCount':'3','candidatesTokenCount':'4'}", -1, -1, -1},
        {"{'promptTokenCount':-3,'candidatesTokenCount':-4,'thoughtsTokenCount':-1}", -1, -1, -1},
        {"{'candidatesTokenCount':9223372036854775807,'thoughtsTokenCount':9223372036854775807}", -1, -1, -1},
        {"{'candidatesTokenCount':1.5,'thoughtsTokenCount':{}}", -1, -1, -1},
        {"[1]", -1, -1, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{'candidates':[{'content':{'parts':[{'text':'x'}]}}],'usageMetadata':%s}", rows[i].usage);
        begin();
        event(q(text));
        end();
        hold(F_output_tokens_told, rows[i].output);
        hold(F_prompt_tokens, rows[i].prompt);
        hold(F_reasoning_tokens, rows[i].reasoning);
    }
    begin(); /* a later event that tells one of the two keeps the other */
    event(q("{'candidates':[],'usageMetadata':{'candidatesTokenCount':4,'thoughtsTokenCount':2}}"));
    event(q("{'candidates':[],'usageMetadata':{'thoughtsTokenCount':3}}"));
    end();
    hold(F_output_tokens_told, 7);
}

static void odd_candidates(void **state) {
    static const char *const rows[] = {
        "{'candidates':[{}]}",
        "{'candidates':[null,1,'x',[]]}",
        "{'candidates':[{'content':null,'finishReason':null}]}",
        "{'candidates':[{'content':{'parts':null},'finishReason':''}]}",
        "{'candidates':[{'content':{'parts':{'text':'x'}},'finishReason':'FINISH_REASON_UNSPECIFIED'}]}",
        "{'candidates':[{'content':{'parts':[{'text':5},{'text':null},{'functionCall':'x'},{},7]}}]}",
        "{'candidates':{'content':{'parts':[{'text':'x'}]}}}",
        "{'candidates':[{'content':{'parts':[{'text':''}]}}]}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        event(q(rows[i]));
        body(q(rows[i]));
        end();
        size_t n;
        const struct tok_event *e = fake_events(&n);
        for (size_t k = 0; k < n; k++) assert_int_equal(e[k].what & (TOK_TEXT | TOK_FINISH), 0);
        hold_text(F_finish_reason, NULL);
    }
}

static void calls_bear_tokens(void **state) {
    begin();
    event(q("{'candidates':[{'content':{'parts':[{'functionCall':{'name':'look','args':{'a':'\\u00e9','b':[1,"
            "true]}}},{'functionCall':{'name':'now'}}]},'finishReason':'STOP'}]}"));
    end();
    hold_event(0, TOK_TOOL | TOK_FINISH | TOK_STOP, 4 + 23 + 3, -1); /* {"a":"é","b":[1,true]} is 23 bytes */
    hold(F_tool_calls, 2);
    hold(F_tool_args_valid, 1);
    begin(); /* arguments that are streamed */
    event(q("{'candidates':[{'content':{'parts':[{'functionCall':{'name':'look','willContinue':true}}]}}]}"));
    event(q("{'candidates':[{'content':{'parts':[{'functionCall':{'partialArgs':[{'jsonPath':'$.a',"
            "'stringValue':'abc'}],'willContinue':true}}]}}]}"));
    event(q("{'candidates':[{'content':{'parts':[{'executableCode':{'code':'1+1'}}]}}]}"));
    hold_event(0, TOK_TOOL, 4, -1);
    hold_event(1, TOK_TOOL, 3, -1);
    hold_event(2, TOK_TOOL, 3, -1);
    event(q("{'candidates':[{'finishReason':'STOP'}]}"));
    end();
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, -1);
}

static void sound_bears_tokens(void **state) {
    begin();
    event(
        q("{'candidates':[{'content':{'parts':[{'inlineData':{'mimeType':'audio/L16','data':'QUJD'}}]}}]}"));
    event(
        q("{'candidates':[{'content':{'parts':[{'inlineData':{'mimeType':'image/png','data':'QUJD'}}]}}]}"));
    end();
    hold_event(0, TOK_AUDIO, 0, -1);
    assert_int_equal(n_events(), 1);
}

/* The count is one of all candidates: it tells nothing of one of them. */
static void several_candidates(void **state) {
    begin();
    event(q("{'candidates':[{'index':0,'content':{'parts':[{'text':'a'}]}}],'usageMetadata':"
            "{'candidatesTokenCount':1}}"));
    event(q("{'candidates':[{'index':1,'content':{'parts':[{'text':'b'}]}}],'usageMetadata':"
            "{'candidatesTokenCount':2}}"));
    event(q("{'candidates':[{'index':0,'content':{'parts':[{'text':'c'}]}}],'usageMetadata':"
            "{'candidatesTokenCount':3}}"));
    event(
        q("{'candidates':[{'finishReason':'MAX_TOKENS'},{'index':1,'finishReason':'SAFETY'}],'usageMetadata':"
          "{'candidatesTokenCount':3}}"));
    end();
    hold_event(0, TOK_CONTENT, 1, 1);
    hold_event(1, TOK_CONTENT, 1, -1);
    hold_event(2, TOK_CONTENT, 1, -1);
    hold_event(3, TOK_FINISH, 0, -1);
    hold_event(4, TOK_FINISH | TOK_STOP, 0, -1);
    hold_text(F_finish_reason, "MAX_TOKENS,SAFETY");
    hold(F_choices, 2);
    hold(F_stop_finishes, 1);
    hold(F_output_tokens_told, 3);
}

static void a_refused_prompt(void **state) {
    begin();
    event(
        q("{'promptFeedback':{'blockReason':'PROHIBITED_CONTENT'},'usageMetadata':{'promptTokenCount':4}}"));
    end();
    hold_text(F_api, "gemini-generate");
    hold_text(F_finish_reason, "PROHIBITED_CONTENT");
    hold(F_prompt_tokens, 4);
    hold_event(0, TOK_FINISH | TOK_STOP, 0, -1);
}

static void errors_are_told(void **state) {
    begin();
    event(q("{'candidates':[{'content':{'parts':[{'text':'x'}]}}]}"));
    event(q("{'error':{'code':503,'message':'The model is overloaded.','status':'UNAVAILABLE'}}"));
    end();
    hold(F_stream_error, 1);
    hold_text(F_error_type, "UNAVAILABLE");
    hold_text(F_error_code, "503");
    hold(F_error_bytes, 24);
    assert_false(fake_holds("overloaded"));
    begin(); /* in the array that would have been the stream */
    status(400);
    body(q("[{'error':{'code':400,'message':'bad','status':'INVALID_ARGUMENT'}}]"));
    end();
    hold_text(F_error_type, "INVALID_ARGUMENT");
    hold(F_error_bytes, 3);
}

static void a_whole_answer(void **state) {
    begin();
    body(q("{'candidates':[{'content':{'parts':[{'text':'hm','thought':true},{'text':'ab'},{'functionCall':"
           "{'name':'f','args':{}}}]},'finishReason':'STOP'}],'usageMetadata':{'promptTokenCount':5,"
           "'candidatesTokenCount':3,'thoughtsTokenCount':4}}"));
    end();
    assert_int_equal(n_events(), 0);
    hold_text(F_api, "gemini-generate");
    hold(F_output_tokens_told, 7);
    hold(F_text_bytes, 2);
    hold(F_tool_calls, 1);
    hold(F_tool_args_valid, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_in_full),      cmocka_unit_test(the_other_spelling),
        cmocka_unit_test(paths_and_bodies),       cmocka_unit_test(thoughts_are_a_summary),
        cmocka_unit_test(totals_of_a_cut_stream), cmocka_unit_test(counts_that_are_missing_or_odd),
        cmocka_unit_test(odd_candidates),         cmocka_unit_test(calls_bear_tokens),
        cmocka_unit_test(sound_bears_tokens),     cmocka_unit_test(several_candidates),
        cmocka_unit_test(a_refused_prompt),       cmocka_unit_test(errors_are_told),
        cmocka_unit_test(a_whole_answer),
    };
    fake_answer_start(&dialect_gemini_generate);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
