/* Which API a request is in where its path alone does not say, and what is never a generation. */
#include "tests/unit/fake_answer.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MODEL       "\"model\":\"m\""
#define MESSAGES    "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"
#define CHAT        "{" MODEL "," MESSAGES "}"
#define CHAT_ANSWER "{\"object\":\"chat.completion\",\"choices\":[{\"message\":{\"content\":\"x\"}}]}"

static void body_alone_tells_at_unknown_paths(void **state) {
    static const struct row rows[] = {
        {"/invocations", CHAT, "openai-chat"},
        {"/invocations", "{" MODEL "," MESSAGES ",\"max_tokens\":9}", "openai-chat"},
        {"/gw", "{" MODEL "," MESSAGES ",\"max_tokens\":9,\"system\":\"s\"}", "anthropic-messages"},
        {"/gw", "{" MODEL "," MESSAGES ",\"max_tokens\":9,\"system\":\"s\",\"n\":2}", "openai-chat"},
        {"/gw", "{" MODEL ",\"prompt\":\"x\"}", "openai-completions"},
        {"/gw", "{" MODEL ",\"prompt\":\"x\",\"size\":\"1024x1024\"}", "other"},
        {"/gw", "{" MODEL ",\"input\":\"x\"}", "other"},
        {"/gw", "{" MESSAGES "}", "other"},
        {"/gw", "not json", "other"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static void a_failure_keeps_its_request_facts(void **state) {
    begin();
    asked("/invocations", CHAT);
    status(503);
    body("{\"error\":{\"message\":\"x\"}}");
    end();
    hold_text(F_api, "openai-chat");
    hold(F_messages, 1);
}

/* Each is asked as a chat and answered as one, and is none. */
static void administration_is_no_generation(void **state) {
    static const char *const paths[] = {
        "/v1/audio/transcriptions",
        "/v1/audio/speech",
        "/v1/responses/resp_1/cancel",
        "/v1/chat/completions/chatcmpl-1",
        "/v1beta/models/m:embedContent",
        "/v1beta/models/m:batchEmbedContents",
        "/v1beta/models/m:countTokens",
        "/v1beta/cachedContents",
        "/v1/messages/batches",
        "/v1/messages/batches/b/cancel",
        "/v1/messages/count_tokens",
        "/v1/embeddings/",
        "/v1/images/generations",
        "/tokenize",
        "/rerank",
        "/score",
        "/v1/moderations",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        begin();
        asked(paths[i], CHAT);
        body(CHAT_ANSWER);
        end();
        hold_text(F_api, "other");
    }
}

static void an_answer_still_tells_at_unknown_paths(void **state) {
    begin();
    asked("/gw", "{}");
    body(CHAT_ANSWER);
    end();
    hold_text(F_api, "openai-chat");
}

static void another_object_is_no_chat(void **state) {
    begin();
    asked("/gw", "{}");
    event("{\"object\":\"transcription.chunk\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}");
    end();
    hold_text(F_api, "other");
    begin();
    asked("/gw", "{}");
    event("{\"object\":\"\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}");
    end();
    hold_text(F_api, "openai-chat");
}

static void a_prefix_needs_the_shape(void **state) {
    static const struct row rows[] = {
        {"/docs/generate", "{\"text\":\"x\"}", "other"},
        {"/gw/generate", "{\"text\":\"x\",\"sampling_params\":{}}", "sglang-generate"},
        {"/pdf/api/generate", "{" MODEL "}", "other"},
        {"/gw/api/generate", "{" MODEL ",\"prompt\":\"x\"}", "ollama-generate"},
        {"/gw/api/chat", CHAT, "ollama-chat"},
        {"/survey/1/responses", "{\"answers\":[]}", "other"},
        {"/gw/responses", "{" MODEL ",\"input\":\"x\"}", "openai-responses"},
        {"/inbox/messages", "{\"messages\":[{\"text\":\"x\"}]}", "other"},
        {"/gw/messages", "{" MODEL "," MESSAGES ",\"max_tokens\":9}", "anthropic-messages"},
        {"/any", "{\"contents\":[{\"parts\":[{\"text\":\"x\"}]}]}", "other"},
        {"/any", "{\"contents\":[{\"parts\":[]}],\"generationConfig\":{}}", "gemini-generate"},
        {"/survey/completions", "{\"answers\":[]}", "other"},
        {"/openai/deployments/d/completions", "{\"prompt\":\"x\"}", "openai-completions"},
    };
    hold_apis(rows, sizeof rows / sizeof *rows);
}

static int start(void **state) {
    fake_answer_start(&dialect_other);
    return 0;
}
static int stop(void **state) {
    fake_answer_stop();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_alone_tells_at_unknown_paths),
        cmocka_unit_test(a_failure_keeps_its_request_facts),
        cmocka_unit_test(administration_is_no_generation),
        cmocka_unit_test(an_answer_still_tells_at_unknown_paths),
        cmocka_unit_test(another_object_is_no_chat),
        cmocka_unit_test(a_prefix_needs_the_shape),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
