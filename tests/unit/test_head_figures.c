/* Counts and durations in the head of a response. */
#include "tests/unit/fake_drive.h"
#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void hold(enum fact f, int64_t right) {
    int64_t seen = fake_get(1, f, -1);
    if (seen != right)
        fail_msg("%s is %lld, right is %lld", fact_infos[f].name, (long long)seen, (long long)right);
}

static void answer_with_head(const char *fields, const char *text) {
    struct drive v;
    char head[1024];
    drive_start(&v);
    drive_post(&v, "/v1/chat/completions", "", "{\"messages\":[]}");
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s", fields,
             strlen(text), text);
    drive_text(&v, DIR_DOWN, head);
    drive_close(&v);
    drive_stop(&v);
}

static void figures_of_the_head(void **state) {
    answer_with_head(
        "X-Total-Time: 127\r\nx-queue-time: 18\r\nx-time-per-token: 27.5\r\nx-prompt-tokens: 9\r\n"
        "x-generated-tokens: 4\r\nx-inference-time: 108\r\nx-compute-time: 3\r\n",
        "{}");
    hold(F_reported_total_ns, 127000000);
    hold(F_reported_queue_ns, 18000000);
    hold(F_reported_itl_ns, 27500000);
    hold(F_prompt_tokens, 9);
    hold(F_output_tokens_told, 4);
    answer_with_head("fireworks-server-processing-time: 1.25\r\nfireworks-server-time-to-first-token: 0.1\r\n"
                     "fireworks-prompt-tokens: 7\r\nFireworks-Cached-Prompt-Tokens: 0\r\n",
                     "{\"usage\":{\"prompt_tokens\":8}}");
    hold(F_reported_total_ns, 1250000000);
    hold(F_reported_ttft_ns, 100000000);
    hold(F_prompt_tokens, 8); /* the body's word stands */
    hold(F_cached_tokens, 0);
    answer_with_head("openai-processing-ms: 412\r\nx-envoy-upstream-service-time: 400\r\n", "{}");
    hold(F_reported_total_ns, 412000000);
    hold(F_reported_ttft_ns, -1);
}

static void odd_figures_tell_nothing(void **state) {
    static const char *const odd[] = {"",     "x",   "-1",    "NaN",  "1,2",   "1 2",
                                      "null", "[1]", "\"1\"", "0x10", "1e300", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char fields[256];
        snprintf(fields, sizeof fields, "x-total-time: %s\r\nx-prompt-tokens: %s\r\n", odd[i], odd[i]);
        answer_with_head(fields, "{}");
        hold(F_reported_total_ns, -1);
        hold(F_prompt_tokens, -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_the_head),
        cmocka_unit_test(odd_figures_tell_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_reset();
    return failed;
}
