/* The text of schema/sql, compiled in by embed.cmake: one array for each file <number>_<name>.sql. */
#ifndef ANALYZER_SQL_TEXT_H
#define ANALYZER_SQL_TEXT_H

extern const char sql_tables[]; /* 010: the tables, with lines FACTS R and FACTS C for the loader to fill */
extern const char sql_request_metrics[]; /* 020: the view requests, with the definitions of its metrics */
extern const char sql_forget[];          /* 029: run before 030 where rows were there before */
extern const char sql_generations[];     /* 030: run after loading */
extern const char sql_starts[];          /* 031: run where something tells of a start */
extern const char sql_findings[];        /* 032: run after these */
extern const char sql_arrival_metrics[]; /* 040: TEMP views over the table arrivals, with definitions */
extern const char sql_system_metrics[];  /* 050: definitions of what the report computes in C */

#endif
