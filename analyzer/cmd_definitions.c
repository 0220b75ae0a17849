/* traceanalyze definitions: what every number means, from the comments of the SQL that computes it. Needs no
 * trace: an empty database of ours has the whole table. */
#include "analyzer/args.h"
#include "analyzer/commands.h"
#include "analyzer/db.h"
#include "analyzer/engines.h"
#include "analyzer/jsonw.h"
#include "analyzer/paragraph.h"
#include "analyzer/table.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"text", "json", NULL};
static const struct args_spec spec = {
    "definitions", OPT_FORMAT | OPT_COLUMNS_FLAG | OPT_DIALECTS_FLAG, formats,
    "traceanalyze definitions [METRIC ...] [--columns] [--format text|json]\n"
    "traceanalyze definitions --dialects [ENGINE ...] [--format text|json]\n\n"
    "What every number means, from the same text as the SQL. METRIC: a name or the beginning of names "
    "(ttft).\n"
    "--columns: the columns of requests instead, as they are called in SQL (durations: _ns; _ms in "
    "output).\n"
    "--dialects: what each engine tells (tokens of an event, usage, cached tokens, speculation, times) and\n"
    "what must be switched on in it for that: how to fill a column that shows -. ENGINE: a name, the\n"
    "beginning of one, or an API.\n",
    NULL};

static const char query[] = "SELECT name, kind, object, sentence, starts, ends, formula, unit, absent, "
                            "grade, peers, from_to FROM definitions"
                            " WHERE kind = ?1 AND (?1 = 'metric' OR object = 'requests') ORDER BY rowid";
enum { NAME, KIND, OBJECT, SENTENCE, STARTS, ENDS, FORMULA, UNIT, ABSENT, GRADE, PEERS, FROM_TO, N_FIELDS };
static const char *const labels[N_FIELDS] = {"name",    "kind", "object", "sentence", "from",  "to",
                                             "formula", "unit", "absent", "grade",    "peers", "short"};

struct definition {
    char *field[N_FIELDS]; /* NULL: none */
};
struct definitions {
    struct definition *v;
    size_t n;
};

static bool read_all(sqlite3 *db, const char *kind, struct definitions *d) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, query, -1, &s, NULL);
    if (rc == SQLITE_OK) sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct definition *grown = realloc(d->v, (d->n + 1) * sizeof *grown);
        if (!grown) break;
        d->v = grown;
        for (int i = 0; i < N_FIELDS; i++) {
            const char *t = (const char *)sqlite3_column_text(s, i);
            d->v[d->n].field[i] = t && *t ? strdup(t) : NULL;
        }
        d->n++;
        rc = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE;
}

static void free_all(struct definitions *d) {
    for (size_t i = 0; i < d->n; i++)
        for (int k = 0; k < N_FIELDS; k++) free(d->v[i].field[k]);
    free(d->v);
}

/* Keeps what the words ask for: a name itself, else all that begin with the word. */
static bool is_asked(const struct definitions *d, const struct definition *x, const struct args *o) {
    if (o->n_inputs == 0) return true;
    for (size_t w = 0; w < o->n_inputs; w++) {
        const char *word = o->inputs[w];
        bool exact = false;
        for (size_t i = 0; i < d->n; i++) exact |= strcmp(d->v[i].field[NAME], word) == 0;
        if (exact ? strcmp(x->field[NAME], word) == 0 : strncmp(x->field[NAME], word, strlen(word)) == 0)
            return true;
    }
    return false;
}

static void print_whole(const struct definition *x) {
    printf("%s\n", x->field[NAME]);
    for (int i = SENTENCE; i < N_FIELDS; i++)
        if (x->field[i]) {
            char label[16];
            snprintf(label, sizeof label, "   %s", i == SENTENCE ? "is" : labels[i]);
            paragraph(stdout, label, 12, x->field[i], 98);
        }
}

