/* HOST:PORT to a socket address and back. */
#include "samples/common/hostport.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Splits at the last colon, so that "::1" without brackets is refused and not misread. */
static const char *split(const char *text, char *host, size_t host_bytes, const char **port) {
    const char *colon = strrchr(text, ':');
    const char *from = text;
    size_t len = colon ? (size_t)(colon - text) : 0;

    *port = colon ? colon + 1 : text;
    if (len >= 2 && from[0] == '[' && from[len - 1] == ']') {
        from++;
        len -= 2;
    } else if (memchr(from, ':', len)) {
        return "an IPv6 host needs brackets, as in [::1]:8000";
    }
    if (len >= host_bytes) return "the host name is too long";
    memcpy(host, from, len);
    host[len] = '\0';
    if (len == 0) snprintf(host, host_bytes, "127.0.0.1");
    return NULL;
}

const char *hostport_parse(const char *text, struct sockaddr_storage *out) {
    char host[256];
    const char *port;
    const char *why = split(text, host, sizeof host, &port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char *end;
    unsigned long number;

    if (why) return why;
    number = strtoul(port, &end, 10);
    if (port[0] < '0' || port[0] > '9' || *end != '\0' || number > 65535) {
        return "the port must be a number from 0 to 65535";
    }
    if (getaddrinfo(host, port, &hints, &list) != 0 || !list) return "the host has no address";
    memset(out, 0, sizeof *out);
    memcpy(out, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return NULL;
}

void hostport_text(const struct sockaddr_storage *addr, char *buf) {
    char host[INET6_ADDRSTRLEN] = "?";

    if (addr->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(buf, HOSTPORT_TEXT_BYTES, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)addr;

        inet_ntop(AF_INET, &in4->sin_addr, host, sizeof host);
        snprintf(buf, HOSTPORT_TEXT_BYTES, "%s:%u", host, ntohs(in4->sin_port));
    }
}

bool hostport_is_loopback(const struct sockaddr_storage *addr) {
    if (addr->ss_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
    }
    return (ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24) == 127;
}

void hostport_set_port(struct sockaddr_storage *addr, unsigned port) {
    if (addr->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)addr)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)addr)->sin_port = htons((uint16_t)port);
}
