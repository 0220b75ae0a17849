/* A thread that makes rows while the reader decodes on: attributes requests that have ended and stores what
 * is told, in the order in which it was told.
 *
 * Knows no files. One caller thread. From work_open to work_close the store, the wall clock and every subject
 * that was pushed belong to the thread, unless work_wait has returned and nothing was pushed since. */
#ifndef ANALYZER_LOAD_WORK_H
#define ANALYZER_LOAD_WORK_H

#include "analyzer/load_store.h"

enum work_kind { WORK_REQUEST, WORK_CONNECTION, WORK_SPANS, WORK_LOSS, WORK_ANCHOR, WORK_FACT };

/* One thing to be stored; the arguments of store_request and its likes. */
struct work_job {
    enum work_kind kind;
    union {
        struct {
            struct open_subject *o; /* owned */
            struct attribute_facts facts;
            int64_t base_ns;
        } request;
        struct open_subject *connection; /* owned */
        struct {
            struct store_span *at; /* owned */
            size_t n;
        } spans;
        struct {
            enum loss l;
            int64_t from_ns, to_ns;
            uint64_t count, bytes, request;
            const char *file; /* to outlive the work */
        } loss;
        struct {
            int64_t mono_ns, wall_ns, uncertainty_ns;
        } anchor;
        struct {
            enum fact f;
            int64_t value;
        } fact;
    };
};

struct work;
/* NULL without memory. Where no thread can be made, work_push does the work. wall takes the anchors. */
struct work *work_open(struct store *s, struct wall *wall);
/* Takes the job over; waits while too many do. */
void work_push(struct work *w, const struct work_job *j);
/* Until all that was pushed is stored. */
void work_wait(struct work *w);
/* Does what is left and ends the thread. False when memory ran out on the way: some rows are missing. */
bool work_close(struct work *w);
/* Memory for the events of a request that has its first ones, from requests that are done; none when *v has
 * some. Growing anew for each request costs more than attributing it. */
void work_reuse(struct work *w, struct attribute_events *v);

#endif
