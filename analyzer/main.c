/* traceanalyze: reads traces and says what they hold.
 *
 * Only picks the command; what a command takes and does is in its own cmd_*.c. */
#include "analyzer/args.h"
#include "analyzer/commands.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"report", cmd_report, "what was recorded, lost, failed, and every number"},
    {"requests", cmd_requests, "one row a request: table, csv, ndjson"},
    {"arrivals", cmd_arrivals, "one row a token arrival"},
    {"definitions", cmd_definitions, "what every number means"},
    {"check", cmd_check, "is a trace whole; what is lost"},
    {"load", cmd_load, "makes an SQLite database of traces"},
    {"sql", cmd_sql, "a query over traces"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static int help(void) {
    puts("traceanalyze COMMAND TRACE...      traceanalyze FILE is traceanalyze report FILE\n\n"
         "TRACE: a .trc file, several, a folder of them, a database made by load, or - (stdin)\n");
    for (int i = 0; i < N_COMMANDS; i++) printf("  %-12s %s\n", commands[i].name, commands[i].help);
    puts("\ntraceanalyze COMMAND --help tells its options; --version the version.\n"
         "Exit status: 0 done, 1 failed, 2 wrong usage, 3 an input was damaged.");
    return 0;
}

static int unknown(const char *word) {
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    const char *near = args_near(word, names, N_COMMANDS);
    if (near)
        fprintf(stderr, "traceanalyze: %s: no such command or file; did you mean %s?\n", word, near);
    else
        fprintf(stderr,
                "traceanalyze: %s: no such command or file; commands: report requests arrivals definitions "
                "check load sql\n",
                word);
    return 2;
}

/* An argument that is a file or could only be one: traceanalyze FILE. */
static int is_input(const char *word) {
    struct stat st;
    return strcmp(word, "-") == 0 || stat(word, &st) == 0 || errno != ENOENT || strpbrk(word, "/.") != NULL;
}

static int run(int argc, char **argv) {
    const char *word = argv[1];
    if (argc < 2) {
        fputs("traceanalyze: give a command or a trace; all: traceanalyze --help\n", stderr);
        return 2;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) return help();
    if (strcmp(word, "--version") == 0) {
        puts("traceanalyze " TRACEREC_VERSION);
        return 0;
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    if (word[0] == '-' && word[1]) {
        fprintf(stderr, "traceanalyze: %s: options come after the command; all: traceanalyze --help\n", word);
        return 2;
    }
    return is_input(word) ? cmd_report(argc, argv) : unknown(word);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a reader that left (head, less) is no failure of ours, and never a crash */
    /* Only one thread ever uses SQLite, and nobody asks how much memory it has: locks and counts are a tenth
     * of the time of a load. */
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int status = run(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    if (errno == EPIPE) return status;
    fprintf(stderr, "traceanalyze: standard output: %s; the result is not whole\n", strerror(errno));
    return 1;
}
