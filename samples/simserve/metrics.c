/* The Prometheus page. */
#include "samples/simserve/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double bounds[METRICS_BUCKETS - 1] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3,
                                                   0.6,   1.0,   2.5,  5.0,  10.0, 30.0, 60.0};

void metrics_init(struct metrics *m) {
    struct timespec now;

    memset(m, 0, sizeof *m);
    clock_gettime(CLOCK_REALTIME, &now);
    m->start_time_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void metrics_observe(struct metrics_hist *h, uint64_t duration_ns) {
    double seconds = (double)duration_ns / 1e9;

    for (int i = 0; i < METRICS_BUCKETS - 1; i++) {
        if (seconds <= bounds[i]) h->bucket[i]++;
    }
    h->bucket[METRICS_BUCKETS - 1]++;
    h->sum += seconds;
}

/* The label values of a page are the same on every line; the model's name is escaped once. */
struct page {
    FILE *f;
    char labels[600];
};

static void make_labels(struct page *p, const char *model) {
    size_t n = (size_t)snprintf(p->labels, sizeof p->labels, "engine=\"0\",model_name=\"");

    for (const char *c = model; *c && n < sizeof p->labels - 4; c++) {
        if (*c == '"' || *c == '\\') p->labels[n++] = '\\';
        p->labels[n++] = *c == '\n' ? ' ' : *c;
    }
    p->labels[n++] = '"';
    p->labels[n] = '\0';
}

static void head(struct page *p, const char *name, const char *type, const char *help) {
    fprintf(p->f, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n", name, help, name, type);
}

static void gauge(struct page *p, const char *name, double value, const char *help) {
    head(p, name, "gauge", help);
    fprintf(p->f, "vllm:%s{%s} %.17g\n", name, p->labels, value);
}

static void counter(struct page *p, const char *name, uint64_t value, const char *help) {
    head(p, name, "counter", help);
    fprintf(p->f, "vllm:%s{%s} %" PRIu64 "\n", name, p->labels, value);
}

static void histogram(struct page *p, const char *name, const struct metrics_hist *h, const char *help) {
    head(p, name, "histogram", help);
    for (int i = 0; i < METRICS_BUCKETS - 1; i++) {
        fprintf(p->f, "vllm:%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, p->labels, bounds[i], h->bucket[i]);
    }
    fprintf(p->f, "vllm:%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, p->labels,
            h->bucket[METRICS_BUCKETS - 1]);
    fprintf(p->f, "vllm:%s_sum{%s} %.9f\n", name, p->labels, h->sum);
    fprintf(p->f, "vllm:%s_count{%s} %" PRIu64 "\n", name, p->labels, h->bucket[METRICS_BUCKETS - 1]);
}

static void speculation(struct page *p, const struct engine_stats *s, uint64_t drafts) {
    if (drafts == 0) return;
    counter(p, "spec_decode_num_drafts_total", s->drafts, "Verify steps.");
    counter(p, "spec_decode_num_draft_tokens_total", s->draft_tokens, "Drafted tokens.");
    counter(p, "spec_decode_num_accepted_tokens_total", s->accepted, "Accepted draft tokens.");
    head(p, "spec_decode_num_accepted_tokens_per_pos_total", "counter", "Accepted draft tokens by position.");
    for (uint64_t i = 0; i < drafts; i++) {
        fprintf(p->f,
                "vllm:spec_decode_num_accepted_tokens_per_pos_total{%s,position=\"%" PRIu64 "\"} %" PRIu64
                "\n",
                p->labels, i, s->accepted_at[i]);
    }
}

static void finished(struct page *p, const struct metrics *m) {
    head(p, "request_success_total", "counter", "Finished requests.");
    fprintf(p->f, "vllm:request_success_total{%s,finished_reason=\"stop\"} %" PRIu64 "\n", p->labels,
            m->success_stop);
    fprintf(p->f, "vllm:request_success_total{%s,finished_reason=\"length\"} %" PRIu64 "\n", p->labels,
            m->success_length);
    fprintf(p->f, "vllm:request_success_total{%s,finished_reason=\"abort\"} %" PRIu64 "\n", p->labels,
            m->success_abort);
}

static void write_page(struct page *p, const struct metrics *m, const struct engine_stats *s,
                       const struct engine_cfg *cfg) {
    fprintf(p->f,
            "# HELP process_start_time_seconds Start time of the process since the epoch.\n"
            "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.6f\n",
            m->start_time_s);
    gauge(p, "num_requests_running", (double)s->running, "Sequences in the batch.");
    gauge(p, "num_requests_waiting", (double)s->waiting, "Sequences waiting.");
    gauge(p, "kv_cache_usage_perc", (double)s->kv_blocks_used / (double)s->kv_blocks,
          "KV cache in use, 0 to 1.");
    head(p, "cache_config_info", "gauge", "The cache's settings.");
    fprintf(p->f, "vllm:cache_config_info{block_size=\"%" PRIu64 "\",num_gpu_blocks=\"%" PRIu64 "\",%s} 1\n",
            cfg->block_tokens, s->kv_blocks, p->labels);
    counter(p, "prompt_tokens_total", s->prompt_tokens, "Prompt tokens, cached ones too.");
    counter(p, "generation_tokens_total", s->answer_tokens, "Generated tokens.");
    counter(p, "prefix_cache_queries_total", s->prefix_queries, "Tokens looked up in the prefix cache.");
    counter(p, "prefix_cache_hits_total", s->prefix_hits, "Tokens found in the prefix cache.");
    counter(p, "num_preemptions_total", 0, "Preemptions: this engine has none.");
    speculation(p, s, cfg->drafts);
    finished(p, m);
    histogram(p, "time_to_first_token_seconds", &m->ttft, "From the request's last byte to its first token.");
    histogram(p, "inter_token_latency_seconds", &m->itl, "Between two outputs of a sequence.");
    histogram(p, "e2e_request_latency_seconds", &m->e2e, "From the request's last byte to its end.");
    histogram(p, "request_queue_time_seconds", &m->queue, "From the request's last byte to its admission.");
}

char *metrics_page(const struct metrics *m, const struct engine_stats *stats, const struct engine_cfg *cfg,
                   const char *model, size_t *len) {
    char *text = NULL;
    struct page p = {.f = open_memstream(&text, len)};

    if (!p.f) return NULL;
    make_labels(&p, model);
    write_page(&p, m, stats, cfg);
    return fclose(p.f) == 0 ? text : NULL;
}
