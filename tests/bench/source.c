/* bench_source: the upstream of the benchmark, a server of streamed chat answers. One thread, epoll.
 *
 *   bench_source [--log FILE]      prints "port N" and serves until SIGTERM
 *
 * A request is POST /v1/chat/completions?us=U&phase=P&n=N or ...&ms=M. Tokens come every U microseconds, at
 * the instants that leave P when divided by U (counted from the source's start), so streams with one phase
 * share an engine step; U = 0: as fast as the socket takes them. The answer ends after N tokens or M
 * milliseconds. Each event is one HTTP chunk and one send(), and carries the clock read right before that
 * send.
 *
 * It knows nothing of who reads. The one hard idea: `produce` makes the next piece of an answer and `push`
 * sends pieces until a piece is not due yet or the socket is full, so pacing and backpressure meet in one
 * loop.
 */
#include "tests/bench/event.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNS   1024
#define IN_BYTES    8192
#define OUT_BYTES   (EVENT_MAX_BYTES + 64)
#define BURST       8 /* pieces of one stream before the next stream's turn, when as fast as possible */
#define LOG_PREPARE (1u << 18) /* records whose memory is touched before the first request */

enum step { STEP_IDLE, STEP_HEAD, STEP_ROLE, STEP_TOKENS, STEP_FINISH, STEP_USAGE, STEP_DONE };

struct conn {
    int fd; /* -1: free */
    enum step step;
    int blocked; /* the socket is full; epoll says when it is not */
    struct event_stream stream;
    uint32_t log_request;
    uint32_t n_sent, n_wanted; /* n_wanted 0: until stop_ns */
    uint64_t interval_ns, due_ns, stop_ns;
    char out[OUT_BYTES]; /* the piece being sent: out_at .. out_end */
    size_t out_at, out_end;
    char in[IN_BYTES];
    size_t in_bytes;
};

/* The log file: n_requests, n_records (u32 each), ids of EVENT_ID_BYTES each, then records. Host byte order.
 */
struct log_record {
    uint32_t request, ordinal;
    uint64_t sent_ns;
};

static struct conn conns[MAX_CONNS];
static unsigned n_conns; /* slots in use lie below this */
static int epoll_fd;
static uint64_t start_ns;
static const char *log_path;
static struct log_record *log_records;
static char (*log_ids)[EVENT_ID_BYTES];
static uint32_t n_log_records, log_capacity, n_log_requests;
static volatile sig_atomic_t stopping;

