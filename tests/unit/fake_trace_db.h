/* Databases with known figures, made by SQL and no recorder: what a report of them prints can be worked out
 * by hand. */
#ifndef TESTS_UNIT_FAKE_TRACE_DB_H
#define TESTS_UNIT_FAKE_TRACE_DB_H

#include <sqlite3.h>
#include <stdint.h>

/* One request; times in ms after it arrived, below 0: absent. */
struct fake_request {
    double at_s; /* arrival, seconds after the recording's start */
    const char *api, *path, *model, *user_agent, *end_by;
    int status, streamed, ended, finished;
    double forwarded, first_byte, end, intended;
    int prompt, cached, output, attempt; /* below 0: absent */
    double load, prefill;                /* told by the engine */
    int drafted, accepted, steps;
    const char *token_source, *grade;
    const struct fake_arrival {
        double t;
        int tokens, choice;
    } * arrivals;
    int n_arrivals;
};

/* A fresh database with every object of the schema at path, one sealed trace from 2027-01-14 02:55:00 UTC on.
 */
sqlite3 *fake_db_new(const char *path, double seconds);
void fake_db_add(sqlite3 *db, int request, const struct fake_request *f);
void fake_db_loss(sqlite3 *db, const char *name, double from_s, double to_s, int count, int request);
void fake_db_delay(sqlite3 *db, const char *name, int count, int64_t p50_ns, int64_t p99_ns, int64_t max_ns,
                   double max_at_s);
/* 400 generations over 200 s (hits, misses, failures, leavers) and 12 others; see the .c file for every
 * figure. */
void fake_db_busy(const char *path);
/* Six requests of one client to an engine that tells its load and prefill times. */
void fake_db_few(const char *path);

#endif
