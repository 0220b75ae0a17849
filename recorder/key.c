/* Two recorders may start at once, so the file is made under a name of its own and linked into place: the
 * first one wins and both read the same key. */
#include "recorder/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool state_dir(char *path, size_t size) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;
    if (state && state[0] == '/') {
        n = snprintf(path, size, "%s/tracerec", state);
    } else if (home && home[0] == '/') {
        n = snprintf(path, size, "%s/.local/state/tracerec", home);
    } else {
        return false;
    }
    return n > 0 && (size_t)n < size;
}

static void make_dirs(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    mkdir(path, 0700);
}

static bool read_key(const char *path, uint8_t key[KEY_BYTES]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    uint8_t got[KEY_BYTES];
    bool whole = read(fd, got, KEY_BYTES) == KEY_BYTES;
    close(fd);
    if (whole) memcpy(key, got, KEY_BYTES);
    return whole;
}

static bool keep_key(const char *path, const uint8_t key[KEY_BYTES]) {
    char tmp[PATH_MAX];
    if (snprintf(tmp, sizeof tmp, "%s.%ld", path, (long)getpid()) >= (int)sizeof tmp) return false;
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    bool ok = write(fd, key, KEY_BYTES) == KEY_BYTES && fsync(fd) == 0;
    close(fd);
    if (ok) ok = link(tmp, path) == 0 || errno == EEXIST;
    unlink(tmp);
    return ok;
}

bool key_load(uint8_t key[KEY_BYTES]) {
    char path[PATH_MAX];
    bool have_dir = state_dir(path, sizeof path - sizeof "/key");
    if (have_dir) {
        make_dirs(path);
        strcat(path, "/key");
        if (read_key(path, key)) return true;
    }
    if (getrandom(key, KEY_BYTES, 0) != KEY_BYTES)
        abort(); /* a kernel without random numbers: nothing can be hashed safely */
    return have_dir && keep_key(path, key) && read_key(path, key);
}
