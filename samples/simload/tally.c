/* Counts and the summary line. */
#include "samples/simload/tally.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[TALLY_N] = {[TALLY_OK] = "ok",
                                           [TALLY_ABORTED] = "aborted by us",
                                           [TALLY_HTTP_ERROR] = "http error",
                                           [TALLY_STREAM_ERROR] = "stream error",
                                           [TALLY_CUT] = "cut",
                                           [TALLY_REFUSED] = "refused",
                                           [TALLY_UNFINISHED] = "unfinished"};

bool tally_init(struct tally *t, const char *log_path) {
    int fd;

    memset(t, 0, sizeof *t);
    if (!log_path) return true;
    fd = open(log_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    t->log = fdopen(fd, "w");
    if (!t->log) close(fd);
    return t->log != NULL;
}

bool tally_fini(struct tally *t) {
    bool good = true;

    free(t->ttft_ns);
    if (!t->log) return true;
    good = !ferror(t->log);
    return fclose(t->log) == 0 && good;
}

static void keep_ttft(struct tally *t, uint64_t ns) {
    if (t->n_ttft == t->cap_ttft) {
        uint64_t cap = t->cap_ttft ? t->cap_ttft * 2 : 1024;
        uint64_t *grown = realloc(t->ttft_ns, cap * sizeof *grown);

        if (!grown) return;
        t->ttft_ns = grown;
        t->cap_ttft = cap;
    }
    t->ttft_ns[t->n_ttft++] = ns;
}

static void put_count(FILE *f, const char *name, int64_t n) {
    if (n < 0)
        fprintf(f, ",\"%s\":null", name);
    else
        fprintf(f, ",\"%s\":%" PRId64, name, n);
}

static void put_time(FILE *f, const char *name, uint64_t ns) {
    put_count(f, name, ns ? (int64_t)ns : -1);
}

static void log_row(const struct tally *t, const struct tally_row *row) {
    FILE *f = t->log;

    if (!f) return;
    fprintf(f, "{\"n\":%" PRIu64 ",\"request_id\":\"%s\",\"api\":\"%s\",\"path\":\"%s\",\"stream\":%s",
            row->n, row->request_id, row->api, row->path, row->stream ? "true" : "false");
    fprintf(f, ",\"outcome\":\"%s\",\"status\":%u,\"events\":%" PRIu64, names[row->outcome], row->status,
            row->events);
    put_count(f, "prompt_tokens", row->prompt_tokens);
    put_count(f, "cached_tokens", row->cached_tokens);
    put_count(f, "answer_tokens", row->answer_tokens);
    put_time(f, "due_ns", row->due_ns);
    put_time(f, "sent_ns", row->sent_ns);
    put_time(f, "first_ns", row->first_ns);
    put_time(f, "last_ns", row->last_ns);
    put_time(f, "end_ns", row->end_ns);
    fputs("}\n", f);
}

void tally_add(struct tally *t, const struct tally_row *row) {
    log_row(t, row);
    if (!row->generation) {
        t->others[row->outcome]++;
        return;
    }
    t->generations[row->outcome]++;
    if (row->answer_tokens > 0) t->answer_tokens += (uint64_t)row->answer_tokens;
    if (row->outcome == TALLY_OK && row->stream && row->first_ns) keep_ttft(t, row->first_ns - row->due_ns);
}

static uint64_t sum(const uint64_t *counts) {
    uint64_t n = 0;

    for (int i = 0; i < TALLY_N; i++) n += counts[i];
    return n;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Nearest rank. */
static double percentile_ms(const struct tally *t, double p) {
    uint64_t rank = (uint64_t)(p * (double)t->n_ttft);

    return (double)t->ttft_ns[rank < t->n_ttft ? rank : t->n_ttft - 1] / 1e6;
}

void tally_print(struct tally *t, double seconds) {
    uint64_t others = sum(t->others);

    printf("simload: %" PRIu64 " generations in %.1f s:", sum(t->generations), seconds);
    for (int i = 0; i < TALLY_N; i++) {
        if (i == TALLY_OK || t->generations[i]) printf(" %" PRIu64 " %s,", t->generations[i], names[i]);
    }
    printf(" %" PRIu64 " answer tokens told; %" PRIu64 " other requests", t->answer_tokens, others);
    if (t->n_ttft > 0) {
        qsort(t->ttft_ns, t->n_ttft, sizeof *t->ttft_ns, compare);
        printf("; first text after the planned instant p50 %.1f ms, p95 %.1f ms", percentile_ms(t, 0.5),
               percentile_ms(t, 0.95));
    }
    putchar('\n');
}
