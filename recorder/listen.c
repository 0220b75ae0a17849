/* Accepted sockets inherit the options of their listener, so those are set here, once. */
#include "recorder/listen.h"
#include "recorder/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORT_TRIES = 20 };

/* Who usually has a port, and how it is moved elsewhere. */
static const struct {
    uint16_t port;
    const char *who, *how;
} known[] = {
    {11434, "ollama", "OLLAMA_HOST=127.0.0.1:11435"},
    {8000, "vllm", "--port 8001"},
    {30000, "sglang", "--port 30001"},
    {8080, "llama-server", "--port 8081"},
};

static void why_not(const struct addr *a, int err, char *out, size_t size) {
    if (err != EADDRINUSE) {
        const char *todo =
            err == EACCES ? "; ports below 1024 need CAP_NET_BIND_SERVICE, take a higher one" : "";
        snprintf(out, size, "cannot listen: %s%s", strerror(err), todo);
        return;
    }
    if (*a->path) {
        snprintf(out, size, "another program listens there; stop it or listen elsewhere");
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].port != a->port) continue;
        snprintf(out, size, "port %u is taken (%s?): move the server (%s) or listen elsewhere", a->port,
                 known[i].who, known[i].how);
        return;
    }
    snprintf(out, size, "port %u is taken: stop the program that has it or listen elsewhere", a->port);
}

/* A socket file whose listener is gone refuses connections. */
static void remove_stale(const union addr_any *x) {
    struct stat st;
    if (lstat(x->un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode)) return;
    int fd = net_socket(AF_UNIX);
    if (fd < 0) return;
    if (connect(fd, &x->sa, addr_len(x)) < 0 && errno == ECONNREFUSED) unlink(x->un.sun_path);
    close(fd);
}

/* One listening socket, or -1 with errno. */
static int open_one(const union addr_any *x) {
    int fd = net_socket(x->sa.sa_family), one = 1;
    if (fd < 0) return -1;
    if (x->sa.sa_family == AF_UNIX) remove_stale(x);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (x->sa.sa_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)x)->sin6_addr))
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    net_tune(fd);
    if (bind(fd, &x->sa, addr_len(x)) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

static uint16_t port_of(int fd) {
    union addr_any x;
    socklen_t n = sizeof x;
    return getsockname(fd, &x.sa, &n) < 0 ? 0 : addr_port(&x);
}

/* An address of a family that this system does not have. */
static bool absent(int err) {
    return err == EADDRNOTAVAIL || err == EAFNOSUPPORT;
}

/* Opens all of list; port 0 is chosen by the first and then asked of the others. 0 or errno. */
static int open_all(struct listen *l, struct addr_list *list, uint16_t port) {
    int err = EADDRNOTAVAIL;
    for (size_t i = 0; i < list->n; i++) {
        addr_set_port(&list->at[i], port);
        int fd = open_one(&list->at[i]);
        if (fd < 0 && absent(errno) && i + 1 < list->n + l->n) continue;
        if (fd < 0) {
            err = errno;
            listen_close(l);
            return err;
        }
        l->fd[l->n++] = fd;
        if (port == 0) port = port_of(fd);
    }
    return l->n ? 0 : err;
}

bool listen_open(struct listen *l, const struct addr *addr, char *err, size_t err_size) {
    struct addr_list list;
    *l = (struct listen){.addr = *addr};
    int eai = addr_resolve(addr, &list);
    if (eai) {
        snprintf(err, err_size, "%s; give an address of this machine", gai_strerror(eai));
        return false;
    }
    int tries = addr->port == 0 ? PORT_TRIES : 1, e;
    do e = open_all(l, &list, addr->port);
    while (e == EADDRINUSE && --tries > 0); /* the free port of one family may be taken in the other */
    if (e) {
        why_not(addr, e, err, err_size);
        return false;
    }
    if (addr->port == 0 && !*addr->path) addr_show_port(&l->addr, port_of(l->fd[0]));
    return true;
}

void listen_close(struct listen *l) {
    for (size_t i = 0; i < l->n; i++) close(l->fd[i]);
    if (l->n && *l->addr.path) unlink(l->addr.path);
    l->n = 0;
}
