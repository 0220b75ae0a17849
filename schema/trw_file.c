/* One part on disk. A block is written in one call at a known offset, and only then counted: whatever happens
 * in between, the file up to good_bytes is whole. state->next_seq is stored before state->good_bytes, and
 * resuming looks one block ahead, so that a kill between write and store, or between the stores, loses and
 * doubles nothing. */
#include "schema/trw_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define FREE_CHECK_NS 1000000000

int64_t trw_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* False when another program writes this file; systems without such locks go on without. */
static bool lock(int fd) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &l) == 0 || (errno != EAGAIN && errno != EACCES);
}

static int write_all(int fd, const uint8_t *p, size_t n, uint64_t at) {
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, (off_t)at);
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return w < 0 ? errno : EIO;
        p += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return 0;
}

/* First the number, then the length (see above). The salt says which file they speak of. */
static void publish(struct trw_file *f) {
    f->dirty = true;
    __atomic_store_n(&f->state->salt, f->salt, __ATOMIC_RELEASE);
    __atomic_store_n(&f->state->next_seq, f->next_seq, __ATOMIC_RELEASE);
    __atomic_store_n(&f->state->good_bytes, f->good_bytes, __ATOMIC_RELEASE);
}

static void random_bytes(void *p, size_t n) {
    if (getrandom(p, n, 0) == (ssize_t)n) return;
    uint64_t seed = (uint64_t)trw_now_ns() ^ (uint64_t)getpid() << 40;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)p)[i] = (uint8_t)(seed >> 56);
    }
}

