/* What each engine tells on the wire and how to make it tell more: the list of engines.def, and its printing.
 *
 * Knows no trace. APIs are named as the recorder names its dialects; a test holds the two lists together. */
#ifndef ANALYZER_ENGINES_H
#define ANALYZER_ENGINES_H

#include "analyzer/args.h"
#include "analyzer/attribute.h"
#include "analyzer/show.h"

/* What has to be switched on before an engine tells something. */
enum need {
    NEED_NEVER, /* it is not told, or in no way that is read */
    NEED_ALWAYS,
    NEED_REQUEST, /* a field of the request */
    NEED_BOTH     /* an option of the server and a field of the request */
};

struct tells {
    enum need need;
    const char *told;      /* what is told, and where; "" is possible only with NEED_NEVER */
    const char *switch_on; /* in which request field or server option; "": nothing to do */
};

enum { TELLS_TOKENS, TELLS_USAGE, TELLS_CACHED, TELLS_SPECULATION, TELLS_TIMES, N_TELLS };

struct engine {
    const char *name;
    const char *apis; /* dialects with ", " between them, the most usual one first */
    enum token_source plain, best;
    struct tells tells[N_TELLS];
};

extern const struct engine engines[];
extern const size_t n_engines;

/* Prints the engines that o's words ask for (names, beginnings of names, APIs; none: all) in o's format: a
 * table, one in full, or JSON. Exit status: 0, or 2 after one line on stderr for a word that asks for none.
 */
int engines_print(FILE *f, const struct args *o, const struct show_mode *m);

#endif
