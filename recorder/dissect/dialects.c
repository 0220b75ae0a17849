/* Which dialect a message is in. The body's shape is asked before the path, since paths differ
 * between hosts and gateways and shapes do not. */
#include "recorder/dissect/dialect.h"

#include <string.h>

#define DIALECT(id) &dialect_##id,
static const struct dialect *const dialects[] = {DIALECTS(DIALECT)};
#undef DIALECT
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

bool dialect_path_ends(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    while (n > 1 && path[n - 1] == '/') n--;
    return n >= m && memcmp(path + n - m, suffix, m) == 0;
}

const struct dialect *dialect_of_request(const char *method, const char *path, const struct json *body) {
    if (strcmp(method, "POST") != 0) return &dialect_other;
    for (int i = 0; i < N_DIALECTS; i++)
        if (dialects[i]->asked(path, body)) return dialects[i];
    return &dialect_other;
}

const struct dialect *dialect_of_response(const struct json *root) {
    for (int i = 0; i < N_DIALECTS; i++)
        if (dialects[i]->answered(root)) return dialects[i];
    return NULL;
}
