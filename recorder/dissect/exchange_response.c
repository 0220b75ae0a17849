/* The response's half. */
#include "recorder/dissect/exchange.h"

#include <stdlib.h>
#include <string.h>

/* How to read a body by its media type. */
static enum body_mode mode_of(const char *type) {
    static const struct {
        const char *type;
        enum body_mode mode;
    } modes[] = {
        {"text/event-stream", BODY_SSE},
        {"application/x-ndjson", BODY_NDJSON},
        {"application/ndjson", BODY_NDJSON},
        {"application/jsonl", BODY_NDJSON},
        {"application/x-jsonlines", BODY_NDJSON},
        {"application/stream+json", BODY_NDJSON},
        {"application/json", BODY_WHOLE},
        {"", BODY_SNIFFED},
        {"text/plain", BODY_SNIFFED},
        {"application/octet-stream", BODY_SNIFFED},
    };
    size_t n = strlen(type);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(type, modes[i].type) == 0) return modes[i].mode;
    return n > 5 && strcmp(type + n - 5, "+json") == 0 ? BODY_WHOLE : BODY_COUNTED;
}

static void on_event(void *ctx, const struct event *e) {
    struct exchange *x = ctx;
    x->a.streamed = true;
    answer_take_event(&x->a, e);
}

static void text(struct exchange *x, enum fact f, const char *s) {
    answer_text(&x->a, f, s, strlen(s));
}

/* openai-processing-ms: whole time inside the server. */
static void processing(struct exchange *x, const char *ms) {
    size_t n = strlen(ms);
    if (n > 0 && n < 10 && strspn(ms, "0123456789") == n)
        answer_keep(&x->a, F_reported_total_ns, strtol(ms, NULL, 10) * 1000000);
}

void exchange_response_head(struct exchange *x, const struct head *head, const struct http1_head *h) {
    char type[128];
    x->down_head = true;
    x->a.status = h->status;
    answer_int(&x->a, F_t_first_byte_ns, x->t_first_byte);
    answer_int(&x->a, F_status, h->status);
    bool body = !x->head_only && h->status != 204 && h->status != 304;
    if (h->has_length && body) x->down_length = h->content_length;
    head_media_type(head, type, sizeof type);
    text(x, F_content_type, type);
    text(x, F_content_encoding, head_get(head, HEAD_CONTENT_ENCODING));
    text(x, F_server, head_get(head, HEAD_SERVER));
    text(x, F_response_request_id, head_get(head, HEAD_REQUEST_ID));
    text(x, F_retry_after, head_get(head, HEAD_RETRY_AFTER));
    processing(x, head_get(head, HEAD_PROCESSING_MS));
    enum body_mode mode = mode_of(type);
    x->a.streamed = mode == BODY_SSE || mode == BODY_NDJSON;
    body_begin(&x->down, mode, head_get(head, HEAD_CONTENT_ENCODING), x->a.pool, on_event, x);
}

void exchange_response_body(struct exchange *x, const char *p, size_t n, int64_t t_ns, uint64_t piece) {
    if (piece != x->last_piece) x->last_piece = piece, x->a.read++;
    x->a.t_ns = t_ns;
    body_feed(&x->down, p, n);
}
