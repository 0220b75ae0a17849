/* A running generation. */
#include "samples/simserve/gen.h"

#include "samples/common/rng.h"
#include "samples/simserve/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void set_id(struct gen *g, const struct http_in *req) {
    const char *kind = g->body.chat ? "chatcmpl" : "cmpl";

    if (req->request_id[0])
        snprintf(g->id, sizeof g->id, "%s-%s", kind, req->request_id);
    else
        snprintf(g->id, sizeof g->id, "%s-sim%llu-%llx", kind, (unsigned long long)g->number,
                 (unsigned long long)(rng_mix(g->received_ns, g->number) & 0xffffffffu));
    for (char *p = g->id; *p; p++) {
        if (*p <= 0x20 || *p >= 0x7f) *p = '_';
    }
}

static uint64_t prompt_key(const struct gen *g) {
    uint64_t key = rng_mix(g->srv->opts.engine.seed, g->body.seed);

    for (size_t i = 0; i < g->body.prompt.n; i++) key = rng_mix(key, g->body.prompt.id[i]);
    return key;
}

/* The length of an answer is drawn when it begins; a text that would be longer than allowed ends by length.
 */
static void draw_answer(const struct gen *g, struct gen_choice *ch, uint64_t key) {
    uint64_t limit = g->srv->opts.max_len - g->body.prompt.n;
    uint64_t drawn;

    if (g->body.max_tokens && g->body.max_tokens < limit) limit = g->body.max_tokens;
    ch->seq.key = rng_mix(key, ch->index + 1);
    drawn = 2 + (uint64_t)rng_exponential(rng_mix(ch->seq.key, 99), g->srv->opts.mean_answer - 1);
    if (drawn < g->body.min_tokens + 1) drawn = g->body.min_tokens + 1;
    ch->has_eos = drawn <= limit && !g->body.ignore_eos;
    ch->seq.n_answer = ch->has_eos ? drawn : limit;
}

static void log_start(const struct gen *g, const struct http_in *req) {
    const struct truth_request row = {.req = g->number,
                                      .conn = conn_number(g->conn),
                                      .first_byte_ns = g->first_byte_ns,
                                      .received_ns = g->received_ns,
                                      .prompt_tokens = g->body.prompt.n,
                                      .max_tokens = g->body.max_tokens,
                                      .n = g->body.n,
                                      .api = g->body.chat ? "chat" : "completions",
                                      .id = g->id,
                                      .x_request_id = req->request_id,
                                      .fault = fault_name(g->fault.kind),
                                      .stream = g->body.stream};

    truth_request(g->srv->truth, &row);
}

/* event: whether it is an SSE event and takes a number. */
static void log_send(struct gen *g, const char *kind, bool event, unsigned choice, uint64_t tokens,
                     uint64_t step, struct conn_stamp at) {
    const struct truth_send row = {.req = g->number,
                                   .event = event ? (int64_t)g->next_event++ : -1,
                                   .kind = kind,
                                   .choice = choice,
                                   .tokens = tokens,
                                   .step = step,
                                   .at = at};

    truth_send(g->srv->truth, &row);
}

static void log_end(const struct gen *g, const char *why) {
    const struct seq *first = &g->choice[0].seq;
    struct truth_end row = {.req = g->number,
                            .ns = pacer_now_ns(),
                            .why = why,
                            .finish = g->choice[0].finish ? g->choice[0].finish : "",
                            .prompt_tokens = g->body.prompt.n,
                            .cached_tokens = first->n_cached};

    if (first->scheduled_ns > g->received_ns) row.queue_ns = first->scheduled_ns - g->received_ns;
    for (unsigned i = 0; i < g->body.n; i++) {
        row.answer_tokens += g->choice[i].seq.n_out;
        row.verify_steps += g->choice[i].seq.n_verify;
        row.drafted += g->choice[i].seq.n_drafted;
        row.accepted += g->choice[i].seq.n_accepted;
    }
    truth_end(g->srv->truth, &row);
}

static void count_end(struct gen *g, const char *why) {
    struct metrics *m = &g->srv->metrics;
    const struct seq *first = &g->choice[0].seq;

    if (strcmp(why, "ok") != 0) {
        m->success_abort++;
        return;
    }
    if (!strcmp(g->choice[0].finish, "stop"))
        m->success_stop++;
    else
        m->success_length++;
    metrics_observe(&m->e2e, pacer_now_ns() - g->received_ns);
    metrics_observe(&m->queue,
                    first->scheduled_ns > g->received_ns ? first->scheduled_ns - g->received_ns : 0);
}