static void die(const char *what) {
    fprintf(stderr, "bench_source: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void log_open(void) {
    log_capacity = LOG_PREPARE;
    log_records = malloc(log_capacity * sizeof *log_records);
    if (!log_records) die("log");
    memset(log_records, 0,
           log_capacity * sizeof *log_records); /* no page fault between a stamp and its send */
}

static void log_request(struct conn *c) {
    if (!log_path) return;
    if (n_log_requests % 256 == 0) {
        log_ids = realloc(log_ids, (n_log_requests + 256) * sizeof *log_ids);
        if (!log_ids) die("log");
    }
    c->log_request = n_log_requests;
    memcpy(log_ids[n_log_requests++], c->stream.id, EVENT_ID_BYTES);
}

static void log_token(const struct conn *c, uint64_t sent_ns) {
    if (!log_path) return;
    if (n_log_records == log_capacity) {
        log_capacity *= 2;
        log_records = realloc(log_records, log_capacity * sizeof *log_records);
        if (!log_records) die("log");
    }
    log_records[n_log_records++] =
        (struct log_record){.request = c->log_request, .ordinal = c->n_sent, .sent_ns = sent_ns};
}

static void log_write(void) {
    FILE *f = fopen(log_path, "wb");
    if (!f) die(log_path);
    uint32_t head[2] = {n_log_requests, n_log_records};
    fwrite(head, sizeof head, 1, f);
    fwrite(log_ids, EVENT_ID_BYTES, n_log_requests, f);
    fwrite(log_records, sizeof *log_records, n_log_records, f);
    if (ferror(f) | fclose(f)) die(log_path);
}

static void conn_close(struct conn *c) {
    close(c->fd);
    c->fd = -1;
    while (n_conns && conns[n_conns - 1].fd < 0) n_conns--;
}

/* Makes the `bytes` at out + 5 a chunk: hex digits and CR LF in front, CR LF behind. */
static void frame(struct conn *c, size_t bytes) {
    static const char hex[] = "0123456789abcdef";
    char *p = c->out;
    p[0] = hex[bytes >> 8 & 15], p[1] = hex[bytes >> 4 & 15], p[2] = hex[bytes & 15];
    p[3] = '\r', p[4] = '\n';
    p[5 + bytes] = '\r', p[6 + bytes] = '\n';
    c->out_at = bytes > 255 ? 0 : bytes > 15 ? 1 : 2; /* no leading zeros */
    c->out_end = bytes + 7;
}

static void produce_token(struct conn *c) {
    uint64_t now = event_now_ns();
    frame(c, event_token(&c->stream, c->n_sent, now, c->out + 5));
    log_token(c, now);
    c->n_sent++;
    c->due_ns += c->interval_ns;
    if (c->n_wanted ? c->n_sent == c->n_wanted : now >= c->stop_ns) c->step = STEP_FINISH;
}

/* Makes the next piece of the answer. */
static void produce(struct conn *c) {
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                               "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    switch (c->step) {
    case STEP_HEAD:
        memcpy(c->out, head, sizeof head - 1);
        c->out_at = 0, c->out_end = sizeof head - 1;
        c->step = STEP_ROLE;
        break;
    case STEP_ROLE:
        frame(c, event_role(&c->stream, c->out + 5));
        c->step = STEP_TOKENS;
        break;
    case STEP_TOKENS: produce_token(c); break;
    case STEP_FINISH:
        frame(c, event_finish(&c->stream, c->out + 5));
        c->step = STEP_USAGE;
        break;
    case STEP_USAGE:
        frame(c, event_usage(&c->stream, c->n_sent, c->out + 5));
        c->step = STEP_DONE;
        break;
    case STEP_DONE:
        frame(c, event_done(c->out + 5));
        memcpy(c->out + c->out_end, "0\r\n\r\n", 5);
        c->out_end += 5;
        c->step = STEP_IDLE;
        break;
    case STEP_IDLE: break;
    }
}

static int is_due(const struct conn *c, uint64_t now) {
    if (c->step == STEP_IDLE) return 0;
    return c->step != STEP_TOKENS || now >= c->due_ns;
}

/* Sends what is due, at most `pieces` of it. The caller's `now` decides what is due; stamps are taken afresh.
 */
static void push(struct conn *c, uint64_t now, int pieces) {
    while (c->fd >= 0 && !c->blocked) {
        if (c->out_at == c->out_end) {
            if (pieces-- == 0 || !is_due(c, now)) return;
            produce(c);
        }
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_end - c->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            c->out_at += (size_t)n;
        else if (errno == EAGAIN)
            c->blocked = 1;
        else if (errno != EINTR)
            conn_close(c);
    }
}

/* The number behind `key` in the request's query, or `otherwise`. The key comes with its `=`. */
static uint64_t query(const char *line, const char *key, uint64_t otherwise) {
    const char *at = strstr(line, key);
    return at && (at[-1] == '?' || at[-1] == '&') ? strtoull(at + strlen(key), NULL, 10) : otherwise;
}

static const char *header(const char *head, const char *name) {
    const char *at = strcasestr(head, name);
    return at && at[-1] == '\n' ? at + strlen(name) + strspn(at + strlen(name), " ") : "";
}

/* Begins the answer to the request whose head (terminated) is given. */
static void answer(struct conn *c, char *head) {
    char id[EVENT_ID_BYTES];
    const char *value = header(head, "x-request-id:");
    snprintf(id, sizeof id, "%.*s", (int)strcspn(value, "\r\n"), value);
    head[strcspn(head, "\r\n")] = 0; /* the query is looked for in the first line alone */
    event_stream_init(&c->stream, id);
    log_request(c);
    uint64_t now = event_now_ns(), phase_ns = query(head, "phase=", 0) * 1000;
    c->interval_ns = query(head, "us=", 0) * 1000;
    c->n_wanted = (uint32_t)query(head, "n=", 0);
    c->stop_ns = now + query(head, "ms=", 0) * 1000000;
    c->n_sent = 0;
    c->due_ns = 0;
    if (c->interval_ns) {
        uint64_t steps = (now - start_ns + c->interval_ns) / c->interval_ns;
        c->due_ns = start_ns + steps * c->interval_ns + phase_ns % c->interval_ns;
    }
    c->step = STEP_HEAD;
    push(c, now, 2);
}

