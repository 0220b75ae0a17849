/* Rows of the database, by prepared statements: one function a kind of row.
 *
 * Knows the tables, not the trace file. The first error is kept; later calls do nothing, so that callers
 * check once. */
#ifndef ANALYZER_LOAD_STORE_H
#define ANALYZER_LOAD_STORE_H

#include "analyzer/load_open.h"
#include "analyzer/wall.h"
#include "schema/hist.h"
#include "schema/trr.h"

#include <sqlite3.h>

struct store;
/* NULL without memory or when db does not have our tables. */
struct store *store_open(sqlite3 *db);
/* Writes rows of arrivals as a plain table, too. */
bool store_make_rows(struct store *s);
/* Ends the statements; the first error of all calls, SQLITE_OK when there was none. */
int store_close(struct store *s);
bool store_failed(const struct store *s);

/* The recording that rows belong to from now on, its recorder's name (NULL: none), and its clock. */
void store_recording(struct store *s, const char *recording, const char *recorder, const struct wall *wall);

/* A request with what was made of its events. */
struct store_request {
    const struct open_subject *o;
    struct attribution a; /* its arrivals are not looked at: they are the blob */
    int64_t base_ns;      /* what the blob's times count from */
    const unsigned char *blob;
    size_t blob_bytes;
};
void store_request(struct store *s, const struct store_request *r);
void store_connection(struct store *s, const struct open_subject *o);
struct store_span {
    enum fact f;
    uint64_t id;
    int64_t from_ns, to_ns, value;
};
void store_spans(struct store *s, const struct store_span *spans, size_t n);
/* request 0: the whole recording; file NULL: said by the recorder. Times ATTRIBUTE_NONE: not known. */
void store_loss(struct store *s, enum loss l, int64_t from_ns, int64_t to_ns, uint64_t count, uint64_t bytes,
                uint64_t request, const char *file);
/* An anchor that was just added to the clock given to store_recording. */
void store_anchor(struct store *s, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns);
/* A pair of a part's head; note.KEY goes to the table notes. */
void store_head(struct store *s, uint64_t part, const char *key, const char *value);
void store_recorder_fact(struct store *s, enum fact f, int64_t value);
void store_times(struct store *s, enum hist_name name, const struct hist *h);

struct store_trace {
    const char *file, *source, *version;
    uint64_t part;
    uint32_t format;
    enum trr_state state;
    struct trr_totals totals;
};
void store_trace(struct store *s, const struct store_trace *t);
/* The file a part was loaded from (a copy, to be freed by the caller), or NULL when it was not. */
char *store_part_file(struct store *s, const char *recording, uint64_t part);

#endif
