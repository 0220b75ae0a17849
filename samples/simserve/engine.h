/*
 * The engine model: continuous batching in steps. It does not know HTTP, text, JSON or clocks: the caller
 * says what time it is, sleeps as long as a step lasts, and is called back with what each sequence got. Its
 * one hard idea: a step is planned whole (who takes part, how long it takes) before its time passes, and pays
 * out to all its sequences at one instant at its end. README.md has the formulas.
 */
#ifndef SAMPLES_SIMSERVE_ENGINE_H
#define SAMPLES_SIMSERVE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENGINE_MAX_DRAFTS = 8 };

struct engine_cfg {
    double weight_bytes, bandwidth, kv_bytes; /* bytes; bytes a second; bytes a token of context */
    double prefill_tps;                       /* prompt tokens a second */
    double draft_bytes;                       /* the draft model's weights, read once a draft */
    double overhead_ms, first_step_ms;        /* of every step; on top of the first step of the process */
    uint64_t max_running, step_tokens;        /* sequences at once; tokens a step may process */
    uint64_t kv_tokens, cache_tokens, block_tokens;
    uint64_t drafts; /* draft tokens a step, 0 = no speculation */
    double accept;   /* probability that a draft is accepted, given that those before it were */
    uint64_t seed;
};

enum seq_state { SEQ_NEW, SEQ_WAITING, SEQ_RUNNING, SEQ_DONE };

/* One sequence. The caller owns the memory and sets the first group before engine_submit; the engine writes
 * the rest. It may be freed once its last tokens were delivered or after engine_cancel. */
struct seq {
    const uint32_t *prompt; /* borrowed until the sequence is done */
    uint64_t n_prompt;
    uint64_t n_answer; /* tokens it will produce unless cancelled, >= 1 */
    uint64_t key;      /* decides acceptance, with the position */
    void *owner;

    enum seq_state state;
    uint64_t n_computed, n_out; /* prompt tokens in the KV cache (cached ones too); output tokens */
    uint64_t n_cached;
    uint64_t scheduled_ns, first_ns, last_ns; /* caller's clock */
    uint64_t not_before_ns;                   /* stalled until then */
    uint64_t n_verify, n_drafted, n_accepted;
    uint32_t accepted_hist[ENGINE_MAX_DRAFTS + 1][ENGINE_MAX_DRAFTS + 1]; /* [drafted][accepted] = steps */
    uint64_t chunk; /* prompt tokens of the step in flight */
    struct seq *next, *prev;
    struct seq **slot; /* where the step in flight refers to it */
};

/* Called once for each sequence that got n >= 1 tokens; last: the sequence is done and may be freed in the
 * call; before_ns: when it got its tokens before these (0: these are its first). engine_cancel and
 * engine_submit may be called inside, for this one and for others. */
typedef void engine_on_tokens(struct seq *s, unsigned n, bool last, uint64_t before_ns, uint64_t step);

/* Counters since the start, and gauges. */
struct engine_stats {
    uint64_t prompt_tokens, answer_tokens, prefix_queries, prefix_hits, steps;
    uint64_t drafts, draft_tokens, accepted, accepted_at[ENGINE_MAX_DRAFTS];
    uint64_t running, waiting, kv_blocks_used, kv_blocks;
};

/* What to do next: nothing until a submit (NONE), sleep and then ask again (WAIT), sleep and then call
 * engine_finish_step (STEP). */
enum engine_todo { ENGINE_NONE, ENGINE_WAIT, ENGINE_STEP };

struct engine;

/* NULL: no memory. cfg is copied. */
struct engine *engine_new(const struct engine_cfg *cfg, engine_on_tokens *on_tokens);
void engine_free(struct engine *e);

/* Queues the sequence; prompt and answer together must not exceed cfg.kv_tokens, or it waits for ever. */
void engine_submit(struct engine *e, struct seq *s);

/* Takes the sequence out, wherever it is; no-op when it is done. */
void engine_cancel(struct engine *e, struct seq *s);

/* Plans the next step. *sleep_ns is set for WAIT and STEP. Not to be called between a STEP and its finish. */
enum engine_todo engine_plan_step(struct engine *e, uint64_t now_ns, uint64_t *sleep_ns);

/* Pays out the planned step. */
void engine_finish_step(struct engine *e, uint64_t now_ns);

struct engine_stats engine_stats(const struct engine *e);

#endif
