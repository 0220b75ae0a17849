/* Keys are compared as they stand: one written with escapes is not found, and its value is parsed. */
#include "recorder/dissect/jsonwalk.h"

#include <stdbool.h>
#include <string.h>

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

const char *jsonwalk_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        if (*p == '"') return p + 1;
        if (*p == '\\') p++;
    }
    return NULL;
}

const char *jsonwalk_value(const char *p, const char *end) {
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = jsonwalk_string(p, end);
            if (!p) return end;
            if (depth == 0) return p;
            continue;
        }
        if (depth == 0 && (*p == ',' || *p == '}' || *p == ']')) return p;
        if (*p == '{' || *p == '[') depth++;
        if ((*p == '}' || *p == ']') && --depth == 0) return p + 1;
        p++;
    }
    return end;
}

static bool is_one_of(const char *const *keys, const char *name, size_t n) {
    for (; *keys; keys++)
        if (strlen(*keys) == n && memcmp(*keys, name, n) == 0) return true;
    return false;
}

static char *copy(char *out, const char *from, const char *to) {
    memcpy(out, from, (size_t)(to - from));
    return out + (to - from);
}

/* The value of the member whose key begins at p; NULL: there is none. */
static const char *value_of(const char *p, const char *end, const char **behind_key) {
    if (p == end || *p != '"') return NULL;
    p = *behind_key = jsonwalk_string(p, end);
    if (!p) return NULL;
    p = skip_space(p, end);
    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}

size_t jsonwalk_without(const char *p, size_t n, const char *const *keys, char *out) {
    enum { LONG_BYTES = 64 };
    const char *end = p + n, *kept = p, *behind_key;
    char *to = out;
    p = skip_space(p, end);
    if (p == end || *p != '{') return 0;
    do {
        const char *key = skip_space(p + 1, end), *value = value_of(key, end, &behind_key);
        if (!value) return 0;
        p = jsonwalk_value(value, end);
        if (p - value > LONG_BYTES && is_one_of(keys, key + 1, (size_t)(behind_key - key) - 2)) {
            to = copy(to, kept, value);
            memcpy(to, "null", 4), to += 4;
            kept = p;
        }
        p = skip_space(p, end);
    } while (p < end && *p == ',');
    return (size_t)(copy(to, kept, end) - out);
}
