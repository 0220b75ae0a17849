/* The response's half. */
#include "recorder/dissect/exchange.h"

#include "recorder/dissect/bedrock_invoke.h"
#include "recorder/dissect/dialect.h"

#include <string.h>

/* How to read a body by its media type. */
static enum body_mode mode_of_type(const char *type) {
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
        {"application/vnd.amazon.eventstream", BODY_AWS},
        {"application/json", BODY_WHOLE},
        {"text/json", BODY_WHOLE},
        {"", BODY_SNIFFED},
        {"text/plain", BODY_SNIFFED},
        {"application/octet-stream", BODY_SNIFFED},
    };
    size_t n = strlen(type);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(type, modes[i].type) == 0) return modes[i].mode;
    return n > 5 && strcmp(type + n - 5, "+json") == 0 ? BODY_WHOLE : BODY_COUNTED;
}

/* Gemini streams one JSON array unless it is asked for events. An error in that shape is no stream. */
static enum body_mode mode_of(const struct exchange *x, const char *type) {
    enum body_mode mode = mode_of_type(type);
    bool array = mode == BODY_WHOLE && x->a.status < 300 && x->path;
    return array && dialect_path_ends(x->path, ":streamGenerateContent") ? BODY_ARRAY : mode;
}

/* A total in the head of a stream was told before there was anything to add up. */
static void no_total(struct answer *a) {
    a->has[F_reported_total_ns] = 0;
}

static void take_event(struct exchange *x, const struct event *e) {
    if (x->down.mode == BODY_AWS)
        bedrock_invoke_event(&x->a, e);
    else
        answer_take_event(&x->a, e);
}

static void on_event(void *ctx, const struct event *e) {
    struct exchange *x = ctx;
    struct answer *a = &x->a;
    if (a->events == 0) no_total(a);
    a->streamed = true;
    if (!x->down.held) {
        take_event(x, e);
        return;
    }
    int64_t t_ns = a->t_ns;
    uint64_t read = a->read;
    a->t_ns = x->t_held, a->read = x->held_read;
    take_event(x, e);
    a->t_ns = t_ns, a->read = read;
}

static void text(struct exchange *x, enum fact f, const char *s) {
    answer_text(&x->a, f, s, strlen(s));
}

/* Figures told before the body: what the body says of the same takes their place. Values are JSON numbers or
 * they are none. */
static void figures(struct exchange *x, const struct head *head) {
    static const struct {
        enum head_field field;
        enum fact fact;
        double unit_ns;
    } rows[] = {
#define ROW(field, name, fact, unit_ns) {field, fact, unit_ns},
        HEAD_FIGURES(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *value = head_get(head, rows[i].field);
        struct json_doc d = json_open(value, strlen(value));
        int64_t n;
        if (rows[i].unit_ns > 0)
            answer_keep_ns(&x->a, rows[i].fact, d.root, rows[i].unit_ns);
        else if (json_int(d.root, &n) && n >= 0)
            answer_keep(&x->a, rows[i].fact, n);
        json_close(&d);
    }
}

/* Heads of generations are not believed, nor are those of JSON that a POST brings. A generation's answer that
 * cannot be read is collected all the same: that it is not JSON is then said. */
static void begin(struct exchange *x, enum body_mode mode, const char *encoding) {
    bool answer = x->a.dialect->generates && x->a.may_generate && x->a.status < 300;
    bool vague = mode == BODY_COUNTED || mode == BODY_SNIFFED;
    bool doubt =
        x->a.may_generate && mode != BODY_AWS && mode != BODY_ARRAY && (answer || mode != BODY_COUNTED);
    enum body_mode said = !vague ? mode : answer ? BODY_WHOLE : BODY_COUNTED;
    body_begin(&x->down, doubt ? BODY_SNIFFED : mode, encoding, x->a.pool, on_event, x);
    if (doubt) body_doubt(&x->down, said);
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
    const char *id = head_get(head, HEAD_REQUEST_ID);
    text(x, F_response_request_id, *id ? id : head_get(head, HEAD_SHORT_REQUEST_ID));
    text(x, F_retry_after, head_get(head, HEAD_RETRY_AFTER));
    figures(x, head);
    enum body_mode mode = mode_of(x, type);
    x->a.streamed = mode == BODY_SSE || mode == BODY_NDJSON || mode == BODY_AWS;
    if (x->a.streamed) no_total(&x->a);
    begin(x, mode, head_get(head, HEAD_CONTENT_ENCODING));
}

void exchange_response_body(struct exchange *x, const char *p, size_t n, int64_t t_ns, uint64_t piece) {
    if (piece != x->last_piece) x->last_piece = piece, x->a.read++;
    x->a.t_ns = t_ns;
    bool held = body_holds_line(&x->down);
    body_feed(&x->down, p, n);
    if (!held && body_holds_line(&x->down)) x->t_held = t_ns, x->held_read = x->a.read;
    if (x->down.mode == BODY_JSON) x->a.streamed = false; /* whatever its head said */
}
