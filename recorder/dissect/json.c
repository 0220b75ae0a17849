/* The text is scanned first and parsed from a repaired copy only when it needs one: nearly all texts do not.
 */
#include "recorder/dissect/json.h"

#include "recorder/dissect/jsontext.h"
#include "recorder/dissect/jsonwalk.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EXACT_MAX = 9007199254740992.0; /* 2^53: below it a double holds each whole number */

static const cJSON *raw(const struct json *v) {
    return (const cJSON *)v;
}
static const struct json *wrap(const cJSON *v) {
    return (const struct json *)v;
}

enum { ARENA_BYTES = 64 << 10, ALIGN = 16 };

static struct {
    _Alignas(ALIGN) char bytes[ARENA_BYTES];
    size_t used;
    bool open, spilled; /* a document is being parsed; it needed more than the arena */
} arena;

static void *arena_malloc(size_t n) {
    size_t need = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!arena.open) return malloc(n);
    if (need < n || need > ARENA_BYTES - arena.used) {
        arena.spilled = true;
        return malloc(n);
    }
    arena.used += need;
    return arena.bytes + arena.used - need;
}

static void arena_free(void *p) {
    if ((char *)p < arena.bytes || (char *)p >= arena.bytes + ARENA_BYTES) free(p);
}

static cJSON *parse(const char *p, size_t n, struct json_doc *d) {
    static bool hooked;
    if (!hooked) cJSON_InitHooks(&(cJSON_Hooks){arena_malloc, arena_free});
    hooked = true;
    const char *end = NULL;
    d->mark = arena.used;
    arena.open = true, arena.spilled = false;
    cJSON *root = cJSON_ParseWithLengthOpts(p, n, &end, 0);
    arena.open = false;
    d->spilled = arena.spilled;
    if (root && end == p + n) return root;
    if (d->spilled) cJSON_Delete(root);
    arena.used = d->mark;
    return NULL;
}

struct json_doc json_open(const char *p, size_t n) {
    struct json_doc d = {.verdict = JSON_BAD};
    if (n == 0) return d;
    struct jsontext t = jsontext_scan(p, n);
    if (t.verdict != JSONTEXT_OK) {
        d.verdict = t.verdict == JSONTEXT_LARGE ? JSON_LARGE : JSON_BAD;
        return d;
    }
    d.repairs = t.repairs, d.too_large = t.too_large;
    char *copy = NULL;
    p += t.begin, n = t.end - t.begin;
    if (t.repairs || t.rewrites) {
        copy = malloc(jsontext_room(n));
        if (!copy) return d;
        n = jsontext_repair(p, n, copy);
        p = copy;
    }
    d.root = (struct json *)parse(p, n, &d);
    if (d.root) d.verdict = JSON_OK;
    free(copy);
    return d;
}

struct json_doc json_open_without(const char *p, size_t n, const char *const *keys) {
    enum { LARGE_BYTES = 4096 };
    char *copy = keys && n > LARGE_BYTES ? malloc(n) : NULL;
    if (!copy) return json_open(p, n);
    size_t kept = jsonwalk_without(p, n, keys, copy);
    struct json_doc d = kept > 0 ? json_open(copy, kept) : json_open(p, n);
    free(copy);
    return d;
}

void json_close(struct json_doc *d) {
    if (!d->root) return;
    if (d->spilled) cJSON_Delete((cJSON *)d->root);
    arena.used = d->mark;
    d->root = NULL;
}

/* The library's own predicates are calls into another object; these are asked some dozens of times an event.
 */
static bool is(const cJSON *v, int type) {
    return v && (v->type & 0xff) == type;
}

/* Walks backwards: the first child's prev is the last one. */
static const cJSON *get_n(const cJSON *object, const char *key, size_t n) {
    if (!is(object, cJSON_Object) || !object->child) return NULL;
    for (const cJSON *m = object->child->prev;; m = m->prev) {
        if (m->string && m->string[0] == key[0] && strncmp(m->string, key, n) == 0 && m->string[n] == 0)
            return m;
        if (m == object->child) return NULL;
    }
}

const struct json *json_get(const struct json *object, const char *key) {
    if (!object) return NULL;
    return wrap(get_n(raw(object), key, strlen(key)));
}

const struct json *json_at(const struct json *object, const char *path) {
    const cJSON *v = raw(object);
    for (;;) {
        if (!v) return NULL;
        size_t n = strcspn(path, ".");
        v = get_n(v, path, n);
        if (path[n] == 0) return wrap(v);
        path += n + 1;
    }
}

bool json_is_object(const struct json *v) {
    return is(raw(v), cJSON_Object);
}
bool json_is_array(const struct json *v) {
    return is(raw(v), cJSON_Array);
}
bool json_is_null(const struct json *v) {
    return !v || is(raw(v), cJSON_NULL);
}
bool json_is_true(const struct json *v) {
    return is(raw(v), cJSON_True);
}

bool json_truthy(const struct json *v) {
    const cJSON *c = raw(v);
    if (!c || is(c, cJSON_NULL) || is(c, cJSON_False)) return false;
    if (is(c, cJSON_Number)) return c->valuedouble < 0 || c->valuedouble > 0;
    return !is(c, cJSON_String) || c->valuestring[0] != 0;
}

static bool is_marked(const cJSON *c) {
    return is(c, cJSON_String) && c->valuestring[0] == JSONTEXT_MARK;
}

const char *json_text(const struct json *v) {
    return is(raw(v), cJSON_String) && !is_marked(raw(v)) ? raw(v)->valuestring : NULL;
}
size_t json_text_bytes(const struct json *v) {
    const char *text = json_text(v);
    return text ? strlen(text) : 0;
}

bool json_int(const struct json *v, int64_t *out) {
    const cJSON *c = raw(v);
    if (is_marked(c)) {
        char *end;
        errno = 0;
        long long n = strtoll(c->valuestring + 1, &end, 10);
        if (errno || *end || end == c->valuestring + 1) return false;
        *out = n;
        return true;
    }
    if (!is(c, cJSON_Number) || !(fabs(c->valuedouble) <= EXACT_MAX)) return false;
    int64_t n = (int64_t)c->valuedouble;
    if ((double)n < c->valuedouble || (double)n > c->valuedouble) return false;
    *out = n;
    return true;
}

bool json_real(const struct json *v, double *out) {
    int64_t n;
    if (is(raw(v), cJSON_Number) && isfinite(raw(v)->valuedouble))
        *out = raw(v)->valuedouble;
    else if (is_marked(raw(v)) && json_int(v, &n))
        *out = (double)n;
    else
        return false;
    return true;
}

int json_count(const struct json *v) {
    return is(raw(v), cJSON_Array) ? cJSON_GetArraySize(raw(v)) : -1;
}

const char *json_key(const struct json *member) {
    return member ? raw(member)->string : NULL;
}
const struct json *json_first(const struct json *v) {
    const cJSON *c = raw(v);
    return is(c, cJSON_Array) || is(c, cJSON_Object) ? wrap(c->child) : NULL;
}
const struct json *json_next(const struct json *element) {
    return element ? wrap(raw(element)->next) : NULL;
}
