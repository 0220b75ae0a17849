/* What stands on the command line as TRACE: files, folders of them, a database, or - (stdin).
 *
 * Looks at names and first bytes only; what a trace holds is the reader's to say. */
#ifndef ANALYZER_INPUTS_H
#define ANALYZER_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

struct input {
    char *path; /* to be opened */
    char *name; /* to be shown */
};
struct inputs {
    struct input *at;
    size_t n, room;
    bool database; /* the only input is an SQLite file */
    int spool;     /* descriptor that holds what came from stdin, -1: none */
};

/* Collects them. 0, or an exit status after one line on stderr. inputs_free in both cases. */
int inputs_collect(struct inputs *in, char *const *args, size_t n);
void inputs_free(struct inputs *in);

#endif
