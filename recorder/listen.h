/* Listening sockets of one --proxy: one for each of its addresses. */
#ifndef RECORDER_LISTEN_H
#define RECORDER_LISTEN_H

#include "recorder/addr.h"

struct listen {
    int fd[ADDR_MAX];
    size_t n;
    struct addr addr; /* shown has the real port when 0 was asked for */
};

/* Opens them all. False: none is open, err says why and what to do. A missing host has an ::1 only where the
 * system has one. A socket file that nobody listens on any more is replaced. */
bool listen_open(struct listen *l, const struct addr *addr, char *err, size_t err_size);
/* Closes them; removes the socket file that listen_open made. */
void listen_close(struct listen *l);

#endif
