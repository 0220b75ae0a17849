/* The path is found in the bytes by a walker of its own, since the parser keeps no offsets. It refuses
 * whatever could make it see another member than the parser: a key written with escapes. Of equal keys the
 * last one counts, as there. */
#include "recorder/dissect/template.h"

#include "recorder/dissect/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 15, DECIMAL_MAX = 40, LEARN_MAX = 16, LEARN_AGAIN = 256 };

static const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* Behind the string that begins at p; NULL: it does not end. */
static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        if (*p == '"') return p + 1;
        if (*p == '\\') p++;
    }
    return NULL;
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p, const char *end) {
    int depth = 0;
    while (p && p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (depth == 0) return p;
            continue;
        }
        if (depth == 0 && (*p == ',' || *p == '}' || *p == ']')) return p;
        if (*p == '{' || *p == '[') depth++;
        if ((*p == '}' || *p == ']') && --depth == 0) return p + 1;
        p++;
    }
    return p;
}

/* The value of the last member called key of the object that begins at p. */
static const char *member(const char *p, const char *end, const char *key, size_t n_key) {
    const char *found = NULL;
    p = skip_space(p + 1, end);
    while (p && p < end && *p == '"') {
        const char *name = p + 1;
        p = skip_string(p, end);
        if (!p || memchr(name, '\\', (size_t)(p - name))) return NULL;
        size_t n = (size_t)(p - name) - 1;
        p = skip_space(p, end);
        if (p == end || *p != ':') return NULL;
        p = skip_space(p + 1, end);
        if (n == n_key && memcmp(name, key, n) == 0) found = p;
        p = skip_value(p, end);
        if (!p) return NULL;
        p = skip_space(p, end);
        if (p < end && *p == ',') p = skip_space(p + 1, end);
    }
    return found;
}

/* The value at path, or NULL. */
static const char *locate(const char *p, const char *end, const char *path) {
    p = skip_space(p, end);
    for (;;) {
        size_t n = strcspn(path, ".");
        if (p == end) return NULL;
        if (*p == '[' && n == 1 && *path == '0')
            p = skip_space(p + 1, end);
        else if (*p == '{')
            p = member(p, end, path, n);
        else
            return NULL;
        if (!p || p == end) return NULL;
        if (path[n] == 0) return p;
        path += n + 1;
    }
}

