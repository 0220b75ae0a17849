/* Events that equal an earlier one but for a text and a few numbers.
 *
 * Nearly all events of a stream do. Such an event needs no JSON parser: what it says is what the earlier one
 * said, with other values in the holes. Pure; knows JSON values, no dialect. */
#ifndef RECORDER_DISSECT_TEMPLATE_H
#define RECORDER_DISSECT_TEMPLATE_H

#include "schema/facts.h"

#define TEMPLATE_KEPT      4    /* events remembered: choices of a stream take turns */
#define TEMPLATE_HOLES     6    /* holes of one event */
#define TEMPLATE_MAX_BYTES 2048 /* larger events are not remembered */

enum hole {
    HOLE_TEXT,    /* a text that is not empty: its bytes are told */
    HOLE_RUNNING, /* a whole number: the running count */
    HOLE_IDS,     /* a list of whole numbers: how many is told */
    HOLE_NUMBER,  /* a number of no interest, whole or not */
    HOLE_NUMBERS, /* a list of such numbers */
    HOLE_PADDING, /* a text of no interest */
};

/* Where holes are: keys with dots between them, "0" for the first element of an array. A path that leads to
 * nothing, or to another kind of value, makes no hole. */
struct hole_path {
    const char *path;
    enum hole hole;
};

struct template {
    char *bytes;                       /* what stands between the holes, one part after the other */
    uint32_t part[TEMPLATE_HOLES + 1]; /* bytes of each */
    uint8_t hole[TEMPLATE_HOLES];
    unsigned n_holes;
    struct tok_event said; /* what the event said */
    uint64_t version;      /* of the facts when it was learned */
};

struct templates {
    struct template kept[TEMPLATE_KEPT];
    unsigned last, next; /* the one that matched last; the one to be replaced next */
    unsigned learned;    /* since the last match */
    uint64_t version; /* counts changes of facts that events repeat: what was learned before the last change
                         would not bring back its own */
};

/* What an event says: that of the one it equals, with its own text_bytes, running and ids. False: it equals
 * none, or what is in a hole is for the parser to see. */
bool template_match(struct templates *t, const char *data, size_t n, struct tok_event *says);
/* Remembers an event that was read in full, and what it said. Does nothing when a hole is not plain to see in
 * the bytes, when it told a running count that is in no hole, or when nothing that was remembered of late was
 * of use. */
void template_learn(struct templates *t, const char *data, size_t n, const struct hole_path *paths,
                    size_t n_paths, const struct tok_event *said);
void template_free(struct templates *t);

#endif
