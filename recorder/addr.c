/* A missing host is the loopback of both families, IPv4 first; the kernel says which of them exists. */
#include "recorder/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool bad(char *err, size_t n, const char *why) {
    snprintf(err, n, "%s", why);
    return false;
}

static bool parse_unix(struct addr *a, const char *path, char *err, size_t err_size) {
    if (!*path) return bad(err, err_size, "the path is missing; give unix:PATH");
    if (strlen(path) >= sizeof a->path)
        return bad(err, err_size,
                   "the path is longer than a socket's may be (107 bytes); give a shorter one");
    snprintf(a->path, sizeof a->path, "%s", path);
    snprintf(a->shown, sizeof a->shown, "unix:%s", path);
    return true;
}

static bool parse_port(struct addr *a, const char *text, bool upstream, char *err, size_t err_size) {
    char *end;
    if (*text < '0' || *text > '9')
        return bad(err, err_size, "the port is missing; give [HOST]:PORT, such as :8000");
    unsigned long port = strtoul(text, &end, 10);
    if (*end || port > 65535) return bad(err, err_size, "the port is not a number from 1 to 65535");
    if (port == 0 && upstream)
        return bad(err, err_size, "port 0 cannot be connected to; give the server's port");
    a->port = (uint16_t)port;
    return true;
}

void addr_show_port(struct addr *a, uint16_t port) {
    const char *form = strchr(a->host, ':') ? "[%s]:%u" : "%s:%u";
    snprintf(a->shown, sizeof a->shown, form, *a->host ? a->host : "127.0.0.1", (unsigned)port);
}

/* Sets host and shown from [host, host + n). */
static bool set_host(struct addr *a, const char *host, size_t n, char *err, size_t err_size) {
    if (n >= sizeof a->host) return bad(err, err_size, "the host's name is too long");
    memcpy(a->host, host, n);
    a->host[n] = 0;
    addr_show_port(a, a->port);
    return true;
}

const char *addr_path(const char *upstream) {
    const char *host = strstr(upstream, "://"), *slash;
    if (strncmp(upstream, "unix:", 5) == 0) return NULL;
    slash = strchr(host ? host + 3 : upstream, '/');
    return slash && slash[1] ? slash : NULL;
}

/* The scheme of an upstream, and one trailing slash, are taken off into text[size]. */
static bool strip_upstream(const char *in, char *text, size_t size, char *err, size_t err_size) {
    if (strncasecmp(in, "https://", 8) == 0)
        return bad(err, err_size,
                   "https upstreams are not supported by this build; give http:// and the address of a TLS "
                   "terminator such as stunnel or nginx");
    if (strncasecmp(in, "http://", 7) == 0)
        in += 7;
    else if (strstr(in, "://"))
        return bad(err, err_size, "only http:// can stand before the address");
    if (snprintf(text, size, "%s", in) >= (int)size) return bad(err, err_size, "the address is too long");
    text[strcspn(text, "/")] = 0;
    const char *path = addr_path(in);
    if (path)
        snprintf(err, err_size, "paths are passed on as they come; leave %s to the client's base URL", path);
    return !path;
}

bool addr_parse(struct addr *a, const char *text, bool upstream, char *err, size_t err_size) {
    char stripped[ADDR_HOST_MAX + 32];
    *a = (struct addr){0};
    if (strncmp(text, "unix:", 5) == 0) return parse_unix(a, text + 5, err, err_size);
    if (upstream) {
        if (!strip_upstream(text, stripped, sizeof stripped, err, err_size)) return false;
        text = stripped;
    } else if (strchr(text, '/')) {
        return bad(err, err_size, "not an address; give [HOST]:PORT, such as :8001, or unix:PATH");
    }
    if (strchr(text, '@')) return bad(err, err_size, "user names and passwords do not belong here");
    const char *host = text, *port, *end;
    if (*text == '[') {
        end = strchr(text, ']');
        if (!end) return bad(err, err_size, "the closing ] is missing");
        host++;
        if (end[1] != ':')
            return bad(err, err_size, "the port is missing; give [HOST]:PORT, such as [::1]:8000");
        port = end + 2;
    } else if ((end = strrchr(text, ':'))) {
        if (strchr(text, ':') != end)
            return bad(err, err_size, "an IPv6 address stands in brackets: [::1]:8000");
        port = end + 1;
    } else if (strspn(text, "0123456789") == strlen(text)) {
        end = host, port = text; /* a bare port */
    } else {
        return bad(err, err_size, "the port is missing; give [HOST]:PORT, such as :8000");
    }
    return parse_port(a, port, upstream, err, err_size) &&
           set_host(a, host, (size_t)(end - host), err, err_size);
}

static void add_loopbacks(struct addr_list *list, uint16_t port) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memcpy(&list->at[0], &v4, sizeof v4);
    memcpy(&list->at[1], &v6, sizeof v6);
    list->n = 2;
    for (size_t i = 0; i < 2; i++) addr_set_port(&list->at[i], port);
}

void addr_take(struct addr_list *list, const struct addrinfo *found, uint16_t port) {
    for (; found && list->n < ADDR_MAX; found = found->ai_next) {
        if (found->ai_family != AF_INET && found->ai_family != AF_INET6) continue;
        union addr_any *x = &list->at[list->n++];
        *x = (union addr_any){0};
        memcpy(x, found->ai_addr, found->ai_addrlen);
        addr_set_port(x, port);
    }
}

int addr_resolve(const struct addr *a, struct addr_list *list) {
    *list = (struct addr_list){0};
    if (*a->path) {
        list->at[0].un.sun_family = AF_UNIX;
        memcpy(list->at[0].un.sun_path, a->path, sizeof a->path);
        list->n = 1;
        return 0;
    }
    if (!*a->host) {
        add_loopbacks(list, a->port);
        return 0;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int err = getaddrinfo(a->host, NULL, &hints, &found);
    if (err) return err;
    addr_take(list, found, a->port);
    freeaddrinfo(found);
    return 0;
}

bool addr_is_name(const struct addr *a) {
    unsigned char x[sizeof(struct in6_addr)];
    return *a->host && inet_pton(AF_INET, a->host, x) != 1 && inet_pton(AF_INET6, a->host, x) != 1 &&
           !strchr(a->host, '%');
}

socklen_t addr_len(const union addr_any *x) {
    switch (x->sa.sa_family) {
    case AF_INET: return sizeof(struct sockaddr_in);
    case AF_INET6: return sizeof(struct sockaddr_in6);
    default: return sizeof(struct sockaddr_un);
    }
}

uint16_t addr_port(const union addr_any *x) {
    if (x->sa.sa_family == AF_INET) return ntohs(((const struct sockaddr_in *)x)->sin_port);
    if (x->sa.sa_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)x)->sin6_port);
    return 0;
}

void addr_set_port(union addr_any *x, uint16_t port) {
    if (x->sa.sa_family == AF_INET) ((struct sockaddr_in *)x)->sin_port = htons(port);
    if (x->sa.sa_family == AF_INET6) ((struct sockaddr_in6 *)x)->sin6_port = htons(port);
}

bool addr_equal(const union addr_any *a, const union addr_any *b) {
    return a->sa.sa_family == b->sa.sa_family && memcmp(a, b, addr_len(a)) == 0;
}
