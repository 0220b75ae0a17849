/* Reads what stands beside the SQL: the shapes it knows are
 *
 *   -- METRIC name, then lines  --   key text      until a line of another shape
 *   -- COLUMN name: sentence                       of the view at hand
 *   -- TABLE name: sentence, -- VIEW name: sentence
 *     name TYPE..., -- sentence                    inside a table
 *     name, -- sentence                            inside a view
 *
 * Sentences of facts come from the catalogue. A column of the view requests without one of its own has that
 * of the metric it shows (x_ns: metric x) or of the table's column of the same name. */
#include "analyzer/define.h"

#include "analyzer/db.h"
#include "analyzer/sql_text.h"

#include <stdio.h>
#include <string.h>

struct definer {
    sqlite3 *db;
    sqlite3_stmt *insert;
    char object[64]; /* table or view whose text is being read */
    int rc;
};

struct span {
    const char *p;
    size_t n;
};

static struct span trimmed(const char *p, const char *end) {
    while (p < end && *p == ' ') p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\r')) end--;
    return (struct span){p, (size_t)(end - p)};
}

/* The word at the beginning of s, moved past. */
static struct span word(struct span *s) {
    size_t n = 0;
    while (n < s->n && s->p[n] != ' ' && s->p[n] != ':' && s->p[n] != ',') n++;
    struct span w = {s->p, n};
    *s = trimmed(s->p + n, s->p + s->n);
    return w;
}

static void bind(struct definer *d, const char *param, struct span v) {
    int i = sqlite3_bind_parameter_index(d->insert, param);
    if (v.n > 0) sqlite3_bind_text(d->insert, i, v.p, (int)v.n, SQLITE_TRANSIENT);
}

static void begin(struct definer *d, struct span name, const char *kind, const char *object) {
    sqlite3_reset(d->insert);
    sqlite3_clear_bindings(d->insert);
    bind(d, ":name", name);
    bind(d, ":kind", (struct span){kind, strlen(kind)});
    bind(d, ":object", (struct span){object, strlen(object)});
}

static void finish(struct definer *d) {
    int rc = sqlite3_step(d->insert);
    if (rc != SQLITE_DONE && d->rc == SQLITE_OK) d->rc = rc;
}

static void sentence(struct definer *d, struct span name, const char *kind, struct span text) {
    begin(d, name, kind, d->object);
    bind(d, ":is", text);
    finish(d);
}

/* The next line of the text at *p; false at its end. */
static bool next_line(const char **p, struct span *line) {
    if (**p == 0) return false;
    const char *end = strchrnul(*p, '\n');
    *line = trimmed(*p, end);
    *p = *end ? end + 1 : end;
    return true;
}

static bool starts(struct span *s, const char *with) {
    size_t n = strlen(with);
    if (s->n < n || memcmp(s->p, with, n) != 0) return false;
    *s = trimmed(s->p + n, s->p + s->n);
    return true;
}

/* The lines of a METRIC entry; *p is left at the first line that is none of it. */
static void metric(struct definer *d, struct span name, const char **p) {
    const char *object = d->object[0] ? d->object : "report";
    begin(d, name, "metric", object);
    struct span line;
    for (const char *q = *p; next_line(&q, &line) && starts(&line, "--  "); *p = q) {
        char param[16];
        struct span key = word(&line);
        snprintf(param, sizeof param, ":%.*s", (int)key.n, key.p);
        if (sqlite3_bind_parameter_index(d->insert, param) == 0 && d->rc == SQLITE_OK) d->rc = SQLITE_MISUSE;
        bind(d, param, line);
    }
    finish(d);
}

static void set_object(struct definer *d, struct span name) {
    snprintf(d->object, sizeof d->object, "%.*s", (int)name.n, name.p);
}

/* A column's line with its sentence behind it. */
static void column(struct definer *d, struct span line) {
    const char *dash = memmem(line.p, line.n, "-- ", 3);
    if (!dash || dash == line.p || !d->object[0]) return;
    struct span text = trimmed(dash + 3, line.p + line.n), name = word(&line);
    if (name.n > 0) sentence(d, name, "column", text);
}

static void read_text(struct definer *d, const char *sql) {
    d->object[0] = 0;
    struct span line;
    for (const char *p = sql; next_line(&p, &line);) {
        struct span rest = line;
        if (starts(&rest, "-- METRIC ")) {
            metric(d, word(&rest), &p);
        } else if (starts(&rest, "-- TABLE ") || starts(&rest, "-- VIEW ")) {
            struct span name = word(&rest);
            set_object(d, name);
            sentence(d, name, "table", trimmed(rest.p + 1, rest.p + rest.n));
        } else {
            const char *at = memmem(line.p, line.n, "-- COLUMN ", 10);
            if (!at || !d->object[0]) {
                column(d, line);
                continue;
            }
            rest = trimmed(at + 10, line.p + line.n);
            struct span name = word(&rest);
            sentence(d, name, "column", trimmed(rest.p + 1, rest.p + rest.n));
        }
    }
}

static void facts(struct definer *d) {
    for (int f = 0; f < N_FACTS; f++) {
        const struct fact_info *i = &fact_infos[f];
        if (!db_fact_column_type((enum fact)f) || i->subject == SUBJECT_T) continue;
        set_object(d, i->subject == SUBJECT_R ? (struct span){"request_facts", 13}
                                              : (struct span){"connections", 11});
        sentence(d, (struct span){i->name, strlen(i->name)}, "column",
                 (struct span){i->sentence, strlen(i->sentence)});
    }
}

/* What the view's columns do not say themselves. */
static const char view_columns[] =
    "INSERT INTO definitions (name, kind, object, sentence, unit) "
    "SELECT c.name, 'column', 'requests', COALESCE(m.sentence, f.sentence), m.unit "
    "FROM pragma_table_info('requests') c "
    "LEFT JOIN definitions m ON m.kind = 'metric' AND m.object = 'requests' AND (c.name = m.name OR c.name = "
    "m.name || '_ns') "
    "LEFT JOIN definitions f ON f.kind = 'column' AND f.object = 'request_facts' AND f.name = c.name "
    "WHERE NOT EXISTS (SELECT 1 FROM definitions h WHERE h.kind = 'column' AND h.object = 'requests' AND "
    "h.name = c.name)";

int define_all(sqlite3 *db) {
    struct definer d = {.db = db};
    int rc = sqlite3_prepare_v2(
        db,
        "INSERT INTO definitions (name, kind, object, sentence, starts, ends, formula, unit, absent, grade, "
        "peers, from_to) "
        "VALUES (:name, :kind, :object, :is, :from, :to, :formula, :unit, :absent, :grade, :peers, :short)",
        -1, &d.insert, NULL);
    if (rc != SQLITE_OK) return rc;
    const char *const texts[] = {sql_tables, sql_request_metrics, sql_arrival_metrics, sql_system_metrics};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) read_text(&d, texts[i]);
    facts(&d);
    sqlite3_finalize(d.insert);
    return d.rc == SQLITE_OK ? db_exec(db, view_columns) : d.rc;
}
