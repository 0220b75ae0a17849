/* What the tests of the trace share: a trace in memory, and everything that is told of it as lines of text,
 * one text for each block, so that "the same was told" is a comparison of strings. */
#ifndef TEST_TRACE_TOOLS_H
#define TEST_TRACE_TOOLS_H

#include "schema/trr.h"
#include "schema/trr_parts.h"
#include "schema/trw.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TOLD_BLOCKS 4096

struct told {
    char *block[TOLD_BLOCKS]; /* by sequence number; NULL: not told */
    char *order;              /* sequence numbers in the order told */
    FILE *out, *order_out;
    char *text;
    size_t text_n, order_n;
    uint64_t seq, n_blocks, n_events, n_damages, n_gaps, n_missing, n_snapshots;
    uint64_t loss_count[N_LOSSES], loss_rows[N_LOSSES];
};

static inline void told_close_block(struct told *t) {
    if (!t->out) return;
    fclose(t->out);
    t->out = NULL;
    assert_true(t->seq < TOLD_BLOCKS);
    assert_null(t->block[t->seq]); /* none is told twice */
    t->block[t->seq] = t->text;
    t->text = NULL;
}

static inline void told_block(void *ctx, uint64_t seq, int64_t first_ns, int64_t last_ns) {
    struct told *t = ctx;
    told_close_block(t);
    t->seq = seq;
    t->n_blocks++;
    t->out = open_memstream(&t->text, &t->text_n);
    fprintf(t->out, "block %" PRId64 " %" PRId64 "\n", first_ns, last_ns);
}
static inline void told_line(void *ctx, uint64_t request, uint64_t events, int64_t last_ns) {
    fprintf(((struct told *)ctx)->out, "open %" PRIu64 " %" PRIu64 " %" PRId64 "\n", request, events,
            last_ns);
}
static inline void told_begin(void *ctx, enum subject s, uint64_t id, bool snapshot) {
    struct told *t = ctx;
    t->n_snapshots += snapshot;
    fprintf(t->out, "begin %d %" PRIu64 " %d\n", s, id, snapshot);
}
static inline void told_int(void *ctx, uint64_t id, enum fact f, int64_t v) {
    fprintf(((struct told *)ctx)->out, "%s %" PRIu64 " %" PRId64 "\n", fact_infos[f].name, id, v);
}
static inline void told_real(void *ctx, uint64_t id, enum fact f, double v) {
    fprintf(((struct told *)ctx)->out, "%s %" PRIu64 " %a\n", fact_infos[f].name, id, v);
}
static inline void told_str(void *ctx, uint64_t id, enum fact f, const char *p, size_t n) {
    fprintf(((struct told *)ctx)->out, "%s %" PRIu64 " %zu:%.*s\n", fact_infos[f].name, id, n, (int)n, p);
}
static inline void told_span(void *ctx, uint64_t id, enum fact f, int64_t t0, int64_t t1, int64_t v) {
    fprintf(((struct told *)ctx)->out, "%s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
            fact_infos[f].name, id, t0, t1, v);
}
static inline void told_event(FILE *out, const struct tok_event *e) {
    fprintf(out, "event %" PRIu64 " %" PRId64 " %" PRIu64 " %u %x %u %u %" PRId64 " %d %d\n", e->request,
            e->t_ns, e->read, e->choice, e->what, e->text_bytes, e->wire_bytes, e->running, e->ids,
            e->logprobs);
}
static inline void told_events(void *ctx, uint64_t request, const struct tok_event *e, size_t n) {
    struct told *t = ctx;
    t->n_events += n;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(e[i].request, request);
        told_event(t->out, &e[i]);
    }
}
static inline void told_end(void *ctx, enum subject s, uint64_t id) {
    fprintf(((struct told *)ctx)->out, "end %d %" PRIu64 "\n", s, id);
}
static inline void told_loss(void *ctx, enum loss l, int64_t t0, int64_t t1, uint64_t count, uint64_t bytes,
                             uint64_t request) {
    struct told *t = ctx;
    t->loss_rows[l]++;
    t->loss_count[l] += count;
    fprintf(t->out, "%s %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", loss_infos[l].name,
            t0, t1, count, bytes, request);
}
static inline void told_anchor(void *ctx, int64_t mono, int64_t wall, int64_t uncertainty) {
    fprintf(((struct told *)ctx)->out, "anchor %" PRId64 " %" PRId64 " %" PRId64 "\n", mono, wall,
            uncertainty);
}
static inline void told_hist(void *ctx, enum hist_name name, const struct hist *h) {
    FILE *out = ((struct told *)ctx)->out;
    fprintf(out, "hist %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64, hist_names[name], h->count,
            h->sum_ns, h->max_ns, h->t_max_ns);
    for (unsigned i = 0; i < HIST_BUCKETS; i++)
        if (h->bucket[i]) fprintf(out, " %u:%" PRIu64, i, h->bucket[i]);
    fputc('\n', out);
}
static inline void told_damage(void *ctx, uint64_t offset, uint64_t bytes, const char *why) {
    struct told *t = ctx;
    t->n_damages++;
    assert_true(bytes > 0 && why && *why);
}
static inline void told_gap(void *ctx, uint64_t first, uint64_t n, int64_t before_ns, int64_t after_ns) {
    struct told *t = ctx;
    t->n_gaps++;
    t->n_missing += n;
    assert_true(n > 0);
}

