/* One table of options; each has a function that reads its value and says in words what is wrong with it.
 * getopt is not used: it takes abbreviations, which a later option can make ambiguous in scripts. */
#include "recorder/opts.h"
#include "recorder/clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_MIN_BYTES = 1 << 20 };
#define QUEUE_MAX_BYTES (4ull << 30)

const char opts_help[] =
    "usage: tracerec --proxy [HOST]:PORT --upstream [HOST]:PORT [-o FILE|DIR/] [OPTION ...]\n"
    "\n"
    "Forwards what comes to --proxy to --upstream, byte for byte, and records when what was said.\n"
    "\n"
    "  --proxy ADDR            listen here; a missing HOST is this machine alone (127.0.0.1, ::1);\n"
    "                          also a bare port, [::1]:PORT, unix:PATH. Port 0: any free one\n"
    "  --upstream ADDR         the server; the pair --proxy, --upstream may repeat\n"
    "  -o FILE|DIR/            the trace; default trace-<UTC>.trc, never overwritten\n"
    "  --name NAME             of this recorder; default: the host's\n"
    "  --note KEY=VALUE        kept in the trace: engine version, flags, GPU; may repeat\n"
    "  --drain SECONDS|inf     what running requests get on SIGINT and SIGTERM; 25\n"
    "  --unreachable 502|reset what clients get when the server is not there; 502\n"
    "  --queue-size SIZE       between forwarding and recording; 16MB\n"
    "  --flush-interval TIME   at most so much is lost when the power fails; 1s\n"
    "  --min-free SIZE         pause recording when less is free on the disk; 1GB or 5 %, the smaller\n"
    "  --must-record           exit rather than forward without recording\n"
    "  --status-interval TIME  between status lines when stderr is no terminal; 60s, 0: none\n"
    "  --quiet                 only what is lost\n"
    "  --version, --help\n"
    "\n"
    "SIGINT: no new clients, running requests get --drain. SIGTERM: ends when all is quiet.\n"
    "Twice: at once. SIGHUP: next part. SIGUSR1: a mark. Exit status: 0 done, 1 failed, 2 wrong usage.\n";

typedef bool read_value(struct opts *o, const char *text, char *why, size_t size);

static bool wrong(char *why, size_t size, const char *text) {
    snprintf(why, size, "%s", text);
    return false;
}

static bool read_proxy(struct opts *o, const char *text, char *why, size_t size) {
    if (o->n_proxy == FRONT_PAIRS_MAX) return wrong(why, size, "more than 32 pairs; start a second tracerec");
    return addr_parse(&o->proxy[o->n_proxy++], text, false, why, size);
}
static bool read_upstream(struct opts *o, const char *text, char *why, size_t size) {
    if (o->n_upstream == FRONT_PAIRS_MAX)
        return wrong(why, size, "more than 32 pairs; start a second tracerec");
    return addr_parse(&o->upstream[o->n_upstream++], text, true, why, size);
}

static bool read_output(struct opts *o, const char *text, char *why, size_t size) {
    o->output = text;
    return *text || wrong(why, size, "the name is empty; give a file or a folder");
}
static bool read_name(struct opts *o, const char *text, char *why, size_t size) {
    o->name = text;
    return *text || wrong(why, size, "the name is empty");
}

static bool read_note(struct opts *o, const char *text, char *why, size_t size) {
    const char *eq = strchr(text, '=');
    if (!eq || eq == text) return wrong(why, size, "not KEY=VALUE; write it like engine=vllm-0.21.0");
    if (o->n_notes == OPTS_NOTES_MAX) return wrong(why, size, "more than 64 notes; put some into one");
    struct opts_note *n = &o->notes[o->n_notes++];
    if ((size_t)(eq - text) >= sizeof n->key) return wrong(why, size, "the key is longer than 63 bytes");
    memcpy(n->key, text, (size_t)(eq - text));
    n->key[eq - text] = 0;
    n->value = eq + 1;
    return true;
}

