/* tracerec: forwards LLM traffic byte for byte and records it.
 *
 * The order below matters: listeners first (a taken port leaves no trace file behind), then the file (a bad
 * -o accepts nobody), then the recorder's process, before libuv can start a thread. */
#include "recorder/about.h"
#include "recorder/clocks.h"
#include "recorder/output.h"
#include "recorder/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { DONE, FAILED, USAGE };

/* Too large for the stack: relays carry the read buffer. */
static struct opts opts;
static struct front_pair pairs[FRONT_PAIRS_MAX];
static struct output output;
static struct about about;
static struct serve serve;
static const char *listens[FRONT_PAIRS_MAX], *upstreams[FRONT_PAIRS_MAX];

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *form, ...) {
    va_list args;
    fprintf(stderr, "tracerec: ");
    va_start(args, form);
    vfprintf(stderr, form, args);
    va_end(args);
    fputc('\n', stderr);
    for (size_t i = 0; i < opts.n_pairs; i++) listen_close(&pairs[i].listen);
    return status;
}

static bool forwards_to_itself(const struct listen *l, const struct upstream *u) {
    for (size_t i = 0; i < l->n; i++) {
        union addr_any x;
        socklen_t n = sizeof x;
        memset(&x, 0, sizeof x);
        if (getsockname(l->fd[i], &x.sa, &n) < 0) continue;
        for (size_t k = 0; k < u->list.n; k++)
            if (addr_equal(&x, &u->list.at[k])) return true;
    }
    return false;
}

static int open_pairs(void) {
    char err[512];
    for (size_t i = 0; i < opts.n_pairs; i++) {
        struct front_pair *p = &pairs[i];
        p->upstream.addr = opts.upstream[i];
        (void)addr_resolve(&p->upstream.addr, &p->upstream.list); /* a name may come to resolve later */
        if (!listen_open(&p->listen, &opts.proxy[i], err, sizeof err))
            return fail(FAILED, "--proxy %s: %s", opts.proxy[i].shown, err);
        if (forwards_to_itself(&p->listen, &p->upstream))
            return fail(USAGE, "--upstream %s: is the --proxy itself; give the server's address",
                        p->upstream.addr.shown);
        listens[i] = p->listen.addr.shown;
        upstreams[i] = p->upstream.addr.shown;
    }
    return DONE;
}

/* *fd: the trace, or -1 when the disk lets it be begun only later; err says why. */
static int open_trace(int *fd, char *err, size_t err_size) {
    if (!output_name(&output, opts.output))
        return fail(FAILED, "-o %s: the name is too long; give a shorter one", opts.output);
    *fd = output_open(output.path, err, err_size);
    if (*fd >= 0 || (output_may_come(errno) && !opts.must_record)) return DONE;
    return fail(errno == EEXIST ? USAGE : FAILED, "-o %s: %s", output.path, err);
}

static bool start_recorder(int fd, const char *err) {
    struct shared *shared = shared_new();
    struct ring *ring = ring_new(opts.queue_bytes);
    if (!shared || !ring) return false;
    if (fd < 0) shared->trace_status = TRACE_FAILING;
    snprintf(shared->trace_error, sizeof shared->trace_error, "%.250s", fd < 0 ? err : "");
    if (getrandom(shared->trw.recording, sizeof shared->trw.recording, 0) < 0) return false;
    serve =
        (struct serve){.opts = &opts, .shared = shared, .ring = ring, .pairs = pairs, .path = output.path};
    serve.child.config = (struct record_config){
        .ring = ring,
        .shared = shared,
        .trace_fd = fd,
        .trace_path = output.path,
        .trace_dir = *output.dir ? output.dir : NULL,
        .head = about.pairs,
        .upstreams = upstreams,
        .listens = listens,
        .n_pairs = opts.n_pairs,
        .flush_interval_ns = opts.flush_interval_ns,
        .min_free_bytes =
            opts.min_free_bytes == OPTS_MIN_FREE_DEFAULT ? output_min_free(output.path) : opts.min_free_bytes,
        .must_record = opts.must_record,
    };
    return child_start(&serve.child);
}

static void join(char *out, size_t size, const char *const *words) {
    size_t n = 0;
    for (size_t i = 0; i < opts.n_pairs && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " and " : "", words[i]);
}

/* The upstream is on this machine, and nothing listens on its port. Asked of the kernel's table: a connection
 * to find out would be one that no client made. */
static bool not_there_yet(const struct upstream *u) {
    if (*u->addr.path) return access(u->addr.path, F_OK) < 0;
    if (*u->addr.host && strncmp(u->addr.host, "127.", 4) != 0 && strcmp(u->addr.host, "::1") != 0)
        return false;
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    char line[512];
    for (size_t i = 0; i < 2; i++) {
        FILE *f = fopen(tables[i], "re");
        if (!f && i == 0) return false;
        while (f && fgets(line, sizeof line, f)) {
            unsigned port, state;
            if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) == 2 &&
                state == 0x0a && port == u->addr.port) {
                fclose(f);
                return false;
            }
        }
        if (f) fclose(f);
    }
    return true;
}

static bool in_container(void) {
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           access("/var/run/secrets/kubernetes.io", F_OK) == 0;
}

static void say_ready(int trace_fd, const char *err) {
    char from[2048], to[2048];
    join(from, sizeof from, listens);
    join(to, sizeof to, upstreams);
    fprintf(stderr, "tracerec: listening on %s, forwarding to %s, recording to %s\n", from, to, output.path);
    if (trace_fd < 0)
        fprintf(stderr, "tracerec: %s: LOST not recording: %s; forwarding goes on, tried again every 10 s\n",
                output.path, err);
    if (opts.quiet) return;
    for (size_t i = 0; i < opts.n_pairs; i++) {
        const struct addr *proxy = &opts.proxy[i];
        if (pairs[i].upstream.list.n == 0)
            fprintf(stderr, "upstream %s does not resolve yet\n", upstreams[i]);
        else if (not_there_yet(&pairs[i].upstream))
            fprintf(stderr, "upstream %s does not answer yet\n", upstreams[i]);
        const char *port = strrchr(listens[i], ':') + 1;
        if (!*proxy->host && !*proxy->path && in_container())
            fprintf(
                stderr,
                "on loopback inside a container: nothing outside this pod can connect; --proxy 0.0.0.0:%s\n",
                port);
    }
}

static void ignore_signals(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* 0, 1 and 2 exist, so that no socket or file gets one of their numbers. */
static void open_standard(void) {
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    char err[512];
    int status, trace_fd = -1;
    open_standard();
    ignore_signals();
    switch (opts_parse(&opts, argc, argv, err, sizeof err)) {
    case OPTS_HELP: fputs(opts_help, stdout); return DONE;
    case OPTS_VERSION: puts("tracerec " TRACEREC_VERSION); return DONE;
    case OPTS_WRONG: return fail(USAGE, "%s", err);
    case OPTS_RUN: break;
    }
    if ((status = open_pairs())) return status;
    if ((status = open_trace(&trace_fd, err, sizeof err))) return status;
    if (!about_init(&about, &opts, listens, upstreams))
        return fail(FAILED, "no memory; free some");
    if (!start_recorder(trace_fd, err))
        return fail(FAILED, "the recorder cannot be started: %s; free memory or processes", strerror(errno));
    if (!serve_init(&serve))
        return fail(FAILED, "the loop cannot be set up: %s; raise ulimit -n or free memory", strerror(errno));
    say_ready(trace_fd, err);
    status = serve_run(&serve);
    about_fini(&about);
    return status;
}
