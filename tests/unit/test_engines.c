/* The list of what engines tell: it agrees with the recorder's dialects and with itself, and its screens are
 * golden.
 *
 * UPDATE_GOLDEN=1 in the environment rewrites the golden files: look at the difference before it is kept. */
#include "analyzer/engines.h"
#include "recorder/dissect/dialect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DIALECT(id) &dialect_##id,
static const struct dialect *const dialects[] = {DIALECTS(DIALECT)};
#undef DIALECT
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

/* Whether a list with ", " in it has the name. */
static bool lists(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *p = strstr(list, name); p; p = strstr(p + 1, name))
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ',')) return true;
    return false;
}

static void every_api_of_an_engine_is_a_dialect(void **state) {
    for (size_t i = 0; i < n_engines; i++) {
        char list[256], *rest = NULL;
        snprintf(list, sizeof list, "%s", engines[i].apis);
        assert_true(strlen(list) == strlen(engines[i].apis) && *list);
        for (char *api = strtok_r(list, ", ", &rest); api; api = strtok_r(NULL, ", ", &rest)) {
            bool found = false;
            for (int d = 0; d < N_DIALECTS; d++) found |= strcmp(dialects[d]->name, api) == 0;
            if (!found) fail_msg("%s speaks %s, which is no dialect of the recorder", engines[i].name, api);
        }
    }
}

static void every_dialect_is_spoken_by_an_engine(void **state) {
    for (int d = 0; d < N_DIALECTS; d++) {
        bool found = false;
        for (size_t i = 0; i < n_engines; i++) found |= lists(engines[i].apis, dialects[d]->name);
        if (dialects[d]->generates && !found) fail_msg("%s is spoken by no engine", dialects[d]->name);
    }
}

static void what_is_told_says_where_and_how(void **state) {
    for (size_t i = 0; i < n_engines; i++) {
        const struct engine *e = &engines[i];
        for (size_t k = 0; k < i; k++) assert_string_not_equal(engines[k].name, e->name);
        assert_true(e->best <= e->plain); /* the best source is the first in order */
        for (int t = 0; t < N_TELLS; t++) {
            const struct tells *x = &e->tells[t];
            bool request = strstr(x->switch_on, "request field ") != NULL;
            bool server = strstr(x->switch_on, "server option --") != NULL;
            if (x->need != NEED_NEVER && !*x->told) fail_msg("%s: %d is told without a word", e->name, t);
            if (x->need <= NEED_ALWAYS && *x->switch_on) fail_msg("%s: %d has a switch", e->name, t);
            if (x->need >= NEED_REQUEST && !request) fail_msg("%s: %d names no request field", e->name, t);
            if (x->need == NEED_BOTH && !server) fail_msg("%s: %d names no server option", e->name, t);
        }
        bool better = e->tells[TELLS_TOKENS].need >= NEED_REQUEST;
        if (better != (e->best != e->plain)) fail_msg("%s: its token sources and their need differ", e->name);
    }
}

/* -- screens */
struct said {
    int status;
    char *out, err[512];
};

/* What engines_print says to words, NULL at their end; the caller frees out. */
static struct said ask(const char *format, int columns, const char **words) {
    struct said s = {0};
    struct args o = {.format = format, .inputs = (char **)words, .dialects_flag = true};
    struct show_mode m = {.columns = columns, .zone = "UTC"};
    size_t n = 0;
    while (words[o.n_inputs]) o.n_inputs++;
    int was = dup(2);
    FILE *caught = tmpfile(), *f = open_memstream(&s.out, &n);
    fflush(stderr);
    dup2(fileno(caught), 2);
    s.status = engines_print(f, &o, &m);
    fflush(stderr);
    dup2(was, 2);
    close(was);
    fclose(f);
    rewind(caught);
    s.err[fread(s.err, 1, sizeof s.err - 1, caught)] = 0;
    fclose(caught);
    return s;
}
#define ASK(format, columns, ...) ask(format, columns, (const char *[]){__VA_ARGS__, NULL})

static void check_shape(const char *text, size_t columns) {
    size_t lines = 0;
    for (const char *p = text; *p; lines++) {
        size_t n = strcspn(p, "\n");
        if (n > columns) fail_msg("wider than %zu: %.*s", columns, (int)n, p);
        if (n && p[n - 1] == ' ') fail_msg("a blank trails: %.*s|", (int)n, p);
        p += n + (p[n] == '\n');
    }
    assert_in_range(lines, 2, 60);
}

