/* What a trace says of its recorder and machine: the pairs of its head. */
#ifndef RECORDER_ABOUT_H
#define RECORDER_ABOUT_H

#include "recorder/opts.h"

enum { ABOUT_PAIRS_MAX = 32 + OPTS_NOTES_MAX + 2 * FRONT_PAIRS_MAX };

struct about {
    const char *pairs[2 * ABOUT_PAIRS_MAX + 1]; /* KEY, VALUE, …, NULL */
    size_t n;
    char *memory; /* the texts that are not borrowed */
    size_t used, size;
};

/* Collects them. listens and upstreams as they are shown, o->n_pairs of each. False: no memory. Texts are
 * borrowed from the arguments; the rest is about_fini's to free. */
bool about_init(struct about *a, const struct opts *o, const char *const *listens,
                const char *const *upstreams);
void about_fini(struct about *a);

#endif
