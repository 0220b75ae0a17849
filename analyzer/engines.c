/* See engines.h. A word that is an engine's name asks for it alone, else for all whose names begin with it,
 * else for those that speak the API of that name. */
#include "analyzer/engines.h"

#include "analyzer/jsonw.h"
#include "analyzer/paragraph.h"
#include "analyzer/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TELLS(need, told, on)                                                                                \
    { NEED_##need, told, on }
#define ENGINE(name, apis, plain, best, tokens, usage, cached, speculation, times)                           \
    {name, apis, plain, best, {tokens, usage, cached, speculation, times}},
const struct engine engines[] = {
#include "analyzer/engines.def"
};
#undef ENGINE
#undef TELLS
enum { N_ENGINES = sizeof engines / sizeof *engines };
const size_t n_engines = N_ENGINES;

static const char *const needs[] = {"-", "always", "request", "both"};
static const char *const tells_names[N_TELLS] = {"tokens", "usage", "cached", "speculation", "times"};

/* Bytes of the API's name at p. */
static size_t api_bytes(const char *p) {
    return strcspn(p, ",");
}
static const char *api_next(const char *p) {
    p += api_bytes(p);
    return p + strspn(p, ", ");
}

static bool speaks(const struct engine *e, const char *api) {
    for (const char *p = e->apis; *p; p = api_next(p))
        if (strlen(api) == api_bytes(p) && strncmp(p, api, api_bytes(p)) == 0) return true;
    return false;
}

/* Whether one word asks for the engine. */
static bool word_asks(const struct engine *e, const char *word) {
    bool any_begins = false;
    for (size_t i = 0; i < N_ENGINES; i++) {
        if (strcasecmp(engines[i].name, word) == 0) return e == &engines[i];
        any_begins |= strncasecmp(engines[i].name, word, strlen(word)) == 0;
    }
    return any_begins ? strncasecmp(e->name, word, strlen(word)) == 0 : speaks(e, word);
}

static bool is_asked(const struct engine *e, const struct args *o) {
    for (size_t w = 0; w < o->n_inputs; w++)
        if (word_asks(e, o->inputs[w])) return true;
    return o->n_inputs == 0;
}

/* -- the table */
enum column { NAME, PLAIN, BEST, USAGE, CACHED, SPECULATION, TIMES, APIS, N_COLUMNS };
static const struct grid_column heads[N_COLUMNS] = {
    {{"", "engine"}, GRID_LEFT, 0},  {{"tokens of an", "event, as is"}, GRID_LEFT, 2},
    {{"", "at best"}, GRID_LEFT, 2}, {{"", "usage"}, GRID_LEFT, 2},
    {{"", "cached"}, GRID_LEFT, 2},  {{"specu-", "lation"}, GRID_LEFT, 2},
    {{"", "times"}, GRID_LEFT, 2},   {{"", "APIs"}, GRID_LEFT, 2},
};

/* The first API and how many more there are. */
static void short_apis(char *out, size_t size, const struct engine *e) {
    unsigned more = 0;
    for (const char *p = api_next(e->apis); *p; p = api_next(p)) more++;
    int n = snprintf(out, size, "%.*s", (int)api_bytes(e->apis), e->apis);
    if (more && n > 0 && (size_t)n < size) snprintf(out + n, size - (size_t)n, " +%u", more);
}

/* The columns from `from` to `to`, the engine's name before them. */
static struct grid *grid_of(const struct args *o, enum column from, enum column to) {
    struct grid_column columns[N_COLUMNS];
    size_t n = 0;
    columns[n++] = heads[NAME];
    for (int c = (int)from; c <= (int)to; c++) columns[n++] = heads[c];
    struct grid *g = grid_new(columns, n);
    for (size_t i = 0; g && i < N_ENGINES; i++) {
        const struct engine *e = &engines[i];
        char apis[64];
        if (!is_asked(e, o)) continue;
        short_apis(apis, sizeof apis, e);
        const char *cells[N_COLUMNS] = {e->name, token_source_name(e->plain), token_source_name(e->best)};
        for (int t = TELLS_USAGE; t < N_TELLS; t++) cells[USAGE + t - TELLS_USAGE] = needs[e->tells[t].need];
        cells[APIS] = apis;
        memmove(cells + 1, cells + from, (n - 1) * sizeof *cells);
        grid_row(g, cells);
    }
    return g;
}

/* As many columns as the width holds: the APIs go first, then what is told without switching anything on. */
static void print_table(FILE *f, const struct args *o, const struct show_mode *m) {
    static const enum column steps[][2] = {{PLAIN, APIS}, {PLAIN, TIMES}, {BEST, TIMES}};
    struct grid *g = NULL;
    for (int i = 0; i < 3; i++) {
        grid_free(g);
        g = grid_of(o, steps[i][0], steps[i][1]);
        if (!g || grid_width(g) + 1 <= (size_t)m->columns) break;
    }
    if (g) grid_print(g, f, 1);
    grid_free(g);
    fputc('\n', f);
    paragraph(
        f, "", 0,
        "What must be switched on for it: always: nothing; request: a field of the request; both: an "
        "option of the server and a field of the request; -: it is not told, or in no way that is read.",
        m->columns);
    paragraph(f, "next", 6, "traceanalyze definitions --dialects vllm", m->columns);
}

/* -- one in full */
static void print_tells(FILE *f, const char *label, const struct tells *t, const struct show_mode *m) {
    char text[1024], head[32];
    snprintf(head, sizeof head, "   %s", label);
    snprintf(text, sizeof text, "%s%s%s", t->need == NEED_NEVER ? "not told" : "",
             t->need == NEED_NEVER && *t->told ? "; " : "", t->told);
    paragraph(f, head, 16, text, m->columns);
    if (*t->switch_on) paragraph(f, "    switch on", 16, t->switch_on, m->columns);
}

static void print_whole(FILE *f, const struct engine *e, const struct show_mode *m) {
    char text[1024];
    fprintf(f, "%s\n", e->name);
    paragraph(f, "   speaks", 16, e->apis, m->columns);
    snprintf(text, sizeof text, e->plain == e->best ? "%s" : "%s as it comes, %s at best",
             token_source_name(e->plain), token_source_name(e->best));
    paragraph(f, "   token_source", 16, text, m->columns);
    for (int t = 0; t < N_TELLS; t++) print_tells(f, tells_names[t], &e->tells[t], m);
}

/* -- JSON */
static void json_engine(struct jsonw *j, const struct engine *e) {
    char api[64];
    jsonw_open(j, NULL, '{');
    jsonw_text(j, "engine", e->name);
    jsonw_open(j, "apis", '[');
    for (const char *p = e->apis; *p; p = api_next(p)) {
        snprintf(api, sizeof api, "%.*s", (int)api_bytes(p), p);
        jsonw_text(j, NULL, api);
    }
    jsonw_close(j, '[');
    jsonw_text(j, "token_source_as_it_comes", token_source_name(e->plain));
    jsonw_text(j, "token_source_at_best", token_source_name(e->best));
    for (int t = 0; t < N_TELLS; t++) {
        const struct tells *x = &e->tells[t];
        jsonw_open(j, tells_names[t], '{');
        jsonw_text(j, "needs", x->need == NEED_NEVER ? NULL : needs[x->need]);
        jsonw_text(j, "told", *x->told ? x->told : NULL);
        jsonw_text(j, "switch_on", *x->switch_on ? x->switch_on : NULL);
        jsonw_close(j, '{');
    }
    jsonw_close(j, '{');
}

static void print_json(FILE *f, const struct args *o) {
    struct jsonw j = {.f = f};
    jsonw_open(&j, NULL, '[');
    for (size_t i = 0; i < N_ENGINES; i++)
        if (is_asked(&engines[i], o)) json_engine(&j, &engines[i]);
    jsonw_close(&j, '[');
}

/* The engine or API whose name is nearest to word, in out; false: none is near. */
static bool near_name(const char *word, char *out, size_t size) {
    enum { APIS_MAX = 16 };
    char apis[N_ENGINES * APIS_MAX][32];
    const char *names[N_ENGINES * (APIS_MAX + 1)];
    size_t n = 0, n_apis = 0;
    for (size_t i = 0; i < N_ENGINES; i++) names[n++] = engines[i].name;
    for (size_t i = 0; i < N_ENGINES; i++)
        for (const char *p = engines[i].apis; *p && n_apis < sizeof apis / sizeof *apis; p = api_next(p)) {
            snprintf(apis[n_apis], sizeof *apis, "%.*s", (int)api_bytes(p), p);
            names[n++] = apis[n_apis++];
        }
    const char *near = args_near(word, names, n);
    if (near) snprintf(out, size, "%s", near);
    return near != NULL;
}

static int unknown(const char *word) {
    char near[64] = "";
    bool found = near_name(word, near, sizeof near);
    fprintf(stderr,
            "traceanalyze: definitions --dialects %s: no such engine or API%s%s%s All: traceanalyze "
            "definitions --dialects\n",
            word, found ? "; did you mean " : "", near, found ? "?" : ";");
    return 2;
}

int engines_print(FILE *f, const struct args *o, const struct show_mode *m) {
    const struct engine *only = NULL;
    size_t n = 0;
    for (size_t w = 0; w < o->n_inputs; w++) {
        bool found = false;
        for (size_t i = 0; i < N_ENGINES; i++) found |= word_asks(&engines[i], o->inputs[w]);
        if (!found) return unknown(o->inputs[w]);
    }
    for (size_t i = 0; i < N_ENGINES; i++)
        if (is_asked(&engines[i], o)) n++, only = &engines[i];
    if (o->format[0] == 'j')
        print_json(f, o);
    else if (n == 1)
        print_whole(f, only, m);
    else
        print_table(f, o, m);
    return 0;
}
