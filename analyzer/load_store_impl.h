/* Between load_store.c, which makes the statements and writes requests and connections, and
 * load_store_rows.c, which writes all other rows. */
#ifndef ANALYZER_LOAD_STORE_IMPL_H
#define ANALYZER_LOAD_STORE_IMPL_H

#include "analyzer/load_store.h"

enum {
    S_REQUEST,
    S_BLOB,
    S_CONNECTION,
    S_SPAN,
    S_SPANS, /* SPANS_AT_ONCE rows of them */
    S_LOSS,
    S_ANCHOR,
    S_ARRIVED,
    S_NOTE,
    S_HEAD,
    S_FACT,
    S_TIMES,
    S_TRACE,
    S_PART,
    S_ROW,
    N_STATEMENTS
};

/* A recorder on a busy machine tells of hundreds of thousands of late reads: beginning and ending a statement
 * for each takes as long as writing it. */
enum { SPANS_AT_ONCE = 32 };

struct store {
    sqlite3 *db;
    sqlite3_stmt *st[N_STATEMENTS];
    int rc;
    const char *recording, *recorder;
    const struct wall *wall;
};

/* ---- binding: values by place, absent ones stay NULL */

struct row {
    sqlite3_stmt *st;
    int at;
};

static inline struct row row(struct store *s, int which) {
    sqlite3_clear_bindings(s->st[which]);
    return (struct row){s->st[which], 0};
}

static inline void put(struct row *r, int64_t v) {
    sqlite3_bind_int64(r->st, ++r->at, v);
}
static inline void put_or_null(struct row *r, int64_t v) {
    ++r->at;
    if (v != ATTRIBUTE_NONE) sqlite3_bind_int64(r->st, r->at, v);
}
/* The text must live until the row is stepped. */
static inline void put_text(struct row *r, const char *p) {
    ++r->at;
    if (p) sqlite3_bind_text(r->st, r->at, p, -1, SQLITE_STATIC);
}
static inline void put_wall(struct row *r, const struct store *s, int64_t mono_ns) {
    int64_t w;
    put_or_null(r,
                mono_ns != ATTRIBUTE_NONE && s->wall && wall_of(s->wall, mono_ns, &w) ? w : ATTRIBUTE_NONE);
}

static inline void step(struct store *s, int which) {
    if (s->rc != SQLITE_OK) return;
    if (sqlite3_step(s->st[which]) != SQLITE_DONE) s->rc = sqlite3_errcode(s->db);
    sqlite3_reset(s->st[which]);
}

#endif
