/* The request's half, and birth and end. Facts of bodies are told when the body is whole. */
#include "recorder/dissect/exchange.h"

#include "recorder/dissect/dialect.h"
#include "recorder/keyhash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void text(struct exchange *x, enum fact f, const char *s) {
    answer_text(&x->a, f, s, strlen(s));
}

/* The recorder's own ordinals go on where a process before this one stopped. */
static uint64_t next_id(struct shared *s) {
    uint64_t id = atomic_load_explicit(&s->next_request, memory_order_relaxed);
    if (id == 0) id = 1;
    atomic_store_explicit(&s->next_request, id + 1, memory_order_relaxed);
    return id;
}

struct exchange *exchange_new(const struct exchange_start *s) {
    struct exchange *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    x->a = (struct answer){.trw = s->trw, .shared = s->shared, .pool = s->pool, .key = s->key};
    x->a.id = next_id(s->shared);
    x->a.dialect = &dialect_other;
    x->a.echo_bytes = -1;
    x->a.may_generate = true;
    x->a.t_ns = x->t_arrive = s->t_arrive;
    x->pipelined = s->pipelined;
    x->up_done = s->partial;
    trw_begin(s->trw, SUBJECT_R, x->a.id);
    answer_int(&x->a, F_connection, (int64_t)s->connection);
    if (s->upstream) text(x, F_upstream, s->upstream);
    if (s->partial)
        answer_int(&x->a, F_partial, 1);
    else
        answer_int(&x->a, F_t_arrive_ns, s->t_arrive);
    if (s->pipelined) answer_int(&x->a, F_pipelined, 1);
    return x;
}

static void tell_stamps(struct exchange *x) {
    if (x->n_kernel + x->n_clock == 0) return;
    text(x, F_stamp_source, !x->n_clock ? "kernel" : !x->n_kernel ? "clock" : "mixed");
}

void exchange_free(struct exchange *x) {
    exchange_request_cut(x);
    tell_stamps(x);
    trw_end(x->a.trw, SUBJECT_R, x->a.id);
    body_free(&x->up);
    body_free(&x->down);
    answer_free(&x->a);
    free(x->path);
    free(x);
}

static void client(struct exchange *x, const struct head *head, const char *peer) {
    const char *credential = head_get(head, HEAD_AUTHORIZATION);
    char hash[KEYHASH_CHARS];
    if (!*credential) credential = head_get(head, HEAD_API_KEY);
    if (*credential) {
        keyhash(x->a.key, "client", credential, strlen(credential), hash);
        peer = hash;
    }
    text(x, F_client, peer);
}

/* The earliest of the two queue headers. */
static void queue_start(struct exchange *x, const struct head *head) {
    static const enum head_field both[] = {HEAD_REQUEST_START, HEAD_QUEUE_START};
    const char *taken = NULL;
    int64_t earliest = 0, ns;
    for (int i = 0; i < 2; i++) {
        const char *value = head_get(head, both[i]);
        if (!head_queue_start(value, &ns) || (taken && ns >= earliest)) continue;
        earliest = ns, taken = value;
    }
    if (!taken) return;
    text(x, F_queue_header, taken);
    answer_int(&x->a, F_queue_start_wall_ns, earliest);
}

static void trace_ids(struct exchange *x, const struct head *head) {
    char trace[33], parent[17];
    if (!head_traceparent(head_get(head, HEAD_TRACEPARENT), trace, parent)) return;
    text(x, F_trace_id, trace);
    text(x, F_parent_id, parent);
}

static const char *path(const struct exchange *x) {
    return x->path ? x->path : "";
}

static void take_path(struct exchange *x, const struct head *head) {
    char kept[FACT_STR_MAX];
    head_path(head, kept, sizeof kept);
    free(x->path);
    x->path = strdup(kept);
    text(x, F_path, path(x));
}

