/* The fast way and the parser must say the same of every event. Random events, and events with a byte
 * changed, are read twice: with and without what was remembered of the ones before. */
#include "tests/unit/fake_trw.h"

#include "recorder/dissect/dialect.h"
#include "recorder/dissect/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 12345;
static unsigned rnd(unsigned n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static const uint8_t key[32] = {3};
static struct shared *shared;
static const struct dialect *dialect = &dialect_openai_chat;

static void begin(struct answer *a, struct pool *pool) {
    *pool = (struct pool){.limit = 1 << 24};
    *a = (struct answer){
        .trw = fake_trw(), .shared = shared, .pool = pool, .key = key, .id = 1, .status = 200};
    a->dialect = dialect;
    a->may_generate = a->asked = a->streamed = true;
    a->echo_bytes = -1;
    trw_begin(a->trw, SUBJECT_R, 1);
}

static const char *text(void) {
    static const char *const texts[] = {"a",
                                        " word",
                                        "\\n",
                                        "\\\"",
                                        "\xc3\xa9",
                                        "\\u00e9",
                                        "\\ud83d\\ude00",
                                        "\xf0\x9f\x98\x80",
                                        "",
                                        "\\\\",
                                        "\\u0000",
                                        "\\ud800",
                                        "\xff",
                                        "\\u20",
                                        "x\\t\\/y",
                                        "  ",
                                        "{\\\"a\\\":1}",
                                        "\\x",
                                        "\x01",
                                        "\xe2\x82",
                                        "\\\\\\\"",
                                        "\x7f"};
    return texts[rnd(sizeof texts / sizeof *texts)];
}

static const char *number(void) {
    static const char *const numbers[] = {"-0.3125",
                                          "0.0",
                                          "-1.5e-7",
                                          "2E+3",
                                          "7",
                                          "-12",
                                          "123456789012345",
                                          "1234567890123456",
                                          "-0",
                                          "1.",
                                          ".5",
                                          "01.5",
                                          "+1",
                                          "1e",
                                          "-",
                                          "NaN",
                                          "null",
                                          "\"1\"",
                                          "1.2.3",
                                          "1e999",
                                          "[1]",
                                          "0.1 ",
                                          "true",
                                          "--1",
                                          "-Infinity",
                                          "12345678901234567890"};
    return numbers[rnd(sizeof numbers / sizeof *numbers)];
}
static const char *mostly_number(void) {
    return rnd(4) ? "-0.25" : number();
}

static size_t make_tgi(char *out, size_t size, unsigned i) {
    return (size_t)snprintf(out, size,
                            "{\"index\":%u,\"token\":{\"id\":%s,\"text\":\"%s\",\"logprob\":%s,\"special\":"
                            "%s},\"generated_text\":%s,\"details\":null}",
                            i, rnd(8) ? "312" : number(), text(), mostly_number(), rnd(9) ? "false" : "true",
                            rnd(40) ? "null" : "\"all\"");
}

static size_t make_triton(char *out, size_t size, unsigned i) {
    return (size_t)snprintf(out, size,
                            "{\"cum_log_probs\":%s,\"model_name\":\"m\",\"output_log_probs\":[%s,%s],"
                            "\"num_output_tokens\":%u,\"text_output\":\"%s\"}",
                            mostly_number(), mostly_number(), mostly_number(), 1 + i / 40, text());
}

/* Pieces of text; choices take turns now and then. */
static size_t make_sglang(char *out, size_t size, unsigned i) {
    char index[32] = "";
    if (rnd(30) == 0) snprintf(index, sizeof index, ",\"index\":%u", rnd(2));
    return (size_t)snprintf(
        out, size,
        "{\"text\":\"%s\",\"output_ids\":[%u],\"meta_info\":{\"id\":\"r\",\"finish_reason\":"
        "%s,\"prompt_tokens\":14,\"completion_tokens\":%u}%s}",
        i == 1 ? "other" : text(), i + 7, rnd(40) ? "null" : "{\"type\":\"stop\"}", i + 1, index);
}

/* An event of one of the shapes that engines write. */
static size_t make_chat(char *out, size_t size, unsigned i) {
    static const char *const keys[] = {"content", "content", "content", "reasoning", "reasoning_content"};
    char more[512] = "", ids[128] = "null";
    if (rnd(2))
        snprintf(more, sizeof more,
                 ",\"usage\":{\"prompt_tokens\":17,\"total_tokens\":%u,\"completion_tokens\":%u}", 17 + i, i);
    if (rnd(8) == 0) snprintf(more, sizeof more, ",\"usage\":null,\"obfuscation\":\"%s\"", text());
    if (rnd(20) == 0) snprintf(more, sizeof more, ",\"usage\":{\"completion_tokens\":%u.5}", i);
    if (rnd(20) == 0) snprintf(more, sizeof more, ",\"usage\":{\"completion_tokens\":0%u}", i);
    if (rnd(40) == 0)
        snprintf(more, sizeof more, ",\"usage\":{\"completion_tokens\":92233720368547758%02u}", rnd(100));
    if (rnd(3) == 0) snprintf(ids, sizeof ids, rnd(2) ? "[%u]" : "[%u, %u]", i, i + 1);
    if (rnd(20) == 0) snprintf(ids, sizeof ids, rnd(2) ? "[]" : "[1,\"x\"]");
    return (size_t)snprintf(
        out, size,
        "{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":%u,\"model\":\"m\",\"choices\":[{"
        "\"index\":%u,"
        "\"delta\":{\"%s\":\"%s%s\"},\"logprobs\":null,\"finish_reason\":%s,\"token_ids\":%s}]%s}",
        1000 + i / 50, rnd(2), keys[rnd(5)], text(), text(), rnd(30) ? "null" : "\"stop\"", ids, more);
}

static const struct api {
    const struct dialect *dialect;
    size_t (*make)(char *out, size_t size, unsigned i);
} apis[] = {{&dialect_openai_chat, make_chat},
            {&dialect_tgi_generate, make_tgi},
            {&dialect_triton_generate, make_triton},
            {&dialect_sglang_generate, make_sglang}};

static void mutate(char *p, size_t n) {
    static const char bytes[] = "\"\\{}[],:0123456789 abntu.-\x80\xff\n";
    if (n == 0) return;
    p[rnd((unsigned)n)] = bytes[rnd(sizeof bytes - 1)];
}

struct script {
    char *event[64];
    size_t n[64];
    unsigned count;
};

static struct script write_script(const struct api *api, unsigned mutations) {
    struct script s = {.count = 64};
    unsigned shape = seed;
    for (unsigned i = 0; i < s.count; i++) {
        s.event[i] = malloc(2048);
        if (rnd(3)) seed = shape; /* mostly the same shape again, so that templates are used */
        s.n[i] = api->make(s.event[i], 2048, i);
        seed += i * 7919;
        if (rnd(4) == 0)
            for (unsigned k = 0; k < mutations; k++) mutate(s.event[i], s.n[i]);
    }
    return s;
}

/* Facts of a script; forget: nothing is remembered from event to event. */
static char *run(const struct script *s, bool forget, unsigned *hits) {
    struct answer a;
    struct pool pool;
    fake_reset();
    begin(&a, &pool);
    for (unsigned i = 0; i < s->count; i++) {
        char *exact = malloc(s->n[i]);
        memcpy(exact, s->event[i], s->n[i]);
        struct event e = {.data = exact, .n_data = s->n[i], .name = "", .wire_bytes = s->n[i]};
        a.t_ns = i;
        if (forget) template_free(&a.templates);
        unsigned before = a.templates.learned;
        answer_take_event(&a, &e);
        if (before > 0 && a.templates.learned == 0) ++*hits;
        free(exact);
    }
    answer_end(&a);
    answer_int(&a, F_bad_events, (int64_t)a.bad_events);
    answer_int(&a, F_events, (int64_t)a.events);
    answer_int(&a, F_text_bytes, (int64_t)a.text_bytes);
    answer_free(&a);
    trw_end(a.trw, SUBJECT_R, 1);
    assert_int_equal(pool.used, 0);
    return fake_dump(1);
}

static void hold_both_ways(const struct api *api, unsigned rounds) {
    unsigned hits = 0, unused = 0;
    dialect = api->dialect;
    for (unsigned round = 0; round < rounds; round++) {
        seed = round * 2654435761u + 1;
        struct script s = write_script(api, round % 3);
        char *fast = run(&s, false, &hits), *slow = run(&s, true, &unused);
        if (strcmp(fast, slow) != 0) fail_msg("round %u:\n%s\nbut by the parser:\n%s", round, fast, slow);
        free(fast);
        free(slow);
        for (unsigned i = 0; i < s.count; i++) free(s.event[i]);
    }
    if (hits <= rounds) fail_msg("%s: the fast way was taken %u times", api->dialect->name, hits);
    dialect = &dialect_openai_chat;
}

static void both_ways_say_the_same(void **state) {
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) hold_both_ways(&apis[i], i == 0 ? 3000 : 1000);
}