/* Seconds, or with a unit: 500ms, 2s, 5m, 1h. */
static bool read_time(int64_t *ns, const char *text, char *why, size_t size) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    char *end;
    double x = strtod(text, &end);
    if (end != text && x >= 0 && x < 1e9 && (*text == '.' || (*text >= '0' && *text <= '9'))) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (strcmp(end, units[i].unit) != 0 || x * units[i].ns >= 9e18) continue;
            *ns = (int64_t)(x * units[i].ns);
            return true;
        }
    }
    return wrong(why, size, "not a time; give seconds, or a number with ms, s, m or h, such as 25s");
}

static bool read_size(uint64_t *bytes, const char *text, char *why, size_t size) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},     {"B", 1},   {"KB", 1e3},  {"K", 1e3},    {"MB", 1e6},      {"M", 1e6},
                 {"GB", 1e9}, {"G", 1e9}, {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    char *end;
    double x = strtod(text, &end);
    if (end != text && x >= 0 && x < 1e15 && (*text == '.' || (*text >= '0' && *text <= '9'))) {
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            if (strcmp(end, units[i].unit) != 0 || x * units[i].bytes >= 1e18) continue;
            *bytes = (uint64_t)(x * units[i].bytes);
            return true;
        }
    }
    return wrong(why, size, "not a size; give a number with KB, MB or GB, such as 16MB");
}

static bool read_drain(struct opts *o, const char *text, char *why, size_t size) {
    if (strcmp(text, "inf") == 0) {
        o->drain_ns = INT64_MAX;
        return true;
    }
    return read_time(&o->drain_ns, text, why, size);
}
static bool read_queue(struct opts *o, const char *text, char *why, size_t size) {
    uint64_t bytes;
    if (!read_size(&bytes, text, why, size)) return false;
    if (bytes < QUEUE_MIN_BYTES || bytes > QUEUE_MAX_BYTES)
        return wrong(why, size, "the queue can have from 1.05MB to 4GB; 16MB is usual");
    o->queue_bytes = bytes;
    return true;
}
static bool read_flush(struct opts *o, const char *text, char *why, size_t size) {
    if (!read_time(&o->flush_interval_ns, text, why, size)) return false;
    return o->flush_interval_ns > 0 || wrong(why, size, "must be above 0; 1s is usual");
}
static bool read_min_free(struct opts *o, const char *text, char *why, size_t size) {
    return read_size(&o->min_free_bytes, text, why, size);
}
static bool read_status(struct opts *o, const char *text, char *why, size_t size) {
    return read_time(&o->status_interval_ns, text, why, size);
}
static bool read_unreachable(struct opts *o, const char *text, char *why, size_t size) {
    o->unreachable_reset = strcmp(text, "reset") == 0;
    return o->unreachable_reset || strcmp(text, "502") == 0 || wrong(why, size, "give 502 or reset");
}

static bool set_quiet(struct opts *o, const char *text, char *why, size_t size) {
    return o->quiet = true;
}
static bool set_must_record(struct opts *o, const char *text, char *why, size_t size) {
    return o->must_record = true;
}

