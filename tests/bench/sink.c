/* bench_sink: the client of the benchmark. One thread, epoll; N connections, each asking R times, one after
 * another.
 *
 *   bench_sink --port P [--streams N] [--requests R] [--events E | --ms M] [--interval-us U] [--shape
 * phase|step]
 *              [--seed S] [--skip K] [--tag TEXT] [--timeout-s T]
 *
 * For each token it takes the clock right after the read that completed it minus the clock that the sender
 * put into it. The first K tokens of a stream are left out of the delays (connections are still being made
 * then). Prints two lines of JSON: the end of the load as it ends, the figures after that. Anything short,
 * long or different is one line on stderr and exit 1. --interval-us 0: as fast as they come; no delays are
 * kept then, they would only say how deep the queues are.
 */
#include "tests/bench/answer.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_STREAMS 512
#define READ_BYTES  65536
#define MAX_DELAYS  (1u << 22)

static struct {
    unsigned port, streams, requests, skip, timeout_s;
    uint32_t events;
    uint64_t ms, interval_us, seed;
    int phases; /* each stream has a phase of its own */
    const char *tag;
} opt = {.streams = 64,
         .requests = 1,
         .events = 100,
         .interval_us = 20000,
         .phases = 1,
         .tag = "bench",
         .timeout_s = 10};

struct stream {
    int fd;
    unsigned index, n_begun; /* requests so far */
    uint64_t phase_us;
    struct answer answer;
};

static struct stream streams[MAX_STREAMS];
static unsigned n_running;
static uint32_t *delays_ns;
static uint32_t n_delays;
static uint64_t n_tokens, n_bytes, n_reads, first_ns, last_ns, read_ns;
static const struct stream *reading;

static void fail(const struct stream *s, const char *why) {
    fprintf(stderr, "bench_sink: stream %u, request %s, after %" PRIu32 " tokens: %s\n", s->index,
            s->answer.stream.id, s->answer.n_tokens, why);
    exit(1);
}

static void on_token(uint64_t sent_ns) {
    if (sent_ns > read_ns) fail(reading, "a token from the future");
    if (!n_tokens++) first_ns = read_ns;
    last_ns = read_ns;
    if (!delays_ns || n_delays == MAX_DELAYS || reading->answer.n_tokens <= opt.skip) return;
    uint64_t d = read_ns - sent_ns;
    delays_ns[n_delays++] = d > UINT32_MAX ? UINT32_MAX : (uint32_t)d;
}

static void ask(struct stream *s) {
    static const char body[] =
        "{\"model\":\"bench\",\"messages\":[{\"role\":\"user\",\"content\":\"Count for as long as "
        "you are told to.\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true},"
        "\"temperature\":0.7}";
    char id[EVENT_ID_BYTES], head[1024];
    snprintf(id, sizeof id, "%s-%u-%u", opt.tag, s->index, s->n_begun++);
    answer_init(&s->answer, id);
    int n = snprintf(head, sizeof head,
                     "POST /v1/chat/completions?us=%" PRIu64 "&phase=%" PRIu64 "&n=%" PRIu32 "&ms=%" PRIu64
                     " HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: bench_sink\r\nX-Request-Id: %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     opt.interval_us, s->phase_us, opt.events, opt.ms, opt.port, id, sizeof body - 1, body);
    if (send(s->fd, head, (size_t)n, MSG_NOSIGNAL) != n) fail(s, "the request could not be sent");
}

static void on_whole(struct stream *s) {
    n_bytes += s->answer.body_bytes;
    if (opt.events && s->answer.n_tokens != opt.events) fail(s, "not as many tokens as asked for");
    if (s->n_begun < opt.requests) {
        ask(s);
        return;
    }
    close(s->fd);
    n_running--;
}

static void on_readable(struct stream *s) {
    static char buf[READ_BYTES];
    ssize_t n = recv(s->fd, buf, sizeof buf, MSG_DONTWAIT);
    read_ns = event_now_ns();
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) fail(s, strerror(errno));
    if (n == 0) fail(s, "the connection was closed");
    n_reads++;
    reading = s;
    const char *wrong = answer_feed(&s->answer, buf, (size_t)n, on_token);
    if (wrong) fail(s, wrong);
    if (s->answer.part == PART_WHOLE) on_whole(s);
}

