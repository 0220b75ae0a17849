/* The shared options of the commands. Knows nothing of what they are used for.
 *
 * One table says each option's name, bit and reader; a command's mask decides which of them it takes. */
#include "analyzer/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct option {
    const char *name;
    unsigned bit;
    bool flag;                                             /* takes no value */
    const char *(*set)(struct args *o, const char *value); /* NULL, or why the value is wrong */
};

static const char *set_sort(struct args *o, const char *v) {
    o->descending = *v == '-';
    o->sort = v + (*v == '-' || *v == '+');
    return *o->sort ? NULL : "a column's name is missing";
}

/* A whole number from 0 on, the whole text of it; -1 otherwise. */
static int64_t whole(const char *v) {
    char *end;
    if (*v < '0' || *v > '9') return -1;
    long long n = strtoll(v, &end, 10);
    return *end || n < 0 ? -1 : n;
}

static const char *set_limit(struct args *o, const char *v) {
    o->limit = whole(v);
    return o->limit >= 0 ? NULL : "not a whole number of rows";
}

static const char *set_request(struct args *o, const char *v) {
    o->request = whole(v);
    return o->request > 0 ? NULL : "not the ordinal of a request (1, 2, ...)";
}

static const char *set_columns(struct args *o, const char *v) {
    o->columns = v;
    return *v ? NULL : "a column's name is missing";
}

static const char *set_columns_flag(struct args *o, const char *v) {
    o->columns_flag = true;
    return NULL;
}

static const char *set_dialects_flag(struct args *o, const char *v) {
    o->dialects_flag = true;
    return NULL;
}

static const char *set_by(struct args *o, const char *v) {
    o->by = v;
    return *v ? NULL : "a column's name is missing";
}

static const char *set_slo(struct args *o, const char *v) {
    o->slo = v;
    return *v ? NULL : "a limit is missing, as in ttft=500ms";
}

static const char *set_percentiles(struct args *o, const char *v) {
    o->n_percentiles = 0;
    for (char *end; *v; v = end + (*end == ',')) {
        double p = strtod(v, &end);
        if (end == v || (*end && *end != ',') || !(p > 0 && p < 100))
            return "not percentiles, as in 50,95,99.9";
        if (o->n_percentiles == ARGS_MAX_PERCENTILES) return "more than 8 percentiles";
        o->percentiles[o->n_percentiles++] = p;
    }
    return o->n_percentiles ? NULL : "not percentiles, as in 50,95,99.9";
}

static const char *set_quantile(struct args *o, const char *v) {
    o->nearest_rank = strcmp(v, "nearest-rank") == 0;
    return o->nearest_rank || strcmp(v, "linear") == 0 ? NULL : "linear or nearest-rank";
}

static const char *set_from(struct args *o, const char *v) {
    o->source.from = v;
    return NULL;
}

static const char *set_to(struct args *o, const char *v) {
    o->source.to = v;
    return NULL;
}

static const char *set_last(struct args *o, const char *v) {
    o->source.last = v;
    return NULL;
}

static const char *set_tz(struct args *o, const char *v) {
    o->source.tz = v;
    return NULL;
}

static const char *set_where(struct args *o, const char *v) {
    o->source.where = v;
    return NULL;
}

static const char *set_window(struct args *o, const char *v) {
    o->source.arrival_window_ns = args_duration_ns(v);
    return o->source.arrival_window_ns >= 0 ? NULL : "not a duration, as in 1ms, 500us or 0";
}

static const char *set_quiet(struct args *o, const char *v) {
    o->source.quiet = true;
    return NULL;
}

static const char *set_format(struct args *o, const char *v) {
    o->format = v;
    return NULL;
}

static const struct option options[] = {
    {"format", OPT_FORMAT, false, set_format},
    {"sort", OPT_SORT, false, set_sort},
    {"limit", OPT_LIMIT, false, set_limit},
    {"columns", OPT_COLUMNS, false, set_columns},
    {"columns", OPT_COLUMNS_FLAG, true, set_columns_flag},
    {"dialects", OPT_DIALECTS_FLAG, true, set_dialects_flag},
    {"percentiles", OPT_PERCENTILES, false, set_percentiles},
    {"quantile", OPT_QUANTILE, false, set_quantile},
    {"by", OPT_BY, false, set_by},
    {"slo", OPT_SLO, false, set_slo},
    {"request", OPT_REQUEST, false, set_request},
    {"from", OPT_SOURCE, false, set_from},
    {"to", OPT_SOURCE, false, set_to},
    {"last", OPT_SOURCE, false, set_last},
    {"tz", OPT_SOURCE, false, set_tz},
    {"where", OPT_SOURCE, false, set_where},
    {"arrival-window", OPT_SOURCE, false, set_window},
    {"quiet", OPT_SOURCE, true, set_quiet},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

int64_t args_duration_ns(const char *text) {
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v >= 0)) return -1;
    if (!*end) return v == 0 ? 0 : -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].name) == 0)
            return v * units[i].ns < 9e18 ? (int64_t)(v * units[i].ns + .5) : -1;
    return -1;
}

