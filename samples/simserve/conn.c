/* HTTP/1.1 connections on libuv: one struct conn from accept to close. */
#include "samples/simserve/conn.h"

#include "samples/simserve/pacer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIPELINED_BYTES = 65536, SWEEP_MS = 250, BACKLOG = 1024, LINGER_NS = 1000000000 };

struct conns {
    uv_tcp_t listener;
    uv_timer_t sweeper;
    struct conn_ops ops;
    struct conn_limits limits;
    struct conn *first;
    uint64_t n_accepted;
    unsigned n_busy, n_handles;
    bool draining;
};

struct conn {
    uv_tcp_t tcp;
    uv_shutdown_t shutdown;
    struct conns *all;
    struct conn *next, *prev;
    uint64_t number, first_byte_ns, idle_since_ns, linger_since_ns;
    struct http_in in;
    char *later; /* bytes behind the request that is being answered */
    size_t later_len;
    void *user;
    bool busy, closing, saw_eof, in_process, sent_continue;
};

struct out {
    uv_write_t req;
    char data[];
};

static void on_server_handle_closed(uv_handle_t *handle) {
    struct conns *all = handle->data;

    if (--all->n_handles == 0) free(all);
}

static void on_conn_closed(uv_handle_t *handle) {
    struct conn *c = handle->data;
    struct conns *all = c->all;

    if (c->prev)
        c->prev->next = c->next;
    else
        all->first = c->next;
    if (c->next) c->next->prev = c->prev;
    http_in_fini(&c->in);
    free(c->later);
    free(c);
    if (--all->n_handles == 0) free(all);
}

/* No more requests and answers here. on_gone comes last, as it runs the handler's clean-up. */
static void retire(struct conn *c) {
    bool was_busy = c->busy;

    c->closing = true;
    c->busy = false;
    if (!was_busy) return;
    c->all->n_busy--;
    if (c->user) c->all->ops.on_gone(c->user);
}

static void close_now(struct conn *c) {
    if (!c->closing) retire(c);
    if (!uv_is_closing((uv_handle_t *)&c->tcp)) uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
}

static void on_shutdown(uv_shutdown_t *req, int status) {
    struct conn *c = req->handle->data;

    c->linger_since_ns = pacer_now_ns();
    if (status < 0 || c->saw_eof) close_now(c);
}

/* Closes after what is queued has been written, and then waits for the client's end: to close with unread
 * input sends a reset, which can destroy an answer on its way. */
static void close_after_writes(struct conn *c) {
    if (c->closing) return;
    retire(c);
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) != 0) close_now(c);
}

static void on_written(uv_write_t *req, int status) {
    struct conn *c = req->handle->data;

    free(req->data);
    if (status < 0) close_now(c);
}

/* Takes ownership of out. */
static struct conn_stamp write_out(struct conn *c, struct out *out, size_t len) {
    uv_buf_t buf = uv_buf_init(out->data, (unsigned)len);
    struct conn_stamp stamp = {.behind_bytes = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp)};

    out->req.data = out;
    stamp.ns = pacer_now_ns();
    if (uv_write(&out->req, (uv_stream_t *)&c->tcp, &buf, 1, on_written) != 0) free(out);
    return stamp;
}

/* Two texts in one write; no memory means the client sees a cut connection, which is the truth. */
static struct conn_stamp write2(struct conn *c, const char *a, size_t a_len, const char *b, size_t b_len) {
    struct out *out = c->closing ? NULL : malloc(sizeof *out + a_len + b_len);

    if (!out) return (struct conn_stamp){.ns = pacer_now_ns()};
    memcpy(out->data, a, a_len);
    if (b_len > 0) memcpy(out->data + a_len, b, b_len);
    return write_out(c, out, a_len + b_len);
}

static void process(struct conn *c);

static void answered(struct conn *c) {
    c->busy = false;
    c->user = NULL;
    c->all->n_busy--;
    c->idle_since_ns = pacer_now_ns();
    if (!c->in.keep_alive || c->saw_eof || c->all->draining) {
        close_after_writes(c);
        return;
    }
    http_in_next(&c->in);
    c->first_byte_ns = c->later_len ? pacer_now_ns() : 0;
    c->sent_continue = false;
    if (!c->in_process) process(c);
}

