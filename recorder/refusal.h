/* The one answer that tracerec gives by itself: 502, the upstream is not there. Pure text. */
#ifndef RECORDER_REFUSAL_H
#define RECORDER_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

/* A whole HTTP/1.1 response into out, its length returned (less than size). upstream: the address as it is
 * shown; reason: why, in words. bodiless: for HEAD. */
size_t refusal_502(char *out, size_t size, const char *upstream, const char *reason, bool bodiless);

#endif
