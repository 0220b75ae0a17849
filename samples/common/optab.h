/*
 * A table of options is both the parser and the help text, so the two cannot disagree.
 * It does not know what an option is good for.
 */
#ifndef SAMPLES_COMMON_OPTAB_H
#define SAMPLES_COMMON_OPTAB_H

#include <stdbool.h>
#include <stdint.h>

enum optab_kind { OPTAB_GROUP, OPTAB_FLAG, OPTAB_UINT, OPTAB_REAL, OPTAB_TEXT, OPTAB_CALL };

/* One row. `at` points to bool, uint64_t, double or const char * by kind; what stands there before parsing is
 * the default. For OPTAB_CALL it is handed to `call`, which answers NULL or why the value is refused.
 * A table ends with a row whose name is NULL. OPTAB_GROUP rows are headings of the help text. */
struct optab {
    const char *name; /* without the dashes */
    enum optab_kind kind;
    void *at;
    double low, high; /* inclusive bounds of a number */
    const char *value;
    const char *help;
    const char *(*call)(const char *value, void *at);
};

/* Parses "--name value" and "--name=value". Texts point into argv. Prints one line on stderr and answers 2
 * for a wrong command line, answers 1 after --help (printed on stdout), 0 when all is read. */
int optab_parse(const struct optab *table, const char *program, const char *about, int argc, char **argv);

#endif
