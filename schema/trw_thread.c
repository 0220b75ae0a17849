/* The queue between the two threads, and the writer's thread: encode, compress, write, sync. When writing
 * fails, blocks are counted instead of written and a write is tried again each second; the first block that
 * gets through says what is missing. */
#include "schema/trw_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RETRY_NS 1000000000

static void lost_sum(struct trw_lost *lost, const struct block_loss *l) {
    struct block_loss *sum = &lost->sum[l->loss];
    bool first = !lost->any[l->loss];
    if (first) *sum = (struct block_loss){l->loss, l->t0_ns, l->t1_ns, 0, 0, l->request};
    lost->any[l->loss] = true;
    if (l->t0_ns < sum->t0_ns) sum->t0_ns = l->t0_ns;
    if (l->t1_ns > sum->t1_ns) sum->t1_ns = l->t1_ns;
    sum->count += l->count;
    sum->bytes += l->bytes;
    if (sum->request != l->request) sum->request = 0;
}

uint64_t trw_lost_add(struct trw_lost *lost, const struct block *b, enum loss why) {
    uint64_t count = b->events.n;
    for (size_t i = 0; i < b->begins.n; i++) count += b->begins.at[i].subject == SUBJECT_R;
    struct block_loss l = {why, b->first_ns, b->last_ns, count, b->weight, 0};
    lost_sum(lost, &l);
    for (size_t i = 0; i < b->losses.n; i++) lost_sum(lost, &b->losses.at[i]);
    return count;
}

void trw_lost_tell(const struct trw_lost *lost, struct block *b) {
    for (int i = 0; i < N_LOSSES; i++) {
        struct block_loss *l = lost->any[i] ? ROWS_ADD(&b->losses) : NULL;
        if (!l) continue;
        *l = lost->sum[i];
        block_time(b, l->t0_ns);
        block_time(b, l->t1_ns);
    }
}

static enum loss loss_of(int e) {
    return e == ENOSPC || e == EDQUOT || e == EFBIG ? LOSS_disk_full : LOSS_write_failed;
}

/* A line for the user, "" when writing works again; the caller's thread hands it on in trw_tick. */
static void say(struct trw_thread *t, const char *what, int e) {
    pthread_mutex_lock(&t->lock);
    if (t->n_changes == 2) memcpy(t->change[0], t->change[1], sizeof t->change[0]);
    unsigned i = t->n_changes == 2 ? 1 : t->n_changes++;
    if (e)
        snprintf(t->change[i], sizeof t->change[i], "%s: %s", what, strerror(e));
    else
        snprintf(t->change[i], sizeof t->change[i], "%s", what);
    pthread_mutex_unlock(&t->lock);
}

static void failed(struct trw_thread *t, int e, int64_t now_ns) {
    if (!t->failing)
        say(t,
            loss_of(e) == LOSS_disk_full
                ? "the trace's disk is full; traffic goes on unrecorded until there is room"
                : "the trace cannot be written; traffic goes on unrecorded, tried again each second",
            e);
    t->failing = e;
    t->retry_ns = now_ns + RETRY_NS;
}

static void worked(struct trw_thread *t) {
    memset(&t->lost, 0, sizeof t->lost);
    if (!t->failing) return;
    t->failing = 0;
    say(t, "", 0);
}

static void count_lost(struct trw_thread *t, enum loss why, uint64_t count) {
    pthread_mutex_lock(&t->lock);
    t->lost_total[why] += count;
    pthread_mutex_unlock(&t->lock);
}

static void publish(struct trw_thread *t, unsigned written, unsigned lost, bool retell) {
    pthread_mutex_lock(&t->lock);
    t->file_bytes = t->file.good_bytes;
    t->blocks += written;
    t->lost_blocks += lost;
    t->retell |= retell;
    t->new_file_needed = t->file.unsynced_loss;
    pthread_mutex_unlock(&t->lock);
}

static int encode_and_write(struct trw_thread *t, struct block *b, int64_t now_ns) {
    trw_lost_tell(&t->lost, b);
    if (!block_encode(&t->encoder, b) ||
        !block_seal_up(&t->encoder, t->file.salt, t->file.next_seq, b->first_ns, b->last_ns))
        return ENOMEM;
    return trw_file_write(&t->file, t->encoder.out.p, t->encoder.out.n, now_ns);
}

static void write_block(struct trw_thread *t, struct block *b) {
    int64_t now_ns = trw_now_ns();
    size_t said = b->losses.n;
    int e = t->failing && now_ns < t->retry_ns ? t->failing : encode_and_write(t, b, now_ns);
    bool was_failing = t->failing;
    if (!e) {
        worked(t);
    } else {
        if (!t->failing || now_ns >= t->retry_ns) failed(t, e, now_ns);
        b->losses.n = said; /* the rows just added are still in t->lost */
        count_lost(t, loss_of(e), trw_lost_add(&t->lost, b, loss_of(e)));
    }
    publish(t, !e, e != 0, !e && was_failing);
}

/* A block with nothing but losses not yet told, when there are any. */
static void write_losses(struct trw_thread *t) {
    bool any = false;
    for (int i = 0; i < N_LOSSES; i++) any |= t->lost.any[i];
    if (!any) return;
    struct block b = {0};
    block_clear(&b);
    int64_t now_ns = trw_now_ns();
    int e = encode_and_write(t, &b, now_ns);
    if (e)
        failed(t, e, now_ns);
    else
        worked(t);
    publish(t, !e, 0, !e);
    block_free(&b);
}

static int sync_file(struct trw_thread *t) {
    int e = trw_file_sync(&t->file);
    t->synced_ns = trw_now_ns();
    if (!e) return 0;
    say(t, "the trace's disk failed; a new file is needed", e);
    t->failing = e;
    t->retry_ns = INT64_MAX;
    publish(t, 0, 0, false);
    return e;
}

