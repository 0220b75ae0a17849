/* traceanalyze arrivals: one row a token arrival, read straight from the blobs of the requests.
 *
 * Written by hand and not through cells: traces hold millions of arrivals. */
#include "analyzer/args.h"
#include "analyzer/arrivals.h"
#include "analyzer/commands.h"
#include "analyzer/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"table", "csv", "ndjson", NULL};
static const struct args_spec spec = {
    "arrivals", OPT_SOURCE | OPT_FORMAT | OPT_REQUEST | OPT_LIMIT, formats,
    "traceanalyze arrivals TRACE... [--request N] [--format table|csv|ndjson] [--limit N]\n"
    "                      [--where SQL] [--from T] [--to T] [--last D] [--arrival-window 1ms] [--quiet]\n\n"
    "One row a token arrival of a choice: request, choice, arrival (0, 1, ...), t_ms since the request was\n"
    "forwarded, tokens, events, reads, bytes. With several recordings a row begins with its recording.\n",
    "a trace"};

struct writer {
    char kind;       /* of the format: t, c, n */
    bool recordings; /* rows say their recording */
    int64_t left;    /* rows still to be written; below 0: no limit */
    char *out;       /* buffer of ROOM bytes, n of them filled */
    size_t n;
};
enum { ROOM = 1 << 16, ROW_MAX = 512 };

static void flush(struct writer *w) {
    fwrite(w->out, 1, w->n, stdout);
    w->n = 0;
}

static void put_text(struct writer *w, const char *s) {
    size_t n = strlen(s);
    memcpy(w->out + w->n, s, n);
    w->n += n;
}

static void put_number(struct writer *w, uint64_t v) {
    char digits[24];
    size_t n = sizeof digits;
    do digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    memcpy(w->out + w->n, digits + n, sizeof digits - n);
    w->n += sizeof digits - n;
}

/* Whole ns as ms, exact. */
static void put_ms(struct writer *w, int64_t ns) {
    if (ns < 0) w->out[w->n++] = '-';
    uint64_t a = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest = a % 1000000;
    put_number(w, a / 1000000);
    if (rest == 0) return;
    w->out[w->n++] = '.';
    for (uint64_t unit = 100000; rest; rest %= unit, unit /= 10) w->out[w->n++] = (char)('0' + rest / unit);
}

static const char *const names[] = {"request", "choice", "arrival", "t_ms",
                                    "tokens",  "events", "reads",   "bytes"};

static void write_head(struct writer *w) {
    if (w->kind == 'n') return;
    if (w->recordings) put_text(w, w->kind == 'c' ? "recording," : "recording                             ");
    for (int i = 0; i < 8; i++) {
        if (w->kind == 'c' && i) w->out[w->n++] = ',';
        if (w->kind == 'c')
            put_text(w, names[i]);
        else
            w->n += (size_t)sprintf(w->out + w->n, "%*s", i == 3 ? 14 : 8, names[i]);
    }
    w->out[w->n++] = '\n';
}

static void table_row(struct writer *w, const int64_t *v) {
    char ms[SHOW_MAX];
    for (int i = 0; i < 8; i++) {
        show_decimals(ms, i == 3 ? (double)v[i] / 1e6 : (double)v[i], i == 3 ? 3 : 0);
        w->n += (size_t)snprintf(w->out + w->n, SHOW_MAX, "%*s", i == 3 ? 14 : 8, ms);
    }
}

