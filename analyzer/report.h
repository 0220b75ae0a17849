/* What a report knows: everything that its formats print, gathered once from the database.
 *
 * Structs and the functions that fill them. Knows no output format. */
#ifndef ANALYZER_REPORT_H
#define ANALYZER_REPORT_H

#include "analyzer/args.h"
#include "analyzer/report_slo.h"
#include "analyzer/show.h"
#include "analyzer/stats.h"

#include <sqlite3.h>

/* Outcomes of generations in the order of metrics.md 7. */
#define REPORT_OUTCOMES(X)                                                                                   \
    X(upstream_refused)                                                                                      \
    X(http_error)                                                                                            \
    X(stream_error)                                                                                          \
    X(ok) X(lost) X(client_abort) X(upstream_reset) X(upstream_timeout) X(in_flight) X(truncated)
enum outcome {
#define X(name) OUTCOME_##name,
    REPORT_OUTCOMES(X)
#undef X
        N_OUTCOMES
};
extern const char *const outcome_names[N_OUTCOMES];
/* A failure: a generation that ended and is not ok; those cut by a loss of ours or still running are none. */
bool report_failed(enum outcome o);

#define REPORT_CACHE_CLASSES(X) X(cold) X(warmup) X(miss) X(miss_inferred) X(hit) X(unreported)
enum cache_class {
#define X(name) CACHE_##name,
    REPORT_CACHE_CLASSES(X)
#undef X
        N_CACHE
};
extern const char *const cache_names[N_CACHE];

enum grade { GRADE_EXACT, GRADE_PRORATED, GRADE_EVENTS, N_GRADES };
extern const char *const grade_names[N_GRADES];

/* Metrics of one request that are summarised: name in the view, expression giving ms or its own unit, unit,
 * what it could be of (streams only, all), which wait its absence is censored at, by grade or not. */
#define REPORT_METRICS(X)                                                                                    \
    X(client_queue, "client_queue_ns / 1e6", "ms", NONE)                                                     \
    X(ttft_queued, "ttft_queued_ns / 1e6", "ms", QUEUED)                                                     \
    X(ttft_client, "ttft_client_ns / 1e6", "ms", CLIENT)                                                     \
    X(ttft_server, "ttft_server_ns / 1e6", "ms", SERVER)                                                     \
    X(ttfa_server, "ttfa_server_ns / 1e6", "ms", SERVER)                                                     \
    X(ttfb_server, "ttfb_server_ns / 1e6", "ms", NONE)                                                       \
    X(tpot, "tpot_ns / 1e6", "ms", NOWAIT)                                                                   \
    X(e2e_queued, "e2e_queued_ns / 1e6", "ms", WHOLE_QUEUED)                                                 \
    X(e2e_client, "e2e_client_ns / 1e6", "ms", WHOLE_CLIENT)                                                 \
    X(e2e_server, "e2e_server_ns / 1e6", "ms", WHOLE_SERVER)                                                 \
    X(upload, "upload_ns / 1e6", "ms", NONE)                                                                 \
    X(forward_lag, "forward_lag_ns / 1e6", "ms", NONE)                                                       \
    X(upstream_connect, "upstream_connect_ns / 1e6", "ms", NONE)                                             \
    X(tail, "tail_ns / 1e6", "ms", NONE)                                                                     \
    X(delivery_lag, "delivery_lag_ns / 1e6", "ms", NONE)                                                     \
    X(decode_tps, "decode_tps", "tps", NONE)                                                                 \
    X(e2e_tps, "e2e_tps", "tps", NONE)                                                                       \
    X(prefill_tps, "prefill_tps", "tps", NONE)                                                               \
    X(reported_queue, "reported_queue_ns / 1e6", "ms", NONE)                                                 \
    X(reported_load, "reported_load_ns / 1e6", "ms", NONE)                                                   \
    X(reported_prefill, "reported_prefill_ns / 1e6", "ms", NONE)                                             \
    X(reported_ttft, "reported_ttft_ns / 1e6", "ms", NONE)                                                   \
    X(reported_decode, "reported_decode_ns / 1e6", "ms", NONE)                                               \
    X(decode_tps_reported, "decode_tps_reported", "tps", NONE)
/* Where a request without the metric stops waiting for it, for p_all. NONE: the metric has no p_all. NOWAIT:
 * a censored request tells nothing. WHOLE_*: only an ok request has it. */
enum metric_wait {
    WAIT_NONE,
    WAIT_QUEUED,
    WAIT_CLIENT,
    WAIT_SERVER,
    WAIT_NOWAIT,
    WAIT_WHOLE_QUEUED,
    WAIT_WHOLE_CLIENT,
    WAIT_WHOLE_SERVER
};
enum metric {
#define X(name, sql, unit, wait) M_##name,
    REPORT_METRICS(X)
#undef X
        N_METRICS
};

/* One generation. NaN: not known. */
struct generation {
    int64_t request; /* ordinal in its recording */
    double itl_p99;  /* ms, of this request alone; only when a limit asks for it */
    int64_t wall_ns, arrive_ns, done_ns,
        end_seen_ns; /* done: 0 if not known; end_seen: last it was heard of */
    int32_t recording;
    enum outcome outcome;
    int status, attempt; /* 0: not told */
    bool could_stream, streamed, buffered, reasons;
    int grade; /* -1: none */
    enum cache_class cache;
    int32_t model; /* ordinal of its model in the report */
    double v[N_METRICS];
    double wait[3]; /* ms from t_intended, t_arrive, t_forwarded until it ended or was given up on */
    double prompt, cached, output, drafted, accepted, steps, accept_rate, accept_length;
};