static void print_list(const struct definitions *d, const struct args *o) {
    size_t widest = 0;
    for (size_t i = 0; i < d->n; i++)
        if (is_asked(d, &d->v[i], o) && strlen(d->v[i].field[NAME]) > widest)
            widest = strlen(d->v[i].field[NAME]);
    for (size_t i = 0; i < d->n; i++) {
        const struct definition *x = &d->v[i];
        const char *text = x->field[SENTENCE] ? x->field[SENTENCE] : x->field[FORMULA];
        size_t room = 98 - widest, n = text ? strlen(text) : 0;
        if (!is_asked(d, x, o)) continue;
        printf(" %-*s", (int)(n ? widest + 1 : 0), x->field[NAME]);
        while (n > room) { /* the rest goes on below, under the sentence */
            size_t cut = room;
            while (cut && text[cut] != ' ') cut--;
            if (cut == 0) cut = room;
            printf("%.*s\n%*s", (int)cut, text, (int)widest + 2, "");
            n -= cut;
            text += cut;
            while (*text == ' ') text++, n--;
        }
        printf("%s\n", text ? text : "");
    }
}

static void print_json(const struct definitions *d, const struct args *o) {
    struct jsonw j = {.f = stdout};
    jsonw_open(&j, NULL, '[');
    for (size_t i = 0; i < d->n; i++) {
        if (!is_asked(d, &d->v[i], o)) continue;
        jsonw_open(&j, NULL, '{');
        for (int k = 0; k < N_FIELDS; k++) jsonw_text(&j, labels[k], d->v[i].field[k]);
        jsonw_close(&j, '{');
    }
    jsonw_close(&j, '[');
}

static int unknown(const struct definitions *d, const char *word, bool columns) {
    const char **names = calloc(d->n + 1, sizeof *names);
    for (size_t i = 0; names && i < d->n; i++) names[i] = d->v[i].field[NAME];
    const char *near = names ? args_near(word, names, d->n) : NULL;
    fprintf(stderr, "traceanalyze: definitions %s: no such %s%s%s%s All: traceanalyze definitions%s\n", word,
            columns ? "column" : "metric", near ? "; did you mean " : "", near ? near : "", near ? "?" : ";",
            columns ? " --columns" : "");
    free(names);
    return 2;
}

static void print_text(const struct definitions *d, const struct args *o) {
    size_t n = 0, at = 0;
    for (size_t i = 0; i < d->n; i++)
        if (is_asked(d, &d->v[i], o)) {
            n++;
            at = i;
        }
    for (size_t w = 0; w < o->n_inputs; w++)
        if (strcmp(o->inputs[w], "ttft") == 0 || strcmp(o->inputs[w], "e2e") == 0)
            printf("%s, in options, is short for %s_client. None of these is the engine's own figure "
                   "(reported_*).\n",
                   o->inputs[w], o->inputs[w]);
    if (n == 1 && o->n_inputs) {
        print_whole(&d->v[at]);
    } else {
        print_list(d, o);
        if (o->columns_flag)
            puts("durations (_ns) are _ms in the output of requests");
        else
            puts("all of one: traceanalyze definitions ttft_server    columns: traceanalyze definitions "
                 "--columns");
    }
}

static int print(const struct definitions *d, const struct args *o) {
    for (size_t w = 0; w < o->n_inputs; w++) {
        struct args one = *o;
        bool found = false;
        one.inputs = o->inputs + w;
        one.n_inputs = 1;
        for (size_t i = 0; i < d->n; i++) found |= is_asked(d, &d->v[i], &one);
        if (!found) return unknown(d, o->inputs[w], o->columns_flag);
    }
    if (o->format[0] == 'j')
        print_json(d, o);
    else
        print_text(d, o);
    return 0;
}

int cmd_definitions(int argc, char **argv) {
    struct args o;
    struct definitions d = {0};
    sqlite3 *db = NULL;
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    if (o.dialects_flag && o.columns_flag) {
        fputs("traceanalyze: definitions: --columns or --dialects, not both\n", stderr);
        return 2;
    }
    if (o.dialects_flag) {
        struct show_mode m;
        show_mode_of(&m, stdout, NULL);
        return engines_print(stdout, &o, &m);
    }
    bool good = sqlite3_open(":memory:", &db) == SQLITE_OK && db_create(db) == SQLITE_OK &&
                read_all(db, o.columns_flag ? "column" : "metric", &d);
    if (good)
        status = print(&d, &o);
    else
        fprintf(stderr, "traceanalyze: definitions: %s\n", db ? sqlite3_errmsg(db) : "out of memory");
    free_all(&d);
    sqlite3_close(db);
    return good ? status : 1;
}
