/* Follows brackets and strings only: keys are looked at in the outermost object, and elements are counted in
 * arrays that are its members. */
#include "recorder/dissect/jsonscan.h"

#include <stdlib.h>
#include <string.h>

struct scan {
    const char *p, *end;
    int depth;
    char key[32];     /* the current member of the outermost object */
    int64_t elements; /* of the array that is its value */
    struct jsonscan out;
};

/* Behind the string that begins at s->p; its inside in *from, *n. False: it does not end. */
static bool string(struct scan *s, const char **from, size_t *n) {
    *from = ++s->p;
    for (; s->p < s->end; s->p++) {
        if (*s->p == '\\')
            s->p++;
        else if (*s->p == '"')
            break;
    }
    if (s->p >= s->end) return false;
    *n = (size_t)(s->p++ - *from);
    return true;
}

static bool is_key(const struct scan *s, const char *key) {
    return strcmp(s->key, key) == 0;
}

static bool is_limit(const struct scan *s) {
    static const char *const keys[] = {"max_tokens", "max_completion_tokens", "max_output_tokens",
                                       "n_predict"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_key(s, keys[i])) return true;
    return false;
}

static void scalar(struct scan *s) {
    char text[24] = "";
    size_t n = 0;
    while (s->p < s->end && n + 1 < sizeof text && !strchr(",]} \t\r\n", *s->p)) text[n++] = *s->p++;
    if (n == 0) s->p++;
    if (s->depth != 1) return;
    if (is_key(s, "stream")) s->out.stream = strcmp(text, "true") == 0;
    if (is_limit(s) && n > 0 && text[0] >= '0' && text[0] <= '9' && n < 19)
        s->out.max_tokens = strtoll(text, NULL, 10);
}

/* A string in the outermost object: a key when a colon follows, else a value. */
static bool outer_string(struct scan *s) {
    const char *from;
    size_t n;
    if (!string(s, &from, &n)) return false;
    while (s->p < s->end && strchr(" \t\r\n", *s->p)) s->p++;
    if (s->p < s->end && *s->p == ':') {
        size_t len = n < sizeof s->key ? n : 0;
        memcpy(s->key, from, len);
        s->key[len] = 0;
        s->p++;
        if (is_key(s, "prompt")) s->out.has_prompt = true;
    } else if (is_key(s, "model")) {
        s->out.model = from, s->out.n_model = n;
    }
    return true;
}

static void count_element(struct scan *s) {
    s->elements++;
    if (is_key(s, "messages")) s->out.messages = s->elements;
    if (is_key(s, "tools")) s->out.tools = s->elements;
    if (is_key(s, "prompt")) s->out.prompts = s->elements;
}

struct jsonscan jsonscan(const char *p, size_t n) {
    struct scan s = {.p = p, .end = p + n};
    s.out = (struct jsonscan){.stream = -1, .max_tokens = -1, .messages = -1, .tools = -1, .prompts = -1};
    while (s.p < s.end) {
        char c = *s.p;
        if (c == '"') {
            const char *from;
            size_t len;
            if (s.depth == 2 && s.elements == 0) count_element(&s);
            if (!(s.depth == 1 ? outer_string(&s) : string(&s, &from, &len))) break;
        } else if (c == '{' || c == '[') {
            if (s.depth == 2 && s.elements == 0) count_element(&s);
            s.depth++, s.p++;
            if (s.depth == 2) s.elements = c == '[' ? 0 : INT64_MIN;
        } else if (c == '}' || c == ']') {
            s.depth--, s.p++;
        } else if (c == ',' || c == ':' || strchr(" \t\r\n", c)) {
            if (c == ',' && s.depth == 2 && s.elements > 0) count_element(&s);
            s.p++;
        } else {
            if (s.depth == 2 && is_key(&s, "prompt")) s.elements = INT64_MIN; /* token ids: one prompt */
            if (s.depth == 2 && s.elements == 0) count_element(&s);
            scalar(&s);
        }
    }
    return s.out;
}
