/* Content codings, undone as the bytes come: gzip, deflate (zlib or raw), zstd. The only file that knows the
 * two libraries.
 *
 * Hands on what each call's bytes give at once, so that an event whose sender flushed is seen when it came.
 */
#ifndef RECORDER_DISSECT_CODING_H
#define RECORDER_DISSECT_CODING_H

#include "recorder/dissect/pool.h"

#include <stdint.h>

struct coding;
typedef void coding_out(void *ctx, const char *p, size_t n);

/* True for a Content-Encoding that changes nothing: empty, identity, or a word that is mistaken for a coding
 * (a charset). */
bool coding_is_identity(const char *name);
/* A decoder for a Content-Encoding, NULL: not known, more than one, or no memory. */
struct coding *coding_new(const char *list, struct pool *pool);
void coding_free(struct coding *c);
/* Decodes n bytes. False: these bytes cannot be decoded, nor can what follows; coding_why tells why. */
bool coding_feed(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx);
const char *coding_why(const struct coding *c);

#endif
