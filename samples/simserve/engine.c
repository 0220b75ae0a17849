/* The engine model: admission, planning of a step, pay-out. */
#include "samples/simserve/engine.h"

#include "samples/common/rng.h"
#include "samples/simserve/prefix.h"

#include <stdlib.h>
#include <string.h>

struct list {
    struct seq *first, *last;
    uint64_t n;
};

struct engine {
    struct engine_cfg cfg;
    engine_on_tokens *on_tokens;
    struct prefix *prefix;
    struct list waiting, running;
    uint64_t reserved_blocks, total_blocks;
    struct seq **batch; /* the step in flight; a cancelled sequence leaves NULL */
    size_t n_batch;
    uint64_t n_prefill, n_decode, context; /* what the step in flight computes and reads, in tokens */
    struct engine_stats stats;
};

static void list_append(struct list *l, struct seq *s) {
    s->next = NULL;
    s->prev = l->last;
    if (l->last)
        l->last->next = s;
    else
        l->first = s;
    l->last = s;
    l->n++;
}

static void list_remove(struct list *l, struct seq *s) {
    if (s->prev)
        s->prev->next = s->next;
    else
        l->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        l->last = s->prev;
    l->n--;
}

struct engine *engine_new(const struct engine_cfg *cfg, engine_on_tokens *on_tokens) {
    struct engine *e = calloc(1, sizeof *e);

    if (!e) return NULL;
    e->cfg = *cfg;
    e->on_tokens = on_tokens;
    e->total_blocks = cfg->kv_tokens / cfg->block_tokens;
    e->prefix = prefix_new(cfg->cache_tokens / cfg->block_tokens, (unsigned)cfg->block_tokens);
    e->batch = calloc(cfg->max_running, sizeof(struct seq *));
    if (e->prefix && e->batch) return e;
    engine_free(e);
    return NULL;
}

void engine_free(struct engine *e) {
    if (!e) return;
    prefix_free(e->prefix);
    free(e->batch);
    free(e);
}

static uint64_t blocks(const struct engine *e, uint64_t tokens) {
    return (tokens + e->cfg.block_tokens - 1) / e->cfg.block_tokens;
}

void engine_submit(struct engine *e, struct seq *s) {
    s->state = SEQ_WAITING;
    list_append(&e->waiting, s);
}

void engine_cancel(struct engine *e, struct seq *s) {
    if (s->state == SEQ_WAITING) list_remove(&e->waiting, s);
    if (s->state == SEQ_RUNNING) {
        list_remove(&e->running, s);
        e->reserved_blocks -= blocks(e, s->n_prompt + s->n_answer);
        if (s->slot) *s->slot = NULL;
    }
    s->slot = NULL;
    s->state = SEQ_DONE;
}

/* The blocks of the whole answer are reserved at once. A real engine cannot know its length and preempts
 * instead; this one has no preemption, and says so in its documentation. */
static void admit(struct engine *e, uint64_t now_ns) {
    while (e->waiting.first && e->running.n < e->cfg.max_running) {
        struct seq *s = e->waiting.first;
        uint64_t need = blocks(e, s->n_prompt + s->n_answer);

        if (e->reserved_blocks + need > e->total_blocks) return;
        list_remove(&e->waiting, s);
        list_append(&e->running, s);
        e->reserved_blocks += need;
        s->state = SEQ_RUNNING;
        s->scheduled_ns = now_ns;
        s->n_cached = prefix_match(e->prefix, s->prompt, s->n_prompt);
        s->n_computed = s->n_cached;
        e->stats.prefix_queries += s->n_prompt;
        e->stats.prefix_hits += s->n_cached;
    }
}

static void join(struct engine *e, struct seq *s) {
    s->slot = &e->batch[e->n_batch++];
    *s->slot = s;
    e->context += s->n_computed + s->n_out;
}

static bool is_decoding(const struct seq *s) {
    return s->n_out > 0;
}

/* Decoding sequences first: a step never makes a running answer wait for somebody's long prompt. */
static void fill_batch(struct engine *e, uint64_t now_ns) {
    uint64_t budget = e->cfg.step_tokens;

    e->n_batch = 0;
    e->n_prefill = e->n_decode = e->context = 0;
    for (struct seq *s = e->running.first; s; s = s->next) {
        if (!is_decoding(s) || s->not_before_ns > now_ns || budget < 1 + e->cfg.drafts) continue;
        budget -= 1 + e->cfg.drafts;
        e->n_decode++;
        join(e, s);
    }
    for (struct seq *s = e->running.first; s && budget > 0; s = s->next) {
        if (is_decoding(s) || s->not_before_ns > now_ns) continue;
        s->chunk = s->n_prompt - s->n_computed < budget ? s->n_prompt - s->n_computed : budget;
        budget -= s->chunk;
        e->n_prefill += s->chunk;
        join(e, s);
    }
}

