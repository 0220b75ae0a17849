/* The head of a message: its target and the few fields that are of interest, put together from the pieces in
 * which they come. Values that are secrets are kept in memory until they are hashed, and nowhere else. */
#ifndef RECORDER_DISSECT_HEADS_H
#define RECORDER_DISSECT_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum head_field {
    HEAD_REQUEST_ID,
    HEAD_TRACEPARENT,
    HEAD_USER_AGENT,
    HEAD_RETRY_COUNT,
    HEAD_REQUEST_START,
    HEAD_QUEUE_START,
    HEAD_EXPECT,
    HEAD_AUTHORIZATION,
    HEAD_API_KEY,
    HEAD_UPGRADE,
    HEAD_CONTENT_TYPE,
    HEAD_CONTENT_ENCODING,
    HEAD_SERVER,
    HEAD_RETRY_AFTER,
    HEAD_PROCESSING_MS,
    N_HEAD_FIELDS
};

#define HEAD_VALUE_MAX ((size_t)8 << 10) /* of one value; the rest is dropped */

struct head {
    char *value[N_HEAD_FIELDS]; /* with a terminator; NULL: not there */
    char *target;
    char name[40]; /* of the field at hand */
    size_t n_name;
    bool in_value, done; /* a value has begun; the head is over: what follows are trailers */
    int field;           /* of the value at hand, -1: of no interest */
};

void head_begin(struct head *h); /* forgets what there is */
void head_target(struct head *h, const char *p, size_t n);
void head_name(struct head *h, const char *p, size_t n);
void head_value(struct head *h, const char *p, size_t n);
void head_free(struct head *h);

/* A field's value, "" when it is not there. */
const char *head_get(const struct head *h, enum head_field f);
/* The path of the target: no scheme, authority, query or fragment. Written to out with a terminator. */
void head_path(const struct head *h, char *out, size_t size);
/* Content-Type without parameters, lower case, written to out. */
void head_media_type(const struct head *h, char *out, size_t size);

/* Reads X-Request-Start or X-Queue-Start: optional "t="; a dot means seconds, else 10, 13, 16 or 19 digits
 * are s, ms, us, ns since the epoch. */
bool head_queue_start(const char *value, int64_t *wall_ns);
/* Reads a traceparent into 32 and 16 hex digits. */
bool head_traceparent(const char *value, char trace[33], char parent[17]);

#endif
