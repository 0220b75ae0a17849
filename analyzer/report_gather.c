/* Gathers a report: which percentiles, then each piece in its order. */
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_percentile(struct report *r, double p) {
    size_t at = 0;
    if (report_percentile(r, p) != SIZE_MAX || r->n_percentiles == REPORT_PERCENTILES) return;
    while (at < r->n_percentiles && r->percentiles[at] < p) at++;
    memmove(r->percentiles + at + 1, r->percentiles + at, (r->n_percentiles - at) * sizeof *r->percentiles);
    r->percentiles[at] = p;
    r->n_percentiles++;
}

/* Shares of the sources that tokens of the ok requests come from: "running_usage 98.2 %, prorated 1.8 %". */
static bool read_token_sources(struct report *r, sqlite3 *db) {
    static const char sql[] =
        "SELECT group_concat(token_source || ' ' || printf(CASE WHEN share >= 0.9995 THEN '%.0f' ELSE '%.1f' "
        "END, 100 * share) || ' %', ', ')"
        " FROM (SELECT token_source, 1.0 * count(*) / sum(count(*)) OVER () AS share FROM selected"
        " WHERE generation = 1 AND outcome = 'ok' AND arrivals > 0 AND token_source IS NOT NULL"
        " GROUP BY token_source ORDER BY count(*) DESC, token_source)";
    sqlite3_stmt *s = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
    const char *t = good ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (t) r->token_sources = strdup(t);
    sqlite3_finalize(s);
    return good;
}

/* Limits of --slo; the short names depend on where the times meant come from. */
static int read_limits(struct report *r, sqlite3 *db, const char *text) {
    sqlite3_stmt *s = NULL;
    bool replayed =
        sqlite3_prepare_v2(db, "SELECT 1 FROM selected WHERE t_intended_source = 'replay' LIMIT 1", -1, &s,
                           NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return slo_parse(&r->slo, text, replayed);
}

int report_gather(struct report *r, sqlite3 *db, const struct args *o) {
    static const double always[] = {.01, .05, .10, .50, .90, .95, .99};
    memset(r, 0, sizeof *r);
    r->rule = o->nearest_rank ? STATS_NEAREST_RANK : STATS_LINEAR;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) add_percentile(r, always[i]);
    for (size_t i = 0; i < o->n_percentiles; i++) add_percentile(r, o->percentiles[i] / 100);
    int status = o->slo ? read_limits(r, db, o->slo) : 0;
    if (status) return status;
    bool good = report_read_meta(r, db) && report_read_requests(r, db);
    if (good) report_count(r);
    good = good && read_token_sources(r, db) && report_summarise(r) && report_read_series(r, db);
    if (good && r->slo.n) slo_judge(&r->slo, r);
    if (good) return 0;
    int code = sqlite3_errcode(db);
    bool sql = code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
    fprintf(stderr, "traceanalyze: report: %s\n", sql ? sqlite3_errmsg(db) : "out of memory");
    return 1;
}