/* A summary of one series of samples. p and its companions follow report.percentiles. */
#define REPORT_PERCENTILES 16
struct summary {
    char name[48];      /* as in JSON without its unit: ttft_server, itl_prorated */
    char metric[32];    /* name in definitions: ttft_server, itl */
    const char *unit;   /* ms or tps */
    int grade;          /* -1: not kept by grade */
    double grade_share; /* share of its grade among the ok requests that have the metric */
    uint64_t n;
    size_t requests; /* requests they come from */
    double mean, sd, min, max;
    double p[REPORT_PERCENTILES], p_all[REPORT_PERCENTILES]; /* p_all NaN: none */
    struct interval ci[REPORT_PERCENTILES];
    bool has_all;
};

struct trace_row {
    char *file, *state, *source, *version, *recorder, *recording;
    int64_t started_wall_ns, ended_wall_ns, last_ns;
};
struct pair_row {
    char *key, *value;
};
struct loss_row {
    char *loss, *severity, *meaning, *remedy;
    int64_t from_wall_ns, to_wall_ns, count, bytes, requests; /* 0: not known */
};
struct delay_row {
    char *name;
    double count, sum_ns, p50_ns, p90_ns, p99_ns, max_ns;
    int64_t max_wall_ns;
};
struct cache_row {
    size_t n;
    double cached, prompt_of_cached; /* sums, for the pooled ratio */
    struct summary hit_ratio, prompt, uncached, ttft, prefill;
};
struct throughput {
    double window_s, output, prompt, uncached; /* tokens; NaN: not told by any request */
    double completed, completion_rate, mean_concurrency;
    int64_t highest_concurrency;
};
struct speculation {
    double rate_pooled, rate_median, length_pooled, length_median; /* NaN: not told */
    double drafted, accepted, steps;
    size_t n;
};
struct stalls {
    uint64_t gaps;
    size_t requests;
};

struct report {
    enum stats_rule rule;
    double percentiles[REPORT_PERCENTILES]; /* 0..1, ascending */
    size_t n_percentiles;

    struct trace_row *traces;
    size_t n_traces;
    struct pair_row *notes, *models; /* models: value is the count as text */
    size_t n_notes, n_models;
    struct loss_row *losses;
    size_t n_losses;
    struct delay_row *delays;
    size_t n_delays;
    int64_t late_reads, late_max_ns;
    double kernel_stamps; /* share of requests whose reads were stamped by the kernel; NaN: not told */

    int64_t n_other, n_all_rows; /* n_all_rows: requests of the traces, whatever the selection */
    char *other_paths;           /* "/health, /v1/models", at most 3 */
    char *protocols;             /* "7 h2, 1 websocket": connections that are not read; NULL: none */

    struct generation *g; /* by arrival */
    size_t n;
    size_t by_outcome[N_OUTCOMES];
    size_t with_tokens, not_streamed, without_token, buffered, retries; /* of the ok; retries of all */
    char *token_sources; /* "running_usage 98.2 %, prorated 1.8 %" */
    bool any_reasoning;

    struct summary *s; /* per-request metrics, then series over arrivals */
    size_t n_s;
    double tokens_per_arrival;
    struct stalls stalls;
    struct slo slo; /* n 0: no limits given */
    struct cache_row cache[N_CACHE];
    struct throughput through;
    struct speculation spec;
    int damaged; /* requests whose arrivals could be read in part only */
};

/* Fills r from the view `selected` and the tables. 0, or an exit status after one line on stderr; call
 * report_free in any case. */
int report_gather(struct report *r, sqlite3 *db, const struct args *o);
void report_free(struct report *r);

/* The pieces of report_gather, in its order. False: SQLite's or memory's failure. */
bool report_read_meta(struct report *r, sqlite3 *db);
bool report_read_requests(struct report *r, sqlite3 *db);
void report_count(struct report *r);
bool report_summarise(struct report *r);
bool report_read_series(struct report *r, sqlite3 *db);

/* Summary of samples (clusters in from; 0: independent), added to r->s when add. */
bool report_summary_of(struct report *r, struct summary *s, const struct sample *x, size_t n,
                       size_t clusters);
/* Room for one more summary, zeroed and named. NULL when memory is short. */
struct summary *report_add(struct report *r, const char *metric, const char *unit, int grade);
/* The summary of a name; NULL: none. */
const struct summary *report_find(const struct report *r, const char *name);
/* Index of a percentile (0..1) in report.percentiles; SIZE_MAX: not there. */
size_t report_percentile(const struct report *r, double p);

/* Formats. They print to f and return an exit status. report_text needs the database for the short form
 * beside a figure and the list of few requests. */
int report_text(const struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *m,
                FILE *f);
int report_json(const struct report *r, FILE *f);
struct jsonw;
/* Its parts that the report by groups shares: trace, requests, window_s, quantile; one summary. */
void report_json_head(struct jsonw *j, const struct report *r);
void report_json_summary(struct jsonw *j, const struct report *r, const char *key, const struct summary *s);
int report_csv(const struct report *r, FILE *f);
int report_markdown(const struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *zone,
                    FILE *f);

#endif