static const struct option {
    const char *name;
    bool has_value;
    read_value *read;
    enum opts_result result; /* other than OPTS_RUN: stop reading */
} options[] = {
    {"--proxy", true, read_proxy, OPTS_RUN},
    {"--upstream", true, read_upstream, OPTS_RUN},
    {"-o", true, read_output, OPTS_RUN},
    {"--output", true, read_output, OPTS_RUN},
    {"--name", true, read_name, OPTS_RUN},
    {"--note", true, read_note, OPTS_RUN},
    {"--drain", true, read_drain, OPTS_RUN},
    {"--unreachable", true, read_unreachable, OPTS_RUN},
    {"--queue-size", true, read_queue, OPTS_RUN},
    {"--flush-interval", true, read_flush, OPTS_RUN},
    {"--min-free", true, read_min_free, OPTS_RUN},
    {"--status-interval", true, read_status, OPTS_RUN},
    {"--quiet", false, set_quiet, OPTS_RUN},
    {"--must-record", false, set_must_record, OPTS_RUN},
    {"--version", false, NULL, OPTS_VERSION},
    {"--help", false, NULL, OPTS_HELP},
    {"-h", false, NULL, OPTS_HELP},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

/* -- near matches */

enum { WORD_MAX = 32 };

static unsigned least(unsigned a, unsigned b, unsigned c) {
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits (insert, delete, replace) from a to b, both shorter than WORD_MAX. */
static unsigned distance(const char *a, size_t n, const char *b) {
    unsigned row[WORD_MAX + 1];
    size_t m = strlen(b);
    for (size_t j = 0; j <= m; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

static const char *nearest(const char *word, size_t n) {
    const char *best = NULL;
    unsigned least_far = 4;
    if (n >= WORD_MAX) return NULL;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        unsigned far = distance(word, n, options[i].name);
        if (far < least_far && far < strlen(options[i].name) / 2) best = options[i].name, least_far = far;
    }
    return best;
}

/* -- reading */

static enum opts_result unknown(const char *word, size_t n, char *err, size_t size) {
    const char *near = *word == '-' ? nearest(word, n) : NULL;
    if (near)
        snprintf(err, size, "%.*s: no such option; did you mean %s? All: --help", (int)n, word, near);
    else if (*word == '-')
        snprintf(err, size, "%.*s: no such option. All: --help", (int)n, word);
    else
        snprintf(err, size, "%s: takes no such argument; addresses follow --proxy and --upstream", word);
    return OPTS_WRONG;
}

static const struct option *find(const char *word, size_t n) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strlen(options[i].name) == n && memcmp(options[i].name, word, n) == 0) return &options[i];
    return NULL;
}

/* The value as the error shows it: of an upstream with a path only the path matters. */
static void say_wrong(const struct option *opt, const char *text, const char *why, char *err, size_t size) {
    const char *path = opt->read == read_upstream && strncmp(why, "paths", 5) == 0 ? addr_path(text) : NULL;
    if (path)
        snprintf(err, size, "%s ...%s: %s", opt->name, path, why);
    else
        snprintf(err, size, "%s %s: %s", opt->name, text, why);
}

/* Reads the option at argv[*i] and its value. */
static enum opts_result read_one(struct opts *o, int argc, char **argv, int *i, char *err, size_t size) {
    const char *word = argv[*i], *eq = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL, *value = NULL;
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    const struct option *opt = find(word, n);
    if (!opt && strncmp(word, "-o", 2) == 0) opt = find("-o", 2), value = word + 2;
    if (!opt) return unknown(word, n, err, size);
    if (opt->result != OPTS_RUN) return opt->result;
    if (eq) value = eq + 1;
    if (eq && !opt->has_value) {
        snprintf(err, size, "%s: takes no value", opt->name);
        return OPTS_WRONG;
    }
    if (opt->has_value && !value && ++*i >= argc) {
        snprintf(err, size, "%s: its value is missing; see --help", opt->name);
        return OPTS_WRONG;
    }
    if (opt->has_value && !value) value = argv[*i];
    char why[512];
    if (opt->read(o, value, why, sizeof why)) return OPTS_RUN;
    say_wrong(opt, value, why, err, size);
    return OPTS_WRONG;
}

static enum opts_result check_pairs(struct opts *o, char *err, size_t size) {
    o->n_pairs = o->n_proxy;
    if (o->n_proxy && o->n_proxy == o->n_upstream) return OPTS_RUN;
    if (!o->n_proxy)
        snprintf(err, size,
                 "--proxy is missing: where clients connect, such as --proxy :8001 --upstream :8000");
    else if (!o->n_upstream)
        snprintf(err, size, "--upstream is missing: where the server listens, such as --upstream :8000");
    else
        snprintf(err, size, "%zu --proxy and %zu --upstream: they go in pairs", o->n_proxy, o->n_upstream);
    return OPTS_WRONG;
}

enum opts_result opts_parse(struct opts *o, int argc, char **argv, char *err, size_t err_size) {
    *o = (struct opts){.drain_ns = 25 * NS_PER_S,
                       .queue_bytes = 16000000,
                       .flush_interval_ns = NS_PER_S,
                       .min_free_bytes = OPTS_MIN_FREE_DEFAULT,
                       .status_interval_ns = 60 * NS_PER_S};
    for (int i = 1; i < argc; i++) {
        enum opts_result r = read_one(o, argc, argv, &i, err, err_size);
        if (r != OPTS_RUN) return r;
    }
    return check_pairs(o, err, err_size);
}
