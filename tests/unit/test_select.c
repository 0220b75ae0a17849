/* Times as people write them, and conditions that must stay in their place. */
#include "analyzer/db.h"
#include "analyzer/select.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define S 1000000000LL
/* 2027-01-14 02:55:00 UTC, and 03:37:00 of the next day */
#define START (1799895300LL * S)
#define END   (START + (24 * 3600 + 42 * 60) * S)

static void times_of_day(void **state) {
    static const struct {
        const char *text, *tz;
        int64_t right; /* seconds after START; -1: no time */
        int64_t ns;
    } cases[] = {
        {"02:55", NULL, 0, 0},
        {"03:07", NULL, 720, 0},
        {"03:07:12.4", NULL, 732, 400000000},
        {"03:07:12.123456789", NULL, 732, 123456789},
        {"01:00", NULL, 24 * 3600 - 6900, 0}, /* before the start: the next day */
        {"+90s", NULL, 90, 0},
        {"+1.5m", NULL, 90, 0},
        {"-10m", NULL, 24 * 3600 + 32 * 60, 0},
        {"2027-01-14T03:07:12Z", NULL, 732, 0},
        {"2027-01-14 03:07", NULL, 720, 0},
        {"2027-01-14T04:07:12.5+01:00", NULL, 732, 500000000},
        {"2027-01-13T22:07:12-0500", NULL, 732, 0},
        {"04:07", "Europe/Berlin", 720, 0},
        {"2027-01-14T04:07:12", "Europe/Berlin", 732, 0},
        {"2027-01-14T03:07:12Z", "Europe/Berlin", 732, 0},
        {"8:00", NULL, -1, 0},
        {"25:00", NULL, -1, 0},
        {"03:07x", NULL, -1, 0},
        {"", NULL, -1, 0},
        {"+", NULL, -1, 0},
        {"+5", NULL, -1, 0},
        {"+1e300h", NULL, -1, 0},
        {"2027-13-14T03:07:12Z", NULL, -1, 0},
        {"2027-01-14", NULL, -1, 0},
        {"now", NULL, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t seen = 0;
        bool is = select_time(cases[i].text, cases[i].tz, START, END, &seen);
        if (is != (cases[i].right >= 0) || (is && seen != START + cases[i].right * S + cases[i].ns))
            fail_msg("\"%s\": %d, %lld s after the start, right is %lld", cases[i].text, is,
                     (long long)((seen - START) / S), (long long)cases[i].right);
    }
}

/* What select_make says on stderr is not what is tested here. */
static int quietly(sqlite3 *db, const struct source_options *o) {
    fflush(stderr);
    int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    int status = select_make(db, o);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(null);
    return status;
}

static sqlite3 *database(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(db_create(db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    assert_int_equal(
        db_exec(
            db,
            "INSERT INTO request_facts (recording, request, ended, lost, buffered, model, arrived_wall_ns) "
            "VALUES ('r', 1, 1, 0, 0, 'a)b', 100), ('r', 2, 1, 0, 0, 'c', 200)"),
        SQLITE_OK);
    return db;
}

static void conditions(void **state) {
    static const struct {
        const char *where;
        int rows; /* -1: refused */
    } cases[] = {
        {"request = 1", 1},
        {"model = 'a)b'", 1},
        {"model = 'a)b' -- the first", 1},
        {"\"model\" = 'c' /* ) */", 1},
        {"(request = 1) OR (request = 2)", 2},
        {"request IN (SELECT max(request) FROM requests)", 1},
        {"1 = 1) OR (1 = 1", -1},
        {"1) UNION SELECT * FROM requests WHERE (1", -1},
        {"1; DELETE FROM request_facts", -1},
        {"model = \"c\"", -1}, /* a name, never a text */
        {"request = ?", -1},
        {"load_extension('x')", -1},
        {"modle = 'c'", -1},
        {"", -1},
        {"'", -1},
        {"/*", -1},
        {"(", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sqlite3 *db = database();
        struct source_options o = {.where = cases[i].where};
        int status = quietly(db, &o);
        if (status != (cases[i].rows < 0 ? 2 : 0)) fail_msg("--where %s: status %d", cases[i].where, status);
        if (status == 0) assert_int_equal(db_number(db, "SELECT COUNT(*) FROM selected", -1), cases[i].rows);
        assert_int_equal(db_number(db, "SELECT COUNT(*) FROM request_facts", -1), 2);
        sqlite3_close(db);
    }
}

static void windows_take_arrivals_from_and_before(void **state) {
    static const struct {
        const char *from, *to, *last;
        int rows; /* -1: refused */
    } cases[] = {{"1970-01-01T00:00:00.000000100Z", NULL, NULL, 2},
                 {"1970-01-01T00:00:00.000000101Z", NULL, NULL, 1},
                 {NULL, "1970-01-01T00:00:00.0000002Z", NULL, 1},
                 {"x", NULL, NULL, -1},
                 {NULL, NULL, "5", -1},
                 {"03:07", NULL, "5s", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sqlite3 *db = database();
        struct source_options o = {.from = cases[i].from, .to = cases[i].to, .last = cases[i].last};
        int status = quietly(db, &o);
        assert_int_equal(status, cases[i].rows < 0 ? 2 : 0);
        if (status == 0) assert_int_equal(db_number(db, "SELECT COUNT(*) FROM selected", -1), cases[i].rows);
        sqlite3_close(db);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_day),
        cmocka_unit_test(conditions),
        cmocka_unit_test(windows_take_arrivals_from_and_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