static uint64_t step_ns(const struct engine *e) {
    const struct engine_cfg *c = &e->cfg;
    double seconds = c->overhead_ms / 1e3;

    if (e->stats.steps == 0) seconds += c->first_step_ms / 1e3;
    seconds += c->weight_bytes / c->bandwidth;
    seconds += (double)e->context * c->kv_bytes / c->bandwidth;
    seconds += (double)e->n_prefill / c->prefill_tps;
    if (e->n_decode > 0) seconds += (double)c->drafts * c->draft_bytes / c->bandwidth;
    return (uint64_t)(seconds * 1e9);
}

/* The time until the first stalled sequence may go on; 0 when none is stalled. */
static uint64_t stall_ns(const struct engine *e, uint64_t now_ns) {
    uint64_t least = 0;

    for (const struct seq *s = e->running.first; s; s = s->next) {
        if (s->not_before_ns <= now_ns) continue;
        if (least == 0 || s->not_before_ns - now_ns < least) least = s->not_before_ns - now_ns;
    }
    return least;
}

enum engine_todo engine_plan_step(struct engine *e, uint64_t now_ns, uint64_t *sleep_ns) {
    admit(e, now_ns);
    fill_batch(e, now_ns);
    if (e->n_batch > 0) {
        *sleep_ns = step_ns(e);
        return ENGINE_STEP;
    }
    *sleep_ns = stall_ns(e, now_ns);
    return *sleep_ns > 0 ? ENGINE_WAIT : ENGINE_NONE;
}

/* Drafts near the end are cut to what is still needed, so that for every finished sequence
 * answer = 1 (from the prefill) + verify steps + accepted drafts, exactly. */
static unsigned verify(struct engine *e, struct seq *s) {
    uint64_t left = s->n_answer - s->n_out - 1;
    unsigned drafted = (unsigned)(e->cfg.drafts < left ? e->cfg.drafts : left);
    unsigned n = 0;

    if (e->cfg.drafts == 0) return 0;
    while (n < drafted && rng_unit(rng_mix(s->key, s->n_out * 16 + n)) < e->cfg.accept) {
        e->stats.accepted_at[n]++;
        n++;
    }
    s->n_verify++;
    s->n_drafted += drafted;
    s->n_accepted += n;
    s->accepted_hist[drafted][n]++;
    e->stats.drafts++;
    e->stats.draft_tokens += drafted;
    e->stats.accepted += n;
    return n;
}

/* Tokens the sequence gets from this step; 0 when its prompt is not yet whole. */
static unsigned advance(struct engine *e, struct seq *s) {
    if (is_decoding(s)) return 1 + verify(e, s);
    s->n_computed += s->chunk;
    if (s->n_computed < s->n_prompt) return 0;
    prefix_insert(e->prefix, s->prompt, s->n_prompt);
    e->stats.prompt_tokens += s->n_prompt;
    return 1;
}

static void pay_out(struct engine *e, struct seq *s, uint64_t now_ns) {
    unsigned n = advance(e, s);
    uint64_t before_ns = s->last_ns;
    bool last;

    s->slot = NULL;
    if (n == 0) return;
    if (s->n_out == 0) s->first_ns = now_ns;
    s->last_ns = now_ns;
    s->n_out += n;
    e->stats.answer_tokens += n;
    last = s->n_out == s->n_answer;
    if (last) engine_cancel(e, s);
    e->on_tokens(s, n, last, before_ns, e->stats.steps); /* s may be gone now */
}

void engine_finish_step(struct engine *e, uint64_t now_ns) {
    e->stats.steps++;
    for (size_t i = 0; i < e->n_batch; i++) {
        if (e->batch[i]) pay_out(e, e->batch[i], now_ns);
    }
    e->n_batch = 0;
}

struct engine_stats engine_stats(const struct engine *e) {
    struct engine_stats stats = e->stats;

    stats.running = e->running.n;
    stats.waiting = e->waiting.n;
    stats.kv_blocks = e->total_blocks;
    stats.kv_blocks_used = 0;
    for (const struct seq *s = e->running.first; s; s = s->next) {
        stats.kv_blocks_used += blocks(e, s->n_computed + s->n_out);
    }
    return stats;
}
