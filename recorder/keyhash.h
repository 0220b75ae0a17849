/* Keyed hashes: equal inputs can be grouped, and none can be found again without the key. The only file that
 * knows the crypto library. */
#ifndef RECORDER_KEYHASH_H
#define RECORDER_KEYHASH_H

#include <stddef.h>
#include <stdint.h>

#define KEYHASH_KEY_BYTES 32
#define KEYHASH_CHARS     17 /* 16 hex digits and the terminator */

/* HMAC-SHA256 of purpose, a zero byte and n bytes at p, cut to 8 bytes, as hex. Equal bytes hashed for two
 * purposes differ. An empty text when the library fails. */
void keyhash(const uint8_t key[KEYHASH_KEY_BYTES], const char *purpose, const void *p, size_t n,
             char out[KEYHASH_CHARS]);

#endif