void exchange_request_head(struct exchange *x, const struct head *head, const struct http1_head *h,
                           const char *peer) {
    snprintf(x->method, sizeof x->method, "%s", h->method ? h->method : "");
    take_path(x, head);
    x->head_only = strcmp(x->method, "HEAD") == 0;
    text(x, F_method, x->method);
    if (h->has_length) x->up_length = h->content_length;
    answer_int(&x->a, F_http_minor, h->minor);
    client(x, head, peer);
    text(x, F_request_id, head_get(head, HEAD_REQUEST_ID));
    text(x, F_user_agent, head_get(head, HEAD_USER_AGENT));
    const char *retry = head_get(head, HEAD_RETRY_COUNT);
    if (*retry && strlen(retry) < 10 && strspn(retry, "0123456789") == strlen(retry))
        answer_int(&x->a, F_retry_count, strtol(retry, NULL, 10));
    if (strcasestr(head_get(head, HEAD_EXPECT), "100-continue")) answer_int(&x->a, F_expect_continue, 1);
    queue_start(x, head);
    trace_ids(x, head);
    x->a.dialect = dialect_of_request(x->method, path(x), NULL);
    x->a.may_generate = dialect_may_generate(x->method, path(x));
    body_begin(&x->up, BODY_WHOLE, head_get(head, HEAD_CONTENT_ENCODING), x->a.pool, NULL, NULL);
}

void exchange_request_body(struct exchange *x, const char *p, size_t n) {
    body_feed(&x->up, p, n);
}

/* Bytes of a body that went by unseen, when its head told its length. What they would decode to is not known.
 */
static uint64_t unseen(const struct exchange *x, const struct body *b, uint64_t length) {
    return x->lost && !b->coding && length > b->wire_bytes ? length - b->wire_bytes : 0;
}

/* Says of a body what could not be read. Bytes that were never seen are in the loss that took them. */
static void tell_unread(struct exchange *x, const struct body *b, uint64_t n_unseen) {
    if (b->why[0]) {
        text(x, F_undecodable, b->why);
        answer_loss(&x->a, LOSS_undecodable, 1, b->wire_bytes);
    } else if (b->unread > 0 || n_unseen > 0) {
        answer_int(&x->a, F_body_unread_bytes, (int64_t)(b->bytes + n_unseen));
        if (b->unread > 0) answer_loss(&x->a, LOSS_body_unread, 1, b->bytes);
    }
}

void exchange_request_end(struct exchange *x, int64_t t_ns, uint64_t off) {
    x->up_done = true;
    x->up_end = off;
    x->a.t_ns = t_ns;
    answer_int(&x->a, F_t_received_ns, t_ns);
    answer_int(&x->a, F_request_bytes, (int64_t)(off - x->up_begin));
    uint64_t n_unseen = unseen(x, &x->up, x->up_length);
    answer_int(&x->a, F_request_body_bytes, (int64_t)(x->up.bytes + n_unseen));
    tell_unread(x, &x->up, n_unseen);
    bool whole = x->up.unread == 0 && !x->lost;
    answer_take_request(&x->a, x->method, path(x), x->up.whole.p, x->up.whole.n, whole);
    body_free(&x->up);
    if (x->a.dialect->generates && !x->over) {
        x->counted = true;
        x->a.shared->counts.running++;
    }
}

void exchange_request_cut(struct exchange *x) {
    if (x->up_done) return;
    x->up_done = true;
    if (x->method[0]) answer_take_request(&x->a, x->method, path(x), x->up.whole.p, x->up.whole.n, false);
    body_free(&x->up);
}

void exchange_forwarded(struct exchange *x, bool first, int64_t t_prev_end) {
    if (t_prev_end) x->t_prev_end = t_prev_end;
    if (x->forwarded || !x->t_wrote || !first) return;
    x->forwarded = true;
    answer_int(&x->a, F_t_forwarded_ns,
               x->pipelined && x->t_prev_end > x->t_wrote ? x->t_prev_end : x->t_wrote);
}

