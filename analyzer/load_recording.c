/* The functions that the reader calls, and the rules of what is lost.
 *
 * Each block has a line for every request that is open at its start, with the events so far. So
 *   (L1) a line that counts other events than were told: events of this request are missing
 *   (L2) after blocks were lost, an open request without a line: it ended where nothing was kept
 *   (L3) open across a missing block or while the recorder was away: facts may be missing
 * make a request lost, and so does a loss that names it. */
#include "analyzer/load_recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE ATTRIBUTE_NONE
enum { SPANS_A_JOB = 512 }; /* handing over one by one takes longer than reading them */

void recording_begin(struct recording *r, struct store *store, const uint8_t uuid[16], const char *recorder,
                     int64_t window_ns) {
    *r = (struct recording){
        .store = store, .window_ns = window_ns, .recorder = recorder ? strdup(recorder) : NULL};
    char *p = r->id;
    for (int i = 0; i < 16; i++)
        p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    store_recording(store, r->id, r->recorder, &r->wall);
    r->work = work_open(store, &r->wall);
    r->no_memory = !r->work;
}

static void push(struct recording *r, const struct work_job *j) {
    if (r->work)
        work_push(r->work, j);
    else if (j->kind == WORK_REQUEST)
        open_drop(j->request.o);
    else if (j->kind == WORK_CONNECTION)
        open_drop(j->connection);
    else if (j->kind == WORK_SPANS)
        free(j->spans.at);
}

static void push_spans(struct recording *r) {
    if (r->n_spans > 0) push(r, &(struct work_job){.kind = WORK_SPANS, .spans = {r->spans, r->n_spans}});
    r->spans = NULL;
    r->n_spans = 0;
}

/* ---- settling: from what was told of a request to its row */

