/* Every object and every column has its sentence, and the catalogue, the tables and the view agree. */
#include "analyzer/db.h"
#include "analyzer/sql_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static sqlite3 *db;

static int open_db(void **state) {
    return sqlite3_open(":memory:", &db) != SQLITE_OK || db_create(db) != SQLITE_OK;
}
static int close_db(void **state) {
    return sqlite3_close(db);
}

/* Rows of a query are faults: each is printed. */
static void none(const char *sql) {
    sqlite3_stmt *s;
    int n = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    for (; sqlite3_step(s) == SQLITE_ROW; n++) print_error("  %s\n", sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    if (n) fail_msg("%d rows of: %s", n, sql);
}

static void every_column_has_a_sentence(void **state) {
    none("SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type IN "
         "('table', 'view') "
         "AND NOT EXISTS (SELECT 1 FROM definitions d WHERE d.object = m.name AND d.name = c.name AND d.kind "
         "= 'column' "
         "AND d.sentence > '')");
}

static void every_table_has_a_sentence(void **state) {
    none("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT IN "
         "(SELECT name FROM definitions WHERE kind = 'table' AND sentence > '')");
}

static void every_definition_is_of_something_that_is_there(void **state) {
    none("SELECT object || '.' || name FROM definitions WHERE kind = 'column' AND object <> 'gaps' AND NOT "
         "EXISTS "
         "(SELECT 1 FROM pragma_table_info(object) c WHERE c.name = definitions.name)");
    none("SELECT object || '.' || name FROM definitions GROUP BY object, name, kind HAVING COUNT(*) > 1");
}

static void every_metric_says_what_it_is(void **state) {
    none("SELECT name FROM definitions WHERE kind = 'metric' AND (sentence IS NULL OR formula IS NULL OR "
         "unit IS NULL OR absent IS NULL)");
    none("SELECT name FROM definitions d WHERE kind = 'metric' AND object = 'requests' AND NOT EXISTS "
         "(SELECT 1 FROM pragma_table_info('requests') c WHERE c.name IN (d.name, d.name || '_ns'))");
    assert_true(db_number(db, "SELECT COUNT(*) FROM definitions WHERE kind = 'metric'", 0) > 30);
}

static void every_fact_has_its_column(void **state) {
    for (int f = 0; f < N_FACTS; f++) {
        const struct fact_info *i = &fact_infos[f];
        if (i->type == FACT_SPAN || i->subject == SUBJECT_T) continue;
        char *sql =
            sqlite3_mprintf("SELECT COUNT(*) FROM pragma_table_info(%Q) WHERE name = %Q AND type = %Q",
                            i->subject == SUBJECT_R ? "request_facts" : "connections", i->name,
                            db_fact_column_type((enum fact)f));
        if (db_number(db, sql, 0) != 1) fail_msg("%s has no column", i->name);
        sqlite3_free(sql);
        sql = sqlite3_mprintf("SELECT COUNT(*) FROM pragma_table_info('requests') WHERE name = %Q", i->name);
        if (i->subject == SUBJECT_R && db_number(db, sql, 0) != 1) fail_msg("%s is not in requests", i->name);
        sqlite3_free(sql);
    }
}

static void declared_types_are_the_four(void **state) {
    none("SELECT m.name || '.' || c.name || ' ' || c.type FROM sqlite_schema m, pragma_table_info(m.name) c "
         "WHERE m.type = 'table' AND c.type NOT IN ('INTEGER', 'REAL', 'TEXT', 'BLOB')");
}

static void the_promised_objects_are_there(void **state) {
    static const char *const names[] = {"traces",  "requests", "connections", "losses",
                                        "samples", "notes",    "definitions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *sql = sqlite3_mprintf("SELECT COUNT(*) FROM sqlite_schema WHERE name = %Q", names[i]);
        assert_int_equal(db_number(db, sql, 0), 1);
        sqlite3_free(sql);
    }
}

static void the_database_is_known_again(void **state) {
    sqlite3 *other;
    assert_int_equal(db_kind(db), DB_OURS);
    assert_int_equal(sqlite3_open(":memory:", &other), SQLITE_OK);
    assert_int_equal(db_kind(other), DB_EMPTY);
    db_exec(other, "CREATE TABLE t (a)");
    assert_int_equal(db_kind(other), DB_OTHER_PROGRAM);
    sqlite3_close(other);
}

/* Other programs must be able to open every object: this connection has no function or module of ours either.
 */
static void every_object_can_be_read_without_us(void **state) {
    sqlite3_stmt *names;
    int n = 0;
    assert_null(strstr(sql_tables, "VIRTUAL TABLE"));
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')",
                                        -1, &names, NULL),
                     SQLITE_OK);
    for (; sqlite3_step(names) == SQLITE_ROW; n++) {
        char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", sqlite3_column_text(names, 0));
        if (db_exec(db, sql) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
        sqlite3_free(sql);
    }
    sqlite3_finalize(names);
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_has_a_sentence),
        cmocka_unit_test(every_table_has_a_sentence),
        cmocka_unit_test(every_definition_is_of_something_that_is_there),
        cmocka_unit_test(every_metric_says_what_it_is),
        cmocka_unit_test(every_fact_has_its_column),
        cmocka_unit_test(declared_types_are_the_four),
        cmocka_unit_test(the_promised_objects_are_there),
        cmocka_unit_test(the_database_is_known_again),
        cmocka_unit_test(every_object_can_be_read_without_us),
    };
    return cmocka_run_group_tests(tests, open_db, close_db);
}
