/* One walk does both: without an output it only looks, with one it copies and repairs. It checks that strings
 * end and brackets match (the parser behind it reads beyond the end of some texts that are cut off) and
 * leaves the rest of the grammar to the parser. */
#include "recorder/dissect/jsontext.h"

#include "recorder/dissect/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SAFE_DIGITS = 15, NUMBER_MAX = 60, DIGITS_MAX = 19 };

struct walk {
    const unsigned char *p, *end;
    char *w; /* where to write, NULL: only looking */
    struct jsontext t;
    size_t values;
    unsigned depth;
    unsigned char is_object[JSON_DEPTH_MAX / 8]; /* a bit for each open bracket */
};

/* Bytes that end a run inside a string: the quote, the backslash, and what is not ASCII. */
static const unsigned char stops[256] = {
    ['"'] = 1,
    ['\\'] = 1,
    [0x80 ... 0xff] = 1,
};

static bool bad(struct walk *s) {
    s->t.verdict = JSONTEXT_BAD;
    return false;
}

static void put(struct walk *s, const void *p, size_t n) {
    if (!s->w || n == 0) return;
    memcpy(s->w, p, n);
    s->w += n;
}

static int hex4(const unsigned char *p, const unsigned char *end) {
    int v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i], d = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                               : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* An escape at s->p, in a string whose bytes from *run on are not yet written. */
static bool escape(struct walk *s, const unsigned char **run) {
    if (s->end - s->p < 2) return bad(s);
    if (s->p[1] != 'u') {
        if (s->p[1] == 0 || !strchr("\"\\/bfnrt", s->p[1])) return bad(s);
        s->p += 2;
        return true;
    }
    int c = hex4(s->p + 2, s->end);
    if (c < 0) return bad(s);
    size_t len = 6;
    const char *instead = c == 0 ? "?" : NULL;
    if (c >= 0xd800 && c < 0xe000) {
        const unsigned char *q = s->p + 6;
        int low = c < 0xdc00 && s->end - q >= 6 && q[0] == '\\' && q[1] == 'u' ? hex4(q + 2, s->end) : -1;
        if (low >= 0xdc00 && low < 0xe000)
            len = 12;
        else
            instead = UTF8_BAD;
    }
    if (instead) {
        put(s, *run, (size_t)(s->p - *run));
        put(s, instead, strlen(instead));
        *run = s->p + len;
        s->t.repairs++;
    }
    s->p += len;
    return true;
}

/* A string whose opening quote is at s->p. */
static bool string(struct walk *s) {
    const unsigned char *run = s->p++;
    for (;;) {
        while (s->p < s->end && !stops[*s->p]) s->p++;
        if (s->p == s->end) return bad(s);
        if (*s->p == '"') break;
        if (*s->p == '\\') {
            if (!escape(s, &run)) return false;
            continue;
        }
        size_t len = utf8_sequence(s->p, (size_t)(s->end - s->p));
        if (len == 0) {
            put(s, run, (size_t)(s->p - run));
            put(s, UTF8_BAD, UTF8_BAD_BYTES);
            s->t.repairs++;
            run = s->p + 1, len = 1;
        }
        s->p += len;
    }
    s->p++;
    put(s, run, (size_t)(s->p - run));
    return true;
}

/* A number written with n characters at p; whole: digits and a sign only. */
static void end_number(struct walk *s, const char *p, size_t n, bool whole) {
    size_t sign = p[0] == '-';
    if (n <= SAFE_DIGITS || (!whole && n <= NUMBER_MAX)) {
        put(s, p, n);
        return;
    }
    char digits[DIGITS_MAX + 2] = "";
    errno = ERANGE;
    if (whole && n - sign <= DIGITS_MAX) {
        memcpy(digits, p, n);
        errno = 0;
        (void)strtoll(digits, NULL, 10);
    }
    s->t.rewrites++;
    if (errno) {
        s->t.too_large++;
        put(s, "null", 4);
    } else {
        put(s, (char[]){'"', JSONTEXT_MARK}, 2);
        put(s, p, n);
        put(s, "\"", 1);
    }
}