/* A random UUID (version 4) when the recording has none yet. */
static void name_recording(uint8_t *uuid) {
    static const uint8_t none[16];
    if (memcmp(uuid, none, 16) != 0) return;
    random_bytes(uuid, 16);
    uuid[6] = (uuid[6] & 0x0f) | 0x40;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

int trw_file_begin(struct trw_file *f, const char *const *pairs) {
    struct bytes head = {0};
    struct trace_head h = {.format = TRACE_FORMAT, .part = f->state->part};
    if (!lock(f->fd)) return -1;
    do random_bytes(&f->salt, sizeof f->salt);
    while (!f->salt);
    h.salt = f->salt;
    name_recording(f->state->recording);
    memcpy(h.recording, f->state->recording, 16);
    trace_head_put(&head, &h, pairs);
    int e = head.failed ? ENOMEM : head.n > TRACE_HEAD_MAX ? E2BIG : write_all(f->fd, head.p, head.n, 0);
    if (!e) {
        f->good_bytes = head.n;
        f->next_seq = 1;
        publish(f);
    } else {
        (void)!ftruncate(f->fd, 0);
    }
    bytes_free(&head);
    errno = e;
    return e ? -1 : 0;
}

void trw_file_take_over(struct trw_file *f, const struct trw_file *next) {
    *f = *next;
    /* A process killed between these two leaves the length of the old part beside the number of the new one:
     * the salt tells. */
    __atomic_store_n(&f->state->part, f->state->part + 1, __ATOMIC_RELEASE);
    publish(f);
}

static int read_at(int fd, uint8_t *p, size_t n, uint64_t at) {
    while (n > 0) {
        ssize_t r = pread(fd, p, n, (off_t)at);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return -1;
        p += r;
        n -= (size_t)r;
        at += (uint64_t)r;
    }
    return 0;
}

/* Bytes of a whole block at f->good_bytes, 0 when there is none. */
static size_t block_ahead(const struct trw_file *f, uint64_t *seq) {
    uint8_t p[BLOCK_HEADER];
    struct block_header h;
    if (read_at(f->fd, p, sizeof p, f->good_bytes) != 0 || block_header_get(&h, p, f->salt)) return 0;
    uint8_t *body = h.body_bytes ? malloc(h.body_bytes) : NULL;
    bool whole = body && read_at(f->fd, body, h.body_bytes, f->good_bytes + BLOCK_HEADER) == 0 &&
                 (uint32_t)crc32(0, body, h.body_bytes) == h.body_crc;
    free(body);
    *seq = h.seq;
    return whole ? BLOCK_HEADER + h.body_bytes : 0;
}

static uint64_t file_bytes(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int trw_file_resume(struct trw_file *f, char *err, size_t err_size) {
    uint8_t p[TRACE_HEAD_FIXED];
    struct trace_head h;
    const char *why = NULL;
    if (!lock(f->fd))
        why = "another program writes it";
    else if (read_at(f->fd, p, sizeof p, 0) != 0 || memcmp(p, TRACE_MAGIC, 8) != 0 || !trace_head_get(&h, p))
        why = "its head cannot be read";
    else if (memcmp(h.recording, f->state->recording, 16) != 0 || h.format != TRACE_FORMAT)
        why = "it is another recording";
    else if (h.part != f->state->part)
        why = "it is another part of the recording";
    if (why) {
        snprintf(err, err_size, "cannot go on in the trace: %s", why);
        return -1;
    }
    f->salt = h.salt;
    bool spoken_of = h.salt == f->state->salt && file_bytes(f->fd) >= f->state->good_bytes;
    f->good_bytes = spoken_of ? f->state->good_bytes : h.header_size;
    f->next_seq = spoken_of ? f->state->next_seq : 1;
    uint64_t seq = 0;
    for (size_t n; (n = block_ahead(f, &seq)) > 0; f->next_seq = seq + 1) f->good_bytes += n;
    publish(f);
    if (ftruncate(f->fd, (off_t)f->good_bytes) != 0) {
        snprintf(err, err_size, "cannot cut the trace to its last whole block: %s", strerror(errno));
        return -1;
    }
    return 0;
}

/* Less free space than is to be left over. Looked at once a second; every time while it is so. */
static bool short_of_space(struct trw_file *f, int64_t now_ns) {
    struct statvfs s;
    if (!f->min_free_bytes || now_ns - f->free_checked_ns < FREE_CHECK_NS) return false;
    if (fstatvfs(f->fd, &s) != 0 || s.f_blocks == 0) return false; /* no disk behind it, or it does not say */
    if ((uint64_t)s.f_bavail * s.f_frsize < f->min_free_bytes) return true;
    f->free_checked_ns = now_ns;
    return false;
}

int trw_file_write(struct trw_file *f, uint8_t *block, size_t n, int64_t now_ns) {
    if (f->unsynced_loss) return EIO;
    if (short_of_space(f, now_ns)) return ENOSPC;
    block_header_finish(block, f->next_seq);
    int e = write_all(f->fd, block, n, f->good_bytes);
    if (!e) {
        f->good_bytes += n;
        f->next_seq++;
        publish(f);
        return 0;
    }
    /* When even cutting fails the next write lies over the rest: it goes to the same offset. */
    (void)!ftruncate(f->fd, (off_t)f->good_bytes);
    return e;
}

int trw_file_seal(struct trw_file *f, int64_t t_ns) {
    uint8_t seal[BLOCK_HEADER];
    if (f->unsynced_loss) return EIO;
    block_put_seal(seal, f->salt, f->next_seq, t_ns);
    int e = write_all(f->fd, seal, sizeof seal, f->good_bytes);
    if (e)
        (void)!ftruncate(f->fd, (off_t)f->good_bytes);
    else
        f->dirty = true;
    return e ? e : trw_file_sync(f);
}

int trw_file_sync(struct trw_file *f) {
    if (!f->dirty || f->unsynced_loss) return 0;
    int r;
    do r = fdatasync(f->fd);
    while (r != 0 && errno == EINTR);
    if (r == 0 || errno == EINVAL || errno == EROFS) { /* the last two: nothing there to sync */
        f->dirty = false;
        return 0;
    }
    /* The kernel may have dropped the pages and marked them clean: a second sync would say "done" of bytes
     * that are gone. */
    f->unsynced_loss = true;
    return errno;
}
