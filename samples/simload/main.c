/* simload: options, plan, send each request when it is due, wait for the rest, print one line. */
#include "samples/simload/call.h"

#include "samples/common/hostport.h"
#include "samples/common/optab.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct program {
    struct mix mix;
    struct calls calls;
    struct tally tally;
    const char *log_path;
    uint64_t max_requests, grace_ms;
    double seconds;
    bool allow_remote, stopping;
    uv_loop_t loop;
    uv_timer_t timer;
    uv_signal_t on_int, on_term;
    struct shot next;
    uint64_t n;       /* of the next shot */
    uint64_t last_ns; /* when the last one was sent */
};

static const char about[] =
    "simload: a small mixed load for a server with the OpenAI API; arrivals are a Poisson process that does "
    "not wait\n"
    "for answers. It ends by itself, prints one line, and exits 1 when no generation went well.\n"
    "Each request carries X-Request-Id and X-Request-Start (when it was due).";

static const char *set_server(const char *value, void *at) {
    return hostport_parse(value, at);
}

static int read_options(struct program *p, int argc, char **argv) {
    struct mix *m = &p->mix;
    const struct optab table[] = {
        {"Run", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"server", OPTAB_CALL, &p->calls.server, 0, 0, "HOST:PORT", "where to send [127.0.0.1:8000]",
         set_server},
        {"allow-remote", OPTAB_FLAG, &p->allow_remote, 0, 0, NULL, "let the server be on another machine",
         NULL},
        {"requests", OPTAB_UINT, &p->max_requests, 1, 1e7, "N", "send at most so many", NULL},
        {"seconds", OPTAB_REAL, &p->seconds, 0.1, 86400, "S", "send for so long at most", NULL},
        {"rate", OPTAB_REAL, &m->rate, 0.01, 20000, "N", "requests a second", NULL},
        {"seed", OPTAB_UINT, &m->seed, 0, 1e15, "N", "seed of the plan", NULL},
        {"grace-ms", OPTAB_UINT, &p->grace_ms, 0, 1e7, "MS", "time for the last answers", NULL},
        {"log", OPTAB_TEXT, &p->log_path, 0, 0, "FILE", "one JSON line a request (must not exist)", NULL},
        {"Mix (shares from 0 to 1)", OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL},
        {"model", OPTAB_TEXT, &m->model, 0, 0, "NAME", "the model to ask for", NULL},
        {"other", OPTAB_REAL, &m->other, 0, 1, "SHARE", "/health, /v1/models and an unknown path", NULL},
        {"completions", OPTAB_REAL, &m->completions, 0, 1, "SHARE", "of generations: /v1/completions", NULL},
        {"streamed", OPTAB_REAL, &m->streamed, 0, 1, "SHARE", "of generations: stream", NULL},
        {"shared", OPTAB_REAL, &m->shared, 0, 1, "SHARE", "of chats: one of three system prompts", NULL},
        {"repeat", OPTAB_REAL, &m->repeat, 0, 1, "SHARE", "of generations: an earlier prompt again", NULL},
        {"aborted", OPTAB_REAL, &m->aborted, 0, 1, "SHARE", "of generations: we leave early", NULL},
        {"prompt-words", OPTAB_UINT, &m->max_prompt_words, 9, 1e5, "N", "longest prompt; 8 is the shortest",
         NULL},
        {"max-tokens", OPTAB_UINT, &m->max_tokens, 17, 1e6, "N", "highest max_tokens; 16 is the lowest",
         NULL},
        {NULL, OPTAB_GROUP, NULL, 0, 0, NULL, NULL, NULL}};

    hostport_parse("127.0.0.1:8000", &p->calls.server);
    *m = (struct mix){.rate = 8,
                      .other = 0.05,
                      .completions = 0.25,
                      .streamed = 0.85,
                      .shared = 0.5,
                      .aborted = 0.04,
                      .repeat = 0.1,
                      .max_prompt_words = 1500,
                      .max_tokens = 300,
                      .seed = 1,
                      .model = "sim/kestrel-8b"};
    p->max_requests = 1000;
    p->seconds = 30;
    p->grace_ms = 20000;
    return optab_parse(table, "simload", about, argc, argv);
}

static void finish(struct program *p) {
    uv_close((uv_handle_t *)&p->timer, NULL);
    uv_close((uv_handle_t *)&p->on_int, NULL);
    uv_close((uv_handle_t *)&p->on_term, NULL);
    calls_close(&p->calls);
}

