/* The truth log's rows. */
#include "samples/simserve/truth.h"

#include "samples/simserve/pacer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct truth {
    FILE *file;
};

struct truth *truth_create(const char *path) {
    struct truth *t = calloc(1, sizeof *t);
    int fd = t ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

    if (fd >= 0) t->file = fdopen(fd, "w");
    if (t && t->file) {
        setvbuf(t->file, NULL, _IOFBF, BUFFER_BYTES);
        return t;
    }
    if (fd >= 0) close(fd);
    free(t);
    return NULL;
}

bool truth_close(struct truth *t) {
    bool good;

    if (!t) return true;
    good = !ferror(t->file);
    good = fclose(t->file) == 0 && good;
    free(t);
    return good;
}

/* Clients choose some of these texts, so everything but plain printable ASCII is escaped. */
static void put_text(FILE *f, const char *name, const char *text) {
    fprintf(f, ",\"%s\":\"", name);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p >= 0x7f || *p == '"' || *p == '\\')
            fprintf(f, "\\u%04x", *p);
        else
            putc(*p, f);
    }
    putc('"', f);
}

static void put_number(FILE *f, const char *name, uint64_t n) {
    fprintf(f, ",\"%s\":%" PRIu64, name, n);
}

static void put_stamp(FILE *f, struct conn_stamp at) {
    put_number(f, "ns", at.ns);
    if (at.behind_bytes) put_number(f, "behind_bytes", at.behind_bytes);
}

static uint64_t wall_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void truth_start(struct truth *t, const char *listen, const char *model) {
    if (!t) return;
    fprintf(t->file, "{\"row\":\"start\",\"version\":1");
    put_number(t->file, "ns", pacer_now_ns());
    put_number(t->file, "wall_ns", wall_ns());
    put_text(t->file, "listen", listen);
    put_text(t->file, "model", model);
    fputs("}\n", t->file);
    fflush(t->file);
}

void truth_simple(struct truth *t, const struct truth_simple *row) {
    if (!t) return;
    fprintf(t->file, "{\"row\":\"simple\",\"req\":%" PRIu64, row->req);
    put_number(t->file, "conn", row->conn);
    put_text(t->file, "api", row->api);
    put_text(t->file, "path", row->path);
    put_text(t->file, "x_request_id", row->x_request_id);
    put_number(t->file, "status", row->status);
    put_number(t->file, "first_byte_ns", row->first_byte_ns);
    put_stamp(t->file, row->sent);
    fputs("}\n", t->file);
}

void truth_request(struct truth *t, const struct truth_request *row) {
    if (!t) return;
    fprintf(t->file, "{\"row\":\"request\",\"req\":%" PRIu64, row->req);
    put_number(t->file, "conn", row->conn);
    put_text(t->file, "api", row->api);
    put_text(t->file, "id", row->id);
    put_text(t->file, "x_request_id", row->x_request_id);
    fprintf(t->file, ",\"stream\":%s", row->stream ? "true" : "false");
    put_number(t->file, "n", row->n);
    put_number(t->file, "prompt_tokens", row->prompt_tokens);
    put_number(t->file, "max_tokens", row->max_tokens);
    put_text(t->file, "fault", row->fault);
    put_number(t->file, "first_byte_ns", row->first_byte_ns);
    put_number(t->file, "received_ns", row->received_ns);
    fputs("}\n", t->file);
}

void truth_send(struct truth *t, const struct truth_send *row) {
    if (!t) return;
    fprintf(t->file, "{\"row\":\"send\",\"req\":%" PRIu64, row->req);
    if (row->event >= 0) put_number(t->file, "event", (uint64_t)row->event);
    put_text(t->file, "kind", row->kind);
    put_number(t->file, "choice", row->choice);
    put_number(t->file, "tokens", row->tokens);
    put_number(t->file, "step", row->step);
    put_stamp(t->file, row->at);
    fputs("}\n", t->file);
}

/* Flushed here, so that whoever waits for a request's end and then reads the file finds it whole. */
void truth_end(struct truth *t, const struct truth_end *row) {
    if (!t) return;
    fprintf(t->file, "{\"row\":\"end\",\"req\":%" PRIu64, row->req);
    put_text(t->file, "why", row->why);
    put_text(t->file, "finish", row->finish);
    put_number(t->file, "prompt_tokens", row->prompt_tokens);
    put_number(t->file, "cached_tokens", row->cached_tokens);
    put_number(t->file, "answer_tokens", row->answer_tokens);
    put_number(t->file, "verify_steps", row->verify_steps);
    put_number(t->file, "drafted", row->drafted);
    put_number(t->file, "accepted", row->accepted);
    put_number(t->file, "queue_ns", row->queue_ns);
    put_number(t->file, "ns", row->ns);
    fputs("}\n", t->file);
    fflush(t->file);
}
