/* The options that the commands of traceanalyze share: one table, one parser, one way to say what is wrong.
 *
 * Knows no traces and no SQL. A command names the options it takes; any other one is wrong usage, never
 * silently ignored. */
#ifndef ANALYZER_ARGS_H
#define ANALYZER_ARGS_H

#include "analyzer/source.h"

/* Options a command may take, as bits of args_spec.takes. OPT_SOURCE is --from --to --last --tz --where
 * --arrival-window --quiet. */
enum {
    OPT_FORMAT = 1,
    OPT_SORT = 2,
    OPT_LIMIT = 4,
    OPT_COLUMNS = 8,
    OPT_PERCENTILES = 16,
    OPT_QUANTILE = 32,
    OPT_REQUEST = 64,
    OPT_COLUMNS_FLAG = 128, /* --columns without a value: definitions */
    OPT_SOURCE = 256,
    OPT_BY = 512,
    OPT_SLO = 1024,
    OPT_DIALECTS_FLAG = 2048,
};

#define ARGS_MAX_PERCENTILES 8

struct args_spec {
    const char *command;
    unsigned takes;
    const char *const *formats; /* NULL at the end; the first is the default */
    const char *usage;          /* whole text of --help */
    const char *input;          /* what a positional argument is, for the error when there is none; NULL: none
                                   needed */
};

struct args {
    const char *format;
    const char *sort; /* column without its sign; NULL: none */
    bool descending;
    int64_t limit;       /* -1: none */
    const char *columns; /* comma list as given; NULL: none */
    bool columns_flag, dialects_flag;
    double percentiles[ARGS_MAX_PERCENTILES]; /* 0..100, as given */
    size_t n_percentiles;
    bool nearest_rank;
    const char *by;  /* comma list of columns; NULL: none */
    const char *slo; /* limits as given; NULL: none */
    int64_t request; /* -1: all */
    struct source_options source;
    char **inputs; /* the positional arguments, inside argv */
    size_t n_inputs;
};

/* Reads argv (argv[0] is the command's name) into o; reorders argv so that o->inputs are adjacent.
 * Returns -1 to go on, else the exit status: 0 after --help, 2 after one line on stderr. */
int args_parse(struct args *o, int argc, char **argv, const struct args_spec *spec);

/* "5ms", "250us", "1.5s", "0": a duration in ns, -1 when it is none. */
int64_t args_duration_ns(const char *text);

/* The one of names (n of them) nearest to word, when near enough to be meant, else NULL. */
const char *args_near(const char *word, const char *const *names, size_t n);

#endif
