/* The child inherits everything the forwarder has open. It closes all but the standard streams, the ring's
 * eventfd and the trace: a listener or a client's socket kept open here would outlive its owner's close.
 *
 * It is not tied to its parent's death: it must still drain the ring and seal the trace then. */
#include "recorder/child.h"
#include "recorder/clocks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OOM_SCORE_ADJ = 500, WAIT_STEP_US = 2000 };

static void close_between(unsigned from, unsigned to) {
    if (from > to) return;
    if (syscall(SYS_close_range, from, to, 0) == 0) return;
    long max = sysconf(_SC_OPEN_MAX); /* kernels before 5.9 */
    for (unsigned fd = from; fd <= to && (long)fd < max; fd++) close((int)fd);
}

static void close_others(int keep1, int keep2) {
    unsigned low = (unsigned)(keep1 < keep2 ? keep1 : keep2),
             high = (unsigned)(keep1 < keep2 ? keep2 : keep1);
    close_between(3, low - 1);
    close_between(low + 1, high - 1);
    close_between(high + 1, ~0u);
}

static void set_signals(void) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ, SIGWINCH};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

/* The recorder is the one to be killed when memory runs out, never the traffic. */
static void offer_to_oom_killer(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    char text[8];
    int n = snprintf(text, sizeof text, "%d", OOM_SCORE_ADJ);
    (void)!write(fd, text, (size_t)n);
    close(fd);
}

static _Noreturn void run(struct child *c) {
    sigset_t none;
    set_signals(); /* before unblocking: the handlers here are the parent's */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int wake = ring_wake_fd(c->config.ring), trace = c->config.trace_fd;
    close_others(trace >= 3 ? trace : wake, wake);
    offer_to_oom_killer();
    exit(record_run(&c->config));
}

bool child_start(struct child *c) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) run(c);
    int err = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = err;
    if (pid < 0) return false;
    c->pid = pid;
    atomic_fetch_add(&c->config.shared->recorder_starts, 1);
    return true;
}

bool child_reap(struct child *c, int *status) {
    if (c->pid == 0 || waitpid(c->pid, status, WNOHANG) != c->pid) return false;
    c->pid = 0;
    return true;
}

bool child_died_of_fault(int status) {
    if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
    int sig = WTERMSIG(status);
    return sig == SIGSEGV || sig == SIGABRT || sig == SIGBUS || sig == SIGFPE || sig == SIGILL;
}

bool child_wait(struct child *c, int64_t limit_ns) {
    int64_t end = clocks_mono() + limit_ns;
    int status = 0;
    if (c->pid == 0) return false;
    while (!child_reap(c, &status)) {
        if (clocks_mono() >= end) return false;
        usleep(WAIT_STEP_US);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
