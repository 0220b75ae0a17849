/* What a report says around its numbers: files, losses, the recorder's own error, what is no generation. */
#include "analyzer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(sqlite3_stmt *s, int i) {
    const char *t = (const char *)sqlite3_column_text(s, i);
    return t ? strdup(t) : NULL;
}

/* Runs a query whose rows become elements of an array: *out gets the array, *n its length. */
static bool collect(sqlite3 *db, const char *sql, size_t size, void (*row)(void *element, sqlite3_stmt *s),
                    void **out, size_t *n) {
    sqlite3_stmt *s = NULL;
    size_t room = 0;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (*n == room) {
            room = room ? 2 * room : 8;
            void *grown = realloc(*out, room * size);
            if (!grown) break;
            *out = grown;
        }
        char *element = (char *)*out + (*n)++ * size;
        memset(element, 0, size);
        row(element, s);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE;
}

static void trace_row(void *element, sqlite3_stmt *s) {
    *(struct trace_row *)element = (struct trace_row){text_of(s, 0),
                                                      text_of(s, 1),
                                                      text_of(s, 2),
                                                      text_of(s, 3),
                                                      text_of(s, 4),
                                                      text_of(s, 5),
                                                      sqlite3_column_int64(s, 6),
                                                      sqlite3_column_int64(s, 7),
                                                      sqlite3_column_int64(s, 8)};
}

static void pair_row(void *element, sqlite3_stmt *s) {
    *(struct pair_row *)element = (struct pair_row){text_of(s, 0), text_of(s, 1)};
}

static void loss_row(void *element, sqlite3_stmt *s) {
    *(struct loss_row *)element = (struct loss_row){text_of(s, 0),
                                                    text_of(s, 1),
                                                    text_of(s, 2),
                                                    text_of(s, 3),
                                                    sqlite3_column_int64(s, 4),
                                                    sqlite3_column_int64(s, 5),
                                                    sqlite3_column_int64(s, 6),
                                                    sqlite3_column_int64(s, 7),
                                                    sqlite3_column_int64(s, 8)};
}

/* Several recordings: the one that delays most stands for all. */
static void delay_row(void *element, sqlite3_stmt *s) {
    struct delay_row *d = element;
    d->name = text_of(s, 0);
    d->count = sqlite3_column_double(s, 1);
    d->sum_ns = sqlite3_column_double(s, 2);
    d->p50_ns = sqlite3_column_double(s, 3);
    d->p90_ns = sqlite3_column_double(s, 4);
    d->p99_ns = sqlite3_column_double(s, 5);
    d->max_ns = sqlite3_column_double(s, 6);
    d->max_wall_ns = sqlite3_column_int64(s, 7);
}