/* An error found before there is a request to hand over; the connection is of no more use. */
static void refuse(struct conn *c, unsigned status, const char *why) {
    char body[160];
    int len =
        snprintf(body, sizeof body,
                 "{\"error\":{\"message\":\"%s\",\"type\":\"BadRequestError\",\"code\":%u}}", why, status);

    c->busy = true;
    c->all->n_busy++;
    c->in.keep_alive = false;
    conn_reply(c, status, "application/json", "", body, (size_t)len);
}

static void hand_over(struct conn *c) {
    c->busy = true;
    c->all->n_busy++;
    c->all->ops.on_request(c, &c->in, c->all->ops.arg);
}

static void process(struct conn *c) {
    c->in_process = true;
    while (!c->busy && !c->closing && c->later_len > 0) {
        size_t used;
        enum http_in_st st = http_in_feed(&c->in, c->later, c->later_len, &used);

        c->later_len -= used;
        memmove(c->later, c->later + used, c->later_len);
        if (st == HTTP_IN_DONE)
            hand_over(c);
        else if (st == HTTP_IN_TOO_LARGE)
            refuse(c, 413, "the body is too large");
        else if (st == HTTP_IN_BAD)
            refuse(c, 400, "not an HTTP/1.x request");
    }
    c->in_process = false;
    if (!c->busy && !c->closing && c->in.expects_continue && !c->sent_continue) {
        c->sent_continue = true;
        write2(c, "HTTP/1.1 100 Continue\r\n\r\n", 25, NULL, 0);
    }
}

static bool keep_for_later(struct conn *c, const char *data, size_t len) {
    char *grown = realloc(c->later, c->later_len + len);

    if (!grown) return false;
    memcpy(grown + c->later_len, data, len);
    c->later = grown;
    c->later_len += len;
    return true;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    static char shared[65536]; /* one thread, and on_read copies what it keeps */

    *buf = uv_buf_init(shared, sizeof shared);
}

