/* Folders give their .trc files in the order of their names; stdin is kept in a file without a name, since a
 * trace is read by offset. */
#include "analyzer/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int wrong(const char *name, const char *what) {
    fprintf(stderr, "traceanalyze: %s: %s\n", name, what);
    return 2;
}

static int no_memory(void) {
    fputs("traceanalyze: out of memory; close other programs or give fewer traces at once\n", stderr);
    return 1;
}

static int add(struct inputs *in, const char *path, const char *name) {
    if (in->n == in->room) {
        size_t room = in->room ? in->room * 2 : 16;
        struct input *p = realloc(in->at, room * sizeof *p);
        if (!p) return no_memory();
        in->at = p;
        in->room = room;
    }
    struct input i = {strdup(path), strdup(name)};
    in->at[in->n++] = i;
    return i.path && i.name ? 0 : no_memory();
}

static int is_trace_name(const struct dirent *d) {
    size_t n = strlen(d->d_name);
    return n > 4 && strcmp(d->d_name + n - 4, ".trc") == 0;
}

static int add_folder(struct inputs *in, const char *folder) {
    struct dirent **list = NULL;
    int n = scandir(folder, &list, is_trace_name, alphasort), status = 0;
    if (n < 0) {
        fprintf(stderr, "traceanalyze: %s: cannot be listed: %s; look at its permissions\n", folder,
                strerror(errno));
        return 1;
    }
    if (n == 0) status = wrong(folder, "holds no .trc file; give a folder that does, or a file");
    size_t length = strlen(folder);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                 list[i]->d_name);
        if (status == 0) status = add(in, path, path);
        free(list[i]);
    }
    free(list);
    return status;
}

static bool copy_all(int from, int to) {
    char buffer[1 << 16];
    for (;;) {
        ssize_t n = read(from, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        for (ssize_t done = 0, w; done < n; done += w)
            if ((w = write(to, buffer + done, (size_t)(n - done))) < 0) {
                if (errno != EINTR) return false;
                w = 0;
            }
    }
}

static int add_stdin(struct inputs *in) {
    if (in->spool >= 0) return wrong("-", "stands twice; stdin can be read once");
    if (isatty(STDIN_FILENO)) return wrong("-", "stdin is a terminal; pipe a trace into it");
    const char *folder = getenv("TMPDIR");
    in->spool = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (in->spool < 0 || !copy_all(STDIN_FILENO, in->spool)) {
        fprintf(stderr,
                "traceanalyze: -: cannot keep stdin in a temporary file: %s; free space or set TMPDIR\n",
                strerror(errno));
        return 1;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", in->spool);
    return add(in, path, "-");
}

static bool is_sqlite(const char *path) {
    char head[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    return n == (ssize_t)sizeof head && memcmp(head, "SQLite format 3", sizeof head) == 0;
}

static int add_path(struct inputs *in, const char *path) {
    struct stat st;
    if (strcmp(path, "-") == 0) return add_stdin(in);
    if (stat(path, &st) != 0) {
        fprintf(stderr, "traceanalyze: %s: %s; give a .trc, a folder of them, or a .sqlite\n", path,
                errno == ENOENT ? "no such file" : strerror(errno));
        return 2;
    }
    if (S_ISDIR(st.st_mode)) return add_folder(in, path);
    if (!S_ISREG(st.st_mode)) return wrong(path, "not a regular file; pipe it in and give - instead");
    if (is_sqlite(path)) in->database = true;
    return add(in, path, path);
}

int inputs_collect(struct inputs *in, char *const *args, size_t n) {
    *in = (struct inputs){.spool = -1};
    int status = n ? 0 : wrong("no input", "give a .trc, a folder of them, a .sqlite, or - for stdin");
    for (size_t i = 0; i < n && status == 0; i++) status = add_path(in, args[i]);
    if (status == 0 && in->database && in->n > 1)
        status =
            wrong(in->at[0].name, "a database is read alone; give traces only, or load --append them to it");
    return status;
}

void inputs_free(struct inputs *in) {
    for (size_t i = 0; i < in->n; i++) {
        free(in->at[i].path);
        free(in->at[i].name);
    }
    free(in->at);
    if (in->spool >= 0) close(in->spool);
    *in = (struct inputs){.spool = -1};
}
