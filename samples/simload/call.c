/* Calls over kept connections, on libuv. */
#include "samples/simload/call.h"

#include "samples/simload/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A server may close a connection that was idle for some seconds just as we use it; uvicorn does after 5. */
enum { MAX_IDLE_MS = 2000 };

/* A connection, and the call on it while it is busy. */
struct link {
    uv_tcp_t tcp;
    uv_timer_t timer; /* busy: our abort; idle: the end of keeping it */
    uv_connect_t connect;
    uv_write_t write;
    struct calls *all;
    struct link *next, *prev;
    struct reader reader;
    struct tally_row row;
    uint64_t abort_after_ms;
    char request_id[48];
    char *out; /* the request's bytes, until the next one */
    bool busy, closing;
    int n_handles;
};

uint64_t call_now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_closed(uv_handle_t *handle) {
    struct link *l = handle->data;

    if (--l->n_handles > 0) return;
    free(l->out);
    free(l);
}

static void drop(struct link *l) {
    if (l->closing) return;
    l->closing = true;
    if (l->prev)
        l->prev->next = l->next;
    else
        l->all->first = l->next;
    if (l->next) l->next->prev = l->prev;
    uv_close((uv_handle_t *)&l->tcp, on_closed);
    uv_close((uv_handle_t *)&l->timer, on_closed);
}

/* Reports the call; the link is idle afterwards. */
static void report(struct link *l, enum tally_outcome outcome) {
    const struct reader *r = &l->reader;

    if (!l->busy) return;
    l->busy = false;
    l->all->n_running--;
    l->row.end_ns = call_now_ns();
    l->row.first_ns = r->first_ns;
    l->row.last_ns = r->last_ns;
    l->row.events = r->n_events;
    l->row.prompt_tokens = r->prompt_tokens;
    l->row.cached_tokens = r->cached_tokens;
    l->row.answer_tokens = r->answer_tokens;
    l->row.status = reader_status(r);
    l->row.outcome = outcome;
    tally_add(l->all->tally, &l->row);
    reader_fini(&l->reader);
}

static enum tally_outcome judge(const struct reader *r) {
    if (reader_status(r) >= 400) return TALLY_HTTP_ERROR;
    if (r->saw_error) return TALLY_STREAM_ERROR;
    if (r->stream && !r->saw_marker) return TALLY_CUT;
    return TALLY_OK;
}

static void on_idle_long(uv_timer_t *timer) {
    drop(timer->data);
}

static void on_abort(uv_timer_t *timer) {
    struct link *l = timer->data;

    report(l, TALLY_ABORTED);
    drop(l);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    static char shared[65536]; /* one thread, and the reader copies what it keeps */

    *buf = uv_buf_init(shared, sizeof shared);
}

static void answered(struct link *l) {
    bool keep = l->reader.keep_alive;

    report(l, judge(&l->reader));
    if (!keep) {
        drop(l);
        return;
    }
    uv_timer_start(&l->timer, on_idle_long, MAX_IDLE_MS, 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    struct link *l = stream->data;
    enum reader_st st = READER_BAD;

    if (n == 0) return;
    if (n > 0 && l->busy) st = reader_feed(&l->reader, buf->base, (size_t)n, call_now_ns());
    if (st == READER_MORE) return;
    if (st == READER_DONE) {
        answered(l);
        return;
    }
    if (l->busy && n == UV_EOF && reader_end(&l->reader)) report(l, judge(&l->reader));
    report(l, TALLY_CUT);
    drop(l);
}

static void on_written(uv_write_t *req, int status) {
    struct link *l = req->handle->data;

    if (status >= 0 || l->closing) return;
    report(l, TALLY_CUT);
    drop(l);
}

static void send_now(struct link *l) {
    uv_buf_t buf = uv_buf_init(l->out, (unsigned)strlen(l->out));

    l->row.sent_ns = call_now_ns();
    if (l->abort_after_ms)
        uv_timer_start(&l->timer, on_abort, l->abort_after_ms, 0);
    else
        uv_timer_stop(&l->timer);
    if (uv_write(&l->write, (uv_stream_t *)&l->tcp, &buf, 1, on_written) == 0) return;
    report(l, TALLY_CUT);
    drop(l);
}

static void on_connected(uv_connect_t *req, int status) {
    struct link *l = req->handle->data;

    if (l->closing) return;
    if (status < 0) {
        report(l, TALLY_REFUSED);
        drop(l);
        return;
    }
    uv_tcp_nodelay(&l->tcp, 1);
    uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
    send_now(l);
}

static struct link *new_link(struct calls *all) {
    struct link *l = calloc(1, sizeof *l);

    if (!l) return NULL;
    l->all = all;
    l->n_handles = 2;
    uv_tcp_init(all->loop, &l->tcp);
    uv_timer_init(all->loop, &l->timer);
    l->tcp.data = l->timer.data = l;
    l->next = all->first;
    if (all->first) all->first->prev = l;
    all->first = l;
    return l;
}

static struct link *idle_link(struct calls *all) {
    struct link *l = all->first;

    while (l && l->busy) l = l->next;
    return l;
}

/* X-Request-Start says when the request was due, in the form of microseconds since the epoch. */
static char *make_request(const struct calls *all, const char *request_id, const struct shot *shot) {
    uint64_t due_wall_us = (all->start_wall_ns + shot->due_ns) / 1000;
    const char *body = shot->body ? shot->body : "";
    size_t cap = strlen(body) + 512;
    char *out = malloc(cap);
    int n;

    if (!out) return NULL;
    n = snprintf(
        out, cap,
        "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: simload\r\nX-Request-Id: %s\r\nX-Request-Start: t=%" PRIu64
        "\r\n",
        shot->method, shot->path, all->host, request_id, due_wall_us);
    if (shot->body) {
        n += snprintf(out + n, cap - (size_t)n, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      strlen(body));
    }
    snprintf(out + n, cap - (size_t)n, "\r\n%s", body);
    return out;
}

static void set_row(struct link *l, uint64_t n, const struct shot *shot) {
    l->row = (struct tally_row){.n = n,
                                .request_id = l->request_id,
                                .api = shot->api,
                                .path = shot->path,
                                .generation = shot->generation,
                                .stream = shot->stream,
                                .due_ns = l->all->start_mono_ns + shot->due_ns};
    l->abort_after_ms = shot->abort_after_ms;
}

bool call_send(struct calls *all, uint64_t n, const struct shot *shot) {
    struct link *l = idle_link(all);
    bool kept = l != NULL;

    if (!kept) l = new_link(all);
    if (!l) return false;
    free(l->out);
    snprintf(l->request_id, sizeof l->request_id, "load-%08" PRIx64 "-%05" PRIu64, all->run & 0xffffffffu, n);
    l->out = make_request(all, l->request_id, shot);
    set_row(l, n, shot);
    if (!l->out) {
        drop(l);
        return false;
    }
    reader_init(&l->reader);
    l->busy = true;
    all->n_running++;
    if (kept) {
        send_now(l);
    } else if (uv_tcp_connect(&l->connect, &l->tcp, (const struct sockaddr *)&all->server, on_connected) !=
               0) {
        report(l, TALLY_REFUSED);
        drop(l);
    }
    return true;
}

void calls_close(struct calls *all) {
    while (all->first) {
        report(all->first, TALLY_UNFINISHED);
        drop(all->first);
    }
}
