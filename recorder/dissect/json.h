/* Values of a JSON text. The only file that knows the JSON library.
 *
 * All functions take NULL for an absent value and answer for it. Look-ups are case-sensitive; of equal keys
 * the last one counts. Texts are valid UTF-8 without NUL. */
#ifndef RECORDER_DISSECT_JSON_H
#define RECORDER_DISSECT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json; /* a value inside a document */

struct json_doc {
    struct json *root; /* NULL: see verdict */
    enum { JSON_OK, JSON_BAD, JSON_LARGE } verdict;
    unsigned repairs;   /* made to read it */
    unsigned too_large; /* whole numbers beyond 64 bits; they read as null */
    size_t mark;        /* how its memory is given back */
    bool spilled;
};

/* Reads n bytes; json_close frees the document. Documents are closed in the reverse order of their opening.
 */
struct json_doc json_open(const char *p, size_t n);
void json_close(struct json_doc *d);
/* The same, but the values of these members of the outermost object (keys, NULL at the end; NULL: none) read
 * as null when the text is large: they are not parsed. */
struct json_doc json_open_without(const char *p, size_t n, const char *const *keys);

const struct json *json_get(const struct json *object, const char *key);
/* The value at a path of keys with dots between them, none longer than 63 bytes. */
const struct json *json_at(const struct json *object, const char *path);

bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_null(const struct json *v); /* absent counts as null */
bool json_is_true(const struct json *v);
bool json_truthy(const struct json *v); /* anything but absent, null, false, 0, "" */
/* The text, NULL when it is none. */
const char *json_text(const struct json *v);
/* Bytes of the text, 0 when it is none. */
size_t json_text_bytes(const struct json *v);
/* A whole number; false when it is none. */
bool json_int(const struct json *v, int64_t *out);
bool json_real(const struct json *v, double *out);
/* The key of an object's member, NULL of anything else. */
const char *json_key(const struct json *member);
/* Elements of an array, -1 when it is none. */
int json_count(const struct json *v);
/* First and next element of an array or member of an object; NULL at the end. */
const struct json *json_first(const struct json *v);
const struct json *json_next(const struct json *element);

#endif
