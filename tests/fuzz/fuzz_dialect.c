/* A dialect's reading of any bytes; one target for each row of DIALECTS, FUZZED being its name.
 *
 * The first byte says what the rest is: R a request's body; B a whole response; else a stream, one line an
 * event, with the lines of an event stream ("event: name", "data: ...") or bare JSON, after '?' in the
 * dialect that its shape shows, after '!' with an echoed prompt. A stream is read with and without what was
 * remembered of earlier events: the facts must be the same. */
#include "tests/unit/fake_trw.h"

#include "recorder/dissect/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME(id)  dialect_##id
#define OF(macro) NAME(macro)

static const uint8_t key[32];
static struct shared *shared;

static void event(struct answer *a, const char *p, size_t n, const char *name, bool forget) {
    char *copy = malloc(n + !n);
    memcpy(copy, p, n);
    if (forget) template_free(&a->templates);
    answer_take_event(a, &(struct event){.data = copy, .n_data = n, .name = name, .wire_bytes = n});
    free(copy);
}

static void events(struct answer *a, const char *p, size_t n, bool forget) {
    const char *end = p + n;
    char name[64] = "";
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((lf ? lf : end) - p), skip = 0;
        if (len >= 7 && memcmp(p, "event: ", 7) == 0) {
            size_t n_name = len - 7 < sizeof name - 1 ? len - 7 : sizeof name - 1;
            memcpy(name, p + 7, n_name);
            name[n_name] = 0;
        } else {
            if (len >= 5 && memcmp(p, "data:", 5) == 0) skip = len > 5 && p[5] == ' ' ? 6 : 5;
            if (len > skip) event(a, p + skip, len - skip, name, forget);
        }
        p += len + 1;
    }
}

static void request(struct answer *a, const char *p, size_t n) {
    struct json_doc d = json_open(p, n);
    if (d.verdict == JSON_OK) {
        a->dialect->asked("/v1/generate", d.root);
        a->dialect->request(a, d.root);
    }
    json_close(&d);
}

static void read_as(struct answer *a, const uint8_t *data, size_t size, bool forget) {
    int kind = size > 0 ? data[0] : 0;
    const char *rest = (const char *)data + (size > 0);
    size_t n = size - (size > 0);
    if (kind == 'R') {
        request(a, rest, n);
    } else if (kind == 'B') {
        answer_take_body(a, rest, n, true);
    } else {
        a->streamed = true;
        a->recognised = kind != '?';
        a->echo = kind == '!';
        a->echo_bytes = a->echo ? 3 : -1;
        events(a, (const char *)data, size, forget);
    }
}

static char *run(const uint8_t *data, size_t size, bool forget) {
    struct pool pool = {.limit = 1 << 22};
    struct answer a = {
        .trw = fake_trw(), .shared = shared, .pool = &pool, .key = key, .id = 1, .status = 200};
    fake_reset();
    trw_begin(a.trw, SUBJECT_R, 1);
    a.dialect = &OF(FUZZED);
    a.may_generate = a.recognised = true;
    a.event_name = "";
    read_as(&a, data, size, forget);
    answer_end(&a);
    answer_free(&a);
    if (pool.used || fake_misused()) abort();
    return fake_dump(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!shared) shared = calloc(1, sizeof *shared);
    char *fast = run(data, size, false), *slow = run(data, size, true);
    if (strcmp(fast, slow) != 0) {
        fprintf(stderr, "remembering:\n%s\nparsing:\n%s\n", fast, slow);
        abort();
    }
    free(fast);
    free(slow);
    return 0;
}