static int by_from(const void *a, const void *b) {
    const struct attribute_pause *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int64_t earlier(int64_t a, int64_t b) {
    return a == NONE || (b != NONE && b < a) ? b : a;
}

static struct attribute_facts facts_of(struct recording *r, struct open_subject *o) {
    if (o->n_pauses > 1) qsort(o->pauses, o->n_pauses, sizeof *o->pauses, by_from);
    return (struct attribute_facts){
        .t_end_ns = open_int(o, F_t_end_ns, NONE),
        .cut_ns = earlier(open_int(o, F_t_client_gone_ns, NONE), o->t_lost_ns),
        .t_first_summary_ns = open_int(o, F_t_first_summary_ns, NONE),
        .output_tokens_told = open_int(o, F_output_tokens_told, NONE),
        .reasoning_tokens = open_int(o, F_reasoning_tokens, NONE),
        .reasoning_bytes = open_int(o, F_reasoning_bytes, NONE),
        .rejected_prediction_tokens = open_int(o, F_rejected_prediction_tokens, NONE),
        .lost = o->lost,
        .prediction = open_int(o, F_prediction, 0) == 1,
        .streamed = open_int(o, F_streamed, 0) == 1,
        .window_ns = r->window_ns,
        .pauses = o->pauses,
        .n_pauses = o->n_pauses,
    };
}

static bool ended_as(const struct open_subject *o, const char *how) {
    const struct value *v = &o->facts[F_end_by];
    return v->kind == VALUE_IS_TEXT && strcmp(v->s, how) == 0;
}

static void settle_request(struct recording *r, struct open_subject *o) {
    if (!o->began) open_set_int(o, F_partial, 1);
    if (o->orphan || ended_as(o, "lost")) o->lost = true;
    int64_t arrive = open_int(o, F_t_arrive_ns, NONE);
    /* Lost from an unknown instant on: nothing of it is to be trusted. */
    if (o->lost && o->t_lost_ns == NONE) o->t_lost_ns = arrive;
    push(r, &(struct work_job){.kind = WORK_REQUEST,
                               .request = {o, facts_of(r, o), open_int(o, F_t_forwarded_ns, arrive)}});
}

static void settle_connection(struct recording *r, struct open_subject *o) {
    if (o->began)
        push(r, &(struct work_job){.kind = WORK_CONNECTION, .connection = o});
    else
        open_drop(o);
}

/* (L2) */
static void settle_orphans(struct recording *r) {
    for (size_t i = 0; i < r->requests.n_buckets; i++)
        for (struct open_subject *o = r->requests.buckets[i], *next; o; o = next) {
            next = o->next;
            if (o->seen_block == r->block) continue;
            open_take(&r->requests, o);
            o->lost = true;
            settle_request(r, o);
        }
}

static void settle(struct recording *r) {
    for (size_t i = 0; i < r->n_done; i++) settle_request(r, r->done[i]);
    r->n_done = 0;
    if (r->check) settle_orphans(r);
    r->check = r->check_next;
    r->check_next = false;
}

/* ---- what the reader tells */

static struct open_set *set_of(struct recording *r, enum subject s) {
    return s == SUBJECT_R ? &r->requests : s == SUBJECT_C ? &r->connections : NULL;
}

static void on_block(void *ctx, uint64_t seq, int64_t first_ns, int64_t last_ns) {
    struct recording *r = ctx;
    settle(r);
    r->block++;
    if (r->on_block) r->on_block(r->ctx);
}

static void on_open_line(void *ctx, uint64_t request, uint64_t events, int64_t last_ns) {
    struct recording *r = ctx;
    struct open_subject *o = open_get(&r->requests, request);
    if (!o) {
        r->no_memory = true;
        return;
    }
    o->seen_block = r->block;
    o->orphan = false;
    if (o->told_events == events) return;
    o->told_events = events; /* (L1) */
    o->lost = true;
    if (o->events.n > 0) open_lose(o, o->events.e[o->events.n - 1].t_ns);
}

static void on_begin(void *ctx, enum subject s, uint64_t id, bool snapshot) {
    struct recording *r = ctx;
    struct open_set *set = set_of(r, s);
    struct open_subject *o = set ? open_get(set, id) : NULL;
    if (!o) {
        r->no_memory |= set != NULL;
        return;
    }
    o->began = true;
    o->orphan = false;
    o->seen_block = r->block;
}

static struct open_subject *subject_of(struct recording *r, uint64_t id, enum fact f, enum fact_type a,
                                       enum fact_type b) {
    if ((unsigned)f >= N_FACTS || (fact_infos[f].type != a && fact_infos[f].type != b)) return NULL;
    struct open_set *set = set_of(r, fact_infos[f].subject);
    return set ? open_find(set, id) : NULL;
}

static void on_int(void *ctx, uint64_t id, enum fact f, int64_t v) {
    struct recording *r = ctx;
    struct open_subject *o = subject_of(r, id, f, FACT_INT, FACT_TIME);
    if (o)
        open_set_int(o, f, v);
    else if ((unsigned)f < N_FACTS && fact_infos[f].subject == SUBJECT_T)
        push(r, &(struct work_job){.kind = WORK_FACT, .fact = {f, v}});
}

static void on_real(void *ctx, uint64_t id, enum fact f, double v) {
    struct open_subject *o = subject_of(ctx, id, f, FACT_REAL, FACT_REAL);
    if (o) open_set_real(o, f, v);
}

static void on_text(void *ctx, uint64_t id, enum fact f, const char *p, size_t n) {
    struct recording *r = ctx;
    struct open_subject *o = subject_of(r, id, f, FACT_STR, FACT_STR);
    if (o && !open_set_text(o, f, p, n < FACT_STR_MAX ? n : FACT_STR_MAX)) r->no_memory = true;
}

static void add_span(struct recording *r, struct store_span span) {
    if (!r->spans) r->spans = malloc(SPANS_A_JOB * sizeof *r->spans);
    if (!r->spans) {
        r->no_memory = true;
        return;
    }
    r->spans[r->n_spans++] = span;
    if (r->n_spans == SPANS_A_JOB) push_spans(r);
}

static void on_span(void *ctx, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value) {
    struct recording *r = ctx;
    if ((unsigned)f >= N_FACTS || fact_infos[f].type != FACT_SPAN) return;
    add_span(r, (struct store_span){f, id, t0_ns, t1_ns, value});
    struct open_subject *o = f == F_paused ? open_find(&r->requests, id) : NULL;
    if (o && !open_add_pause(o, t0_ns, t1_ns)) r->no_memory = true;
}

static void on_events(void *ctx, uint64_t request, const struct tok_event *e, size_t n) {
    struct recording *r = ctx;
    struct open_subject *o = open_find(&r->requests, request);
    if (!o) return;
    o->told_events += n;
    if (r->work) work_reuse(r->work, &o->events);
    if (!attribute_push(&o->events, e, n)) r->no_memory = true;
}

static void on_end(void *ctx, enum subject s, uint64_t id) {
    struct recording *r = ctx;
    struct open_set *set = set_of(r, s);
    struct open_subject *o = set ? open_find(set, id) : NULL;
    if (!o) return;
    open_take(set, o);
    o->ended = true;
    if (s == SUBJECT_C) {
        settle_connection(r, o);
    } else if (attribute_room((void **)&r->done, &r->done_room, r->n_done + 1, sizeof *r->done)) {
        r->done[r->n_done++] = o;
    } else {
        r->no_memory = true;
        open_drop(o);
    }
}

/* ---- losses */

static void lose_if_across(struct open_subject *o, int64_t t0_ns, int64_t t1_ns) {
    int64_t arrive = open_int(o, F_t_arrive_ns, NONE), end = open_int(o, F_t_end_ns, INT64_MAX);
    if (arrive <= t1_ns && end >= t0_ns) open_lose(o, t0_ns);
}

/* (L3) */
static void lose_all_across(struct recording *r, int64_t t0_ns, int64_t t1_ns) {
    for (size_t i = 0; i < r->requests.n_buckets; i++)
        for (struct open_subject *o = r->requests.buckets[i]; o; o = o->next) lose_if_across(o, t0_ns, t1_ns);
    for (size_t i = 0; i < r->n_done; i++) lose_if_across(r->done[i], t0_ns, t1_ns);
}

static void lose_one(struct recording *r, uint64_t request, int64_t t_ns) {
    struct open_subject *o = open_find(&r->requests, request);
    for (size_t i = 0; !o && i < r->n_done; i++)
        if (r->done[i]->id == request) o = r->done[i];
    if (o) open_lose(o, t_ns);
}

static void push_loss(struct recording *r, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count,
                      uint64_t bytes, uint64_t request, const char *file) {
    push(r, &(struct work_job){.kind = WORK_LOSS, .loss = {l, t0_ns, t1_ns, count, bytes, request, file}});
}

static void on_loss(void *ctx, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
                    uint64_t request) {
    struct recording *r = ctx;
    if ((unsigned)l >= N_LOSSES) return;
    push_loss(r, l, t0_ns, t1_ns, count, bytes, request, NULL);
    switch (l) {
    case LOSS_queue_full:
    case LOSS_pieces_dropped:
        if (request) lose_one(r, request, t0_ns);
        break;
    case LOSS_recorder_restarted:
    case LOSS_recorder_gone:
    case LOSS_not_recording:
        if (request)
            lose_one(r, request, t0_ns);
        else
            lose_all_across(r, t0_ns, t1_ns);
        r->check = true;
        break;
    case LOSS_disk_full:
    case LOSS_write_failed:
    case LOSS_writer_behind: r->check = true; break; /* lines and the snapshot that follows say what it was */
    default: break;
    }
}

static void on_gap(void *ctx, uint64_t first_missing, uint64_t n_missing, int64_t before_ns,
                   int64_t after_ns) {
    struct recording *r = ctx;
    push_loss(r, LOSS_blocks_missing, before_ns, after_ns, n_missing, 0, 0, r->file);
    lose_all_across(r, before_ns, after_ns);
    r->check_next = true;
}

static void on_damage(void *ctx, uint64_t offset, uint64_t bytes, const char *why) {
    struct recording *r = ctx;
    push_loss(r, LOSS_block_damaged, NONE, NONE, 1, bytes, 0, r->file);
}

static void on_anchor(void *ctx, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    struct recording *r = ctx;
    push(r, &(struct work_job){.kind = WORK_ANCHOR, .anchor = {mono_ns, wall_ns, uncertainty_ns}});
}

static void on_hist(void *ctx, enum hist_name name, const struct hist *h) {
    struct recording *r = ctx;
    if ((unsigned)name >= N_HISTS) return;
    if (!r->hists[name]) r->hists[name] = malloc(sizeof *h);
    if (r->hists[name])
        *r->hists[name] = *h;
    else
        r->no_memory = true;
}

const struct trr_ops recording_ops = {
    .block = on_block,
    .open_line = on_open_line,
    .begin = on_begin,
    .fact_int = on_int,
    .fact_real = on_real,
    .fact_str = on_text,
    .fact_span = on_span,
    .events = on_events,
    .end = on_end,
    .loss = on_loss,
    .anchor = on_anchor,
    .hist = on_hist,
    .damage = on_damage,
    .gap = on_gap,
};

/* ---- parts */

void recording_part(struct recording *r, uint64_t part, const char *file) {
    settle(r);
    /* Parts between are not there: what is not open in this one's snapshot ended in them. */
    if (r->block > 0 && part != r->last_part + 1) {
        for (size_t i = 0; i < r->requests.n_buckets; i++)
            for (struct open_subject *o = r->requests.buckets[i]; o; o = o->next) o->orphan = true;
    }
    r->last_part = part;
    r->file = file;
}

void recording_part_end(struct recording *r) {
    if (r->work) work_wait(r->work);
}

void recording_end(struct recording *r) {
    settle(r);
    for (size_t i = 0; i < r->requests.n_buckets; i++)
        while (r->requests.buckets[i]) {
            struct open_subject *o = r->requests.buckets[i];
            open_take(&r->requests, o);
            settle_request(r, o);
        }
    for (size_t i = 0; i < r->connections.n_buckets; i++)
        while (r->connections.buckets[i]) {
            struct open_subject *o = r->connections.buckets[i];
            open_take(&r->connections, o);
            settle_connection(r, o);
        }
    push_spans(r);
    if (r->work && !work_close(r->work)) r->no_memory = true;
    for (int i = 0; i < N_HISTS; i++) {
        if (r->hists[i]) store_times(r->store, (enum hist_name)i, r->hists[i]);
        free(r->hists[i]);
    }
    open_free(&r->requests);
    open_free(&r->connections);
    free(r->done);
    wall_free(&r->wall);
    free(r->recorder);
    store_recording(r->store, NULL, NULL, NULL);
}
