/* Two tables: where names stand, and how paths end. */
#include "recorder/dissect/askpath.h"

#include "recorder/dissect/dialect.h"

#include <string.h>

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Undoes percent coding: Bedrock's names have colons and slashes in them. */
static size_t decode(const char *p, size_t n, char *out, size_t room) {
    size_t len = 0;
    for (size_t i = 0; i < n && len < room; i++) {
        bool coded = p[i] == '%' && n - i > 2 && hex(p[i + 1]) >= 0 && hex(p[i + 2]) >= 0;
        out[len++] = coded ? (char)(hex(p[i + 1]) * 16 + hex(p[i + 2])) : p[i];
        if (coded) i += 2;
    }
    return len;
}

static void model(struct answer *a, const char *path) {
    static const struct {
        const char *before, *until;
    } rows[] = {{"/deployments/", "/"}, {"/models/", ":/"}, {"/model/", "/"}};
    char name[FACT_STR_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !a->asked_model; i++) {
        const char *at = strstr(path, rows[i].before);
        if (!at) continue;
        at += strlen(rows[i].before);
        size_t n = strcspn(at, rows[i].until);
        if (n == 0 || at[n] == 0) continue; /* it is a method's name, not a model's */
        n = decode(at, n, name, sizeof name);
        answer_text(a, F_model, name, n);
        a->asked_model = true;
    }
}

static void stream(struct answer *a, const char *path) {
    static const struct {
        const char *suffix;
        bool stream;
    } rows[] = {
        {":streamGenerateContent", true},
        {":generateContent", false},
        {":streamRawPredict", true},
        {":rawPredict", false},
        {"/converse-stream", true},
        {"/converse", false},
        {"/invoke-with-response-stream", true},
        {"/generate_stream", true},
        {"/invoke", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (dialect_path_ends(path, rows[i].suffix)) {
            answer_int(a, F_stream, rows[i].stream);
            return;
        }
}

void askpath_read(struct answer *a, const char *path) {
    model(a, path);
    if (a->dialect->generates) stream(a, path);
}