/* Found by the fuzzer: an event repeats an earlier one's figure after another event had changed it. */
static void a_figure_that_comes_back_is_told(void **state) {
    struct answer a;
    struct pool pool;
    double seen = -1;
    fake_reset();
    begin(&a, &pool);
    for (int i = 0; i < 3; i++) {
        const char *data = i == 1 ? "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"avg_decoded_"
                                    "tokens_per_iter\":2.0}]}"
                                  : "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"avg_decoded_"
                                    "tokens_per_iter\":1.5}]}";
        answer_take_event(&a, &(struct event){.data = data, .n_data = strlen(data), .name = ""});
    }
    answer_end(&a);
    answer_free(&a);
    assert_true(fake_real(1, F_decoded_per_iter, &seen));
    assert_true(seen > 1.4 && seen < 1.6);
}

/* Found by the fuzzer: events remembered in one dialect, then the answer showed itself to be in another; and
 * a running count that falls back to zero, which replaces none. */
static void what_the_fuzzer_found(void **state) {
    static const char *const events[] = {
        "{\"delta\":{\"text\":\"Sig\",\"type\":\"text_delta\"}}",
        "{\"delta\":{\"text\":\"nal\",\"type\":\"text_delta\"}}",
        "{\"content\":\"a\",\"stop\":false,\"tokens_predicted\":3}",
        "{\"content\":\"b\",\"stop\":false,\"tokens_predicted\":0}",
        "{\"delta\":{\"text\":\"ler\",\"type\":\"text_delta\"}}",
    };
    struct script s = {.count = 5};
    unsigned hits = 0;
    for (unsigned i = 0; i < s.count; i++) s.event[i] = strdup(events[i]), s.n[i] = strlen(events[i]);
    for (int i = 0; i < 2; i++) {
        dialect = i ? &dialect_llamacpp_completion : &dialect_bedrock_converse;
        char *fast = run(&s, false, &hits), *slow = run(&s, true, &hits);
        assert_string_equal(fast, slow);
        assert_int_equal(fake_get(1, F_output_tokens_told, -1), 3);
        free(fast);
        free(slow);
    }
    for (unsigned i = 0; i < s.count; i++) free(s.event[i]);
    dialect = &dialect_openai_chat;
}

