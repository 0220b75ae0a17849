/* Drives a dissector with pieces as the forwarder would tell them. */
#ifndef TESTS_FAKE_DRIVE_H
#define TESTS_FAKE_DRIVE_H

#include "recorder/dissect.h"

struct drive {
    struct dissect *d;
    struct shared *shared;
    uint64_t off[2]; /* of flow 1 */
    int64_t now_ns;  /* time of the next piece */
};

void drive_start(struct drive *v); /* resets the fake writer, opens flow 1 at 1000 ns */
void drive_stop(struct drive *v);  /* frees; what is open ends as stopped */
void drive_piece(struct drive *v, struct piece p,
                 const void *bytes); /* for flow 1, at now_ns unless it has t_ns */
/* Bytes of one read; up: written at once, too. */
void drive_bytes(struct drive *v, enum dir dir, const char *p, size_t n);
void drive_text(struct drive *v, enum dir dir, const char *text);
/* The same cut into reads of `step` bytes. */
void drive_cut(struct drive *v, enum dir dir, const char *p, size_t n, size_t step);
void drive_fin(struct drive *v, enum dir dir);
void drive_reset(struct drive *v, enum dir dir, int error);
void drive_close(struct drive *v);

/* A POST of body to path with more head lines (each with its CRLF). */
void drive_post(struct drive *v, const char *path, const char *more, const char *body);

/* The whole file below the tests' folder, with a terminator; the caller frees it. */
char *drive_file(const char *name, size_t *n);

#endif
