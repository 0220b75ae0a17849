/* The commands of traceanalyze. Each takes its arguments (argv[0] is the command's own name) and returns the
 * exit status: 0 done, 1 failed, 2 wrong usage, 3 an input was damaged. */
#ifndef ANALYZER_COMMANDS_H
#define ANALYZER_COMMANDS_H

int cmd_load(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_requests(int argc, char **argv);
int cmd_arrivals(int argc, char **argv);
int cmd_definitions(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_sql(int argc, char **argv);

#endif
