/* The purpose is hashed in front of the bytes by hashing twice: first the bytes, then purpose and digest.
 * That needs no copy of bytes that may be a secret. */
#include "recorder/keyhash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

enum { DIGEST_BYTES = 32, PURPOSE_MAX = 32, KEPT_BYTES = 8 };

void keyhash(const uint8_t key[KEYHASH_KEY_BYTES], const char *purpose, const void *p, size_t n,
             char out[KEYHASH_CHARS]) {
    unsigned char text[PURPOSE_MAX + DIGEST_BYTES] = {0}, digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    out[0] = 0;
    strncpy((char *)text, purpose, PURPOSE_MAX - 1);
    if (!HMAC(EVP_sha256(), key, KEYHASH_KEY_BYTES, p, n, digest, &len) || len != DIGEST_BYTES) return;
    memcpy(text + PURPOSE_MAX, digest, DIGEST_BYTES);
    if (!HMAC(EVP_sha256(), key, KEYHASH_KEY_BYTES, text, sizeof text, digest, &len)) return;
    for (int i = 0; i < KEPT_BYTES; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
