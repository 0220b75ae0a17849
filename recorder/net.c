/* The kernel stamps packets with the wall clock. The stamp becomes monotonic by an offset between the two
 * clocks that is at most a millisecond old: slewing cannot move it by more than a nanosecond in that time,
 * and a step of the clock makes stamps fall outside 0..1 s before the read, where the clock after the read is
 * taken instead. */
#include "recorder/net.h"
#include "recorder/clocks.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 15, KEEPALIVE_PROBES = 4 };
enum { USER_TIMEOUT_MS = 120000, NOTSENT_LOWAT_BYTES = 64 << 10 };

/* Wall minus monotonic, and when it was read. One thread: the forwarder's. */
static struct { int64_t offset_ns, read_ns; } wall;

int net_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void set(int fd, int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

void net_tune(int fd) {
    int domain = AF_UNIX;
    socklen_t n = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 || domain == AF_UNIX) return;
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
    set(fd, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
    /* Towards the upstream too: megabytes of a prompt waiting in our kernel would count as the server's time.
     */
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_LOWAT_BYTES);
}

static void stamp_read(struct msghdr *m, struct net_stamp *stamp) {
    int64_t after = clocks_mono();
    *stamp = (struct net_stamp){.t_ns = after, .after_ns = after};
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING) return;
    struct timespec ts;
    memcpy(&ts, CMSG_DATA(c), sizeof ts);
    if (ts.tv_sec == 0) return;
    if (after - wall.read_ns > NS_PER_MS) {
        struct clocks_pair p = clocks_pair(1);
        wall.offset_ns = p.wall_ns - p.mono_ns, wall.read_ns = p.mono_ns;
    }
    int64_t t = ts.tv_sec * NS_PER_S + ts.tv_nsec - wall.offset_ns;
    int64_t late = after - t;
    if (late < 0 || late > NS_PER_S) return;
    stamp->t_ns = t, stamp->late_ns = (uint32_t)late, stamp->kernel = true;
}

ssize_t net_read(int fd, void *bytes, size_t n, struct net_stamp *stamp) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(3 * sizeof(struct timespec))];
    } control;
    struct iovec iov = {bytes, n};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
    int err = errno;
    if (got < 0) m.msg_controllen = 0;
    stamp_read(&m, stamp);
    errno = err;
    return got;
}

ssize_t net_write(int fd, const void *bytes, size_t n) {
    return send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static size_t ask(int fd, unsigned long what) {
    int n = 0;
    return ioctl(fd, what, &n) < 0 || n < 0 ? 0 : (size_t)n;
}
size_t net_unacked(int fd) {
    return ask(fd, SIOCOUTQ);
}
size_t net_unread(int fd) {
    return ask(fd, SIOCINQ);
}

int net_error(int fd) {
    int err = 0;
    socklen_t n = sizeof err;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0 ? errno : err;
}

void net_reset(int fd) {
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
}