/* Every way out comes here; the connection has been dealt with or is about to be, without touching g. */
static void end(struct gen *g, const char *why) {
    for (unsigned i = 0; i < g->body.n; i++) engine_cancel(g->srv->engine, &g->choice[i].seq);
    log_end(g, why);
    count_end(g, why);
    for (unsigned i = 0; i < g->body.n; i++) free(g->choice[i].text);
    body_fini(&g->body);
    pacer_wake(g->srv->pacer); /* a place in the batch may have become free while the engine sleeps */
    free(g);
}

void gen_on_gone(void *gen) {
    struct gen *g = gen;

    end(g, g->srv->stopping ? "shutdown" : "client_abort");
}

static void stall(struct gen *g) {
    for (unsigned i = 0; i < g->body.n; i++) {
        g->choice[i].seq.not_before_ns = pacer_now_ns() + g->fault.stall_ms * 1000000u;
    }
    g->fault.kind = FAULT_NONE;
}

static bool fault_is_due(const struct gen *g) {
    return g->n_token_events >= g->srv->opts.fault_after;
}

static void set_choices(struct gen *g) {
    uint64_t key = prompt_key(g);

    for (unsigned i = 0; i < g->body.n; i++) {
        struct gen_choice *ch = &g->choice[i];

        ch->gen = g;
        ch->index = i;
        ch->seq.owner = ch;
        ch->seq.prompt = g->body.prompt.id;
        ch->seq.n_prompt = g->body.prompt.n;
        draw_answer(g, ch, key);
    }
}

/* The id without its kind: the client's own where it gave one. */
static void make_head(const struct gen *g, char *head, size_t cap) {
    snprintf(head, cap, "x-request-id: %s\r\n", strchr(g->id, '-') + 1);
}

static void begin_stream(struct gen *g) {
    char head[200];

    make_head(g, head, sizeof head);
    log_send(g, "head", false, 0, 0, 0, conn_stream_begin(g->conn, head));
}

bool gen_start(struct server *srv, struct conn *c, const struct http_in *req, uint64_t number,
               struct body *body, struct fault fault) {
    struct gen *g = calloc(1, sizeof *g);

    if (!g) return false;
    g->srv = srv;
    g->conn = c;
    g->body = *body;
    g->number = number;
    g->fault = fault;
    g->created = (int64_t)time(NULL);
    g->first_byte_ns = conn_first_byte_ns(c);
    g->received_ns = pacer_now_ns();
    set_id(g, req);
    set_choices(g);
    conn_set_user(c, g);
    log_start(g, req);
    if (g->fault.kind == FAULT_STALL && fault_is_due(g)) stall(g);
    if (g->body.stream) begin_stream(g);
    for (unsigned i = 0; i < g->body.n; i++) engine_submit(srv->engine, &g->choice[i].seq);
    pacer_wake(srv->pacer);
    return true;
}

static void append(struct gen_choice *ch, const char *text) {
    size_t n = strlen(text);

    if (ch->len + n + 1 > ch->cap) {
        size_t cap = (ch->len + n + 1) * 2;
        char *grown = realloc(ch->text, cap);

        if (!grown) return;
        ch->text = grown;
        ch->cap = cap;
    }
    memcpy(ch->text + ch->len, text, n + 1);
    ch->len += n;
}

uint32_t gen_token(const struct gen_choice *ch, uint64_t position) {
    if (ch->has_eos && position == ch->seq.n_answer - 1) return TOKENS_EOS;
    return tokens_answer(ch->seq.key, position);
}

static void append_tokens(struct gen_choice *ch, unsigned n) {
    for (uint64_t i = ch->seq.n_out - n; i < ch->seq.n_out; i++) append(ch, tokens_text(gen_token(ch, i)));
}

/* Cuts the text at the first stop text. Nothing of one was sent: unsent text is as long as it could be. */
static bool stops(struct gen_choice *ch) {
    const struct body *b = &ch->gen->body;
    char *first = NULL;

    for (unsigned i = 0; ch->text && i < b->n_stops; i++) {
        char *at = strstr(ch->text + ch->sent, b->stop[i]);

        if (!at || (first && at >= first)) continue;
        first = at;
        ch->stop_reason = b->stop[i];
    }
    if (!first) return false;
    *first = '\0';
    ch->len = (size_t)(first - ch->text);
    return true;
}

/* How far the text may be shown: what could be the beginning of a stop text is held back, as vLLM does. */
static size_t showable(const struct gen_choice *ch) {
    const struct body *b = &ch->gen->body;
    size_t hold = 0;
    size_t until;

    if (ch->done) return ch->len;
    for (unsigned i = 0; i < b->n_stops; i++) {
        if (strlen(b->stop[i]) - 1 > hold) hold = strlen(b->stop[i]) - 1;
    }
    until = ch->len > ch->sent + hold ? ch->len - hold : ch->sent;
    while (until > ch->sent && ((unsigned char)ch->text[until] & 0xc0) == 0x80) until--;
    return until;
}

