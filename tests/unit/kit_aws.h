/* Makes frames of AWS event streams. */
#ifndef TESTS_KIT_AWS_H
#define TESTS_KIT_AWS_H

#include <stddef.h>

/* Zeroed is empty; p is the caller's to free. */
struct aws_bytes {
    char *p;
    size_t n;
};

/* Appends a frame with these header bytes. Its length. */
size_t aws_frame(struct aws_bytes *to, const char *headers, size_t n_headers, const char *payload, size_t n);
/* Appends a header of text to header bytes. */
void aws_header(struct aws_bytes *to, const char *name, const char *value);
/* Appends a frame of an event of that type, as Bedrock writes it. */
size_t aws_event(struct aws_bytes *to, const char *type, const char *payload);
/* The same for an exception. */
size_t aws_exception(struct aws_bytes *to, const char *type, const char *payload);

#endif
