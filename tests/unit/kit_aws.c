/* Lengths and checksums are put in when the frame is whole. */
#include "tests/unit/kit_aws.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void add(struct aws_bytes *to, const void *p, size_t n) {
    to->p = realloc(to->p, to->n + n + 1);
    memcpy(to->p + to->n, p, n);
    to->n += n;
}

static void add_u32(struct aws_bytes *to, size_t v) {
    const unsigned char b[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16), (unsigned char)(v >> 8),
                                (unsigned char)v};
    add(to, b, 4);
}

size_t aws_frame(struct aws_bytes *to, const char *headers, size_t n_headers, const char *payload, size_t n) {
    size_t from = to->n;
    add_u32(to, 16 + n_headers + n);
    add_u32(to, n_headers);
    add_u32(to, crc32(0, (const Bytef *)to->p + from, 8));
    add(to, headers, n_headers);
    add(to, payload, n);
    add_u32(to, crc32(0, (const Bytef *)to->p + from, (uInt)(to->n - from)));
    return to->n - from;
}

void aws_header(struct aws_bytes *to, const char *name, const char *value) {
    const unsigned char length = (unsigned char)strlen(name),
                        before[3] = {7, (unsigned char)(strlen(value) >> 8), (unsigned char)strlen(value)};
    add(to, &length, 1);
    add(to, name, strlen(name));
    add(to, before, 3);
    add(to, value, strlen(value));
}

static size_t message(struct aws_bytes *to, const char *kind, const char *name, const char *type,
                      const char *payload) {
    struct aws_bytes headers = {0};
    aws_header(&headers, name, type);
    aws_header(&headers, ":content-type", "application/json");
    aws_header(&headers, ":message-type", kind);
    size_t n = aws_frame(to, headers.p, headers.n, payload, strlen(payload));
    free(headers.p);
    return n;
}

size_t aws_event(struct aws_bytes *to, const char *type, const char *payload) {
    return message(to, "event", ":event-type", type, payload);
}

size_t aws_exception(struct aws_bytes *to, const char *type, const char *payload) {
    return message(to, "exception", ":exception-type", type, payload);
}
