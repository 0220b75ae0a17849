/* Events of a chat stream, one a line: read with and without what was remembered of earlier ones, the facts
 * must be the same. */
#include "tests/unit/fake_trw.h"

#include "recorder/dissect/dialect.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t key[32];
static struct shared *shared;

static void events(struct answer *a, const char *p, size_t n, bool forget) {
    const char *end = p + n;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((lf ? lf : end) - p);
        char *copy = malloc(len + !len);
        memcpy(copy, p, len);
        if (forget) template_free(&a->templates);
        answer_take_event(a, &(struct event){.data = copy, .n_data = len, .name = "", .wire_bytes = len});
        free(copy);
        p += len + 1;
    }
}

static char *run(const uint8_t *data, size_t size, bool forget) {
    struct pool pool = {.limit = 1 << 22};
    struct answer a = {
        .trw = fake_trw(), .shared = shared, .pool = &pool, .key = key, .id = 1, .status = 200};
    fake_reset();
    trw_begin(a.trw, SUBJECT_R, 1);
    a.dialect = &dialect_openai_chat;
    a.may_generate = a.streamed = true;
    a.echo = size > 0 && data[0] == '!';
    a.echo_bytes = a.echo ? 3 : -1;
    events(&a, (const char *)data, size, forget);
    answer_end(&a);
    answer_free(&a);
    if (pool.used || fake_misused()) abort();
    return fake_dump(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!shared) shared = calloc(1, sizeof *shared);
    char *fast = run(data, size, false), *slow = run(data, size, true);
    if (strcmp(fast, slow) != 0) abort();
    free(fast);
    free(slow);
    return 0;
}