static bool number(struct walk *s) {
    const unsigned char *from = s->p;
    bool whole = true;
    for (s->p++; s->p < s->end; s->p++) {
        if (*s->p >= '0' && *s->p <= '9') continue;
        if (!*s->p || !strchr("+-.eE", *s->p)) break;
        whole = false;
    }
    end_number(s, (const char *)from, (size_t)(s->p - from), whole);
    return true;
}

/* A word: true, false, null as they are, NaN and Infinity as null. */
static bool word(struct walk *s) {
    static const struct {
        const char *text;
        bool odd;
    } words[] = {{"true", 0},     {"false", 0},     {"null", 0}, {"NaN", 1},
                 {"Infinity", 1}, {"-Infinity", 1}, {"-NaN", 1}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].text);
        if ((size_t)(s->end - s->p) < n || memcmp(s->p, words[i].text, n) != 0) continue;
        if (words[i].odd)
            put(s, "null", 4);
        else
            put(s, s->p, n);
        s->t.repairs += words[i].odd;
        s->p += n;
        return true;
    }
    return bad(s);
}

static bool open_bracket(struct walk *s) {
    if (s->depth == JSON_DEPTH_MAX) {
        s->t.verdict = JSONTEXT_LARGE;
        return false;
    }
    unsigned bit = 1u << s->depth % 8;
    if (*s->p == '{')
        s->is_object[s->depth / 8] |= (unsigned char)bit;
    else
        s->is_object[s->depth / 8] &= (unsigned char)~bit;
    s->depth++;
    put(s, s->p++, 1);
    return true;
}

static bool close_bracket(struct walk *s) {
    if (s->depth == 0) return bad(s);
    s->depth--;
    bool object = s->is_object[s->depth / 8] >> s->depth % 8 & 1;
    if (object != (*s->p == '}')) return bad(s);
    put(s, s->p++, 1);
    return true;
}

static bool is_space(unsigned char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool token(struct walk *s) {
    unsigned char c = *s->p;
    if (c == '"') return string(s);
    if (c == '{' || c == '[') {
        s->values++;
        return open_bracket(s);
    }
    if (c == '}' || c == ']') return close_bracket(s);
    if (c >= '0' && c <= '9') return number(s);
    if (c == '-') return s->p + 1 < s->end && (s->p[1] == 'I' || s->p[1] == 'N') ? word(s) : number(s);
    if (c == ',' || c == ':' || is_space(c)) {
        s->values += c == ',';
        put(s, s->p++, 1);
        return s->depth > 0 || bad(s);
    }
    return word(s);
}

static void skip_space(struct walk *s) {
    while (s->p < s->end && is_space(*s->p)) s->p++;
}

static inline __attribute__((always_inline)) struct walk walk(const char *text, size_t n, char *out) {
    struct walk s = {.p = (const unsigned char *)text, .w = out};
    s.end = s.p + n;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) s.p += 3;
    skip_space(&s);
    s.t.begin = (size_t)(s.p - (const unsigned char *)text);
    if (s.p == s.end) bad(&s);
    while (s.p < s.end) {
        if (!token(&s)) return s;
        if (s.depth == 0) break;
        if (s.values > JSON_VALUES_MAX) {
            s.t.verdict = JSONTEXT_LARGE;
            return s;
        }
    }
    s.t.end = (size_t)(s.p - (const unsigned char *)text);
    if (s.depth > 0) bad(&s);
    skip_space(&s);
    if (s.p != s.end) bad(&s);
    return s;
}

struct jsontext jsontext_scan(const char *p, size_t n) {
    return walk(p, n, NULL).t;
}

size_t jsontext_repair(const char *p, size_t n, char *out) {
    char *end = walk(p, n, out).w;
    *end = 0;
    return (size_t)(end - out);
}

size_t jsontext_room(size_t n) {
    return 3 * n + 16;
}
