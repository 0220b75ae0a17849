/* traceanalyze report: what was recorded, what was lost, what failed, when, and the numbers. Open, gather,
 * print. */
#include "analyzer/commands.h"
#include "analyzer/report_by.h"

#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"text", "json", "csv", "markdown", NULL};
static const struct args_spec spec = {
    "report", OPT_SOURCE | OPT_FORMAT | OPT_PERCENTILES | OPT_QUANTILE | OPT_COLUMNS | OPT_BY | OPT_SLO,
    formats,
    "traceanalyze report TRACE... [--format text|json|csv|markdown] [--percentiles 50,95,99.9]\n"
    "                    [--quantile linear|nearest-rank] [--columns METRIC,...] [--by COLUMN,...]\n"
    "                    [--slo ttft=500ms,tpot=50ms,e2e=10s]\n"
    "                    [--where SQL] [--from T] [--to T] [--last D] [--tz ZONE] [--arrival-window 1ms] "
    "[--quiet]\n\n"
    "Percentiles are over the ok requests, linear between order statistics; p99_all counts failures as "
    "never.\n"
    "--columns adds metrics to the latency table: ttfb_server, itl_burst, upload, tail, reported_ttft ...\n"
    "--slo prints the share of generations that are ok and meet every limit; itl: the p99 of a request.\n"
    "--by prints one row for each value of a column of requests: client, model, cache_class, path, hit_band "
    "...\n"
    "--from, --to, --last read what is printed: 03:07, 03:07:12.4, RFC 3339, +90s from the start, -10m from "
    "the end.\n",
    "a trace"};

/* Metrics named by --columns must be among those that are summarised in ms. */
static int check_columns(const struct report *r, const char *list) {
    const char **names = calloc(r->n_s + 1, sizeof *names);
    size_t n = 0;
    int status = 0;
    for (size_t i = 0; names && i < r->n_s; i++)
        if (strcmp(r->s[i].unit, "ms") == 0 && r->s[i].grade <= 0) names[n++] = r->s[i].metric;
    while (list && *list && status == 0) {
        char word[64];
        size_t len = strcspn(list, ",");
        bool known = false;
        snprintf(word, sizeof word, "%.*s", (int)len, list);
        for (size_t i = 0; i < n; i++) known |= strcmp(names[i], word) == 0;
        if (!known) {
            const char *near = args_near(word, names, n);
            fprintf(stderr, "traceanalyze: --columns %s: no such metric of the latency table%s%s%s\n", word,
                    near ? "; did you mean " : "; all: traceanalyze definitions", near ? near : "",
                    near ? "?" : "");
            status = 2;
        }
        list += len + (list[len] == ',');
    }
    free(names);
    return status;
}

static int print_groups(struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *m) {
    struct groups g;
    struct page p = {r, db, o, m, stdout};
    int status = groups_read(&g, r, db, o->by);
    if (status == 0) {
        switch (o->format[0]) {
        case 'j': status = groups_json(&g, r, stdout); break;
        case 'c': status = groups_csv(&g, r, stdout); break;
        case 'm': status = groups_markdown(&g, &p); break;
        default: status = groups_text(&g, &p);
        }
    }
    groups_free(&g);
    return status;
}

static int print(const struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *m) {
    switch (o->format[0]) {
    case 'j': return report_json(r, stdout);
    case 'c': return report_csv(r, stdout);
    case 'm': return report_markdown(r, db, o, m, stdout);
    default: return report_text(r, db, o, m, stdout);
    }
}

/* Options that would be without effect together are refused rather than ignored. */
static int check_together(const struct args *o) {
    const char *other = o->columns ? "--columns" : o->n_percentiles ? "--percentiles" : "--slo";
    if (o->by && (o->columns || o->n_percentiles || o->slo))
        fprintf(stderr, "traceanalyze: --by: its columns are fixed; leave out %s\n", other);
    else if (o->slo && strcmp(o->format, "csv") == 0)
        fprintf(stderr, "traceanalyze: --slo: a CSV has one row a metric; use --format json\n");
    else
        return 0;
    return 2;
}

int cmd_report(int argc, char **argv) {
    struct args o;
    struct source source;
    struct report r;
    struct show_mode mode;
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    status = check_together(&o);
    if (status) return status;
    if (!show_mode_of(&mode, stdout, o.source.tz)) {
        fprintf(stderr, "traceanalyze: --tz %s: no such zone; UTC, local, or a name as Europe/Berlin\n",
                o.source.tz);
        return 2;
    }
    status = source_open(&source, o.inputs, o.n_inputs, &o.source);
    if (status) return status;
    status = report_gather(&r, source.db, &o);
    if (status == 0) status = check_columns(&r, o.columns);
    if (status == 0) status = o.by ? print_groups(&r, source.db, &o, &mode) : print(&r, source.db, &o, &mode);
    if (status == 0) status = source.exit_status;
    report_free(&r);
    source_close(&source);
    return status;
}
