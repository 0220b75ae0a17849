/* Which part of an event's text is new, where it is not said whether events retell it. */
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
static void hold_bytes(const char *what, const unsigned *right, size_t n_right) {
    size_t n;
    const struct tok_event *e = fake_events(&n);
    if (n != n_right) fail_msg("%s: %zu events", what, n);
    for (size_t i = 0; i < n; i++)
        if (e[i].text_bytes != right[i])
            fail_msg("%s: event %zu has %u bytes, right is %u", what, i, e[i].text_bytes, right[i]);
}

#define META_SGL  "\"id\":\"r\",\"prompt_tokens\":4,"
#define META_LMD  "\"prompt_tokens\":4,"
#define STOP_TEXT "{\"type\":\"stop\",\"matched\":\"END\"}"
#define STOP_ID   "{\"type\":\"stop\",\"matched\":2}"

struct said {
    const char *text, *ids; /* as JSON; NULL: absent */
    int running;
    const char *finish; /* as JSON; NULL: null */
    unsigned bytes;
};
#define SAID_MAX 6

static void say(const struct said *s, const char *meta) {
    char data[512], text[128] = "", ids[64] = "";
    if (s->text) snprintf(text, sizeof text, "\"text\":%s,", s->text);
    if (s->ids) snprintf(ids, sizeof ids, "\"output_ids\":%s,", s->ids);
    snprintf(data, sizeof data, "{%s%s\"meta_info\":{%s\"finish_reason\":%s,\"completion_tokens\":%d}}", text,
             ids, meta, s->finish ? s->finish : "null", s->running);
    event(data);
}

