/* Bytes of a trace by offset. The buffer holds one stretch of the file; a request outside of it moves it
 * there. */
#include "schema/trr_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (256 << 10)

static bool grow(struct source *s, size_t n) {
    if (s->cap >= n) return true;
    uint8_t *p = realloc(s->buffer, n);
    if (!p) {
        s->io_errno = ENOMEM;
        return false;
    }
    s->buffer = p;
    s->cap = n;
    return true;
}

/* Makes the buffer begin at offset and hold at least n bytes, if the file has them. */
static void fill(struct source *s, uint64_t offset, size_t n) {
    size_t want = n > READ_BYTES ? n : READ_BYTES, kept = 0;
    if (!grow(s, want)) return;
    if (offset >= s->at && offset < s->at + s->n) {
        kept = (size_t)(s->at + s->n - offset);
        memmove(s->buffer, s->buffer + (offset - s->at), kept);
    }
    s->at = offset;
    s->n = kept;
    while (s->n < want) {
        ssize_t r = pread(s->fd, s->buffer + s->n, want - s->n, (off_t)(offset + s->n));
        if (r < 0 && errno == EINTR) continue;
        if (r < 0) s->io_errno = errno;
        if (r <= 0) return;
        s->n += (size_t)r;
    }
}

const uint8_t *source_some(struct source *s, uint64_t offset, size_t *n) {
    bool inside = offset >= s->at && offset - s->at <= s->n && s->n - (offset - s->at) >= *n;
    if (!inside && s->fd >= 0) fill(s, offset, *n);
    if (offset < s->at || offset - s->at > s->n) {
        *n = 0;
        return s->buffer;
    }
    size_t left = s->n - (size_t)(offset - s->at);
    if (*n > left) *n = left;
    return s->buffer + (offset - s->at);
}

const uint8_t *source_get(struct source *s, uint64_t offset, size_t n) {
    size_t have = n;
    if (offset + n > s->size) source_measure(s);
    if (offset + n > s->size) return NULL;
    const uint8_t *p = source_some(s, offset, &have);
    return have == n ? p : NULL;
}

void source_rewind(struct source *s) {
    if (s->fd >= 0) s->n = 0;
    s->io_errno = 0;
}

void source_measure(struct source *s) {
    struct stat st;
    if (s->fd < 0)
        s->size = s->n;
    else if (fstat(s->fd, &st) == 0)
        s->size = (uint64_t)st.st_size;
    else
        s->io_errno = errno;
}

bool source_locked(const struct source *s) {
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return s->fd >= 0 && fcntl(s->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
