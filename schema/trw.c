/* The caller's side of the writer: rows are appended to the block under construction, which is handed over
 * when it is full or old. Nothing here encodes, compresses or writes. */
#include "schema/trw.h"
#include "schema/trw_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_FULL (64 << 10) /* estimated bytes of the body */
/* Counted from the tick before its first row. With a tick each 48 ms a block holds 96 ms, and what is said is
 * out of the process 100 ms after it happened; see record.c. */
#define BLOCK_AGE_NS 90000000
#define MAX_LINES    (1 << 16) /* open lines in a block; requests beyond have none */

/* Estimated bytes of a row in the body. */
enum { W_EVENT = 6, W_SUBJECT = 3, W_FACT = 8, W_SPAN = 16, W_LOSS = 24, W_ANCHOR = 20, W_HIST = 1024 };

struct trw {
    struct trw_config config;
    struct subjects subjects;
    struct block *block;   /* under construction */
    uint64_t block_number; /* counts blocks, so that a subject knows whether its run is of this one */
    int64_t now_ns;        /* of the last tick */
    int64_t opened_ns;     /* when the first row came */
    struct trw_lost lost;  /* blocks dropped on this side */
    uint64_t events, lost_blocks, lost_behind; /* blocks dropped here, what they held */
    bool retell;                               /* a snapshot is due */
    struct trw_thread thread;
};

/* Begins the next block: what is open goes into its lines. */
static void next_block(struct trw *w) {
    w->block_number++;
    subjects_sweep(&w->subjects);
    for (size_t i = 0; i < w->subjects.n && w->block->lines.n < MAX_LINES; i++) {
        const struct subject_entry *e = &w->subjects.at[i];
        struct block_line *l = e->subject == SUBJECT_R ? ROWS_ADD(&w->block->lines) : NULL;
        if (l) *l = (struct block_line){e->id, e->events, e->last_ns};
    }
}

/* Hands the block over, or drops it when the writer's thread is too far behind. */
static void hand_over(struct trw *w) {
    struct block *b = w->block;
    if (b->first_ns > b->last_ns && !block_empty(b)) block_time(b, w->now_ns);
    struct block *next = trw_thread_has_room(&w->thread) ? trw_thread_block(&w->thread) : NULL;
    if (next) {
        trw_lost_tell(&w->lost, b);
        memset(&w->lost, 0, sizeof w->lost);
        trw_thread_push(&w->thread, b);
        w->block = next;
        return;
    }
    w->lost_behind += trw_lost_add(&w->lost, b, LOSS_writer_behind);
    w->lost_blocks++;
    w->retell = true;
    block_clear(b);
}

static void cut(struct trw *w) {
    if (block_empty(w->block) && !(w->lost.any[LOSS_writer_behind] && trw_thread_has_room(&w->thread)))
        return;
    hand_over(w);
    next_block(w);
}

/* A row of some weight came: a full block goes out. */
static void grew(struct trw *w, size_t weight) {
    if (!w->block->weight) w->opened_ns = w->now_ns;
    w->block->weight += weight;
    if (w->block->weight >= BLOCK_FULL) cut(w);
}

/* Tells all that is open once more, in blocks with nothing else in them. Without waiting, what does not fit
 * into the queue is left out. */
static void snapshot(struct trw *w, bool wait) {
    if (wait) trw_thread_wait_room(&w->thread);
    cut(w);
    for (size_t i = 0; i < w->subjects.n; i++) {
        if (!wait && !trw_thread_has_room(&w->thread)) break;
        subject_retell(&w->subjects.at[i], w->block);
        w->block->weight += W_SUBJECT + w->subjects.at[i].facts.n / 2;
        if (w->block->weight < BLOCK_FULL) continue;
        if (wait) trw_thread_wait_room(&w->thread);
        cut(w);
    }
    if (wait) trw_thread_wait_room(&w->thread);
    cut(w);
}

static bool open_file(struct trw_file *f, const struct trw_config *c, char *err, size_t err_size) {
    if (c->state->next_seq > 0) return trw_file_resume(f, err, err_size) == 0;
    if (trw_file_begin(f, c->head) == 0) return true;
    snprintf(err, err_size, "cannot write the trace's head: %s",
             errno == EAGAIN ? "another program writes this file" : strerror(errno));
    return false;
}

struct trw *trw_open(const struct trw_config *config, char *err, size_t err_size) {
    struct trw *w = calloc(1, sizeof *w);
    struct block *b = calloc(1, sizeof *b);
    if (!w || !b) {
        snprintf(err, err_size, "out of memory");
        goto fail;
    }
    w->config = *config;
    w->block = b;
    w->now_ns = trw_now_ns();
    block_clear(b);
    struct trw_thread *t = &w->thread;
    t->flush_interval_ns = config->flush_interval_ns;
    t->file =
        (struct trw_file){.fd = config->fd, .state = config->state, .min_free_bytes = config->min_free_bytes};
    if (!open_file(&t->file, config, err, err_size)) goto fail;
    int e = trw_thread_start(t);
    if (e) {
        snprintf(err, err_size, "cannot start the writer's thread: %s", strerror(e));
        goto fail;
    }
    next_block(w);
    return w;
fail:
    free(b);
    free(w);
    return NULL;
}

