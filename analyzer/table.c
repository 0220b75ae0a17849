/* Rows for programs: CSV and JSON lines. The tables for people are in table_grid.c. */
#include "analyzer/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest whole number that every reader of JSON keeps exactly. */
static const int64_t EXACT = INT64_C(1) << 53;

const char *table_double(char *out, double d) {
    if (isnan(d)) return strcpy(out, "null");
    if (isinf(d)) return strcpy(out, d > 0 ? "inf" : "-inf");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, SHOW_MAX, "%.*g", digits, d);
        if (strtod(out, NULL) == d) break;
    }
    return out;
}

const char *table_ns_as_ms(char *out, int64_t ns) {
    uint64_t a = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    int n = snprintf(out, SHOW_MAX, "%s%" PRIu64 ".%06" PRIu64, ns < 0 ? "-" : "", a / 1000000, a % 1000000);
    while (out[n - 1] == '0') out[--n] = 0;
    if (out[n - 1] == '.') out[--n] = 0;
    return out;
}

/* Cells that begin with one of these are run as formulas when a CSV is opened by a spreadsheet. */
static bool is_formula(char c) {
    return c == '=' || c == '+' || c == '-' || c == '@' || c == '\t' || c == '\r';
}

static void csv_text(FILE *f, const char *s, size_t n) {
    bool formula = n && is_formula(s[0]), quote = false;
    for (size_t i = 0; i < n && !quote; i++) quote = strchr(",\"\r\n", s[i]) && s[i];
    if (quote) fputc('"', f);
    if (formula) fputc('\'', f);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"') fputc('"', f);
        if (s[i]) fputc(s[i], f);
    }
    if (quote) fputc('"', f);
}

void table_csv(FILE *f, const struct cell *cells, size_t n) {
    char b[SHOW_MAX];
    for (size_t i = 0; i < n; i++) {
        const struct cell *c = &cells[i];
        if (i) fputc(',', f);
        switch (c->kind) {
        case CELL_NULL: break;
        case CELL_INT: fprintf(f, "%" PRId64, c->i); break;
        case CELL_REAL:
            if (!isnan(c->d)) fputs(table_double(b, c->d), f);
            break;
        case CELL_NS_AS_MS: fputs(table_ns_as_ms(b, c->i), f); break;
        case CELL_WALL: fputs(show_rfc3339(b, c->i), f); break;
        case CELL_TEXT: csv_text(f, c->s, c->n); break;
        }
    }
    fputc('\n', f);
}

/* JSON text must be UTF-8: a byte that is not becomes U+FFFD. */
void table_json_string(FILE *f, const char *s, size_t n) {
    fputc('"', f);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        uint32_t decoded;
        size_t len = show_utf8(s + i, n - i, &decoded);
        if (len == 0)
            fputs("\\ufffd", f);
        else if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (c == '\t')
            fputs("\\t", f);
        else if (c < 0x20 || c == 0x7f)
            fprintf(f, "\\u%04x", c);
        else
            fwrite(s + i, 1, len, f);
        i += len ? len : 1;
    }
    fputc('"', f);
}

static void json_cell(FILE *f, const struct cell *c) {
    char b[SHOW_MAX];
    switch (c->kind) {
    case CELL_NULL: fputs("null", f); break;
    case CELL_INT: fprintf(f, c->i > EXACT || c->i < -EXACT ? "\"%" PRId64 "\"" : "%" PRId64, c->i); break;
    case CELL_REAL: fprintf(f, isinf(c->d) ? "\"%s\"" : "%s", table_double(b, c->d)); break;
    case CELL_NS_AS_MS: fputs(table_ns_as_ms(b, c->i), f); break;
    case CELL_WALL: fprintf(f, "\"%s\"", show_rfc3339(b, c->i)); break;
    case CELL_TEXT: table_json_string(f, c->s, c->n); break;
    }
}

void table_ndjson(FILE *f, const char *const *names, const struct cell *cells, size_t n) {
    fputc('{', f);
    for (size_t i = 0; i < n; i++) {
        if (i) fputc(',', f);
        table_json_string(f, names[i], strlen(names[i]));
        fputc(':', f);
        json_cell(f, &cells[i]);
    }
    fputs("}\n", f);
}