/* One row with one text or number; absent rows leave the fallback. */
static bool one(sqlite3 *db, const char *sql, char **text, double *number) {
    sqlite3_stmt *s = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
    if (good && text) *text = text_of(s, 0);
    if (good && number)
        *number = sqlite3_column_type(s, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    return good;
}

static bool read_losses(struct report *r, sqlite3 *db) {
    /* A loss counts when it touches a selected request, or the time in which the selected ones ran. */
    return collect(
        db,
        "SELECT loss, severity, meaning, remedy, min(from_wall_ns), max(to_wall_ns), sum(count), sum(bytes),"
        " count(DISTINCT CASE WHEN request > 0 THEN recording || request END) FROM losses"
        " WHERE (request > 0 AND (recording, request) IN (SELECT recording, request FROM selected))"
        " OR (coalesce(request, 0) = 0 AND (from_wall_ns IS NULL OR (SELECT count(*) FROM selected) = 0"
        "  OR (SELECT count(*) FROM selected) = (SELECT count(*) FROM requests)"
        "  OR (to_wall_ns >= (SELECT min(arrived_wall_ns) FROM selected) AND from_wall_ns <="
        "   (SELECT max(arrived_wall_ns + coalesce(t_end_ns - t_arrive_mono_ns, 0)) FROM selected))))"
        " GROUP BY loss ORDER BY CASE severity WHEN 'loss' THEN 0 WHEN 'odd' THEN 1 ELSE 2 END, sum(count) "
        "DESC, loss",
        sizeof *r->losses, loss_row, (void **)&r->losses, &r->n_losses);
}

static bool read_recorder(struct report *r, sqlite3 *db) {
    double reads = 0, latest = 0;
    bool good =
        collect(
            db,
            "SELECT name, count, sum_ns, p50_ns, p90_ns, p99_ns, max(max_ns), max_wall_ns FROM recorder_times"
            " GROUP BY name ORDER BY name",
            sizeof *r->delays, delay_row, (void **)&r->delays, &r->n_delays) &&
        one(db, "SELECT count(*) FROM spans WHERE name = 'late_read'", NULL, &reads) &&
        one(db, "SELECT coalesce(max(to_ns - from_ns), 0) FROM spans WHERE name = 'late_read'", NULL,
            &latest) &&
        one(db, "SELECT avg(stamp_source = 'kernel') FROM selected WHERE stamp_source IS NOT NULL", NULL,
            &r->kernel_stamps);
    r->late_reads = (int64_t)reads;
    r->late_max_ns = (int64_t)latest;
    return good;
}

static bool read_others(struct report *r, sqlite3 *db) {
    double n = 0, all = 0;
    bool good = one(db, "SELECT count(*) FROM selected WHERE generation = 0", NULL, &n) &&
                one(db, "SELECT count(*) FROM requests", NULL, &all) &&
                one(db,
                    "SELECT group_concat(path, ', ') FROM (SELECT path FROM selected WHERE generation = 0 "
                    "AND path IS NOT NULL"
                    " GROUP BY path ORDER BY count(*) DESC, path LIMIT 3)",
                    &r->other_paths, NULL) &&
                one(db,
                    "SELECT group_concat(n || ' ' || protocol, ', ') FROM (SELECT count(*) AS n, protocol "
                    "FROM connections"
                    " WHERE protocol IS NOT NULL AND protocol <> 'http1' GROUP BY protocol ORDER BY n DESC, "
                    "protocol)",
                    &r->protocols, NULL);
    r->n_other = (int64_t)n;
    r->n_all_rows = (int64_t)all;
    return good;
}

bool report_read_meta(struct report *r, sqlite3 *db) {
    return collect(db,
                   "SELECT file, state, source, version, recorder, recording, started_wall_ns, "
                   "ended_wall_ns, last_ns"
                   " FROM traces ORDER BY started_wall_ns, part, trace",
                   sizeof *r->traces, trace_row, (void **)&r->traces, &r->n_traces) &&
           collect(db, "SELECT DISTINCT key, value FROM notes ORDER BY rowid", sizeof *r->notes, pair_row,
                   (void **)&r->notes, &r->n_notes) &&
           collect(db,
                   "SELECT coalesce(model, '-'), count(*) FROM selected WHERE generation = 1 GROUP BY model"
                   " ORDER BY count(*) DESC, model",
                   sizeof *r->models, pair_row, (void **)&r->models, &r->n_models) &&
           read_losses(r, db) && read_recorder(r, db) && read_others(r, db);
}

static void free_pairs(struct pair_row *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        free(p[i].key);
        free(p[i].value);
    }
    free(p);
}

void report_free(struct report *r) {
    for (size_t i = 0; i < r->n_traces; i++) {
        struct trace_row *t = &r->traces[i];
        char *const all[] = {t->file, t->state, t->source, t->version, t->recorder, t->recording};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]);
    }
    for (size_t i = 0; i < r->n_losses; i++) {
        char *const all[] = {r->losses[i].loss, r->losses[i].severity, r->losses[i].meaning,
                             r->losses[i].remedy};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]);
    }
    for (size_t i = 0; i < r->n_delays; i++) free(r->delays[i].name);
    free_pairs(r->notes, r->n_notes);
    free_pairs(r->models, r->n_models);
    free(r->traces);
    free(r->losses);
    free(r->delays);
    free(r->other_paths);
    free(r->protocols);
    free(r->token_sources);
    free(r->g);
    free(r->s);
    memset(r, 0, sizeof *r);
}