#define BEFORE "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\""
#define AFTER  "\"}}]}"

static bool taken(const char *learned, const char *data, struct tok_event *says) {
    static const struct hole_path holes[] = {{"choices.0.delta.content", HOLE_TEXT}};
    struct templates t = {0};
    struct tok_event said = {.what = TOK_CONTENT, .text_bytes = 1, .running = -1, .ids = -1, .logprobs = -1};
    template_learn(&t, learned, strlen(learned), holes, 1, &said);
    bool yes = template_match(&t, data, strlen(data), says);
    template_free(&t);
    return yes;
}

static void texts_are_counted_as_decoded(void **state) {
    static const struct {
        const char *text;
        int bytes; /* -1: for the parser to see */
    } rows[] = {{"hello", 5},          {"\\n", 1},      {"\\u00e9", 2}, {"\\u20ac", 3},
                {"\\ud83d\\ude00", 4}, {"\xc3\xa9", 2}, {"", -1},       {"\\u0000", -1},
                {"\\ud800", -1},       {"\\udc00", -1}, {"\xff", -1},   {"\\q", -1},
                {"a\"b", -1},          {"\\", -1},      {"\x01", -1},   {"\\u12", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char data[256];
        struct tok_event says;
        snprintf(data, sizeof data, "%s%s%s", BEFORE, rows[i].text, AFTER);
        bool yes = taken(BEFORE "x" AFTER, data, &says);
        if (yes != (rows[i].bytes >= 0) || (yes && says.text_bytes != (uint32_t)rows[i].bytes))
            fail_msg("text %s", rows[i].text);
    }
}

static void numbers_of_no_interest(void **state) {
    static const struct {
        const char *one, *list;
        bool yes;
    } rows[] = {{"-0.3125", "[-0.5,1]", true},
                {"1.5e-7", "[1E+2]", true},
                {"-0", "[]", true},
                {"123456789012345", "[ 1, 2.5]", true},
                {"0.1234567890123456789", "[0]", true},
                {"1234567890123456", "[1]", false},
                {"1.", "[1]", false},
                {".5", "[1]", false},
                {"01", "[1]", false},
                {"-", "[1]", false},
                {"1e", "[1]", false},
                {"null", "[1]", false},
                {"1", "[1,]", false},
                {"1", "[,1]", false},
                {"1", "[null]", false},
                {"1", "1", false},
                {"1", "[1234567890123456]", false},
                {"\"1\"", "[1]", false}};
    static const struct hole_path holes[] = {{"t", HOLE_TEXT}, {"d", HOLE_NUMBER}, {"l", HOLE_NUMBERS}};
    static const struct tok_event said = {.what = TOK_CONTENT, .text_bytes = 1, .running = -1, .ids = -1};
    static const char learned[] = "{\"t\":\"x\",\"d\":1,\"l\":[1]}";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct templates t = {0};
        struct tok_event says;
        char data[128];
        template_learn(&t, learned, sizeof learned - 1, holes, 3, &said);
        int n = snprintf(data, sizeof data, "{\"t\":\"yz\",\"d\":%s,\"l\":%s}", rows[i].one, rows[i].list);
        if (template_match(&t, data, (size_t)n, &says) != rows[i].yes) fail_msg("%s", data);
        assert_int_equal(says.ids, -1);
        template_free(&t);
    }
}

