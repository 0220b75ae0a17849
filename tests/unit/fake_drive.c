/* Offsets are kept here, as the forwarder keeps them. */
#include "tests/unit/fake_drive.h"

#include "tests/unit/fake_trw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const listens[] = {"127.0.0.1:8001"}, *const upstreams[] = {"127.0.0.1:8000"};
static const uint8_t key[32] = {7};

void drive_start(struct drive *v) {
    fake_reset();
    *v = (struct drive){.now_ns = 1000};
    v->shared = calloc(1, sizeof *v->shared);
    struct dissect_config c = {.trw = fake_trw(), .shared = v->shared, .n_pairs = 1, .key = key};
    c.listens = listens, c.upstreams = upstreams;
    v->d = dissect_new(&c);
    drive_piece(v, (struct piece){.kind = PIECE_OPEN}, NULL);
}

void drive_stop(struct drive *v) {
    dissect_free(v->d);
    free(v->shared);
}

void drive_piece(struct drive *v, struct piece p, const void *bytes) {
    p.flow = p.flow ? p.flow : 1;
    if (!p.t_ns) p.t_ns = v->now_ns;
    if (p.kind != PIECE_DATA || !p.head_at) p.head_at = NO_OFFSET;
    if (p.kind != PIECE_DATA || !p.end_at) p.end_at = NO_OFFSET;
    dissect_piece(v->d, &p, bytes);
}

void drive_bytes(struct drive *v, enum dir dir, const char *p, size_t n) {
    struct piece d = {.kind = PIECE_DATA, .dir = (uint8_t)dir, .off = v->off[dir], .n_bytes = (uint32_t)n};
    /* an exact copy, so that a sanitizer sees what is read beyond it */
    char *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    if (dir == DIR_UP) d.t2_ns = v->now_ns + 1;
    drive_piece(v, d, copy);
    free(copy);
    v->off[dir] += n;
}

void drive_text(struct drive *v, enum dir dir, const char *text) {
    drive_bytes(v, dir, text, strlen(text));
}

void drive_cut(struct drive *v, enum dir dir, const char *p, size_t n, size_t step) {
    for (size_t i = 0; i < n; i += step) drive_bytes(v, dir, p + i, n - i < step ? n - i : step);
}

void drive_fin(struct drive *v, enum dir dir) {
    drive_piece(v, (struct piece){.kind = PIECE_FIN, .dir = (uint8_t)dir, .off = v->off[dir]}, NULL);
}

void drive_reset(struct drive *v, enum dir dir, int error) {
    struct piece p = {.kind = PIECE_RESET, .dir = (uint8_t)dir, .off = v->off[dir], .value = error};
    drive_piece(v, p, NULL);
}

void drive_close(struct drive *v) {
    drive_piece(v, (struct piece){.kind = PIECE_CLOSE}, NULL);
}

void drive_post(struct drive *v, const char *path, const char *more, const char *body) {
    char *text = NULL;
    if (asprintf(&text, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n%s\r\n%s", path, strlen(body),
                 more, body) < 0)
        abort();
    drive_text(v, DIR_UP, text);
    free(text);
}

char *drive_file(const char *name, size_t *n) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", TEST_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "drive: cannot open %s\n", path);
        abort();
    }
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *p = malloc(*n + 1);
    if (fread(p, 1, *n, f) != *n) abort();
    p[*n] = 0;
    fclose(f);
    return p;
}