void exchange_lost(struct exchange *x, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count,
                   uint64_t bytes) {
    trw_loss(x->a.trw, l, t0_ns, t1_ns, count, bytes, x->a.id);
    if (!x->lost) x->a.shared->counts.lost_requests++;
    if (!x->up_done) answer_int(&x->a, F_request_cut, 1);
    x->lost = true;
}

/* -- end */
static bool saw_end(const struct answer *a) {
    return a->ended || a->done || a->typed_end;
}

/* What cut the rest of an answer that had said it was over. */
static void tell_after_end(struct exchange *x, const struct exchange_end *end) {
    bool by_wire = strncmp(end->by, "client_", 7) == 0 || strncmp(end->by, "upstream_", 9) == 0;
    if (!end->whole && by_wire && saw_end(&x->a)) text(x, F_after_end, end->by);
}

static void count(struct exchange *x, const struct exchange_end *end) {
    struct rec_counts *c = &x->a.shared->counts;
    const struct answer *a = &x->a;
    if (!a->dialect->generates || x->tunnel) {
        c->other++;
        return;
    }
    bool sign = saw_end(a) || (end->whole && !a->streamed);
    if (sign && a->status >= 200 && a->status < 300 && !a->stream_error)
        c->ok++;
    else if (!x->lost && !(a->blind && end->whole) && strcmp(end->by, "lost") != 0 &&
             strcmp(end->by, "stop") != 0 && strncmp(end->by, "client", 6) != 0)
        c->failed++;
    c->requests++;
    bool told = a->has[F_output_tokens_told] && a->latest[F_output_tokens_told] > 0;
    c->output_tokens += told ? (uint64_t)a->latest[F_output_tokens_told] : a->bearing;
}

static void end_body(struct exchange *x, const struct exchange_end *end) {
    struct body *b = &x->down;
    enum {
        OTHER_MAX_BYTES = 256 << 10
    }; /* of a body that is no generation's: larger ones are not looked at */
    bool cut = body_end(b, !end->whole), other = x->a.dialect == &dialect_other;
    if (body_has_events(b)) {
        answer_int(&x->a, F_events, (int64_t)x->a.events);
        answer_int(&x->a, F_comments, (int64_t)b->sse.comments);
        if (cut) answer_int(&x->a, F_event_cut, 1);
    }
    uint64_t n_unseen = strcmp(end->by, "complete") == 0 ? unseen(x, b, x->down_length) : 0;
    answer_int(&x->a, F_response_body_bytes, (int64_t)(b->wire_bytes + n_unseen));
    if (b->mode == BODY_WHOLE && !(other && b->bytes > OTHER_MAX_BYTES)) {
        tell_unread(x, b, n_unseen);
        if (b->unread == 0) answer_take_body(&x->a, b->whole.p, b->whole.n, end->whole);
    } else if (b->why[0]) {
        tell_unread(x, b, n_unseen);
    }
    if (b->why[0] || b->unread > 0) x->a.blind = true;
}

void exchange_over(struct exchange *x, const struct exchange_end *end) {
    if (x->over) return;
    x->over = true, x->whole = end->whole;
    x->t_end = end->t_ns;
    if (end->t_ns) x->a.t_ns = end->t_ns;
    if (x->down_head && !x->tunnel) {
        end_body(x, end);
        if (end->whole && body_is_closed(&x->down) && x->a.streamed && x->a.dialect->ends_with_body)
            x->a.typed_end = true;
        answer_int(&x->a, F_streamed, x->a.streamed);
        if (!x->lost) answer_int(&x->a, F_body_whole, end->whole);
    }
    if (x->down_end > x->down_begin)
        answer_int(&x->a, F_response_bytes, (int64_t)(x->down_end - x->down_begin));
    if (end->t_ns) answer_int(&x->a, F_t_end_ns, end->t_ns);
    text(x, F_end_by, end->by);
    if (end->error) answer_int(&x->a, F_end_errno, end->error);
    answer_end(&x->a);
    tell_after_end(x, end);
    count(x, end);
    if (x->counted) x->a.shared->counts.running--;
    body_free(&x->down);
}
