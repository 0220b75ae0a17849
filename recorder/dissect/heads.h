/* The head of a message: its target and the few fields that are of interest, put together from the pieces in
 * which they come. Values that are secrets are kept in memory until they are hashed, and nowhere else. */
#ifndef RECORDER_DISSECT_HEADS_H
#define RECORDER_DISSECT_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts and durations that servers tell in a response's head: field, name, the fact they become, its unit in
 * ns (0: a count). Of what is told twice the later row holds. Names have fewer than 40 characters. */
/* clang-format off */
#define HEAD_FIGURES(X) \
    X(HEAD_OPENAI_PROCESSING, "openai-processing-ms", F_reported_total_ns, 1e6) \
    X(HEAD_TGI_TOTAL, "x-total-time", F_reported_total_ns, 1e6) \
    X(HEAD_TGI_QUEUE, "x-queue-time", F_reported_queue_ns, 1e6) \
    X(HEAD_TGI_PER_TOKEN, "x-time-per-token", F_reported_itl_ns, 1e6) \
    X(HEAD_TGI_PROMPT, "x-prompt-tokens", F_prompt_tokens, 0) \
    X(HEAD_TGI_GENERATED, "x-generated-tokens", F_output_tokens_told, 0) \
    X(HEAD_FIREWORKS_TOTAL, "fireworks-server-processing-time", F_reported_total_ns, 1e9) \
    X(HEAD_FIREWORKS_TTFT, "fireworks-server-time-to-first-token", F_reported_ttft_ns, 1e9) \
    X(HEAD_FIREWORKS_PROMPT, "fireworks-prompt-tokens", F_prompt_tokens, 0) \
    X(HEAD_FIREWORKS_CACHED, "fireworks-cached-prompt-tokens", F_cached_tokens, 0)

enum head_field {
    HEAD_REQUEST_ID,
    HEAD_SHORT_REQUEST_ID,
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
#define FIELD(field, name, fact, unit_ns) field,
    HEAD_FIGURES(FIELD)
#undef FIELD
    N_HEAD_FIELDS
};
/* clang-format on */

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
