/* The command line itself is not among it: its paths name people and their folders, and a trace is given away. */
#include "recorder/about.h"
#include "recorder/clocks.h"
#include "recorder/http1.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <uv.h>
#include <zstd.h>

enum { MEMORY_BYTES = 64 << 10 };

static void add(struct about *a, const char *key, const char *value) {
    if (a->n + 2 >= sizeof a->pairs / sizeof *a->pairs) return;
    a->pairs[a->n++] = key;
    a->pairs[a->n++] = value;
    a->pairs[a->n] = NULL;
}

/* A text in a's memory; cut where that ends. */
__attribute__((format(printf, 2, 3))) static const char *text(struct about *a, const char *form, ...) {
    char *at = a->memory + a->used;
    size_t room = a->size - a->used;
    va_list args;
    va_start(args, form);
    int n = vsnprintf(at, room, form, args);
    va_end(args);
    if (n < 0 || room <= 1) return "";
    a->used += (size_t)n < room ? (size_t)n + 1 : room - 1;
    return at;
}

/* The first line of a file of the kernel's; "" when there is none. */
static const char *line_of(struct about *a, const char *path) {
    char line[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "";
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    line[n > 0 ? n : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    return text(a, "%s", line);
}

static const char *wall_now(struct about *a) {
    int64_t ns = clocks_wall();
    time_t s = ns / NS_PER_S;
    struct tm tm;
    char date[32];
    gmtime_r(&s, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    return text(a, "%s.%09dZ", date, (int)(ns % NS_PER_S));
}

static const char *ntp_state(struct about *a) {
    struct timex t = {.modes = 0};
    int state = adjtimex(&t);
    if (state < 0) return "unknown";
    if (state == TIME_ERROR || (t.status & STA_UNSYNC)) return "unsynchronised";
    return text(a, "synchronised, error at most %ld us, estimated %ld us", t.maxerror, t.esterror);
}

static void add_machine(struct about *a, const struct opts *o) {
    char host[256] = "";
    struct utsname u;
    gethostname(host, sizeof host - 1);
    const char *h = text(a, "%s", host);
    add(a, "host", h);
    add(a, "name", o->name ? o->name : h);
    add(a, "boot_id", line_of(a, "/proc/sys/kernel/random/boot_id"));
    if (uname(&u) == 0) add(a, "kernel", text(a, "%s %s %s", u.sysname, u.release, u.machine));
    add(a, "clock_source", line_of(a, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    add(a, "ntp", ntp_state(a));
    add(a, "started", wall_now(a));
}

static void add_libraries(struct about *a) {
    add(a, "libuv", uv_version_string());
    add(a, "zstd", ZSTD_versionString());
    add(a, "http-parser", http1_library());
}

bool about_init(struct about *a, const struct opts *o, const char *const *listens,
                const char *const *upstreams) {
    *a = (struct about){.memory = malloc(MEMORY_BYTES), .size = MEMORY_BYTES};
    if (!a->memory) return false;
    add(a, "recorder", "tracerec " TRACEREC_VERSION);
    add(a, "source", "proxy");
    add_machine(a, o);
    add_libraries(a);
    add(a, "queue_bytes", text(a, "%zu", o->queue_bytes));
    for (size_t i = 0; i < o->n_pairs; i++) {
        add(a, text(a, "listen.%zu", i), listens[i]);
        add(a, text(a, "upstream.%zu", i), upstreams[i]);
    }
    for (size_t i = 0; i < o->n_notes; i++) add(a, text(a, "note.%s", o->notes[i].key), o->notes[i].value);
    return true;
}

void about_fini(struct about *a) {
    free(a->memory);
}
