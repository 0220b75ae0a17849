/* Any bytes as JSON: every value is visited, and every text must be valid UTF-8. */
#include "recorder/dissect/json.h"
#include "recorder/dissect/jsonscan.h"
#include "recorder/dissect/utf8.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct json *v, int depth) {
    int64_t i;
    double r;
    json_int(v, &i);
    json_real(v, &r);
    json_truthy(v);
    const char *text = json_text(v);
    if (text && utf8_valid(text, strlen(text)) != strlen(text)) abort();
    if (json_is_object(v)) json_at(v, "a.b");
    if (depth > 64) return;
    for (const struct json *e = json_first(v); e; e = json_next(e)) visit(e, depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size + !size);
    memcpy(copy, data, size);
    struct json_doc d = json_open(copy, size);
    if (d.root) visit(d.root, 0);
    json_close(&d);
    struct jsonscan s = jsonscan(copy, size);
    if (s.model && (s.model < copy || s.model + s.n_model > copy + size)) abort();
    free(copy);
    return 0;
}