enum { WORD_MAX = 63 };

/* Letters to add, drop, change or swap to make b of a; both at most WORD_MAX long. */
static unsigned distance(const char *a, const char *b) {
    unsigned rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    size_t la = strlen(a), lb = strlen(b);
    for (size_t j = 0; j <= lb; j++) last[j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[lb];
}

const char *args_near(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    unsigned least = 3; /* more than two slips are another word */
    if (strlen(word) > WORD_MAX) return NULL;
    if (strlen(word) < 5) least = 2;
    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) > WORD_MAX) continue;
        unsigned d = distance(word, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    for (size_t i = 0; !best && strlen(word) >= 3 && i < n; i++)
        if (strncasecmp(names[i], word, strlen(word)) == 0) best = names[i];
    return best;
}

static int unknown_option(const struct args_spec *spec, const char *arg, size_t n_name) {
    const char *names[N_OPTIONS];
    size_t n = 0;
    char word[WORD_MAX + 1];
    bool elsewhere = false;
    snprintf(word, sizeof word, "%.*s", (int)n_name, arg);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (options[i].bit & spec->takes)
            names[n++] = options[i].name;
        else if (strcmp(options[i].name, word) == 0)
            elsewhere = true;
    }
    const char *near = args_near(word, names, n);
    if (near)
        fprintf(stderr, "traceanalyze: --%s: no such option of %s; did you mean --%s?\n", word, spec->command,
                near);
    else
        fprintf(stderr, "traceanalyze: --%s: %s of %s; all: traceanalyze %s --help\n", word,
                elsewhere ? "not an option" : "no such option", spec->command, spec->command);
    return 2;
}

/* Reads the option at argv[*i] ("--name=value", "--name value"), moving *i past its value. */
static int read_option(struct args *o, int argc, char **argv, int *i, const struct args_spec *spec) {
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *opt = NULL;
    for (size_t k = 0; k < N_OPTIONS && !opt; k++)
        if (options[k].bit & spec->takes && strlen(options[k].name) == n && !memcmp(options[k].name, name, n))
            opt = &options[k];
    if (!opt) return unknown_option(spec, name, n);
    if (opt->flag && equals) {
        fprintf(stderr, "traceanalyze: --%s: takes no value\n", opt->name);
        return 2;
    }
    const char *value = opt->flag ? "" : equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value) {
        fprintf(stderr, "traceanalyze: --%s: its value is missing\n", opt->name);
        return 2;
    }
    const char *wrong = opt->set(o, value);
    if (!wrong) return -1;
    fprintf(stderr, "traceanalyze: --%s %s: %s\n", opt->name, value, wrong);
    return 2;
}

static int check_format(struct args *o, const struct args_spec *spec) {
    size_t n = 0;
    if (!spec->formats) return -1;
    if (!o->format) o->format = spec->formats[0];
    for (; spec->formats[n]; n++)
        if (strcmp(spec->formats[n], o->format) == 0) return -1;
    fprintf(stderr, "traceanalyze: --format %s: %s has the formats", o->format, spec->command);
    for (size_t i = 0; i < n; i++) fprintf(stderr, "%s %s", i ? "," : "", spec->formats[i]);
    fputc('\n', stderr);
    return 2;
}

int args_parse(struct args *o, int argc, char **argv, const struct args_spec *spec) {
    *o = (struct args){.limit = -1, .request = -1, .source.arrival_window_ns = 1000000, .inputs = argv + 1};
    bool only_inputs = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (only_inputs || a[0] != '-' || !a[1]) {
            o->inputs[o->n_inputs++] = argv[i];
        } else if (strcmp(a, "--") == 0) {
            only_inputs = true;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(spec->usage, stdout);
            return 0;
        } else if (a[1] != '-') {
            fprintf(stderr, "traceanalyze: %s: options begin with --; all: traceanalyze %s --help\n", a,
                    spec->command);
            return 2;
        } else {
            int status = read_option(o, argc, argv, &i, spec);
            if (status >= 0) return status;
        }
    }
    if (spec->input && o->n_inputs == 0) {
        fprintf(stderr, "traceanalyze: %s: give %s; more: traceanalyze %s --help\n", spec->command,
                spec->input, spec->command);
        return 2;
    }
    return check_format(o, spec);
}
