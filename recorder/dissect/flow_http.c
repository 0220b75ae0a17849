/* What the two HTTP parsers of a flow say. Answers pair with requests in order; an answer that begins when no
 * request is open is paired with none, and so is the rest of its read. */
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/flow.h"

#include <string.h>

static struct half *up(struct flow *f) {
    return &f->half[DIR_UP];
}
static struct half *down(struct flow *f) {
    return &f->half[DIR_DOWN];
}

void flow_protocol(struct flow *f, const char *protocol) {
    if (f->told_protocol) return;
    f->told_protocol = true;
    trw_str(f->d->config.trw, f->id, F_protocol, protocol, strlen(protocol));
}

/* A message begins at off: the read of its first byte may be the one before, when a PROXY header was looked
 * for. */
static void begin_message(struct flow *f, struct half *s, uint64_t off) {
    s->begin = off;
    s->t_begin = off < f->now->off && s->t_read_before ? s->t_read_before : f->now->t_ns;
    s->in_head = true;
    head_begin(&s->head);
}

/* -- requests */
static void up_begin(void *ctx, uint64_t off) {
    begin_message(ctx, up(ctx), off);
}
static void up_target(void *ctx, const char *p, size_t n) {
    head_target(&up(ctx)->head, p, n);
}
static void up_field(void *ctx, const char *p, size_t n) {
    head_name(&up(ctx)->head, p, n);
}
static void up_value(void *ctx, const char *p, size_t n) {
    head_value(&up(ctx)->head, p, n);
}

/* Wall clock at a monotonic instant, as the last clock piece had it. */
static void tell_wall(struct flow *f, struct exchange *x) {
    const struct dissect *d = f->d;
    int64_t ns;
    const struct head *h = &up(f)->head;
    if (!d->wall_ns) return;
    if (head_queue_start(head_get(h, HEAD_REQUEST_START), &ns) ||
        head_queue_start(head_get(h, HEAD_QUEUE_START), &ns))
        answer_int(&x->a, F_arrive_wall_ns, d->wall_ns + (x->t_arrive - d->wall_at_ns));
}

static enum http1_follows up_head(void *ctx, const struct http1_head *h) {
    struct flow *f = ctx;
    struct half *s = up(f);
    /* a client asks again when it has its answer: what is open while answers are not seen is over */
    if (down(f)->skipping)
        flow_end_all(f, &(struct exchange_end){0, "lost", 0, false});
    else
        f->lossy = false;
    /* an answer may have come before the head was whole: then the exchange is there */
    if (!f->up) f->up = flow_begin(f, s->t_begin, false);
    s->in_head = false;
    s->head.done = true;
    if (f->up) {
        f->up->up_begin = s->begin;
        exchange_request_head(f->up, &s->head, h, f->client);
        tell_wall(f, f->up);
    }
    return HTTP1_BODY;
}

static void up_body(void *ctx, const char *p, size_t n) {
    struct flow *f = ctx;
    if (f->up) exchange_request_body(f->up, p, n);
}

static void up_end(void *ctx, uint64_t off) {
    struct flow *f = ctx;
    struct exchange *x = f->up;
    f->up = NULL;
    head_begin(&up(f)->head); /* secrets go as soon as they are hashed */
    if (!x) return;
    exchange_request_end(x, f->now->t_ns, off);
    if (x->over && !x->lingers && x->delivered) flow_free_exchange(f, x);
}

const struct http1_ops flow_up_ops = {up_begin, up_target, up_field, up_value, up_head, up_body, up_end};

/* -- responses */
static void down_begin(void *ctx, uint64_t off) {
    struct flow *f = ctx;
    if (f->unsolicited) return;
    begin_message(f, down(f), off);
    f->down = flow_first_open(f);
    if (!f->down && f->crowded) {
        down(f)->deaf = true; /* it answers a request that was not read */
        return;
    }
    if (!f->down && up(f)->in_head) f->down = f->up = flow_begin(f, up(f)->t_begin, false);
    if (!f->down && f->lossy) f->down = flow_begin(f, 0, true);
    if (f->down) return;
    f->unsolicited = true;
    f->unsolicited_at = off;
}

static void down_field(void *ctx, const char *p, size_t n) {
    head_name(&down(ctx)->head, p, n);
}
static void down_value(void *ctx, const char *p, size_t n) {
    head_value(&down(ctx)->head, p, n);
}

static bool is_tunnel(const struct exchange *x, unsigned status) {
    return status == 101 || (strcmp(x->method, "CONNECT") == 0 && status >= 200 && status < 300);
}

/* From here on both directions are raw bytes. */
static void begin_tunnel(struct flow *f, struct exchange *x) {
    bool websocket = strcasestr(head_get(&down(f)->head, HEAD_UPGRADE), "websocket") != NULL;
    const char *protocol = websocket ? "websocket" : strcmp(x->method, "CONNECT") == 0 ? "connect" : "raw";
    x->tunnel = true;
    answer_text(&x->a, F_api, "upgraded", 8);
    trw_str(f->d->config.trw, f->id, F_protocol, protocol, strlen(protocol));
    up(f)->deaf = true;
    f->up = NULL;
}

