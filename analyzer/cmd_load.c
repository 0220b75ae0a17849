/* traceanalyze load: traces into an SQLite database. Made beside its place, then renamed: what is there is
 * whole. */
#include "analyzer/args.h"
#include "analyzer/commands.h"
#include "analyzer/db.h"
#include "analyzer/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "traceanalyze load TRACE... -o DB.sqlite [--append] [--rows] [--arrival-window 1ms] [--quiet]\n\n"
    "Makes a database of traces: tables traces, connections, losses, samples, notes, definitions, view "
    "requests.\n"
    "  -o DB.sqlite   the database to make; an existing one is an error\n"
    "  --append       add to an existing database made by load\n"
    "  --rows         arrivals as a plain table, too, for programs that are not traceanalyze\n"
    "  --arrival-window D   reads this close belong to one arrival (1ms; 0: none)\n"
    "  --quiet        no notes and no progress on stderr\n";

struct load_args {
    const char *out;
    bool append;
    struct load_options o;
    char **inputs;
    size_t n;
};

static int wrong(const char *what, const char *why) {
    fprintf(stderr, "traceanalyze: load: %s: %s; see traceanalyze load --help\n", what, why);
    return 2;
}

/* The value of an option NAME VALUE or NAME=VALUE at argv[*i]; NULL when argv[*i] is another word. */
static const char *value_of(char **argv, int *i, const char *name) {
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0) return NULL;
    if (argv[*i][n] == '=') return argv[*i] + n + 1;
    if (argv[*i][n] != 0) return NULL;
    return argv[*i + 1] ? argv[++*i] : "";
}

/* -1 to go on, else the exit status. */
static int read_args(struct load_args *a, int argc, char **argv) {
    *a = (struct load_args){.o.window_ns = 1000000, .inputs = argv};
    const char *v;
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i];
        if (strcmp(w, "--help") == 0 || strcmp(w, "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(w, "--append") == 0)
            a->append = true;
        else if (strcmp(w, "--rows") == 0)
            a->o.rows = true;
        else if (strcmp(w, "--quiet") == 0)
            a->o.quiet = true;
        else if ((v = value_of(argv, &i, "-o")) || (v = value_of(argv, &i, "--output")))
            a->out = v;
        else if ((v = value_of(argv, &i, "--arrival-window"))) {
            a->o.window_ns = args_duration_ns(v);
            if (a->o.window_ns < 0) return wrong(v, "no duration; give 1ms, 250us or 0");
        } else if (w[0] == '-' && w[1] != 0)
            return wrong(w, "no such option");
        else
            a->inputs[a->n++] = argv[i];
    }
    if (!a->out || !*a->out) return wrong("no -o", "give the database to make, -o DB.sqlite");
    return -1;
}

static int cannot(const char *path, const char *what, const char *remedy) {
    fprintf(stderr, "traceanalyze: %s: %s: %s; %s\n", path, what, strerror(errno), remedy);
    return 1;
}

static bool copy_file(const char *from, int to) {
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char buffer[1 << 16];
    ssize_t n, w = 0;
    while ((n = read(fd, buffer, sizeof buffer)) > 0 && (w = write(to, buffer, (size_t)n)) == n) {
    }
    int kept = errno;
    close(fd);
    errno = n < 0 || w < 0 ? kept : ENOSPC;
    return n == 0;
}

/* Whether an existing file may be added to, or may not be there at all. */
static int check_target(const struct load_args *a) {
    struct stat st;
    if (lstat(a->out, &st) != 0) {
        if (errno != ENOENT)
            return cannot(a->out, "cannot be looked at", "look at the permissions of its folder");
        return a->append ? wrong(a->out, "no such database to append to; leave out --append to make it") : 0;
    }
    if (!a->append) {
        fprintf(stderr,
                "traceanalyze: %s: exists already and is never overwritten; give another -o, or --append\n",
                a->out);
        return 2;
    }
    sqlite3 *db = NULL;
    enum db_kind kind = DB_UNREADABLE;
    if (S_ISREG(st.st_mode) && sqlite3_open_v2(a->out, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
        kind = db_kind(db);
    sqlite3_close(db);
    if (kind == DB_OURS) return 0;
    fprintf(stderr, "traceanalyze: %s: %s; give another -o\n", a->out,
            kind == DB_OTHER_VERSION   ? "made by another version of traceanalyze"
            : kind == DB_OTHER_PROGRAM ? "database of another program"
                                       : "not a database that can be appended to");
    return 2;
}

/* A new file beside the target, 0600, never through a link; a copy of the target when it is added to. */
static int make_beside(const struct load_args *a, const char *beside) {
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return cannot(beside, "cannot be made", "look at the permissions of its folder");
    bool good = !a->append || copy_file(a->out, fd);
    int status = good ? 0 : cannot(beside, "cannot be written", "free the disk");
    close(fd);
    return status;
}

/* The file is thrown away when anything fails, so nothing is journalled and nothing synced on the way. */
static int fill(const struct load_args *a, const char *beside, const struct inputs *in, bool *damaged) {
    static const char settings[] =
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; "
        "PRAGMA cache_size = -65536";
    sqlite3 *db = NULL;
    bool good = sqlite3_open_v2(beside, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK;
    if (good && !a->append) good = db_exec(db, "PRAGMA page_size = 16384") == SQLITE_OK;
    good = good && db_exec(db, settings) == SQLITE_OK && (a->append || db_create(db) == SQLITE_OK);
    int status = 1;
    if (good)
        status = load_traces(db, in, &a->o, damaged);
    else
        fprintf(stderr, "traceanalyze: %s: cannot be written: %s; look at its disk\n", beside,
                sqlite3_errmsg(db));
    if (sqlite3_close(db) != SQLITE_OK && status == 0)
        status = cannot(beside, "cannot be closed", "look at its disk");
    return status;
}

/* Into place. A new database must not replace what came there meanwhile. */
static int put_in_place(const struct load_args *a, const char *beside) {
    int rc = renameat2(AT_FDCWD, beside, AT_FDCWD, a->out, a->append ? 0 : RENAME_NOREPLACE);
    if (rc != 0 && errno == EINVAL && !a->append) { /* a file system without that flag */
        rc = link(beside, a->out);
        if (rc == 0) unlink(beside);
    }
    return rc == 0 ? 0 : cannot(a->out, "cannot be put in place", "give another -o");
}

static int load_into(const struct load_args *a, const struct inputs *in) {
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.part-%ld", a->out, (long)getpid()) >= (int)sizeof beside)
        return wrong(a->out, "too long a name");
    bool damaged = false;
    int status = make_beside(a, beside);
    if (status != 0) return status;
    status = fill(a, beside, in, &damaged);
    if (status == 0) status = put_in_place(a, beside);
    if (status != 0) unlink(beside);
    return status ? status : damaged ? 3 : 0;
}

int cmd_load(int argc, char **argv) {
    struct load_args a;
    struct inputs in;
    int status = read_args(&a, argc, argv);
    if (status >= 0) return status;
    status = check_target(&a);
    if (status != 0) return status;
    status = inputs_collect(&in, a.inputs, a.n);
    if (status == 0 && in.database) status = wrong(in.at[0].name, "a database, not a trace; give traces");
    if (status == 0) status = load_into(&a, &in);
    inputs_free(&in);
    return status;
}
