/* simserve: options, open, wire, run, drain, close. */
#include "samples/simserve/gen.h"
#include "samples/simserve/routes.h"

#include "samples/common/hostport.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { DRAIN_TICK_MS = 10 };

struct program {
    struct server srv;
    uv_loop_t loop;
    uv_signal_t on_int, on_term;
    uv_timer_t drain;
    uint64_t stop_by_ns; /* 0: running */
    bool closed;
};

static void close_all(struct program *p) {
    if (p->closed) return;
    p->closed = true;
    p->srv.stopping = true;
    conns_close(p->srv.conns);
    pacer_close(p->srv.pacer);
    uv_close((uv_handle_t *)&p->drain, NULL);
    uv_close((uv_handle_t *)&p->on_int, NULL);
    uv_close((uv_handle_t *)&p->on_term, NULL);
}

static void on_drain(uv_timer_t *timer) {
    struct program *p = timer->data;

    if (conns_busy(p->srv.conns) == 0 || pacer_now_ns() >= p->stop_by_ns) close_all(p);
}

/* The first signal lets running requests end, the second does not. */
static void on_signal(uv_signal_t *handle, int number) {
    struct program *p = handle->data;

    if (p->stop_by_ns) {
        close_all(p);
        return;
    }
    p->stop_by_ns = pacer_now_ns() + p->srv.opts.drain_ms * 1000000u;
    conns_drain(p->srv.conns);
    uv_timer_start(&p->drain, on_drain, 0, DRAIN_TICK_MS);
}

/* As many descriptors as the system lets us have: a load test opens hundreds of connections. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int fail(const char *what, const char *why, const char *advice) {
    fprintf(stderr, "simserve: %s: %s; %s\n", what, why, advice);
    return 1;
}

static int open_truth(struct server *srv) {
    if (!srv->opts.truth_path) return 0;
    srv->truth = truth_create(srv->opts.truth_path);
    if (srv->truth) return 0;
    return fail(srv->opts.truth_path, strerror(errno),
                "--truth needs the name of a new file in a writable folder");
}

static int open_engine(struct program *p) {
    p->srv.engine = engine_new(&p->srv.opts.engine, gen_on_tokens);
    if (p->srv.engine) p->srv.pacer = pacer_new(&p->loop, p->srv.engine);
    if (p->srv.pacer) return 0;
    return fail("the engine", strerror(errno), "choose a smaller --kv-tokens or --cache-tokens");
}

static int listen_on(struct program *p, char *where) {
    const struct conn_ops ops = {.on_request = routes_on_request, .on_gone = gen_on_gone, .arg = &p->srv};
    const struct conn_limits limits = {.idle_ms = p->srv.opts.idle_ms,
                                       .max_body_bytes = p->srv.opts.max_body_bytes,
                                       .half_close = p->srv.opts.half_close};
    int err;

    hostport_text(&p->srv.opts.listen, where);
    p->srv.conns = conns_listen(&p->loop, &p->srv.opts.listen, &ops, &limits, &err);
    if (!p->srv.conns) return fail(where, uv_strerror(err), "choose another --listen");
    hostport_text(&p->srv.opts.listen, where);
    return 0;
}

static void watch_signals(struct program *p) {
    signal(SIGPIPE, SIG_IGN);
    uv_timer_init(&p->loop, &p->drain);
    uv_signal_init(&p->loop, &p->on_int);
    uv_signal_init(&p->loop, &p->on_term);
    p->drain.data = p->on_int.data = p->on_term.data = p;
    uv_signal_start(&p->on_int, on_signal, SIGINT);
    uv_signal_start(&p->on_term, on_signal, SIGTERM);
}

static int serve(struct program *p) {
    char where[HOSTPORT_TEXT_BYTES];
    int st = open_engine(p);

    if (!st) st = listen_on(p, where);
    if (st) return st;
    watch_signals(p);
    metrics_init(&p->srv.metrics);
    p->srv.ready_ns = pacer_now_ns() + p->srv.opts.load_ms * 1000000u;
    truth_start(p->srv.truth, where, p->srv.opts.model);
    printf("simserve: listening on %s\n", where);
    fflush(stdout);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_loop_close(&p->loop);
    engine_free(p->srv.engine);
    printf("simserve: %llu requests, %llu of them generations\n", (unsigned long long)p->srv.n_requests,
           (unsigned long long)p->srv.n_generations);
    return 0;
}

int main(int argc, char **argv) {
    static struct program p;
    int st = opts_read(&p.srv.opts, argc, argv);

    if (st) return st == 1 ? 0 : st;
    raise_descriptor_limit();
    if (uv_loop_init(&p.loop) != 0)
        return fail("the event loop", strerror(errno), "free some file descriptors");
    st = open_truth(&p.srv);
    if (!st) st = serve(&p);
    if (!truth_close(p.srv.truth))
        st = fail(p.srv.opts.truth_path, "it is not whole", "free some disk space");
    return st;
}
