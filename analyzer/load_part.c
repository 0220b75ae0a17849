/* States of a file and what is said of them; see screens.md 7 for the lines. */
#include "analyzer/load_part.h"

#include "analyzer/show.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int part_no_memory(void) {
    fputs("traceanalyze: out of memory; close other programs or give fewer traces at once\n", stderr);
    return 1;
}

/* ---- heads */

static void say_foreign(const struct input *in) {
    char first[9], shown[64];
    int fd = open(in->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, first, sizeof first) : 0;
    if (fd >= 0) close(fd);
    fprintf(stderr,
            "traceanalyze: %s: not a trace (begins \"%s\"); give a .trc, a folder of them, or a .sqlite\n",
            in->name, show_safe(shown, sizeof shown, first, n > 0 ? (size_t)n : 0, false));
}

int part_refuse(const struct input *in, enum trr_state state, const char *why) {
    switch (state) {
    case TRR_FOREIGN: say_foreign(in); return 2;
    case TRR_EMPTY:
        fprintf(stderr, "traceanalyze: %s: empty: nothing was recorded in it; give another trace\n",
                in->name);
        return 3;
    case TRR_NEWER: fprintf(stderr, "traceanalyze: %s: %s\n", in->name, why); return 3;
    case TRR_TORN:
    case TRR_DAMAGED:
        fprintf(
            stderr,
            "traceanalyze: %s: its head cannot be read (%s): nothing of it can be used; look at the disk\n",
            in->name, why);
        return 3;
    default:
        fprintf(stderr, "traceanalyze: %s: cannot be read: %s; look at its permissions and its disk\n",
                in->name, why);
        return 1;
    }
}

static const char *pair_of(const struct trr_head *h, const char *key) {
    for (size_t i = 0; i < h->n_pairs; i++)
        if (strcmp(h->pairs[2 * i], key) == 0) return h->pairs[2 * i + 1];
    return NULL;
}

int part_open(struct part *p, const struct input *in, size_t order) {
    enum trr_state state;
    char why[256];
    struct trr *r = trr_open(in->path, &state, why, sizeof why);
    if (!r) return part_refuse(in, state, why);
    const struct trr_head *h = trr_head(r);
    struct trr_totals t;
    trr_totals(r, &t);
    *p = (struct part){
        .path = in->path, .name = in->name, .part = h->part, .order = order, .bytes = t.file_bytes};
    memcpy(p->recording, h->recording, sizeof p->recording);
    const char *name = pair_of(h, "name");
    if (!name) name = pair_of(h, "host");
    p->recorder = name ? strdup(name) : NULL;
    trr_close(r);
    return 0;
}

void part_free(struct part *p) {
    free(p->recorder);
}

/* ---- reading */

static void store_state(struct store *s, const struct part *p, enum trr_state state,
                        const struct trr_totals *t) {
    enum loss l;
    switch (state) {
    case TRR_GROWING: l = LOSS_growing; break;
    case TRR_UNSEALED: l = LOSS_unsealed; break;
    case TRR_TORN: l = LOSS_torn_tail; break;
    default: return;
    }
    int64_t at = t->blocks ? t->last_ns : ATTRIBUTE_NONE;
    store_loss(s, l, at, at, 1, state == TRR_TORN ? t->file_bytes - t->good_bytes : 0, 0, p->name);
}

/* "proxy to 127.0.0.1:8000, 127.0.0.1:8001"; the caller frees it. */
static char *source_text(const struct trr_head *h) {
    char *text = NULL;
    size_t size, n = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    const char *source = pair_of(h, "source");
    fputs(source ? source : "", f);
    for (size_t i = 0; i < h->n_pairs; i++)
        if (strncmp(h->pairs[2 * i], "upstream.", 9) == 0)
            fprintf(f, "%s%s", n++ ? ", " : " to ", h->pairs[2 * i + 1]);
    fclose(f);
    return text;
}

enum trr_state part_read(struct part *p, struct recording *r, struct store *s, struct progress *progress) {
    enum trr_state state;
    char why[256];
    struct trr *reader = trr_open(p->path, &state, why, sizeof why);
    if (!reader) return state;
    recording_part(r, p->part, p->name);
    progress->reader = reader;
    state = trr_read(reader, INT64_MIN, INT64_MAX, &recording_ops, r);
    progress->reader = NULL;
    recording_part_end(r);
    const struct trr_head *h = trr_head(reader);
    for (size_t i = 0; i < h->n_pairs; i++) store_head(s, p->part, h->pairs[2 * i], h->pairs[2 * i + 1]);
    char *source = source_text(h);
    struct store_trace t = {.file = p->name,
                            .source = source && *source ? source : NULL,
                            .version = pair_of(h, "recorder"),
                            .part = p->part,
                            .format = h->format,
                            .state = state};
    trr_totals(reader, &t.totals);
    store_trace(s, &t);
    store_state(s, p, state, &t.totals);
    free(source);
    trr_close(reader);
    return state;
}

bool part_say_state(const struct part *p, enum trr_state state, bool quiet) {
    static const char *const lines[] = {
        [TRR_GROWING] = "still being written; used up to its last whole block, load it again for the rest",
        [TRR_UNSEALED] = "was not closed, its recorder was killed; what is there is whole and used",
        [TRR_TORN] = "torn: it ends inside a block; all before that is used, see traceanalyze check",
        [TRR_DAMAGED] = "damaged: some blocks are missing or do not match their checksums; the rest is used, "
                        "see traceanalyze check",
        [TRR_IO] = "reading it failed; what was read is used, look at its disk",
    };
    bool harmless = state == TRR_SEALED || state == TRR_GROWING || state == TRR_UNSEALED;
    const char *line = (size_t)state < sizeof lines / sizeof *lines ? lines[state] : NULL;
    if (line && !(quiet && harmless)) fprintf(stderr, "traceanalyze: %s: %s\n", p->name, line);
    return !harmless;
}

/* ---- progress */

enum { FIRST_NS = 500 * 1000 * 1000, AGAIN_NS = 100 * 1000 * 1000, BAR = 30 };

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void progress_begin(struct progress *p, bool quiet) {
    *p = (struct progress){.on = !quiet && isatty(STDERR_FILENO)};
    if (p->on) p->next_ns = now_ns() + FIRST_NS;
}

void progress_block(void *progress) {
    struct progress *p = progress;
    if (!p->on || ++p->blocks % 16 != 0 || !p->reader || p->all_bytes == 0 || now_ns() < p->next_ns) return;
    struct trr_totals t;
    trr_totals(p->reader, &t);
    double share = (double)(p->done_bytes + t.good_bytes) / (double)p->all_bytes;
    int full = (int)((share < 1 ? share : 1) * BAR);
    fprintf(stderr, "\rloading [%.*s%*s] %3d %%", full, "==============================", BAR - full, "",
            full * 100 / BAR);
    p->shown = true;
    p->next_ns = now_ns() + AGAIN_NS;
}

void progress_end(struct progress *p) {
    if (p->shown) fprintf(stderr, "\r%*s\r", BAR + 20, "");
    p->shown = false;
}