/* Takes a whole request from the input, if there is one. Returns 0 when the connection cannot go on. */
static int take_request(struct conn *c) {
    c->in[c->in_bytes] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return c->in_bytes < IN_BYTES - 1;
    size_t head_bytes = (size_t)(end - c->in) + 4;
    end[2] = 0;
    size_t body_bytes = strtoull(header(c->in, "content-length:"), NULL, 10);
    end[2] = '\r';
    if (body_bytes > IN_BYTES) return 0;
    if (c->in_bytes < head_bytes + body_bytes) return c->in_bytes < IN_BYTES - 1;
    if (c->step != STEP_IDLE) return 0; /* pipelining is not served */
    end[2] = 0;
    answer(c, c->in);
    c->in_bytes -= head_bytes + body_bytes;
    memmove(c->in, c->in + head_bytes + body_bytes, c->in_bytes);
    return 1;
}

static void on_readable(struct conn *c) {
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->in_bytes, IN_BYTES - 1 - c->in_bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) c->in_bytes += (size_t)n;
        if (n <= 0 || !take_request(c)) {
            conn_close(c);
            return;
        }
        if (c->fd < 0) return;
    }
}

static void on_accept(int listen_fd) {
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
        if (fd < 0) return;
        unsigned i = 0;
        while (i < n_conns && conns[i].fd >= 0) i++;
        if (i == MAX_CONNS) {
            close(fd);
            continue;
        }
        if (i == n_conns) n_conns++;
        struct conn *c = &conns[i];
        c->fd = fd, c->step = STEP_IDLE, c->blocked = 0;
        c->in_bytes = c->out_at = c->out_end = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
    }
}

/* Gives every stream its turn; returns how long to sleep, -1 for ever. */
static int64_t turn(void) {
    uint64_t now = event_now_ns(), next = UINT64_MAX;
    for (unsigned i = 0; i < n_conns; i++) {
        struct conn *c = &conns[i];
        if (c->fd < 0 || c->blocked) continue;
        if (is_due(c, now) || c->out_at < c->out_end) push(c, now, BURST);
        if (c->fd < 0 || c->blocked || c->step == STEP_IDLE) continue;
        uint64_t due = c->step == STEP_TOKENS ? c->due_ns : 0;
        if (due < next) next = due;
    }
    if (next == UINT64_MAX) return -1;
    now = event_now_ns();
    return next <= now ? 0 : (int64_t)(next - now);
}

static int listen_loopback(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, 1024)) die("listen");
    if (getsockname(fd, (struct sockaddr *)&a, &len)) die("getsockname");
    printf("port %u\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

static void on_stop(int sig) {
    stopping = 1;
}

static void serve(int listen_fd, const sigset_t *while_waiting) {
    struct epoll_event ev[256], e = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &e)) die("epoll_ctl");
    while (!stopping) {
        int64_t wait_ns = turn();
        struct timespec t = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
        int n = epoll_pwait2(epoll_fd, ev, 256, wait_ns < 0 ? NULL : &t, while_waiting);
        if (n < 0 && errno != EINTR) die("epoll_pwait2");
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;
            if (!c)
                on_accept(listen_fd);
            else if (c->fd >= 0) {
                if (ev[i].events & EPOLLOUT) c->blocked = 0;
                if (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--log"))
        log_path = argv[2];
    else if (argc != 1) {
        fprintf(stderr, "bench_source: usage: bench_source [--log FILE]\n");
        return 2;
    }
    for (int i = 0; i < MAX_CONNS; i++) conns[i].fd = -1;
    if (log_path) log_open();
    prctl(PR_SET_TIMERSLACK, 1UL);    /* else each sleep ends up to 50 us late */
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a source never outlives its benchmark */
    sigset_t block, before;           /* SIGTERM is let in only while waiting, so none is missed */
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_stop}, NULL);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1");
    start_ns = event_now_ns();
    serve(listen_loopback(), &before);
    if (log_path) log_write();
    return 0;
}
