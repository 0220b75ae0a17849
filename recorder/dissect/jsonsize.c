/* Nesting is bounded by the parser. */
#include "recorder/dissect/jsonsize.h"

#include <stdio.h>
#include <string.h>

static size_t scalar(const struct json *v) {
    char digits[40];
    int64_t n;
    double real;
    if (json_text(v)) return json_text_bytes(v) + 2;
    if (json_int(v, &n)) return (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n);
    if (json_real(v, &real)) return (size_t)snprintf(digits, sizeof digits, "%.15g", real);
    return json_is_null(v) || json_is_true(v) ? 4 : 5; /* null, true, false */
}

size_t jsonsize(const struct json *v) {
    if (!v) return 0;
    bool object = json_is_object(v);
    if (!object && !json_is_array(v)) return scalar(v);
    size_t bytes = 2, n = 0;
    for (const struct json *e = json_first(v); e; e = json_next(e), n++) {
        if (object) bytes += strlen(json_key(e)) + 3; /* quotes and a colon */
        bytes += jsonsize(e);
    }
    return bytes + (n > 1 ? n - 1 : 0);
}