/* An end of input while an answer is due counts as the client's leaving, as it does for uvicorn. */
static void on_end(struct conn *c, ssize_t err) {
    c->saw_eof = true;
    if (err == UV_EOF && c->busy && c->all->limits.half_close) return;
    close_now(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    struct conn *c = stream->data;

    if (n < 0) on_end(c, n);
    if (n <= 0 || c->closing) return;
    if (c->first_byte_ns == 0) c->first_byte_ns = pacer_now_ns();
    if (!keep_for_later(c, buf->base, (size_t)n) || (c->busy && c->later_len > MAX_PIPELINED_BYTES)) {
        close_now(c);
        return;
    }
    if (!c->busy) process(c);
}

static void on_connection(uv_stream_t *listener, int status) {
    struct conns *all = listener->data;
    struct conn *c = status == 0 ? calloc(1, sizeof *c) : NULL;

    if (!c) return;
    c->all = all;
    all->n_handles++;
    c->number = ++all->n_accepted;
    c->idle_since_ns = pacer_now_ns();
    http_in_init(&c->in, all->limits.max_body_bytes);
    uv_tcp_init(listener->loop, &c->tcp);
    c->tcp.data = c;
    c->next = all->first;
    if (all->first) all->first->prev = c;
    all->first = c;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0) {
        close_now(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

static void close_idle(struct conns *all, uint64_t older_than_ns) {
    struct conn *next;

    for (struct conn *c = all->first; c; c = next) {
        next = c->next;
        if (!c->closing && !c->busy && c->idle_since_ns <= older_than_ns) close_now(c);
    }
}

static void close_lingering(struct conns *all, uint64_t now_ns) {
    for (struct conn *c = all->first; c; c = c->next) {
        if (c->linger_since_ns && now_ns - c->linger_since_ns > LINGER_NS) close_now(c);
    }
}

static void on_sweep(uv_timer_t *timer) {
    struct conns *all = timer->data;
    uint64_t now = pacer_now_ns();

    if (now > all->limits.idle_ms * 1000000u) close_idle(all, now - all->limits.idle_ms * 1000000u);
    close_lingering(all, now);
}

struct conns *conns_listen(uv_loop_t *loop, struct sockaddr_storage *addr, const struct conn_ops *ops,
                           const struct conn_limits *limits, int *err) {
    struct conns *all = calloc(1, sizeof *all);
    int len = sizeof *addr;

    *err = UV_ENOMEM;
    if (!all) return NULL;
    all->ops = *ops;
    all->limits = *limits;
    all->n_handles = 2;
    uv_tcp_init(loop, &all->listener);
    uv_timer_init(loop, &all->sweeper);
    all->listener.data = all->sweeper.data = all;
    *err = uv_tcp_bind(&all->listener, (const struct sockaddr *)addr, 0);
    if (*err == 0) *err = uv_listen((uv_stream_t *)&all->listener, BACKLOG, on_connection);
    if (*err == 0) *err = uv_tcp_getsockname(&all->listener, (struct sockaddr *)addr, &len);
    if (*err == 0) *err = uv_timer_start(&all->sweeper, on_sweep, SWEEP_MS, SWEEP_MS);
    if (*err == 0) return all;
    conns_close(all);
    return NULL;
}

void conns_drain(struct conns *all) {
    if (all->draining) return;
    all->draining = true;
    uv_close((uv_handle_t *)&all->listener, on_server_handle_closed);
    close_idle(all, UINT64_MAX);
}

void conns_close(struct conns *all) {
    conns_drain(all);
    for (struct conn *c = all->first; c; c = c->next) close_now(c);
    uv_close((uv_handle_t *)&all->sweeper, on_server_handle_closed);
}

unsigned conns_busy(const struct conns *all) {
    return all->n_busy;
}

void conn_set_user(struct conn *c, void *user) {
    c->user = user;
}

uint64_t conn_number(const struct conn *c) {
    return c->number;
}

uint64_t conn_first_byte_ns(const struct conn *c) {
    return c->first_byte_ns;
}

static const char *connection_header(const struct conn *c) {
    return c->in.keep_alive && !c->all->draining ? "" : "connection: close\r\n";
}

static int reply_head(const struct conn *c, char *buf, size_t cap, unsigned status, const char *type,
                      const char *head, size_t len) {
    return snprintf(
        buf, cap, "HTTP/1.1 %u %s\r\nserver: simserve\r\ncontent-type: %s\r\n%s%scontent-length: %zu\r\n\r\n",
        status, http_status_str((enum http_status)status), type, connection_header(c), head, len);
}

struct conn_stamp conn_reply(struct conn *c, unsigned status, const char *type, const char *head,
                             const char *body, size_t len) {
    char buf[1024];
    int n = reply_head(c, buf, sizeof buf, status, type, head, len);
    struct conn_stamp stamp = write2(c, buf, (size_t)n, body, http_in_method_is(&c->in, "HEAD") ? 0 : len);

    answered(c);
    return stamp;
}

struct conn_stamp conn_reply_part(struct conn *c, const char *body, size_t len, size_t promised) {
    char buf[1024];
    int n = reply_head(c, buf, sizeof buf, 200, "application/json", "", promised);

    return write2(c, buf, (size_t)n, body, len);
}

/* HTTP/1.0 knows no chunks: the end of the connection is the end of the body. */
struct conn_stamp conn_stream_begin(struct conn *c, const char *head) {
    char buf[1024];
    int n;

    if (c->in.http10) c->in.keep_alive = false;
    n = snprintf(
        buf, sizeof buf,
        "HTTP/1.1 200 OK\r\nserver: simserve\r\ncontent-type: text/event-stream; charset=utf-8\r\n%s%s%s\r\n",
        connection_header(c), head, c->in.http10 ? "" : "transfer-encoding: chunked\r\n");
    return write2(c, buf, (size_t)n, NULL, 0);
}

struct conn_stamp conn_event(struct conn *c, const char *text) {
    size_t cap = strlen(text) + 40;
    struct out *out = c->closing ? NULL : malloc(sizeof *out + cap);
    int n;

    if (!out) return (struct conn_stamp){.ns = pacer_now_ns()};
    if (c->in.http10)
        n = snprintf(out->data, cap, "data: %s\n\n", text);
    else
        n = snprintf(out->data, cap, "%zx\r\ndata: %s\n\n\r\n", strlen(text) + 8, text);
    return write_out(c, out, (size_t)n);
}

struct conn_stamp conn_stream_end(struct conn *c) {
    struct conn_stamp stamp = {.ns = pacer_now_ns()};

    if (!c->in.http10) stamp = write2(c, "0\r\n\r\n", 5, NULL, 0);
    answered(c);
    return stamp;
}

void conn_cut(struct conn *c) {
    c->user = NULL;
    close_after_writes(c);
}

void conn_reset(struct conn *c) {
    if (c->closing) return;
    c->user = NULL;
    retire(c);
    uv_tcp_close_reset(&c->tcp, on_conn_closed);
}