static void new_text_is_told(void **state) {
    static const struct {
        const char *what, *meta;
        struct said said[SAID_MAX];
    } rows[] = {
        {"retold with ids",
         META_SGL,
         {{"\"a\"", "[1]", 1, NULL, 1},
          {"\"a\"", "[1,2]", 2, NULL, 0}, /* half a character */
          {"\"a\\u00e9\"", "[1,2,3]", 3, NULL, 2},
          {"\"a\\u00e9b\"", "[1,2,3,4]", 4, STOP_ID, 1}}},
        {"retold, ids not",
         META_SGL,
         {{"\"ab\"", "[1]", 1, NULL, 2}, {"\"abc\"", "[2]", 2, NULL, 1}, {"\"abcdef\"", "[3]", 3, NULL, 3}}},
        {"retold without ids",
         META_SGL,
         {{"\"ab\"", NULL, 2, NULL, 2}, {"\"abab\"", NULL, 4, NULL, 2}, {"\"abababc\"", NULL, 5, NULL, 3}}},
        {"a stop string is cut off again",
         META_SGL,
         {{"\"aaE\"", NULL, 2, NULL, 3}, {"\"aaEN\"", NULL, 3, NULL, 1}, {"\"aa\"", NULL, 4, STOP_TEXT, 0}}},
        {"and with ids", META_SGL, {{"\"aaE\"", "[1]", 1, NULL, 3}, {"\"aa\"", "[1,2]", 2, STOP_TEXT, 0}}},
        {"pieces that repeat",
         META_SGL,
         {{"\"ha\"", "[8]", 1, NULL, 2},
          {"\"ha\"", "[8]", 2, NULL, 2},
          {"\"\"", "[9]", 3, NULL, 0},
          {"\"haha\"", "[8,8]", 5, NULL, 4},
          {"\"h\"", "[7]", 6, STOP_ID, 1}}},
        {"pieces",
         META_SGL,
         {{"\"Hello\"", "[1]", 1, NULL, 5},
          {"\" w\"", "[2]", 2, NULL, 2},
          {"\"orld\"", "[3]", 3, STOP_ID, 4}}},
        {"pieces without ids", META_SGL, {{"\"ab\"", NULL, 1, NULL, 2}, {"\"cdefg\"", NULL, 2, NULL, 5}}},
        {"a piece that begins like the one before is told short, by no more than that one has",
         META_SGL,
         {{"\"a\"", "[1]", 1, NULL, 1}, {"\" a\"", "[2]", 2, NULL, 2}, {"\"aah\"", "[3]", 3, NULL, 3}}},
        {"short until it is settled, then all of it",
         META_SGL,
         {{"\"a\"", "[1]", 1, NULL, 1}, {"\"ab\"", "[2]", 2, NULL, 1}, {"\"c\"", "[3]", 3, NULL, 2}}},
        {"a piece that repeats with another id",
         META_SGL,
         {{"\":\"", "[1]", 1, NULL, 1}, {"\":\"", "[2]", 2, NULL, 0}, {"\" backs\"", "[3]", 3, NULL, 7}}},
        {"a long one that repeats",
         META_SGL,
         {{"\"twenty bytes of text\"", "[1]", 1, NULL, 20},
          {"\"twenty bytes of text\"", "[2]", 2, NULL, 0},
          {"\"and other text, also long\"", "[3]", 3, NULL, 45},
          {"\"ha\"", "[4]", 4, NULL, 2}}},
        {"no text at all", META_SGL, {{NULL, "[1]", 1, NULL, 0}, {NULL, "[1,2]", 2, STOP_ID, 0}}},
        {"null text between",
         META_SGL,
         {{"\"ab\"", NULL, 1, NULL, 2}, {"null", NULL, 2, NULL, 0}, {"\"abc\"", NULL, 3, NULL, 1}}},
        {"LMDeploy",
         META_LMD,
         {{"\"a\"", "[1]", 1, NULL, 1},
          {"\"ab\"", "[2,3]", 3, NULL, 2}, /* by the ids: a piece that begins like the first */
          {"\"\"", "[4]", 4, NULL, 0},
          {"\"c\"", "[5]", 5, "{\"type\":\"stop\"}", 1}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned right[SAID_MAX], n = 0, sum = 0;
        ask("/generate", "{\"text\":\"x\"}");
        for (; n < SAID_MAX && rows[i].said[n].running; n++) {
            say(&rows[i].said[n], rows[i].meta);
            right[n] = rows[i].said[n].bytes, sum += right[n];
        }
        end();
        hold_bytes(rows[i].what, right, n);
        hold(F_text_bytes, sum);
        hold(F_output_tokens_told, rows[i].said[n - 1].running);
        hold(F_prompt_tokens, 4);
    }
}

/* The fast way goes on where the parser left off, and back. */
static void pieces_are_read_from_templates(void **state) {
    char data[256], text[16];
    ask("/generate", "{\"text\":\"x\"}");
    for (int i = 1; i <= 50; i++) {
        snprintf(text, sizeof text, i % 10 ? "\"w%d \"" : "\"\"", i);
        struct said s = {.text = text, .ids = "[5]", .running = i};
        say(&s, META_SGL);
    }
    snprintf(data, sizeof data,
             "{\"text\":\"z\",\"output_ids\":[1],\"index\":1,\"meta_info\":{" META_SGL
             "\"finish_reason\":null,\"completion_tokens\":3}}");
    event(data); /* a second choice: counts are added from here on */
    struct said more = {.text = "\"w51 \"", .ids = "[5]", .running = 51};
    say(&more, META_SGL);
    say(&more, META_SGL);
    end();
    hold(F_output_tokens_told, 54);
    hold(F_choices, 2);
    hold_event(8, TOK_CONTENT, 3, 9);
    hold_event(9, 0, 0, 10);
    hold_event(48, TOK_CONTENT, 4, 49);
    hold_event(50, TOK_CONTENT, 1, 3);
    hold_choice(50, 1);
    hold_event(52, TOK_CONTENT, 4, 51);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_text_is_told),
        cmocka_unit_test(pieces_are_read_from_templates),
    };
    fake_answer_start(&dialect_other);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_answer_stop();
    return failed;
}
