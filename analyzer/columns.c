/* See columns.h. */
#include "analyzer/columns.h"
#include "analyzer/args.h"

#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *s, const char *tail) {
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && memcmp(s + n - k, tail, k) == 0;
}

/* t_..._ns, ..._wall_ns and ..._base_ns are instants and keep their unit; every other _ns is a duration. */
static void describe(struct column *c, const char *source) {
    snprintf(c->source, sizeof c->source, "%s", source);
    snprintf(c->name, sizeof c->name, "%s", source);
    c->kind = COLUMN_PLAIN;
    if (strcmp(source, "arrived_wall_ns") == 0) {
        strcpy(c->name, "arrived");
        c->kind = COLUMN_WALL;
    } else if (ends_with(source, "_ns") && strncmp(source, "t_", 2) != 0 && !ends_with(source, "_wall_ns") &&
               !ends_with(source, "_base_ns")) {
        memcpy(c->name + strlen(c->name) - 2, "ms", 2);
        c->kind = COLUMN_DURATION;
    }
}

bool columns_of(struct columns *c, sqlite3 *db, const char *view) {
    sqlite3_stmt *s = NULL;
    *c = (struct columns){0};
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" LIMIT 0", view);
    bool good = sql && sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK;
    sqlite3_free(sql);
    if (!good) return false;
    int n = sqlite3_column_count(s);
    c->v = calloc((size_t)n + 1, sizeof *c->v);
    for (int i = 0; c->v && i < n; i++) {
        const char *name = sqlite3_column_name(s, i);
        if (!name || ends_with(name, "_blob") || strlen(name) >= sizeof c->v->name) continue;
        describe(&c->v[c->n++], name);
    }
    sqlite3_finalize(s);
    return c->v != NULL;
}

void columns_free(struct columns *c) {
    free(c->v);
    *c = (struct columns){0};
}

static const struct column *by_name(const struct columns *c, const char *word) {
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, word) == 0 || strcmp(c->v[i].source, word) == 0) return &c->v[i];
    for (size_t i = 0; i < c->n; i++) {
        size_t n = strlen(c->v[i].name);
        if (c->v[i].kind == COLUMN_DURATION && strlen(word) == n - 3 &&
            memcmp(c->v[i].name, word, n - 3) == 0)
            return &c->v[i];
    }
    return NULL;
}

static void complain(const struct columns *c, const char *option, const char *word) {
    const char **names = calloc(c->n + 1, sizeof *names);
    for (size_t i = 0; names && i < c->n; i++) names[i] = c->v[i].name;
    const char *near = names ? args_near(word, names, c->n) : NULL;
    char shown[128];
    show_safe(shown, sizeof shown, word, strlen(word), true);
    fprintf(stderr, "traceanalyze: %s %s: no such column; ", option, shown);
    if (near) fprintf(stderr, "did you mean %s? ", near);
    fputs("All: traceanalyze definitions --columns\n", stderr);
    free(names);
}

const struct column *columns_find(const struct columns *c, const char *option, const char *word,
                                  size_t n_word) {
    char name[64];
    static const char *const shorts[][2] = {
        {"ttft", "ttft_client"}, {"e2e", "e2e_client"}, {"ttfb", "ttfb_server"}};
    snprintf(name, sizeof name, "%.*s", (int)n_word, word);
    const struct column *found = by_name(c, name);
    for (size_t i = 0; !found && i < sizeof shorts / sizeof shorts[0]; i++)
        if (strcmp(name, shorts[i][0]) == 0 && (found = by_name(c, shorts[i][1])))
            fprintf(stderr, "traceanalyze: %s %s: taken for %s\n", option, name, shorts[i][1]);
    if (!found) complain(c, option, name);
    return found;
}

bool columns_pick(const struct columns *c, const char *option, const char *list, const struct column ***out,
                  size_t *n) {
    size_t room = c->n;
    for (const char *p = list; p && *p; p++) room += *p == ',';
    *n = 0;
    *out = calloc(room + 2, sizeof **out);
    if (!*out) return false;
    for (size_t i = 0; !list && i < c->n; i++) (*out)[(*n)++] = &c->v[i];
    while (list && *list) {
        size_t len = strcspn(list, ",");
        const struct column *found = columns_find(c, option, list, len);
        if (!found) {
            free(*out);
            *out = NULL;
            return false;
        }
        (*out)[(*n)++] = found;
        list += len + (list[len] == ',');
    }
    return true;
}

struct cell columns_cell(sqlite3_stmt *s, int i, enum column_kind kind) {
    struct cell c = {.kind = CELL_NULL};
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        c.i = sqlite3_column_int64(s, i);
        c.kind = kind == COLUMN_DURATION ? CELL_NS_AS_MS : kind == COLUMN_WALL ? CELL_WALL : CELL_INT;
        break;
    case SQLITE_FLOAT:
        c.d = sqlite3_column_double(s, i) / (kind == COLUMN_DURATION ? 1e6 : 1);
        c.kind = CELL_REAL;
        break;
    case SQLITE_TEXT:
        c.s = (const char *)sqlite3_column_text(s, i);
        c.n = (size_t)sqlite3_column_bytes(s, i);
        c.kind = c.s ? CELL_TEXT : CELL_NULL;
        break;
    }
    return c;
}
