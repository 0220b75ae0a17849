/* The streamed answer of the benchmark: see event.h. */
#include "tests/bench/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHUNK_BEGIN                                                                                          \
    "data: {\"id\":\"chatcmpl-%08x\",\"object\":\"chat.completion.chunk\",\"created\":1764435600,"           \
    "\"model\":\"bench\",\"choices\":"
#define TOKEN_END       "\"},\"finish_reason\":null}]}\n\n"
#define TOKEN_END_BYTES (sizeof TOKEN_END - 1)

/* Filler lengths, drawn evenly: most tokens are short, a few are long. */
static const uint8_t filler_bytes[16] = {0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 9, 11};
static const char filler[] = " abcdefghij";

uint64_t event_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t hash_text(const char *s) {
    uint32_t h = 2166136261u;
    while (*s) h = (h ^ (unsigned char)*s++) * 16777619u;
    return h;
}

static size_t filler_of(const struct event_stream *s, uint32_t ordinal) {
    uint32_t h = (s->seed ^ ordinal) * 2654435769u;
    return filler_bytes[(h ^ (h >> 15)) >> 8 & 15];
}

void event_stream_init(struct event_stream *s, const char *id) {
    snprintf(s->id, sizeof s->id, "%s", id);
    s->seed = hash_text(s->id);
    int n =
        snprintf(s->begin, sizeof s->begin, CHUNK_BEGIN "[{\"index\":0,\"delta\":{\"content\":\"", s->seed);
    s->begin_bytes = (size_t)n;
}

size_t event_token(const struct event_stream *s, uint32_t ordinal, uint64_t sent_ns,
                   char out[EVENT_MAX_BYTES]) {
    char *at = out;
    memcpy(at, s->begin, s->begin_bytes);
    at += s->begin_bytes;
    for (int i = EVENT_STAMP_DIGITS; i-- > 0; sent_ns /= 10) at[i] = (char)('0' + sent_ns % 10);
    at += EVENT_STAMP_DIGITS;
    size_t fill = filler_of(s, ordinal);
    memcpy(at, filler, fill);
    at += fill;
    memcpy(at, TOKEN_END, TOKEN_END_BYTES);
    return (size_t)(at - out) + TOKEN_END_BYTES;
}

int event_token_read(const struct event_stream *s, uint32_t ordinal, const char *line, size_t bytes,
                     uint64_t *sent_ns) {
    size_t fill = filler_of(s, ordinal), end_bytes = TOKEN_END_BYTES - 2;
    if (bytes != s->begin_bytes + EVENT_STAMP_DIGITS + fill + end_bytes) return 0;
    if (memcmp(line, s->begin, s->begin_bytes)) return 0;
    const char *at = line + s->begin_bytes;
    uint64_t t = 0;
    for (int i = 0; i < EVENT_STAMP_DIGITS; i++) {
        if (at[i] < '0' || at[i] > '9') return 0;
        t = t * 10 + (uint64_t)(at[i] - '0');
    }
    at += EVENT_STAMP_DIGITS;
    if (memcmp(at, filler, fill) || memcmp(at + fill, TOKEN_END, end_bytes)) return 0;
    *sent_ns = t;
    return 1;
}

size_t event_role(const struct event_stream *s, char out[EVENT_MAX_BYTES]) {
    return (size_t)snprintf(out, EVENT_MAX_BYTES,
                            CHUNK_BEGIN "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                                        "\"finish_reason\":null}]}\n\n",
                            s->seed);
}

size_t event_finish(const struct event_stream *s, char out[EVENT_MAX_BYTES]) {
    return (size_t)snprintf(out, EVENT_MAX_BYTES,
                            CHUNK_BEGIN "[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
                            s->seed);
}

size_t event_usage(const struct event_stream *s, uint32_t n_tokens, char out[EVENT_MAX_BYTES]) {
    return (size_t)snprintf(out, EVENT_MAX_BYTES,
                            CHUNK_BEGIN "[],\"usage\":{\"prompt_tokens\":32,\"completion_tokens\":%" PRIu32
                                        ",\"total_tokens\":%" PRIu32 "}}\n\n",
                            s->seed, n_tokens, n_tokens + 32);
}

size_t event_done(char out[EVENT_MAX_BYTES]) {
    return (size_t)snprintf(out, EVENT_MAX_BYTES, "data: [DONE]\n\n");
}
