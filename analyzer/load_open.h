/* Requests and connections that have begun and not ended: their facts so far, and a request's events.
 *
 * Knows neither SQL nor files. What is open is all that a load keeps in memory. */
#ifndef ANALYZER_LOAD_OPEN_H
#define ANALYZER_LOAD_OPEN_H

#include "analyzer/attribute.h"
#include "schema/facts.h"

enum value_kind { VALUE_ABSENT, VALUE_IS_INT, VALUE_IS_REAL, VALUE_IS_TEXT };
struct value {
    enum value_kind kind;
    uint32_t n; /* bytes of text */
    union {
        int64_t i;
        double r;
        char *s;
    };
};

struct open_subject {
    uint64_t id;
    bool began;           /* its beginning was seen */
    bool ended;           /* its end was seen */
    bool lost;            /* pieces of it are missing */
    bool orphan;          /* open when a part or a block went missing; cleared when seen again */
    int64_t t_lost_ns;    /* from when on; ATTRIBUTE_NONE */
    uint64_t told_events; /* events the log had of it, those included that are missing */
    uint64_t seen_block;  /* ordinal of the block that last had a line of it, or its beginning */
    struct attribute_events events;
    struct attribute_pause *pauses;
    size_t n_pauses, pauses_room;
    struct value facts[N_FACTS];
    struct open_subject *next; /* in its bucket */
};

struct open_set {
    struct open_subject **buckets;
    size_t n, n_buckets; /* a power of two */
};

struct open_subject *open_find(const struct open_set *s, uint64_t id);
/* The subject with this id, a new one where there is none. NULL without memory. */
struct open_subject *open_get(struct open_set *s, uint64_t id);
/* Takes it out of the set; the caller frees it with open_drop. */
void open_take(struct open_set *s, struct open_subject *o);
void open_drop(struct open_subject *o);
void open_free(struct open_set *s);

/* Sets a fact; the later one holds. False without memory. */
bool open_set_text(struct open_subject *o, enum fact f, const char *p, size_t n);
void open_set_int(struct open_subject *o, enum fact f, int64_t v);
void open_set_real(struct open_subject *o, enum fact f, double v);
bool open_add_pause(struct open_subject *o, int64_t from_ns, int64_t to_ns);
/* Whole number of a fact, or fallback. */
int64_t open_int(const struct open_subject *o, enum fact f, int64_t fallback);
/* Notes that what came after t_ns is missing; the earliest instant holds. */
void open_lose(struct open_subject *o, int64_t t_ns);

#endif
