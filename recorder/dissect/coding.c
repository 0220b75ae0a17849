/* What is decoded is bounded by what came: beyond 64 MiB no body of text shrinks to a hundredth, but a
 * hostile one does, and would keep the recorder busy. */
#include "recorder/dissect/coding.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum { OUT_BYTES = 16 << 10, ZSTD_WINDOW_LOG_MAX = 23, RATIO_MAX = 100, GZIP_OR_ZLIB = 15 + 32, RAW = -15 };
static const uint64_t FREE_OUT_BYTES = 64u << 20;

struct coding {
    enum { GZIP, DEFLATE, ZSTD } kind;
    z_stream z;
    bool z_open;  /* z is to be ended */
    bool between; /* the last gzip member ended */
    char head[2]; /* first two bytes of a deflate body: they tell whether there is a zlib header */
    size_t n_head;
    ZSTD_DStream *zstd;
    struct pool *pool;
    size_t charged; /* bytes taken from the pool for zstd's window */
    uint64_t in, out;
    const char *why;
};

static const struct {
    const char *name;
    int kind;
} names[] = {{"gzip", GZIP}, {"x-gzip", GZIP}, {"deflate", DEFLATE}, {"zstd", ZSTD}};

/* A word in a list of codings that changes nothing. Besides identity: words of other header fields that
 * senders put there by mistake; the fact content_encoding still shows them. */
static bool changes_nothing(const char *p, size_t n) {
    static const char *const words[] = {"",       "identity", "none",     "utf-8",     "utf8",
                                        "binary", "chunked",  "us-ascii", "iso-8859-1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncasecmp(words[i], p, n) == 0) return true;
    return false;
}

/* The one word of a list of codings that changes something, its length in n; "" when none does. Of several
 * all from the first on: that is no coding's name. */
static const char *only(const char *list, size_t *n) {
    const char *found = "";
    for (*n = 0; *list; list += *list == ',') {
        list += strspn(list, " \t");
        size_t len = strcspn(list, ","), word = len;
        while (word > 0 && strchr(" \t", list[word - 1])) word--;
        if (!changes_nothing(list, word)) {
            if (*n == 0) found = list;
            *n = (size_t)(list - found) + word;
        }
        list += len;
    }
    return found;
}

bool coding_is_identity(const char *name) {
    size_t n;
    return *only(name, &n) == 0;
}

static bool open_library(struct coding *c) {
    if (c->kind != ZSTD) return c->z_open = inflateInit2(&c->z, GZIP_OR_ZLIB) == Z_OK;
    c->zstd = ZSTD_createDStream();
    if (!c->zstd) return false;
    return !ZSTD_isError(ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX));
}

struct coding *coding_new(const char *list, struct pool *pool) {
    size_t n;
    const char *name = only(list, &n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) != n || strncasecmp(name, names[i].name, n) != 0) continue;
        struct coding *c = calloc(1, sizeof *c);
        if (!c) return NULL;
        c->kind = names[i].kind, c->pool = pool;
        if (open_library(c)) return c;
        coding_free(c);
        return NULL;
    }
    return NULL;
}

void coding_free(struct coding *c) {
    if (!c) return;
    if (c->z_open) inflateEnd(&c->z);
    ZSTD_freeDStream(c->zstd);
    pool_give(c->pool, c->charged);
    free(c);
}

static bool fail(struct coding *c, const char *why) {
    c->why = why;
    return false;
}

/* Hands on n decoded bytes. */
static bool give(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx) {
    c->out += n;
    if (c->out > FREE_OUT_BYTES && c->out / RATIO_MAX > c->in) return fail(c, "coded body grows without end");
    if (n > 0) out(ctx, p, n);
    return true;
}

static void skip_zeros(z_stream *z) {
    while (z->avail_in > 0 && *z->next_in == 0) z->next_in++, z->avail_in--;
}

static bool inflate_all(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx) {
    char room[OUT_BYTES];
    c->z.next_in = (Bytef *)(uintptr_t)p, c->z.avail_in = (uInt)n;
    do {
        if (c->between) {
            skip_zeros(&c->z); /* padding, as gzip(1) has it: no member begins with a zero */
            if (c->z.avail_in == 0) return true;
            if (c->kind != GZIP || inflateReset(&c->z) != Z_OK) return true; /* padding after the end */
            c->between = false;
        }
        c->z.next_out = (Bytef *)room, c->z.avail_out = sizeof room;
        int rc = inflate(&c->z, Z_SYNC_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) return fail(c, "damaged gzip or deflate");
        if (!give(c, room, sizeof room - c->z.avail_out, out, ctx)) return false;
        c->between = rc == Z_STREAM_END;
    } while (c->z.avail_in > 0 || c->z.avail_out == 0);
    return true;
}

/* Some senders write "deflate" bodies without the zlib header. */
static bool feed_deflate(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx) {
    if (c->n_head == sizeof c->head) return inflate_all(c, p, n, out, ctx);
    while (n > 0 && c->n_head < sizeof c->head) c->head[c->n_head++] = *p++, n--;
    if (c->n_head < sizeof c->head) return true;
    unsigned b0 = (unsigned char)c->head[0], b1 = (unsigned char)c->head[1];
    bool zlib = (b0 & 15) == Z_DEFLATED && (b0 << 8 | b1) % 31 == 0;
    if (!zlib && inflateReset2(&c->z, RAW) != Z_OK) return fail(c, "damaged gzip or deflate");
    return inflate_all(c, c->head, sizeof c->head, out, ctx) && inflate_all(c, p, n, out, ctx);
}

/* Zstd's window is memory that the sender chose: it comes out of the pool. */
static bool charge(struct coding *c) {
    size_t size = ZSTD_sizeof_DStream(c->zstd);
    if (size <= c->charged) return true;
    if (!pool_take(c->pool, size - c->charged)) return fail(c, "no memory for the zstd window");
    c->charged = size;
    return true;
}

static bool feed_zstd(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx) {
    char room[OUT_BYTES];
    ZSTD_inBuffer in = {p, n, 0};
    ZSTD_outBuffer to;
    do {
        to = (ZSTD_outBuffer){room, sizeof room, 0};
        size_t rc = ZSTD_decompressStream(c->zstd, &to, &in);
        if (ZSTD_isError(rc)) return fail(c, "damaged zstd");
        if (!charge(c) || !give(c, room, to.pos, out, ctx)) return false;
    } while (in.pos < in.size || to.pos == to.size);
    return true;
}

bool coding_feed(struct coding *c, const char *p, size_t n, coding_out *out, void *ctx) {
    if (c->why) return false;
    c->in += n;
    if (c->kind == ZSTD) return feed_zstd(c, p, n, out, ctx);
    if (c->kind == DEFLATE) return feed_deflate(c, p, n, out, ctx);
    return inflate_all(c, p, n, out, ctx);
}

const char *coding_why(const struct coding *c) {
    return c->why ? c->why : "";
}
