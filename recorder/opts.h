/* The command line of tracerec. Pure but for the reading of argv: opens and resolves nothing. */
#ifndef RECORDER_OPTS_H
#define RECORDER_OPTS_H

#include "recorder/addr.h"
#include "recorder/front.h"

enum { OPTS_NOTES_MAX = 64 };

struct opts_note {
    char key[64];
    const char *value;
};

struct opts {
    struct addr proxy[FRONT_PAIRS_MAX], upstream[FRONT_PAIRS_MAX];
    size_t n_pairs, n_proxy, n_upstream; /* n_proxy and n_upstream are equal once all is read */
    const char *output, *name;           /* as given; NULL: not */
    struct opts_note notes[OPTS_NOTES_MAX];
    size_t n_notes;
    int64_t drain_ns; /* INT64_MAX: inf */
    size_t queue_bytes;
    int64_t flush_interval_ns;
    uint64_t min_free_bytes; /* OPTS_MIN_FREE_DEFAULT: not given */
    int64_t status_interval_ns;
    bool quiet, must_record, unreachable_reset;
};

#define OPTS_MIN_FREE_DEFAULT UINT64_MAX

enum opts_result { OPTS_RUN, OPTS_HELP, OPTS_VERSION, OPTS_WRONG };

/* Reads the arguments; strings are borrowed from argv. OPTS_WRONG: err is the line to print, without the
 * program's name. */
enum opts_result opts_parse(struct opts *o, int argc, char **argv, char *err, size_t err_size);
extern const char opts_help[];

#endif
