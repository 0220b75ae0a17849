/* Texts are handed on as exact copies, so that a sanitizer sees what is read beyond them. */
#include "tests/unit/fake_answer.h"

#include "tests/unit/fake_trw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t key[32] = {9};
static const struct dialect *dialect;
static struct shared *shared;
static struct pool pool = {.limit = 1 << 24};
static struct answer a;

void fake_answer_start(const struct dialect *d) {
    dialect = d;
    shared = calloc(1, sizeof *shared);
}
void fake_answer_stop(void) {
    free(shared);
    fake_reset();
}

void begin(void) {
    fake_reset();
    a = (struct answer){
        .trw = fake_trw(), .shared = shared, .pool = &pool, .key = key, .id = 1, .status = 200};
    a.dialect = dialect;
    a.may_generate = true;
    a.echo_bytes = -1;
    trw_begin(a.trw, SUBJECT_R, 1);
}
void end(void) {
    answer_end(&a);
    answer_free(&a);
    trw_end(a.trw, SUBJECT_R, 1);
    assert_false(fake_misused());
    assert_int_equal(pool.used, 0);
}

static char *copy(const char *text, size_t *n) {
    *n = strlen(text);
    char *p = malloc(*n ? *n : 1);
    memcpy(p, text, *n);
    return p;
}

void asked(const char *path, const char *text) {
    size_t n;
    char *p = copy(text, &n);
    answer_take_request(&a, "POST", path, p, n, true);
    free(p);
}
void named(const char *name, const char *data) {
    struct event e = {.name = name};
    char *p = copy(data, &e.n_data);
    e.data = p, e.wire_bytes = e.n_data + 8;
    a.streamed = true;
    a.t_ns++;
    answer_take_event(&a, &e);
    free(p);
}
void event(const char *data) {
    named("", data);
}
void body(const char *text) {
    size_t n;
    char *p = copy(text, &n);
    answer_take_body(&a, p, n, true);
    free(p);
}
void status(unsigned code) {
    a.status = code;
}

void hold(enum fact f, int64_t right) {
    int64_t seen = fake_get(1, f, -1);
    if (seen != right)
        fail_msg("%s is %lld, right is %lld", fact_infos[f].name, (long long)seen, (long long)right);
}
void hold_text(enum fact f, const char *right) {
    const char *seen = fake_str(1, f);
    if (seen != right && (!seen || !right || strcmp(seen, right) != 0))
        fail_msg("%s is %s, right is %s", fact_infos[f].name, seen ? seen : "-", right ? right : "-");
}
void hold_event(size_t i, uint32_t what, uint32_t text_bytes, int64_t running) {
    size_t n;
    const struct tok_event *e = fake_events(&n);
    if (i >= n) fail_msg("there are only %zu events", n);
    assert_int_equal(e[i].what, what);
    assert_int_equal(e[i].text_bytes, text_bytes);
    assert_int_equal(e[i].running, running);
}
size_t n_events(void) {
    size_t n;
    fake_events(&n);
    return n;
}

void hold_apis(const struct row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        begin();
        asked(rows[i].path, rows[i].body);
        end();
        if (strcmp(fake_str(1, F_api), rows[i].api) != 0)
            fail_msg("%s %s is %s", rows[i].path, rows[i].body, fake_str(1, F_api));
    }
}
