/* Sockets: what the kernel is asked for, in one place. Knows neither relays nor HTTP. */
#ifndef RECORDER_NET_H
#define RECORDER_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* When bytes came. */
struct net_stamp {
    int64_t t_ns; /* monotonic: the kernel's receive time where it is known, else the clock after the read */
    int64_t after_ns; /* the monotonic clock right after the read */
    uint32_t late_ns; /* after_ns - t_ns, capped at UINT32_MAX; 0 without kernel time */
    bool kernel;
};

/* A non-blocking stream socket of the address family, closed on exec. -1: errno tells. */
int net_socket(int family);
/* Latency and dead-peer options of a TCP socket; accepted sockets inherit their listener's. Unix sockets have
 * none of them and are left alone. */
void net_tune(int fd);

/* recvmsg of up to n bytes, once. Like read: 0 is end of input, -1 with errno. *stamp is set in every case.
 */
ssize_t net_read(int fd, void *bytes, size_t n, struct net_stamp *stamp);
/* send, once; never raises SIGPIPE. */
ssize_t net_write(int fd, const void *bytes, size_t n);

/* Bytes written that the peer's kernel did not acknowledge yet (unix: the peer did not read). */
size_t net_unacked(int fd);
/* Bytes that came and were not read. */
size_t net_unread(int fd);
/* Takes the pending error of a socket: errno, 0 for none. */
int net_error(int fd);
/* Closes with a reset: the peer sees ECONNRESET, whatever is queued is gone. */
void net_reset(int fd);

#endif
