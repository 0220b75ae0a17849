/* A condition from the command line is SQL that others may have written (a script, a URL), so it is held in
 * its place: it is one expression in parentheses, compiled once under an authorizer that allows reading only.
 */
#include "analyzer/select.h"

#include "analyzer/args.h"
#include "analyzer/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- --where */

static int only_reading(void *ctx, int action, const char *a, const char *b, const char *c, const char *d) {
    if (action == SQLITE_FUNCTION && sqlite3_stricmp(b, "load_extension") == 0) return SQLITE_DENY;
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ? SQLITE_OK
                                                                                         : SQLITE_DENY;
}

/* The end of a quoted text or comment that begins at p, p itself where none does; NULL when it does not end.
 */
static const char *past_quote(const char *p) {
    const char *end = p;
    if (*p == '\'' || *p == '"' || *p == '`')
        end = strchr(p + 1, *p);
    else if (*p == '[')
        end = strchr(p + 1, ']');
    else if (p[0] == '-' && p[1] == '-')
        return strchrnul(p, '\n');
    else if (p[0] == '/' && p[1] == '*')
        return (end = strstr(p + 2, "*/")) ? end + 2 : NULL;
    else
        return p;
    return end ? end + 1 : NULL;
}

/* Why the text is not one expression that stays within its parentheses; NULL: it does. */
static const char *why_not_one(const char *text) {
    int depth = 0;
    for (const char *p = text; *p;) {
        const char *q = past_quote(p);
        if (!q) return "a quote or comment in it does not end";
        if (q != p) {
            p = q;
            continue;
        }
        if (*p == ';') return "it is more than one condition (;)";
        depth += (*p == '(') - (*p == ')');
        if (depth < 0) return "it closes a parenthesis that it did not open";
        p++;
    }
    return depth ? "it opens a parenthesis that it does not close" : *text ? NULL : "it is empty";
}

/* "; did you mean model?" for an unknown column, into out. */
static void hint(sqlite3 *db, const char *message, char *out, size_t size) {
    static const char unknown[] = "no such column: ";
    const char *names[512];
    size_t n = 0;
    sqlite3_stmt *s;
    *out = 0;
    if (strncmp(message, unknown, sizeof unknown - 1) != 0) return;
    if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info('requests')", -1, &s, NULL) != SQLITE_OK)
        return;
    while (n < 512 && sqlite3_step(s) == SQLITE_ROW) {
        char *name = strdup((const char *)sqlite3_column_text(s, 0));
        if (name) names[n++] = name;
    }
    sqlite3_finalize(s);
    const char *near = args_near(message + sizeof unknown - 1, names, n);
    if (near) snprintf(out, size, "; did you mean %s?", near);
    for (size_t i = 0; i < n; i++) free((char *)(uintptr_t)names[i]);
}

static int bad_where(const char *where, const char *why, const char *more) {
    fprintf(stderr, "traceanalyze: --where %s: %s%s; columns: traceanalyze definitions --columns\n", where,
            why, more);
    return 2;
}

static int check_where(sqlite3 *db, const char *where) {
    const char *why = why_not_one(where), *tail = NULL;
    if (why) return bad_where(where, why, "");
    char more[128], *sql = sqlite3_mprintf("SELECT 1 FROM requests WHERE (%s\n)", where);
    sqlite3_stmt *s = NULL;
    if (!sql) return 1;
    sqlite3_set_authorizer(db, only_reading, NULL);
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, &tail), status = 0;
    sqlite3_set_authorizer(db, NULL, NULL);
    if (rc == SQLITE_OK && (*tail || sqlite3_bind_parameter_count(s) > 0)) {
        status = bad_where(where, "it has parameters or goes on after its end", "");
    } else if (rc != SQLITE_OK) {
        char *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
        hint(db, message ? message : "", more, sizeof more);
        status = bad_where(where, message ? message : "out of memory", more);
        sqlite3_free(message);
    }
    sqlite3_finalize(s);
    sqlite3_free(sql);
    return status;
}

/* ---- --from --to --last */

struct window {
    int64_t from_ns, to_ns;
};

static int bad_time(const char *option, const char *text) {
    fprintf(stderr,
            "traceanalyze: %s %s: no time; give 03:07, 03:07:12.4, RFC 3339, +90s from the start or -10m "
            "from the end\n",
            option, text);
    return 2;
}

static int window_of(sqlite3 *db, const struct source_options *o, struct window *w) {
    int64_t start = db_number(db, "SELECT MIN(started_wall_ns) FROM traces", 0);
    int64_t end = db_number(db, "SELECT MAX(ended_wall_ns) FROM traces", 0), d;
    *w = (struct window){INT64_MIN, INT64_MAX};
    if (o->last && o->from) {
        fputs("traceanalyze: --last and --from exclude each other; give one of them\n", stderr);
        return 2;
    }
    if (o->from && !select_time(o->from, o->tz, start, end, &w->from_ns)) return bad_time("--from", o->from);
    if (o->to && !select_time(o->to, o->tz, start, end, &w->to_ns)) return bad_time("--to", o->to);
    if (o->last) {
        if (!select_duration(o->last, &d)) {
            fprintf(stderr, "traceanalyze: --last %s: no duration; give 90s, 10m or 1h\n", o->last);
            return 2;
        }
        w->from_ns = (o->to ? w->to_ns : end) - d;
    }
    return 0;
}

int select_make(sqlite3 *db, const struct source_options *o) {
    struct window w;
    int status = window_of(db, o, &w);
    if (status == 0 && o->where) status = check_where(db, o->where);
    if (status != 0) return status;
    sqlite3_str *s = sqlite3_str_new(db);
    sqlite3_str_appendall(s, "CREATE TEMP VIEW selected AS SELECT * FROM requests WHERE 1");
    if (w.from_ns != INT64_MIN) sqlite3_str_appendf(s, " AND arrived_wall_ns >= %lld", (long long)w.from_ns);
    if (w.to_ns != INT64_MAX) sqlite3_str_appendf(s, " AND arrived_wall_ns < %lld", (long long)w.to_ns);
    if (o->where) sqlite3_str_appendf(s, " AND (%s\n)", o->where);
    char *sql = sqlite3_str_finish(s);
    int rc = sql ? db_exec(db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_OK) return 0;
    fprintf(stderr, "traceanalyze: the selection cannot be made: %s\n", sqlite3_errmsg(db));
    return 1;
}