static void golden(const char *name, struct said s, size_t columns) {
    char file[512], right[1 << 14] = "";
    snprintf(file, sizeof file, "%s/golden/%s", TEST_SOURCE_DIR, name);
    assert_int_equal(s.status, 0);
    check_shape(s.out, columns);
    FILE *f = fopen(file, getenv("UPDATE_GOLDEN") ? "w+" : "r");
    if (!f) fail_msg("%s is missing", file);
    if (getenv("UPDATE_GOLDEN")) fputs(s.out, f), rewind(f);
    assert_true(fread(right, 1, sizeof right - 1, f) > 0);
    fclose(f);
    assert_string_equal(s.out, right);
    free(s.out);
}

static void the_list_and_one_engine_print_as_their_golden_screens(void **state) {
    golden("dialects_100.txt", ASK("text", 100, NULL), 100);
    golden("dialects_80.txt", ASK("text", 80, NULL), 80);
    golden("dialects_66.txt", ASK("text", 66, NULL), 66);
    golden("dialects_vllm_100.txt", ASK("text", 100, "vllm"), 100);
    golden("dialects_vllm_80.txt", ASK("text", 80, "vllm"), 80);
}

static void every_engine_prints_in_full(void **state) {
    for (size_t i = 0; i < n_engines; i++) {
        struct said s = ASK("text", 80, engines[i].name);
        assert_int_equal(s.status, 0);
        check_shape(s.out, 80);
        assert_memory_equal(s.out, engines[i].name, strlen(engines[i].name));
        assert_non_null(strstr(s.out, "\n   speaks "));
        free(s.out);
    }
}

static void words_may_be_beginnings_and_apis(void **state) {
    struct said s = ASK("text", 100, "sgl");
    assert_memory_equal(s.out, "sglang\n", 7);
    free(s.out);
    s = ASK("text", 100, "bedrock-converse");
    assert_memory_equal(s.out, "bedrock\n", 8);
    free(s.out);
    s = ASK("text", 100, "lm", "tgi");
    assert_non_null(strstr(s.out, "\n lmdeploy "));
    assert_non_null(strstr(s.out, "\n lm-studio "));
    assert_non_null(strstr(s.out, "\n tgi "));
    assert_null(strstr(s.out, "\n openai "));
    free(s.out);
}

static void an_unknown_name_is_one_line_and_exit_2(void **state) {
    static const struct {
        const char *word;
        const char *said;
    } c[] = {
        {"vlm", "traceanalyze: definitions --dialects vlm: no such engine or API; did you mean vllm? All: "
                "traceanalyze definitions --dialects\n"},
        {"openai-chatt",
         "traceanalyze: definitions --dialects openai-chatt: no such engine or API; did you mean "
         "openai-chat? All: traceanalyze definitions --dialects\n"},
        {"nonsense",
         "traceanalyze: definitions --dialects nonsense: no such engine or API; All: traceanalyze "
         "definitions --dialects\n"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct said s = ASK("text", 100, c[i].word);
        assert_int_equal(s.status, 2);
        assert_string_equal(s.err, c[i].said);
        assert_string_equal(s.out, "");
        free(s.out);
    }
}

static void json_has_all_of_it(void **state) {
    struct said s = ASK("json", 100, NULL);
    struct json_doc d = json_open(s.out, strlen(s.out));
    assert_int_equal(d.verdict, JSON_OK);
    assert_int_equal(json_count(d.root), (int)n_engines);
    size_t i = 0;
    for (const struct json *e = json_first(d.root); e; e = json_next(e), i++) {
        assert_string_equal(json_text(json_get(e, "engine")), engines[i].name);
        assert_true(json_count(json_get(e, "apis")) > 0);
        const struct tells *x = &engines[i].tells[TELLS_CACHED];
        const char *on = json_text(json_at(e, "cached.switch_on"));
        assert_string_equal(on ? on : "", x->switch_on);
        assert_int_equal(json_is_null(json_at(e, "cached.needs")), x->need == NEED_NEVER);
    }
    json_close(&d);
    free(s.out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_api_of_an_engine_is_a_dialect),
        cmocka_unit_test(every_dialect_is_spoken_by_an_engine),
        cmocka_unit_test(what_is_told_says_where_and_how),
        cmocka_unit_test(the_list_and_one_engine_print_as_their_golden_screens),
        cmocka_unit_test(every_engine_prints_in_full),
        cmocka_unit_test(words_may_be_beginnings_and_apis),
        cmocka_unit_test(an_unknown_name_is_one_line_and_exit_2),
        cmocka_unit_test(json_has_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