static enum http1_follows down_head(void *ctx, const struct http1_head *h) {
    struct flow *f = ctx;
    struct half *s = down(f);
    struct exchange *x = f->down;
    s->in_head = false;
    s->head.done = true;
    if (f->unsolicited || !x)
        return h->status >= 200 && h->status != 204 && h->status != 304 ? HTTP1_BODY : HTTP1_NO_BODY;
    bool tunnel = is_tunnel(x, h->status);
    if (h->status < 200 && !tunnel) return HTTP1_NO_BODY; /* interim: not the response */
    x->t_first_byte = s->t_begin;
    x->down_begin = s->begin;
    exchange_response_head(x, &s->head, h);
    if (tunnel) begin_tunnel(f, x);
    if (tunnel) return HTTP1_TUNNEL;
    return x->head_only || h->status == 204 || h->status == 304 ? HTTP1_NO_BODY : HTTP1_BODY;
}

static void down_body(void *ctx, const char *p, size_t n) {
    struct flow *f = ctx;
    if (f->unsolicited || !f->down || !f->down->down_head) return;
    exchange_response_body(f->down, p, n, f->now->t_ns, f->n_pieces);
}

static void down_end(void *ctx, uint64_t off) {
    struct flow *f = ctx;
    struct exchange *x = f->down;
    if (f->unsolicited || !x) return;
    f->down = NULL;
    if (!x->down_head) return; /* an interim response: the real one is still to come */
    if (x->tunnel) {
        f->down = x;
        return;
    }
    x->down_end = off;
    struct exchange_end end = {f->now->t_ns, "complete", 0, true};
    bool said = !x->a.streamed || !x->a.dialect->generates || x->a.ended || x->a.done;
    int64_t gone = said ? 0 : flow_client_gone(f, end.t_ns, &end.by);
    /* An engine that sees its client leave ends the body as if all were said, without the API's end sign. */
    if (gone > x->t_arrive) {
        answer_int(&x->a, F_t_client_gone_ns, gone);
        end.t_ns = gone, end.whole = false;
    } else {
        end.by = "complete";
    }
    flow_end(f, x, &end);
}

const struct http1_ops flow_down_ops = {down_begin, NULL,      down_field, down_value,
                                        down_head,  down_body, down_end};

/* -- bytes */
static const char crowded_why[] = "more than 1,024 requests waiting";

/* What a stream that is no HTTP/1 is, by its first bytes. */
static const char *guess(const struct flow *f) {
    static const char preface[] = "PRI * HTTP/2.0";
    size_t n = f->n_lead < sizeof preface - 1 ? f->n_lead : sizeof preface - 1;
    if (f->n_lead > 0 && f->lead[0] == 0x16) return "tls";
    return n >= 3 && memcmp(f->lead, preface, n) == 0 ? "h2" : "raw";
}

/* A stream is not read as HTTP/1 from here on. */
static void opaque(struct flow *f, enum dir dir, const char *why, size_t n) {
    struct trw *w = f->d->config.trw;
    f->half[dir].deaf = true;
    if (strcmp(why, "tunnel") == 0) return;
    flow_protocol(f, guess(f));
    trw_str(w, f->id, F_opaque_why, why, strlen(why));
    struct exchange *x = dir == DIR_UP ? f->up : f->down;
    trw_loss(w, LOSS_opaque_flow, f->now->t_ns, f->now->t_ns, 1, n, x ? x->a.id : 0);
    f->d->config.shared->counts.loss[LOSS_opaque_flow]++;
    if (x && dir == DIR_DOWN) answer_text(&x->a, F_undecodable, why, strlen(why));
    /* without requests there is nothing to pair answers with */
    if (dir == DIR_UP && !flow_first_open(f)) down(f)->deaf = true;
}

static void end_unsolicited(struct flow *f, uint64_t off) {
    uint64_t bytes = off - f->unsolicited_at;
    f->unsolicited = false;
    trw_loss(f->d->config.trw, LOSS_unsolicited, f->now->t_ns, f->now->t_ns, 1, bytes, 0);
    f->d->config.shared->counts.loss[LOSS_unsolicited]++;
    http1_resync(down(f)->http, off);
}

static void tell_proxy(struct flow *f, struct half *s) {
    int version = http1_proxy_version(s->http);
    if (version == 0 || f->told_proxy) return;
    f->told_proxy = true;
    trw_int(f->d->config.trw, f->id, F_proxy_protocol, version);
}

void flow_read(struct flow *f, enum dir dir, const char *p, size_t n) {
    struct half *s = &f->half[dir];
    for (size_t i = 0; dir == DIR_UP && i < n && f->n_lead < sizeof f->lead; i++) f->lead[f->n_lead++] = p[i];
    bool read = http1_feed(s->http, p, n);
    if (dir == DIR_DOWN && f->unsolicited)
        end_unsolicited(f, f->now->off + f->now->n_bytes);
    else if (!read && !s->deaf)
        opaque(f, dir, http1_why(s->http), n);
    else if (dir == DIR_UP && f->crowded)
        opaque(f, dir, crowded_why, n);
    tell_proxy(f, s);
    s->t_read_before = f->now->t_ns;
}