static void write_arrival(struct writer *w, const char *recording, const int64_t *v) {
    if (w->n > ROOM - ROW_MAX) flush(w);
    if (w->recordings) {
        put_text(w, w->kind == 'n' ? "{\"recording\":\"" : "");
        w->n += (size_t)snprintf(w->out + w->n, 64, w->kind == 't' ? "%-38.38s" : "%.40s", recording);
        put_text(w, w->kind == 'n' ? "\"," : w->kind == 'c' ? "," : "");
    } else if (w->kind == 'n') {
        put_text(w, "{");
    }
    for (int i = 0; w->kind != 't' && i < 8; i++) {
        if (i) w->out[w->n++] = ',';
        if (w->kind == 'n') {
            w->out[w->n++] = '"';
            put_text(w, names[i]);
            put_text(w, "\":");
        }
        if (i == 3)
            put_ms(w, v[i]);
        else
            put_number(w, (uint64_t)v[i]);
    }
    if (w->kind == 't') table_row(w, v);
    put_text(w, w->kind == 'n' ? "}\n" : "\n");
}

/* All arrivals of one request; false when its blob is damaged. */
static bool write_request(struct writer *w, const char *recording, int64_t request, const void *blob,
                          size_t n, int64_t base_ns) {
    struct arrivals_reader r;
    struct arrival a;
    int64_t index = 0;
    uint32_t choice = 0;
    arrivals_read(&r, blob, n, base_ns);
    while (w->left != 0 && arrivals_next(&r, &a)) {
        if (a.choice != choice) index = 0;
        choice = a.choice;
        write_arrival(
            w, recording,
            (int64_t[]){request, a.choice, index++, a.t_ns - base_ns, a.tokens, a.events, a.reads, a.bytes});
        w->left -= w->left > 0;
    }
    return r.p != NULL;
}

static int failed(sqlite3 *db) {
    fprintf(stderr, "traceanalyze: arrivals: %s\n", sqlite3_errmsg(db));
    return 1;
}

static bool several_recordings(sqlite3 *db) {
    sqlite3_stmt *s = NULL;
    bool several = sqlite3_prepare_v2(db, "SELECT count(DISTINCT recording) > 1 FROM traces", -1, &s, NULL) ==
                       SQLITE_OK &&
                   sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return several;
}

static int run(sqlite3 *db, const struct args *o) {
    static const char query[] = "SELECT recording, request, arrivals_blob, arrivals_base_ns FROM selected"
                                " WHERE arrivals_blob IS NOT NULL AND (?1 < 0 OR request = ?1)"
                                " ORDER BY arrived_wall_ns, recording, request";
    struct writer w = {
        .kind = o->format[0], .recordings = several_recordings(db), .left = o->limit, .out = malloc(ROOM)};
    sqlite3_stmt *s = NULL;
    int rc = w.out ? sqlite3_prepare_v2(db, query, -1, &s, NULL) : SQLITE_NOMEM, status = 0;
    if (rc != SQLITE_OK) {
        free(w.out);
        return failed(db);
    }
    sqlite3_bind_int64(s, 1, o->request);
    int64_t requests = 0;
    write_head(&w);
    while (w.left != 0 && (rc = sqlite3_step(s)) == SQLITE_ROW && !ferror(stdout)) {
        const void *blob = sqlite3_column_blob(s, 2);
        requests++;
        if (write_request(&w, (const char *)sqlite3_column_text(s, 0), sqlite3_column_int64(s, 1), blob,
                          (size_t)sqlite3_column_bytes(s, 2), sqlite3_column_int64(s, 3)))
            continue;
        fprintf(stderr,
                "traceanalyze: arrivals: request %lld: its arrivals are damaged and were read in part\n",
                (long long)sqlite3_column_int64(s, 1));
        status = 3;
    }
    flush(&w);
    if (o->request > 0 && requests == 0 && rc == SQLITE_DONE)
        fprintf(stderr, "traceanalyze: --request %lld: no such request, or none of its tokens was seen\n",
                (long long)o->request);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE && rc != SQLITE_OK) status = failed(db);
    sqlite3_finalize(s);
    free(w.out);
    return status;
}

int cmd_arrivals(int argc, char **argv) {
    struct args o;
    struct source source;
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    status = source_open(&source, o.inputs, o.n_inputs, &o.source);
    if (status) return status;
    status = run(source.db, &o);
    if (status == 0) status = source.exit_status;
    source_close(&source);
    return status;
}
