/* Files to recordings. Heads are read first, since parts may come in any order and twice; a recording is read
 * part after part, so that a request open at the end of one goes on in the next. */
#include "analyzer/load.h"

#include "analyzer/db.h"
#include "analyzer/load_part.h"
#include "analyzer/load_recording.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES (128 << 20)

struct loader {
    sqlite3 *db;
    struct store *store;
    const struct load_options *o;
    struct part *parts;
    size_t n;
    struct progress progress;
    bool damaged, no_memory;
};

static int by_recording(const void *a, const void *b) {
    const struct part *x = a, *y = b;
    int c = memcmp(x->recording, y->recording, sizeof x->recording);
    if (c) return c;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Opens each head. A file that is no trace ends the load; one that cannot be read is left out. */
static int read_heads(struct loader *l, const struct inputs *in) {
    int last = 0;
    l->parts = calloc(in->n, sizeof *l->parts);
    if (!l->parts) return part_no_memory();
    for (size_t i = 0; i < in->n; i++) {
        struct part *p = &l->parts[l->n];
        int status = part_open(p, &in->at[i], i);
        if (status != 0 && (status != 3 || in->n == 1)) return status;
        if (status != 0)
            l->damaged = true, last = status;
        else
            l->progress.all_bytes += p->bytes, l->n++;
    }
    if (l->n == 0) return last;
    qsort(l->parts, l->n, sizeof *l->parts, by_recording);
    return 0;
}

static bool is_known(struct loader *l, struct recording *r, const struct part *p) {
    char *file = store_part_file(l->store, r->id, p->part);
    if (!file) return false;
    if (!l->o->quiet)
        fprintf(stderr, "traceanalyze: %s: the same recording and part as %s; loaded once\n", p->name, file);
    free(file);
    return true;
}

/* All parts of one recording, from parts[i] on; returns the index after them. */
static size_t load_recording(struct loader *l, size_t i) {
    const struct part *first = &l->parts[i];
    struct recording r;
    recording_begin(&r, l->store, first->recording, first->recorder, l->o->window_ns);
    r.on_block = progress_block;
    r.ctx = &l->progress;
    for (; i < l->n && memcmp(l->parts[i].recording, first->recording, sizeof first->recording) == 0; i++) {
        struct part *p = &l->parts[i];
        if (is_known(l, &r, p)) continue;
        enum trr_state state = part_read(p, &r, l->store, &l->progress);
        if (part_say_state(p, state, l->o->quiet)) l->damaged = true;
        l->progress.done_bytes += p->bytes;
    }
    recording_end(&r);
    l->no_memory |= r.no_memory;
    return i;
}

static int load_all(struct loader *l) {
    /* Overwriting what is deleted costs a fifth of all writing; nothing here was ever to be kept from anyone.
     */
    int rc = db_exec(l->db, "PRAGMA secure_delete = OFF; BEGIN");
    bool again = db_number(l->db, "SELECT EXISTS (SELECT 1 FROM request_facts)", 1) != 0;
    l->store = rc == SQLITE_OK ? store_open(l->db) : NULL;
    if (!l->store) return SQLITE_NOMEM;
    if (l->o->rows) store_make_rows(l->store);
    for (size_t i = 0; i < l->n && !store_failed(l->store) && !l->no_memory;) i = load_recording(l, i);
    rc = store_close(l->store);
    if (l->no_memory) rc = SQLITE_NOMEM;
    if (rc == SQLITE_OK) rc = load_derive(l->db, again);
    if (rc == SQLITE_OK) rc = db_exec(l->db, "COMMIT");
    return rc;
}

int load_traces(sqlite3 *db, const struct inputs *in, const struct load_options *o, bool *damaged) {
    struct loader l = {.db = db, .o = o};
    progress_begin(&l.progress, o->quiet);
    /* Events of one request after another are freed and allocated: giving the pages back each time costs more
     * than that. */
    mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    mallopt(M_TOP_PAD, KEEP_BYTES / 16);
    int status = read_heads(&l, in);
    if (status == 0) {
        int rc = load_all(&l);
        progress_end(&l.progress);
        if (rc == SQLITE_NOMEM) {
            status = part_no_memory();
        } else if (rc != SQLITE_OK) {
            fprintf(stderr, "traceanalyze: the database cannot be written: %s; look at its disk\n",
                    rc == sqlite3_errcode(db) ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
            status = 1;
        }
        if (status != 0) db_exec(db, "ROLLBACK");
    }
    *damaged |= l.damaged;
    for (size_t i = 0; i < l.n; i++) part_free(&l.parts[i]);
    free(l.parts);
    return status;
}