static void add_subject(struct trw *w, struct block_subject **at, size_t *n, size_t *cap, enum subject s,
                        uint64_t id) {
    struct block_subject *row = rows_add(at, n, cap, sizeof **at);
    if (row) *row = (struct block_subject){id, s, false};
    grew(w, W_SUBJECT);
}

void trw_begin(struct trw *w, enum subject s, uint64_t id) {
    struct subject_entry *e = subjects_get(&w->subjects, s, id);
    if (e) e->begun = true;
    add_subject(w, &w->block->begins.at, &w->block->begins.n, &w->block->begins.cap, s, id);
}

void trw_end(struct trw *w, enum subject s, uint64_t id) {
    struct subject_entry *e = subjects_find(&w->subjects, s, id);
    if (e) e->ended = true;
    add_subject(w, &w->block->ends.at, &w->block->ends.n, &w->block->ends.cap, s, id);
}

/* The open subject of a fact, NULL when it is not kept (the recording's own, or not open). */
static struct subject_entry *keeper(struct trw *w, uint64_t id, enum fact f) {
    if (fact_infos[f].subject == SUBJECT_T) return NULL;
    struct subject_entry *e = subjects_find(&w->subjects, fact_infos[f].subject, id);
    return e && e->begun && !e->ended ? e : NULL;
}

static void add_fact(struct trw *w, const struct block_fact *f, const char *text) {
    struct subject_entry *e = keeper(w, f->id, (enum fact)f->fact);
    if (e) subject_keep(e, f, text);
    struct block_fact *row = ROWS_ADD(&w->block->facts);
    if (row) *row = *f;
    if (f->kind == VALUE_TIME) block_time(w->block, f->i);
    grew(w, W_FACT + (f->kind == VALUE_STR ? f->n : 0));
}

void trw_int(struct trw *w, uint64_t id, enum fact f, int64_t value) {
    assert(fact_infos[f].type == FACT_INT || fact_infos[f].type == FACT_TIME);
    struct block_fact row = {.id = id, .fact = f, .kind = VALUE_INT, .i = value};
    if (fact_infos[f].type == FACT_TIME) row.kind = VALUE_TIME;
    add_fact(w, &row, NULL);
}

void trw_real(struct trw *w, uint64_t id, enum fact f, double value) {
    assert(fact_infos[f].type == FACT_REAL);
    add_fact(w, &(struct block_fact){.id = id, .fact = f, .kind = VALUE_REAL, .r = value}, NULL);
}

/* Bytes of p that are kept: never the beginning of a UTF-8 character without its end. */
static size_t kept_bytes(const char *p, size_t n) {
    if (n <= FACT_STR_MAX) return n;
    size_t kept = FACT_STR_MAX;
    while (kept > FACT_STR_MAX - 4 && ((unsigned char)p[kept] & 0xc0) == 0x80) kept--;
    return kept;
}

void trw_str(struct trw *w, uint64_t id, enum fact f, const char *p, size_t n) {
    assert(fact_infos[f].type == FACT_STR);
    size_t kept = kept_bytes(p, n);
    if (kept < n)
        trw_loss(w, LOSS_fact_cut, w->now_ns, w->now_ns, 1, n - kept,
                 fact_infos[f].subject == SUBJECT_R ? id : 0);
    struct block_fact row = {.id = id, .fact = f, .kind = VALUE_STR};
    row.at = (uint32_t)w->block->text.n;
    row.n = (uint32_t)kept;
    bytes_put(&w->block->text, p, kept);
    if (w->block->text.failed) row.n = 0;
    add_fact(w, &row, p);
}

void trw_span(struct trw *w, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value) {
    assert(fact_infos[f].type == FACT_SPAN);
    struct block_span s = {id, f, t0_ns, t1_ns, value};
    struct subject_entry *e = keeper(w, id, f);
    if (e) subject_keep_span(e, &s);
    struct block_span *row = ROWS_ADD(&w->block->spans);
    if (row) *row = s;
    block_time(w->block, t0_ns);
    block_time(w->block, t1_ns);
    grew(w, W_SPAN);
}

/* The request's run in this block, begun when this is its first event here. */
static bool run_of(struct trw *w, struct subject_entry *s) {
    if (s->run_block == w->block_number) return true;
    struct block_run *r = ROWS_ADD(&w->block->runs);
    if (!r) return false;
    r->request = s->id;
    s->run = (uint32_t)(w->block->runs.n - 1);
    s->run_block = w->block_number;
    return true;
}

