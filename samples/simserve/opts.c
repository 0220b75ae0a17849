/* The settings of simserve: one table. The engine's defaults are those of an 8-billion-parameter model in 16
 * bits on an accelerator of 2 TB/s. */
#include "samples/simserve/opts.h"

#include "samples/common/hostport.h"
#include "samples/common/optab.h"

#include <stdio.h>
#include <string.h>

static const char about[] =
    "simserve: a simulated LLM serving engine with the OpenAI API, for trying out recorders and clients.\n"
    "It prints \"simserve: listening on HOST:PORT\" when ready and ends on SIGINT or SIGTERM.\n"
    "--fault takes http500, http429, error (an error object in the stream), cut (an early end), reset, or\n"
    "stall:MILLISECONDS, and how often: =5% of the generations or =/40 (every 40th). A single request can "
    "ask for\n"
    "one with the header X-Sim-Fault: KIND.";

static const char *set_listen(const char *value, void *at) {
    return hostport_parse(value, at);
}

static const char *set_port(const char *value, void *at) {
    if (strchr(value, ':')) return "this takes a port alone; --listen takes HOST:PORT";
    return hostport_parse(value, at);
}

static void set_defaults(struct opts *o) {
    memset(o, 0, sizeof *o);
    hostport_parse("127.0.0.1:8000", &o->listen);
    o->model = "sim/kestrel-8b";
    o->engine = (struct engine_cfg){.weight_bytes = 16e9,
                                    .bandwidth = 2e12,
                                    .kv_bytes = 131072,
                                    .prefill_tps = 25000,
                                    .draft_bytes = 1e9,
                                    .overhead_ms = 0.5,
                                    .max_running = 64,
                                    .step_tokens = 1024,
                                    .kv_tokens = 400000,
                                    .cache_tokens = 100000,
                                    .block_tokens = 16,
                                    .accept = 0.7,
                                    .seed = 1};
    o->mean_answer = 120;
    o->max_len = 32768;
    o->fault_after = 3;
    o->idle_ms = 5000;
    o->drain_ms = 5000;
    o->max_body_bytes = 32 << 20;
}

/* Decoding sequences must always fit into a step (see fill_batch in engine.c), and any legal request into the
 * KV cache, or it would wait for ever. */
static int check(const struct opts *o) {
    uint64_t least = o->engine.max_running * (1 + o->engine.drafts);

    if (o->engine.step_tokens < least) {
        fprintf(
            stderr,
            "simserve: --step-tokens: it must be at least --max-running times (1 + --drafts), here %llu\n",
            (unsigned long long)least);
        return 2;
    }
    if (o->engine.kv_tokens < o->max_len + o->engine.block_tokens) {
        fprintf(stderr,
                "simserve: --kv-tokens: one longest request (--max-len) does not fit, here %llu tokens\n",
                (unsigned long long)o->max_len);
        return 2;
    }
    return 0;
}

int opts_read(struct opts *o, int argc, char **argv) {
    struct engine_cfg *e = &o->engine;
    const struct optab table[] = {
        {"Serving", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"listen", OPTAB_CALL, &o->listen, 0, 0, "HOST:PORT", "where to listen [127.0.0.1:8000]", set_listen},
        {"port", OPTAB_CALL, &o->listen, 0, 0, "PORT", "the same on 127.0.0.1; 0: a free one", set_port},
        {"model", OPTAB_TEXT, &o->model, 0, 0, "NAME", "the model's name in answers", NULL},
        {"load-ms", OPTAB_UINT, &o->load_ms, 0, 1e7, "MS", "answer 503 \"Loading model\" for so long", NULL},
        {"idle-ms", OPTAB_UINT, &o->idle_ms, 1, 1e9, "MS", "close idle connections after", NULL},
        {"drain-ms", OPTAB_UINT, &o->drain_ms, 0, 1e7, "MS", "time for running requests when stopped", NULL},
        {"max-body", OPTAB_UINT, &o->max_body_bytes, 1, 1e9, "BYTES", "largest request body, else 413", NULL},
        {"half-close", OPTAB_FLAG, &o->half_close, 0, 0, NULL, "an end of input is no abort of the client",
         NULL},
        {"truth", OPTAB_TEXT, &o->truth_path, 0, 0, "FILE", "write what is done when (must not exist)", NULL},
        {"seed", OPTAB_UINT, &e->seed, 0, 1e15, "N", "seed of the engine's decisions", NULL},

        {"Engine", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"weight-bytes", OPTAB_REAL, &e->weight_bytes, 0, 1e15, "B", "weights read in every step", NULL},
        {"bandwidth", OPTAB_REAL, &e->bandwidth, 1, 1e18, "B/S", "memory bandwidth", NULL},
        {"kv-bytes", OPTAB_REAL, &e->kv_bytes, 0, 1e12, "B", "KV cache bytes a token of context", NULL},
        {"prefill-tps", OPTAB_REAL, &e->prefill_tps, 1, 1e12, "N", "prompt tokens computed a second", NULL},
        {"overhead-ms", OPTAB_REAL, &e->overhead_ms, 0, 1e5, "MS", "fixed time of every step", NULL},
        {"first-step-ms", OPTAB_REAL, &e->first_step_ms, 0, 1e6, "MS", "extra time of the first step", NULL},
        {"max-running", OPTAB_UINT, &e->max_running, 1, 65536, "N", "sequences in the batch", NULL},
        {"step-tokens", OPTAB_UINT, &e->step_tokens, 1, 1e7, "N",
         "tokens a step: decode first, prefill the rest", NULL},
        {"queue-limit", OPTAB_UINT, &o->queue_limit, 0, 1e6, "N", "429 when so many wait; 0: never", NULL},
        {"max-len", OPTAB_UINT, &o->max_len, 2, 1e7, "N", "tokens of prompt and answer, else 400", NULL},
        {"mean-answer", OPTAB_REAL, &o->mean_answer, 1, 1e6, "N", "mean length of answers in tokens", NULL},
        {"kv-tokens", OPTAB_UINT, &e->kv_tokens, 16, 1e9, "N", "size of the KV cache in tokens", NULL},

        {"Prefix cache", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"cache-tokens", OPTAB_UINT, &e->cache_tokens, 0, 1e8, "N", "its size in tokens; 0: none", NULL},
        {"block-tokens", OPTAB_UINT, &e->block_tokens, 1, 4096, "N", "tokens of a block", NULL},
        {"report-zero-cache", OPTAB_FLAG, &o->always_report_cache, 0, 0, NULL,
         "report cached_tokens when it is 0 too", NULL},

        {"Speculation", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"drafts", OPTAB_UINT, &e->drafts, 0, ENGINE_MAX_DRAFTS, "K", "draft tokens a step; 0: none", NULL},
        {"accept", OPTAB_REAL, &e->accept, 0, 1, "P", "probability that the next draft is accepted", NULL},
        {"draft-bytes", OPTAB_REAL, &e->draft_bytes, 0, 1e15, "B", "weights of the draft model", NULL},
        {"request-metrics", OPTAB_FLAG, &o->metrics_per_request, 0, 0, NULL,
         "`metrics` beside the usage, as vLLM", NULL},

        {"Failures", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"fault", OPTAB_CALL, &o->faults, 0, 0, "KIND=HOW",
         "let some generations fail (may repeat; first match counts)", fault_add_rule},
        {"fault-after", OPTAB_UINT, &o->fault_after, 0, 1e6, "N", "after so many events with tokens", NULL},
        {NULL, OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL}};
    int st;

    set_defaults(o);
    st = optab_parse(table, "simserve", about, argc, argv);
    return st ? st : check(o);
}