static int hex(unsigned char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static long code_unit(const unsigned char *p, size_t n) {
    long v = 0;
    if (n < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        int d = hex(p[i]);
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* Takes the escape at p; adds the bytes it decodes to. Its length, 0: let the parser see it. */
static size_t escape(const unsigned char *p, size_t n, size_t *decoded) {
    if (n < 2) return 0;
    if (p[1] != 'u') {
        *decoded += 1;
        return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
    }
    long c = code_unit(p, n);
    if (c <= 0) return 0;
    if (c >= 0xd800 && c < 0xe000) {
        long low = c < 0xdc00 ? code_unit(p + 6, n - 6) : -1;
        *decoded += 4;
        return low >= 0xdc00 && low < 0xe000 ? 12 : 0;
    }
    *decoded += c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
    return 6;
}

/* -- holes. Each reads a value and returns what is behind it; NULL: the parser must see it. */
/* A string's inside. *decoded: its bytes. */
static const char *text(const char *from, const char *end, size_t *decoded) {
    const unsigned char *p = (const unsigned char *)from, *e = (const unsigned char *)end;
    size_t bytes = 0;
    while (p < e && *p != '"') {
        size_t len;
        if (*p == '\\') {
            len = escape(p, (size_t)(e - p), &bytes);
        } else {
            len = *p < 0x80 ? *p >= 0x20 : utf8_sequence(p, (size_t)(e - p));
            bytes += len;
        }
        if (len == 0) return NULL;
        p += len;
    }
    *decoded = bytes;
    return (const char *)p;
}

static const char *number(const char *p, const char *end, int64_t *value) {
    const char *from = p;
    int64_t v = 0;
    while (p < end && *p >= '0' && *p <= '9' && p - from <= DIGITS_MAX) v = v * 10 + (*p++ - '0');
    *value = v;
    if (p - from > DIGITS_MAX || p == from || (*from == '0' && p - from > 1)) return NULL;
    return p;
}

static const char *digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

/* Any number that the parser takes as it is: it marks long whole ones, and none is read from here. */
static const char *decimal(const char *p, const char *end) {
    const char *from = p, *part;
    p += p < end && *p == '-';
    part = p, p = digits(p, end);
    if (p == part || (*part == '0' && p - part > 1)) return NULL;
    bool whole = p == end || !strchr(".eE", *p);
    if (p < end && *p == '.') {
        part = ++p, p = digits(p, end);
        if (p == part) return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '-' || *p == '+');
        part = p, p = digits(p, end);
        if (p == part) return NULL;
    }
    return p - from <= (whole ? DIGITS_MAX : DECIMAL_MAX) ? p : NULL;
}

/* A list of numbers, only_whole: of token ids. */
static const char *list(const char *p, const char *end, bool only_whole, int32_t *count) {
    int64_t unused;
    *count = 0;
    if (p == end || *p++ != '[') return NULL;
    while (p < end && *p != ']') {
        if (*count > 0 && *p++ != ',') return NULL;
        while (p < end && *p == ' ') p++;
        p = only_whole ? number(p, end, &unused) : decimal(p, end);
        if (!p) return NULL;
        ++*count;
    }
    return p < end ? p + 1 : NULL;
}

static const char *fill(enum hole hole, const char *p, const char *end, struct tok_event *says) {
    size_t bytes = 0;
    int32_t unused;
    switch (hole) {
    case HOLE_TEXT:
        p = text(p, end, &bytes);
        says->text_bytes = (uint32_t)bytes;
        return bytes > 0 ? p : NULL;
    case HOLE_PADDING: return text(p, end, &bytes);
    case HOLE_RUNNING: return number(p, end, &says->running);
    case HOLE_NUMBER: return decimal(p, end);
    case HOLE_NUMBERS: return list(p, end, false, &unused);
    case HOLE_IDS: return list(p, end, true, &says->ids);
    }
    return NULL;
}

static bool matches(const struct template *t, uint64_t version, const char *p, size_t n,
                    struct tok_event *says) {
    const char *end = p + n, *part = t->bytes;
    if (!part || t->version != version) return false;
    *says = t->said;
    for (unsigned i = 0;; i++) {
        if ((size_t)(end - p) < t->part[i] || memcmp(p, part, t->part[i]) != 0) return false;
        p += t->part[i], part += t->part[i];
        if (i == t->n_holes) return p == end;
        p = fill((enum hole)t->hole[i], p, end, says);
        if (!p) return false;
    }
}

bool template_match(struct templates *t, const char *data, size_t n, struct tok_event *says) {
    for (unsigned i = 0; i < TEMPLATE_KEPT; i++) {
        unsigned at = (t->last + i) % TEMPLATE_KEPT;
        if (!matches(&t->kept[at], t->version, data, n, says)) continue;
        t->last = at;
        t->learned = 0;
        return true;
    }
    return false;
}

/* -- learning */
struct cut {
    const char *from, *to; /* the hole's bytes */
    enum hole hole;
};

/* Makes a hole of the value at p when it is of the right kind. */
static bool cut_value(const char *p, const char *end, enum hole hole, struct cut *c) {
    struct tok_event unused;
    bool is_text = hole == HOLE_TEXT || hole == HOLE_PADDING;
    if (is_text && *p++ != '"') return false;
    const char *to = fill(hole, p, end, &unused);
    if (!to || to == end || (is_text && *to != '"')) return false;
    if (!is_text && !strchr(",]} \t\r\n", *to)) return false; /* it goes on: a decimal number */
    *c = (struct cut){p, to, hole};
    return true;
}

/* Holes in the order of their places. */
static size_t find_cuts(const char *data, const char *end, const struct hole_path *paths, size_t n_paths,
                        struct cut *cuts) {
    size_t n = 0;
    for (size_t i = 0; i < n_paths && n < TEMPLATE_HOLES; i++) {
        const char *p = locate(data, end, paths[i].path);
        struct cut c;
        if (!p || !cut_value(p, end, paths[i].hole, &c)) {
            if (paths[i].hole == HOLE_TEXT) return 0;
            continue;
        }
        size_t at = n++;
        for (; at > 0 && cuts[at - 1].from > c.from; at--) cuts[at] = cuts[at - 1];
        cuts[at] = c;
    }
    return n;
}

static bool build(struct template *t, const char *data, size_t n, const struct cut *cuts, size_t n_cuts) {
    char *bytes = realloc(t->bytes, n);
    const char *from = data;
    size_t used = 0;
    if (!bytes) return false;
    t->bytes = bytes;
    t->n_holes = (unsigned)n_cuts;
    for (size_t i = 0; i <= n_cuts; i++) {
        const char *to = i < n_cuts ? cuts[i].from : data + n;
        if (to < from) return false; /* one hole inside another */
        memcpy(bytes + used, from, (size_t)(to - from));
        t->part[i] = (uint32_t)(to - from);
        used += t->part[i];
        if (i < n_cuts) t->hole[i] = (uint8_t)cuts[i].hole, from = cuts[i].to;
    }
    return true;
}

static bool same(const struct tok_event *a, const struct tok_event *b) {
    return a->text_bytes == b->text_bytes && a->running == b->running && a->ids == b->ids;
}

void template_learn(struct templates *t, const char *data, size_t n, const struct hole_path *paths,
                    size_t n_paths, const struct tok_event *said) {
    struct cut cuts[TEMPLATE_HOLES];
    struct tok_event says;
    if (n > TEMPLATE_MAX_BYTES) return;
    if (++t->learned > LEARN_MAX && t->learned % LEARN_AGAIN != 0) return;
    size_t n_cuts = find_cuts(data, data + n, paths, n_paths, cuts);
    bool counted = false;
    for (size_t i = 0; i < n_cuts; i++) counted = counted || cuts[i].hole == HOLE_RUNNING;
    if (n_cuts == 0 || (said->running >= 0 && !counted)) return;
    struct template *k = &t->kept[t->next];
    k->said = *said;
    k->version = t->version;
    /* what was learned must say of its own event what the parser said: else it is not understood */
    if (!build(k, data, n, cuts, n_cuts) || !matches(k, t->version, data, n, &says) || !same(&says, said)) {
        free(k->bytes);
        *k = (struct template){0};
        return;
    }
    t->last = t->next;
    t->next = (t->next + 1) % TEMPLATE_KEPT;
}

void template_free(struct templates *t) {
    for (unsigned i = 0; i < TEMPLATE_KEPT; i++) free(t->kept[i].bytes);
    memset(t, 0, sizeof *t);
}