static const struct trr_ops told_ops = {.block = told_block,
                                        .open_line = told_line,
                                        .begin = told_begin,
                                        .fact_int = told_int,
                                        .fact_real = told_real,
                                        .fact_str = told_str,
                                        .fact_span = told_span,
                                        .events = told_events,
                                        .end = told_end,
                                        .loss = told_loss,
                                        .anchor = told_anchor,
                                        .hist = told_hist,
                                        .damage = told_damage,
                                        .gap = told_gap};

static inline void told_free(struct told *t) {
    told_close_block(t);
    for (int i = 0; i < TOLD_BLOCKS; i++) free(t->block[i]);
    memset(t, 0, sizeof *t);
}

/* Reads all of a trace in memory; the state of one that does not open is that of opening it. */
static inline enum trr_state told_mem(struct told *t, const void *p, size_t n) {
    enum trr_state state;
    char err[200] = "";
    memset(t, 0, sizeof *t);
    struct trr *r = trr_open_mem(p, n, &state, err, sizeof err);
    if (!r) {
        assert_true(err[0]);
        return state;
    }
    state = trr_read(r, INT64_MIN, INT64_MAX, &told_ops, t);
    told_close_block(t);
    trr_close(r);
    return state;
}

/* Reads the file behind a descriptor through a path of its own. */
static inline enum trr_state told_fd(struct told *t, int fd) {
    enum trr_state state;
    char path[64], err[200] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(t, 0, sizeof *t);
    struct trr *r = trr_open(path, &state, err, sizeof err);
    if (!r) return state;
    state = trr_read(r, INT64_MIN, INT64_MAX, &told_ops, t);
    told_close_block(t);
    trr_close(r);
    return state;
}

struct image {
    uint8_t *p;
    size_t n;
};

static inline struct image image_of(int fd) {
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    struct image i = {malloc((size_t)st.st_size + 1), (size_t)st.st_size};
    assert_int_equal(pread(fd, i.p, i.n, 0), i.n);
    return i;
}

static const char *const tools_head[] = {"host", "unit", "note", "", NULL};

static inline struct trw *tools_open(int fd, struct trw_state *state) {
    char err[200] = "";
    struct trw_config c = {.fd = fd, .state = state, .head = tools_head, .flush_interval_ns = 1000000000};
    struct trw *w = trw_open(&c, err, sizeof err);
    if (!w) print_error("%s\n", err);
    assert_non_null(w);
    return w;
}

static inline int tools_file(void) {
    int fd = memfd_create("trace", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline struct tok_event tools_event(uint64_t request, int64_t t_ns, uint64_t read) {
    return (struct tok_event){.request = request,
                              .t_ns = t_ns,
                              .read = read,
                              .what = TOK_CONTENT,
                              .text_bytes = 3,
                              .wire_bytes = 185,
                              .running = -1,
                              .ids = -1,
                              .logprobs = -1};
}

/* Size of the head of a trace in memory; offset of the block after the one at `at`. */
static inline size_t image_head(const struct image *i) {
    return load_u32(i->p + 12);
}
static inline size_t image_next(const struct image *i, size_t at) {
    return at + BLOCK_HEADER + load_u32(i->p + at + 20);
}

#endif