static bool plan_next(struct program *p) {
    uint64_t previous = p->next.due_ns;

    mix_fini_shot(&p->next);
    if (p->stopping || p->n >= p->max_requests) return false;
    if (!mix_shot(&p->mix, p->n, previous, &p->next)) return false;
    return (double)p->next.due_ns / 1e9 <= p->seconds;
}

static void on_tick(uv_timer_t *timer);

/* The loop's timers are whole milliseconds, so a request is up to 1 ms late; its latency counts from when it
 * was due all the same. */
static void wait_for_next(struct program *p, uint64_t elapsed_ns) {
    uint64_t wait_ns = p->next.due_ns > elapsed_ns ? p->next.due_ns - elapsed_ns : 0;

    uv_update_time(&p->loop);
    uv_timer_start(&p->timer, on_tick, (wait_ns + 999999) / 1000000, 0);
}

static void on_grace_tick(uv_timer_t *timer) {
    struct program *p = timer->data;
    uint64_t waited_ns = call_now_ns() - p->last_ns;

    if (p->calls.n_running == 0 || waited_ns > p->grace_ms * 1000000u) finish(p);
}

static void on_tick(uv_timer_t *timer) {
    struct program *p = timer->data;
    uint64_t elapsed_ns = call_now_ns() - p->calls.start_mono_ns;

    while (p->next.due_ns <= elapsed_ns) {
        if (!call_send(&p->calls, p->n, &p->next))
            fprintf(stderr, "simload: request %llu: out of memory; it was left out\n",
                    (unsigned long long)p->n);
        p->n++;
        p->last_ns = call_now_ns();
        if (!plan_next(p)) {
            uv_timer_start(&p->timer, on_grace_tick, 10, 10);
            return;
        }
    }
    wait_for_next(p, elapsed_ns);
}

/* The first signal stops sending, the second also leaves what is running. */
static void on_signal(uv_signal_t *handle, int number) {
    struct program *p = handle->data;

    if (p->stopping) p->grace_ms = 0;
    if (!p->stopping) p->last_ns = call_now_ns();
    p->stopping = true;
    mix_fini_shot(&p->next);
    uv_timer_start(&p->timer, on_grace_tick, 0, 10);
}

static void start(struct program *p) {
    struct timespec wall;

    uv_timer_init(&p->loop, &p->timer);
    uv_signal_init(&p->loop, &p->on_int);
    uv_signal_init(&p->loop, &p->on_term);
    p->timer.data = p->on_int.data = p->on_term.data = p;
    uv_signal_start(&p->on_int, on_signal, SIGINT);
    uv_signal_start(&p->on_term, on_signal, SIGTERM);
    p->calls.loop = &p->loop;
    p->calls.tally = &p->tally;
    hostport_text(&p->calls.server, p->calls.host);
    clock_gettime(CLOCK_REALTIME, &wall);
    p->calls.start_mono_ns = p->last_ns = call_now_ns();
    p->calls.start_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    p->calls.run = p->calls.start_wall_ns / 1000000u;
    uv_timer_start(&p->timer, plan_next(p) ? on_tick : on_grace_tick, 0, 10);
}

static void raise_descriptor_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int run(struct program *p) {
    int st;

    if (!tally_init(&p->tally, p->log_path)) {
        fprintf(stderr, "simload: %s: %s; --log needs the name of a new file in a writable folder\n",
                p->log_path, strerror(errno));
        return 1;
    }
    uv_loop_init(&p->loop);
    start(p);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    uv_loop_close(&p->loop);
    mix_fini_shot(&p->next);
    tally_print(&p->tally, (double)(call_now_ns() - p->calls.start_mono_ns) / 1e9);
    st = p->tally.generations[TALLY_OK] > 0 ? 0 : 1;
    if (tally_fini(&p->tally)) return st;
    fprintf(stderr, "simload: %s: it is not whole; free some disk space\n", p->log_path);
    return 1;
}

int main(int argc, char **argv) {
    static struct program p;
    int st = read_options(&p, argc, argv);

    if (st) return st == 1 ? 0 : st;
    if (!p.allow_remote && !hostport_is_loopback(&p.calls.server)) {
        fprintf(
            stderr,
            "simload: --server: it is not on this machine; --allow-remote sends load there all the same\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    return run(&p);
}