static void send_event(struct gen *g, const char *kind, unsigned choice, uint64_t tokens, uint64_t step,
                       char *json) {
    if (!json) return;
    log_send(g, kind, true, choice, tokens, step, conn_event(g->conn, json));
    render_free(json);
}

static void send_delta(struct gen_choice *ch, unsigned n, uint64_t step) {
    struct gen *g = ch->gen;
    size_t until = showable(ch);

    for (unsigned i = 0; g->body.chat && !g->role_sent && i < g->body.n; i++) {
        send_event(g, "role", i, 0, step, render_role(g, i));
    }
    g->role_sent = true;
    send_event(g, "tokens", ch->index, n, step, render_delta(ch, ch->sent, until, n));
    ch->sent = until;
}

static void send_done(struct gen *g, uint64_t step) {
    log_send(g, "done", true, 0, 0, step, conn_event(g->conn, "[DONE]"));
    log_send(g, "end", false, 0, 0, step, conn_stream_end(g->conn));
}

/* conn_set_user(NULL) first: answering may start the connection's next request, whose end must not find g. */
static void finish(struct gen *g, uint64_t step) {
    uint64_t n_out = 0;

    for (unsigned i = 0; i < g->body.n; i++) n_out += g->choice[i].seq.n_out;
    conn_set_user(g->conn, NULL);
    if (g->body.stream) {
        if (g->body.include_usage) send_event(g, "usage", 0, 0, step, render_usage_event(g));
        send_done(g, step);
    } else {
        char *json = render_answer(g);
        char head[200];

        make_head(g, head, sizeof head);
        log_send(
            g, "body", false, 0, n_out, step,
            conn_reply(g->conn, 200, "application/json", head, json ? json : "", json ? strlen(json) : 0));
        render_free(json);
    }
    end(g, "ok");
}

static void fail_with_error(struct gen *g, uint64_t step) {
    char *json = render_error("Internal server error", "InternalServerError", 500);

    conn_set_user(g->conn, NULL);
    if (g->body.stream) {
        send_event(g, "error", 0, 0, step, json);
        send_done(g, step);
    } else {
        log_send(g, "body", false, 0, 0, step,
                 conn_reply(g->conn, 500, "application/json", "", json ? json : "", json ? strlen(json) : 0));
        render_free(json);
    }
    end(g, "error");
}

/* A body that was promised whole breaks off in the middle; a stream lacks its end anyhow. */
static void break_off(struct gen *g, uint64_t step, bool reset) {
    char *json = g->body.stream ? NULL : render_answer(g);

    if (json)
        log_send(g, "body", false, 0, 0, step,
                 conn_reply_part(g->conn, json, strlen(json) / 2, strlen(json)));
    render_free(json);
    if (reset)
        conn_reset(g->conn);
    else
        conn_cut(g->conn);
    end(g, reset ? "reset" : "cut");
}

/* Whether the generation failed as it was told to, and is gone. A short answer fails before its last event.
 */
static bool strike(struct gen *g, uint64_t step) {
    if (!fault_is_due(g) && g->n_done < g->body.n) return false;
    switch (g->fault.kind) {
    case FAULT_ERROR: fail_with_error(g, step); return true;
    case FAULT_CUT: break_off(g, step, false); return true;
    case FAULT_RESET: break_off(g, step, true); return true;
    default: return false;
    }
}

static void observe(struct gen_choice *ch, unsigned n, uint64_t before_ns) {
    struct metrics *m = &ch->gen->srv->metrics;

    if (ch->seq.n_out == n)
        metrics_observe(&m->ttft, ch->seq.first_ns - ch->gen->received_ns);
    else
        metrics_observe(&m->itl, ch->seq.last_ns - before_ns);
}

void gen_on_tokens(struct seq *s, unsigned n, bool last, uint64_t before_ns, uint64_t step) {
    struct gen_choice *ch = s->owner;
    struct gen *g = ch->gen;

    observe(ch, n, before_ns);
    append_tokens(ch, n);
    if (stops(ch)) {
        engine_cancel(g->srv->engine, s);
        ch->finish = "stop";
    } else if (last) {
        ch->finish = ch->has_eos ? "stop" : "length";
    }
    ch->done = ch->finish != NULL;
    if (ch->done) g->n_done++;
    if (strike(g, step)) return;
    if (g->body.stream) send_delta(ch, n, step);
    g->n_token_events++;
    if (g->n_done == g->body.n)
        finish(g, step);
    else if (g->fault.kind == FAULT_STALL && fault_is_due(g))
        stall(g);
}