/* Room for one more event and its run; grown together. */
static bool room_for_event(struct block *b) {
    if (b->events.n < b->events.cap && b->event_run.n < b->event_run.cap) return true;
    if (!ROWS_ADD(&b->events)) return false;
    b->events.n--;
    if (!ROWS_ADD(&b->event_run)) return false;
    b->event_run.n--;
    return true;
}

void trw_event(struct trw *w, const struct tok_event *e) {
    struct block *b = w->block;
    struct subject_entry *s = subjects_get(&w->subjects, SUBJECT_R, e->request);
    if (!s || !run_of(w, s) || !room_for_event(b)) return;
    b->event_run.at[b->event_run.n++] = s->run;
    b->events.at[b->events.n++] = *e;
    b->runs.at[s->run].n++;
    s->events++;
    s->last_ns = e->t_ns;
    w->events++;
    block_time(b, e->t_ns);
    grew(w, W_EVENT);
}

void trw_loss(struct trw *w, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t n, uint64_t bytes,
              uint64_t request) {
    struct block_loss *row = ROWS_ADD(&w->block->losses);
    if (row) *row = (struct block_loss){l, t0_ns, t1_ns, n, bytes, request};
    block_time(w->block, t0_ns);
    block_time(w->block, t1_ns);
    grew(w, W_LOSS);
}

void trw_anchor(struct trw *w, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    struct block_anchor *row = ROWS_ADD(&w->block->anchors);
    if (row) *row = (struct block_anchor){mono_ns, wall_ns, uncertainty_ns};
    block_time(w->block, mono_ns);
    grew(w, W_ANCHOR);
}

void trw_hist(struct trw *w, enum hist_name name, const struct hist *h) {
    struct hist **to = &w->block->hists[name];
    if (!*to) *to = malloc(sizeof **to);
    if (!*to) return;
    **to = *h;
    w->block->hists_set |= 1u << name;
    grew(w, W_HIST);
}

void trw_tick(struct trw *w, int64_t now_ns) {
    char line[256];
    w->now_ns = now_ns;
    if (w->lost.any[LOSS_writer_behind] || (w->block->weight && now_ns - w->opened_ns >= BLOCK_AGE_NS))
        cut(w);
    if (trw_thread_retell(&w->thread)) w->retell = true;
    if (w->retell && !w->lost.any[LOSS_writer_behind] && trw_thread_has_room(&w->thread)) {
        w->retell = false;
        snapshot(w, false);
    }
    while (trw_thread_change(&w->thread, line))
        if (w->config.on_change) w->config.on_change(w->config.ctx, *line ? line : NULL);
}

void trw_flush(struct trw *w) {
    trw_thread_wait_room(&w->thread);
    cut(w);
    trw_thread_order(&w->thread, ORDER_SYNC);
}

int trw_rotate(struct trw *w, int fd, char *err, size_t err_size) {
    /* No more than these two: the rest of the state is the writer's thread's while it writes. */
    struct trw_state state = {.part = w->config.state->part + 1};
    memcpy(state.recording, w->config.state->recording, sizeof state.recording);
    struct trw_file *next = &w->thread.next;
    *next = (struct trw_file){.fd = fd, .state = &state, .min_free_bytes = w->config.min_free_bytes};
    if (trw_file_begin(next, w->config.head) != 0) {
        snprintf(err, err_size, "cannot begin the next part: %s", strerror(errno));
        return -1;
    }
    next->state = w->config.state;
    trw_thread_wait_room(&w->thread);
    cut(w);
    trw_thread_order(&w->thread, ORDER_ROTATE);
    w->config.fd = fd;
    snapshot(w, true);
    return 0;
}

int trw_close(struct trw *w) {
    trw_thread_wait_room(&w->thread);
    cut(w);
    int result = trw_thread_order(&w->thread, ORDER_END);
    trw_thread_end(&w->thread);
    subjects_free(&w->subjects);
    block_free(w->block);
    free(w->block);
    free(w);
    return result;
}

bool trw_needs_new_file(struct trw *w) {
    pthread_mutex_lock(&w->thread.lock);
    bool needed = w->thread.new_file_needed;
    pthread_mutex_unlock(&w->thread.lock);
    return needed;
}

void trw_totals(const struct trw *w, struct trw_totals *t) {
    struct trw_thread *thread = (struct trw_thread *)(uintptr_t)&w->thread;
    pthread_mutex_lock(&thread->lock);
    *t = (struct trw_totals){
        thread->file_bytes, thread->blocks, w->events, thread->lost_blocks + w->lost_blocks, {0}};
    memcpy(t->lost, thread->lost_total, sizeof t->lost);
    t->lost[LOSS_writer_behind] += w->lost_behind;
    pthread_mutex_unlock(&thread->lock);
}