static int seal(struct trw_thread *t) {
    write_losses(t);
    int e = trw_file_seal(&t->file, trw_now_ns());
    return e || t->failing ? -1 : 0;
}

static int obey(struct trw_thread *t, enum trw_order order) {
    if (order == ORDER_SYNC) {
        write_losses(t);
        return sync_file(t) ? -1 : 0;
    }
    int result = seal(t);
    if (order == ORDER_ROTATE) {
        trw_file_take_over(&t->file, &t->next);
        if (t->failing) t->retry_ns = 0;
        publish(t, 0, 0, false);
    }
    return result;
}

static void wait_for_work(struct trw_thread *t) {
    if (!t->file.dirty || t->file.unsynced_loss) {
        pthread_cond_wait(&t->work, &t->lock);
        return;
    }
    int64_t until = t->synced_ns + t->flush_interval_ns;
    struct timespec at = {until / 1000000000, until % 1000000000};
    pthread_cond_timedwait(&t->work, &t->lock, &at);
}

static size_t memory_of(const struct block *b) {
    return sizeof *b + b->events.n * (sizeof *b->events.at + sizeof *b->event_run.at) + b->text.n +
           b->facts.n * sizeof *b->facts.at + b->lines.n * sizeof *b->lines.at;
}

/* The block at the head of the queue is written (or dropped): gives its place and memory back. */
static void retire(struct trw_thread *t, size_t bytes) {
    struct block *b = t->queue[t->first], *unused = NULL;
    block_clear(b);
    pthread_mutex_lock(&t->lock);
    t->first = (t->first + 1) % QUEUE_BLOCKS;
    t->n--;
    t->bytes -= bytes;
    if (t->n_spare < QUEUE_SPARE)
        t->spare[t->n_spare++] = b;
    else
        unused = b;
    pthread_cond_signal(&t->done);
    pthread_mutex_unlock(&t->lock);
    if (unused) block_free(unused);
    free(unused);
}

static void finish_order(struct trw_thread *t, int result) {
    pthread_mutex_lock(&t->lock);
    t->order = ORDER_NONE;
    t->result = result;
    pthread_cond_signal(&t->done);
    pthread_mutex_unlock(&t->lock);
}

static void *run(void *arg) {
    struct trw_thread *t = arg;
    enum trw_order order = ORDER_NONE;
    t->synced_ns = trw_now_ns();
    while (order != ORDER_END) {
        pthread_mutex_lock(&t->lock);
        if (!t->n && !t->order) wait_for_work(t);
        struct block *b = t->n ? t->queue[t->first] : NULL;
        order = b ? ORDER_NONE : t->order;
        pthread_mutex_unlock(&t->lock);
        if (b) {
            size_t bytes = memory_of(b);
            write_block(t, b);
            retire(t, bytes);
        } else if (order) {
            finish_order(t, obey(t, order));
        }
        if (t->file.dirty && trw_now_ns() - t->synced_ns >= t->flush_interval_ns) sync_file(t);
    }
    return NULL;
}

int trw_thread_start(struct trw_thread *t) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, &monotonic);
    pthread_cond_init(&t->done, NULL);
    pthread_condattr_destroy(&monotonic);
    t->file_bytes = t->file.good_bytes;
    /* Signals are the caller's thread's. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&t->thread, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

static bool has_room(const struct trw_thread *t) {
    return t->n < QUEUE_BLOCKS && t->bytes < QUEUE_BYTES;
}

bool trw_thread_has_room(struct trw_thread *t) {
    pthread_mutex_lock(&t->lock);
    bool room = has_room(t);
    pthread_mutex_unlock(&t->lock);
    return room;
}

void trw_thread_push(struct trw_thread *t, struct block *b) {
    size_t bytes = memory_of(b);
    pthread_mutex_lock(&t->lock);
    t->queue[(t->first + t->n++) % QUEUE_BLOCKS] = b;
    t->bytes += bytes;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
}

void trw_thread_wait_room(struct trw_thread *t) {
    pthread_mutex_lock(&t->lock);
    while (!has_room(t)) pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

struct block *trw_thread_block(struct trw_thread *t) {
    pthread_mutex_lock(&t->lock);
    struct block *b = t->n_spare ? t->spare[--t->n_spare] : NULL;
    pthread_mutex_unlock(&t->lock);
    if (!b) b = calloc(1, sizeof *b);
    if (b) block_clear(b);
    return b;
}

int trw_thread_order(struct trw_thread *t, enum trw_order order) {
    pthread_mutex_lock(&t->lock);
    t->order = order;
    pthread_cond_signal(&t->work);
    while (t->order) pthread_cond_wait(&t->done, &t->lock);
    int result = t->result;
    pthread_mutex_unlock(&t->lock);
    return result;
}

bool trw_thread_change(struct trw_thread *t, char line[256]) {
    pthread_mutex_lock(&t->lock);
    bool any = t->n_changes > 0;
    if (any) {
        memcpy(line, t->change[0], sizeof t->change[0]);
        memcpy(t->change[0], t->change[1], sizeof t->change[0]);
        t->n_changes--;
    }
    pthread_mutex_unlock(&t->lock);
    return any;
}

bool trw_thread_retell(struct trw_thread *t) {
    pthread_mutex_lock(&t->lock);
    bool retell = t->retell;
    t->retell = false;
    pthread_mutex_unlock(&t->lock);
    return retell;
}

void trw_thread_end(struct trw_thread *t) {
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->done);
    for (size_t i = 0; i < t->n_spare; i++) {
        block_free(t->spare[i]);
        free(t->spare[i]);
    }
    encoder_free(&t->encoder);
}
