/* The stored schema: schema/sql with the catalogue's columns put in.
 *
 * A fact is declared once, in facts.def. Its column in request_facts or connections and its column in the
 * view requests are put into the SQL text where a line FACTS R or FACTS C stands. A fact that the view
 * computes anew under its own name (AS name) is not repeated. */
#include "analyzer/db.h"

#include "analyzer/define.h"
#include "analyzer/sql_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *db_fact_column_type(enum fact f) {
    switch (fact_infos[f].type) {
    case FACT_TIME:
    case FACT_INT: return "INTEGER";
    case FACT_REAL: return "REAL";
    case FACT_STR: return "TEXT";
    case FACT_SPAN: break;
    }
    return NULL;
}

/* Whether the text names a result column " AS name" itself. */
static bool defines(const char *sql, const char *name) {
    char as[80];
    int n = snprintf(as, sizeof as, " AS %s", name);
    for (const char *p = sql; (p = strstr(p, as)) != NULL; p += n)
        if (p[n] == ',' || p[n] == '\n') return true;
    return false;
}

static void put_facts(FILE *out, const char *sql, enum subject s, bool types) {
    for (int f = 0; f < N_FACTS; f++) {
        const char *type = db_fact_column_type((enum fact)f);
        if (fact_infos[f].subject != s || !type || (!types && defines(sql, fact_infos[f].name))) continue;
        fprintf(out, "  %s%s%s,\n", fact_infos[f].name, types ? " " : "", types ? type : "");
    }
}

char *db_expand(const char *sql) {
    static const char mark[] = "/* FACTS ";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (const char *p = sql;;) {
        const char *at = strstr(p, mark);
        if (!at) {
            fputs(p, out);
            break;
        }
        fwrite(p, 1, (size_t)(at - p), out);
        /* Types belong into a table; the view is the text without a CREATE TABLE. */
        put_facts(out, sql, at[sizeof mark - 1] == 'R' ? SUBJECT_R : SUBJECT_C, strstr(sql, "CREATE TABLE"));
        p = strstr(at, "*/");
        p = p ? p + 2 : "";
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int db_exec(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int64_t db_number(sqlite3 *db, const char *sql, int64_t fallback) {
    sqlite3_stmt *s;
    int64_t v = fallback;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) return fallback;
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL)
        v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return v;
}

static int exec_expanded(sqlite3 *db, const char *sql) {
    char *text = db_expand(sql);
    if (!text) return SQLITE_NOMEM;
    int rc = db_exec(db, text);
    free(text);
    return rc;
}

int db_create(sqlite3 *db) {
    char ids[128];
    snprintf(ids, sizeof ids, "PRAGMA application_id=%d; PRAGMA user_version=%d", DB_APPLICATION_ID,
             DB_SCHEMA_VERSION);
    int rc = db_exec(db, ids);
    if (rc == SQLITE_OK) rc = exec_expanded(db, sql_tables);
    if (rc == SQLITE_OK) rc = exec_expanded(db, sql_request_metrics);
    if (rc == SQLITE_OK) rc = define_all(db);
    return rc;
}

enum db_kind db_kind(sqlite3 *db) {
    int64_t objects = db_number(db, "SELECT COUNT(*) FROM sqlite_schema", -1);
    if (objects < 0) return DB_UNREADABLE;
    int64_t id = db_number(db, "PRAGMA application_id", 0);
    if (objects == 0 && id == 0) return DB_EMPTY;
    if (id != DB_APPLICATION_ID) return DB_OTHER_PROGRAM;
    return db_number(db, "PRAGMA user_version", 0) == DB_SCHEMA_VERSION ? DB_OURS : DB_OTHER_VERSION;
}