/* Evenly spread over one interval, the same for the same seed (splitmix64). */
static uint64_t phase_of(unsigned index) {
    uint64_t x = opt.seed * 1000003 + index * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return opt.phases && opt.interval_us ? (x ^ (x >> 31)) % opt.interval_us : 0;
}

static void open_stream(unsigned index, int epoll_fd) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)opt.port)};
    struct stream *s = &streams[index];
    int one = 1;
    s->index = index;
    s->phase_us = phase_of(index);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof to) ||
        setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &e))
        fail(s, strerror(errno));
}

static void load(void) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev[256];
    for (unsigned i = 0; i < opt.streams; i++) open_stream(i, epoll_fd);
    n_running = opt.streams;
    for (unsigned i = 0; i < opt.streams; i++) ask(&streams[i]);
    while (n_running) {
        int n = epoll_wait(epoll_fd, ev, 256, (int)opt.timeout_s * 1000);
        if (n < 0 && errno != EINTR) fail(&streams[0], strerror(errno));
        for (unsigned i = 0; n == 0 && i < opt.streams; i++)
            if (streams[i].answer.part != PART_WHOLE) fail(&streams[i], "nothing came any more");
        for (int i = 0; i < n; i++) on_readable(ev[i].data.ptr);
    }
    close(epoll_fd);
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Linear between order statistics. */
static double quantile(double p) {
    double at = p * (n_delays - 1);
    uint32_t low = (uint32_t)at, high = low + 1 < n_delays ? low + 1 : low;
    return delays_ns[low] + (at - low) * ((double)delays_ns[high] - delays_ns[low]);
}

static void print_figures(void) {
    double seconds = (double)(last_ns - first_ns) / 1e9;
    printf("{\"tokens\":%" PRIu64 ",\"requests\":%u,\"body_bytes\":%" PRIu64 ",\"reads\":%" PRIu64
           ",\"seconds\":%.6f,\"tokens_per_s\":%.1f",
           n_tokens, opt.streams * opt.requests, n_bytes, n_reads, seconds,
           seconds > 0 ? (double)(n_tokens - 1) / seconds : 0.0);
    if (n_delays) {
        qsort(delays_ns, n_delays, sizeof *delays_ns, by_size);
        printf(",\"delay_us\":{\"n\":%" PRIu32 ",\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f}",
               n_delays, quantile(.5) / 1e3, quantile(.9) / 1e3, quantile(.99) / 1e3, quantile(1) / 1e3);
    }
    printf("}\n");
}

static int usage(void) {
    fprintf(stderr, "bench_sink: usage: see the top of tests/bench/sink.c\n");
    return 2;
}

static int read_options(int argc, char **argv) {
    static const struct option names[] = {
        {"port", 1, 0, 'p'}, {"streams", 1, 0, 'n'}, {"requests", 1, 0, 'r'},    {"events", 1, 0, 'e'},
        {"ms", 1, 0, 'm'},   {"shape", 1, 0, 's'},   {"interval-us", 1, 0, 'u'}, {"seed", 1, 0, 'S'},
        {"skip", 1, 0, 'k'}, {"tag", 1, 0, 't'},     {"timeout-s", 1, 0, 'T'},   {0, 0, 0, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        unsigned long long v = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (c) {
        case 'p': opt.port = (unsigned)v; break;
        case 'n': opt.streams = (unsigned)v; break;
        case 'r': opt.requests = (unsigned)v; break;
        case 'e': opt.events = (uint32_t)v; break;
        case 'm': opt.ms = v, opt.events = 0; break;
        case 's': opt.phases = !strcmp(optarg, "phase"); break;
        case 'u': opt.interval_us = v; break;
        case 'S': opt.seed = v; break;
        case 'k': opt.skip = (unsigned)v; break;
        case 't': opt.tag = optarg; break;
        case 'T': opt.timeout_s = (unsigned)v; break;
        default: return 0;
        }
    }
    return optind == argc && opt.port && opt.streams && opt.streams <= MAX_STREAMS && opt.requests &&
           (opt.events || opt.ms);
}

int main(int argc, char **argv) {
    if (!read_options(argc, argv)) return usage();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (opt.interval_us && !(delays_ns = malloc(MAX_DELAYS * sizeof *delays_ns))) {
        perror("bench_sink: delays");
        return 1;
    }
    load();
    printf("{\"last_token_ns\":%" PRIu64 "}\n", last_ns);
    fflush(stdout);
    print_figures();
    return 0;
}
