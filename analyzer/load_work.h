/* Attributes requests on a thread of its own while the reader decodes on: events in, sums and blob out, in
 * order.
 *
 * Knows neither SQL nor files. One caller thread. A request that waits here is not touched by anyone else. */
#ifndef ANALYZER_LOAD_WORK_H
#define ANALYZER_LOAD_WORK_H

#include "analyzer/load_open.h"

struct work_job {
    struct open_subject *o;
    struct attribute_facts facts;
    int64_t base_ns;
    struct attribution a; /* out; its arrivals are gone by then */
    unsigned char *blob;  /* out: the arrivals; owned by whoever took the job */
    size_t blob_bytes;
    bool no_memory; /* out */
};

struct work;
/* NULL without memory. Where no thread can be made, the caller's does the work. */
struct work *work_open(void);
/* All jobs must have been taken. */
void work_close(struct work *w);
/* Room for one more: else take one first. */
bool work_has_room(struct work *w);
void work_push(struct work *w, const struct work_job *j);
/* The oldest job, when it is done; with wait it is waited for, and worked on here where nobody has begun.
 * False: none. */
bool work_take(struct work *w, struct work_job *j, bool wait);

#endif
