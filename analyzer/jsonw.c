/* See jsonw.h. */
#include "analyzer/jsonw.h"
#include "analyzer/table.h"

#include <math.h>
#include <string.h>

static void begin(struct jsonw *j, const char *key) {
    if (!j->first) fputc(',', j->f);
    if (j->depth) fprintf(j->f, "\n%*s", 2 * j->depth, "");
    j->first = false;
    if (!key) return;
    table_json_string(j->f, key, strlen(key));
    fputs(": ", j->f);
}

void jsonw_open(struct jsonw *j, const char *key, char kind) {
    if (j->depth == 0) j->first = true;
    begin(j, key);
    fputc(kind, j->f);
    j->depth++;
    j->first = true;
}

void jsonw_close(struct jsonw *j, char kind) {
    j->depth--;
    if (!j->first) fprintf(j->f, "\n%*s", 2 * j->depth, "");
    fputc(kind == '{' ? '}' : ']', j->f);
    j->first = false;
    if (j->depth == 0) fputc('\n', j->f);
}

void jsonw_number(struct jsonw *j, const char *key, double v) {
    char b[SHOW_MAX];
    begin(j, key);
    fprintf(j->f, isinf(v) ? "\"%s\"" : "%s", table_double(b, v));
}

void jsonw_int(struct jsonw *j, const char *key, int64_t v) {
    const int64_t exact = INT64_C(1) << 53;
    begin(j, key);
    fprintf(j->f, v > exact || v < -exact ? "\"%lld\"" : "%lld", (long long)v);
}

void jsonw_bool(struct jsonw *j, const char *key, bool v) {
    begin(j, key);
    fputs(v ? "true" : "false", j->f);
}

void jsonw_text(struct jsonw *j, const char *key, const char *s) {
    begin(j, key);
    if (s)
        table_json_string(j->f, s, strlen(s));
    else
        fputs("null", j->f);
}

void jsonw_wall(struct jsonw *j, const char *key, int64_t wall_ns) {
    char b[SHOW_MAX];
    jsonw_text(j, key, wall_ns ? show_rfc3339(b, wall_ns) : NULL);
}
