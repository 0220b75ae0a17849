/* A folder is what ends in a slash, or is one already. Inside it names carry host and process, so that a
 * restart with the same arguments always starts. */
#include "recorder/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define GB 1000000000ull

static void utc(char *out, size_t size) {
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, size, "%Y%m%dT%H%M%SZ", &tm);
}

static bool is_folder(const char *path) {
    struct stat st;
    size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* The host's name as a part of a file's name. */
static void host_name(char *out, size_t size) {
    if (gethostname(out, size) < 0) snprintf(out, size, "host");
    out[size - 1] = 0;
    for (char *p = out; *p; p++)
        if (*p == '/' || (unsigned char)*p <= ' ') *p = '-';
}

static bool name_in(const char *dir, char *path, size_t size) {
    char when[32], host[256];
    utc(when, sizeof when);
    host_name(host, sizeof host);
    int n = snprintf(path, size, "%strace-%s-%s-%ld.trc", dir, host, when, (long)getpid());
    return n > 0 && (size_t)n < size;
}

bool output_name(struct output *o, const char *given) {
    char when[32];
    *o->dir = 0;
    if (!given) {
        utc(when, sizeof when);
        return snprintf(o->path, sizeof o->path, "trace-%s.trc", when) > 0;
    }
    size_t n = strlen(given);
    if (n + 2 > sizeof o->path) return false;
    if (!is_folder(given)) return snprintf(o->path, sizeof o->path, "%s", given) > 0;
    snprintf(o->dir, sizeof o->dir, "%s%s", given, given[n - 1] == '/' ? "" : "/");
    return name_in(o->dir, o->path, sizeof o->path);
}

bool output_next_part(const char *trace_path, const char *trace_dir, unsigned part, char *path, size_t size) {
    struct stat st;
    char first[PATH_MAX];
    if (trace_dir && *trace_dir) {
        if (!name_in(trace_dir, path, size)) return false;
        if (lstat(path, &st) < 0) return true; /* else a part of the same second: number it */
        if (snprintf(first, sizeof first, "%s", path) >= (int)sizeof first) return false;
        trace_path = first;
    }
    const char *slash = strrchr(trace_path, '/'), *name = slash ? slash + 1 : trace_path;
    const char *dot = strrchr(name, '.');
    int stem = dot && dot != name ? (int)(dot - trace_path) : (int)strlen(trace_path);
    int n = snprintf(path, size, "%.*s.%u%s", stem, trace_path, part, trace_path + stem);
    return n > 0 && (size_t)n < size;
}

static const char *advice(int err) {
    switch (err) {
    case EEXIST: return "exists and is never overwritten; give another name, or a folder: -o DIR/";
    case ENOENT:
    case ENOTDIR: return "its folder does not exist; make it first";
    case EACCES:
    case EPERM: return "its folder cannot be written to by this user; give another one with -o";
    case ENOSPC:
    case EDQUOT: return "the disk is full; free space";
    case EROFS: return "the disk is read-only; give another one with -o";
    default: return NULL;
    }
}

int output_open(const char *path, char *err, size_t err_size) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    int e = errno;
    const char *why = advice(e);
    if (why)
        snprintf(err, err_size, "%s", why);
    else
        snprintf(err, err_size, "%s; give another file with -o", strerror(e));
    errno = e;
    return -1;
}

bool output_may_come(int err) {
    return err == ENOSPC || err == EDQUOT || err == EROFS || err == EFBIG || err == EIO;
}

uint64_t output_min_free(const char *path) {
    struct statvfs fs;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash) slash[1] = 0;
    if (statvfs(slash ? dir : ".", &fs) < 0) return GB;
    uint64_t part = (uint64_t)fs.f_blocks * fs.f_frsize / 20;
    return part < GB ? part : GB;
}