static void an_odd_key_is_not_learned(void **state) {
    static const char *const odd[] = {
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\",\"\\u0063ontent\":\"y\"}}]}", /* the same
                                                                                                  key, escaped
                                                                                                */
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":1}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":\"content\"}]}",
        "{\"choices\":[]}",
        "[]",
        "{",
        "",
    };
    struct tok_event says;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) assert_false(taken(odd[i], odd[i], &says));
}

static void of_equal_keys_the_last_one_counts(void **state) {
    struct tok_event says;
    const char *twice = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"same\",\"content\":\"x\"}}]}";
    assert_true(taken(
        twice, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"same\",\"content\":\"xyz\"}}]}", &says));
    assert_int_equal(says.text_bytes, 3);
    assert_false(taken(
        twice, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"other\",\"content\":\"x\"}}]}", &says));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_counted_as_decoded),
        cmocka_unit_test(numbers_of_no_interest),
        cmocka_unit_test(an_odd_key_is_not_learned),
        cmocka_unit_test(of_equal_keys_the_last_one_counts),
        cmocka_unit_test(a_figure_that_comes_back_is_told),
        cmocka_unit_test(what_the_fuzzer_found),
        cmocka_unit_test(both_ways_say_the_same),
    };
    shared = calloc(1, sizeof *shared);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(shared);
    fake_reset();
    return failed;
}
