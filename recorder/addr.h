/* Addresses as people write them: [HOST]:PORT, a bare port, [::1]:PORT, a name, unix:PATH.
 *
 * Parsing is pure; resolving asks the system's resolver and may wait. */
#ifndef RECORDER_ADDR_H
#define RECORDER_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { ADDR_HOST_MAX = 256, ADDR_MAX = 8 }; /* bytes of a host's name; addresses of one name */

/* A socket address of any family in use here. */
union addr_any {
    struct sockaddr sa;
    struct sockaddr_storage storage;
    struct sockaddr_un un;
};

struct addr {
    char host[ADDR_HOST_MAX]; /* "" when missing: the loopback */
    uint16_t port;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* unix: its path, else "" */
    char shown[ADDR_HOST_MAX + 16];                         /* as it is printed: 127.0.0.1:8001 */
};

struct addr_list {
    union addr_any at[ADDR_MAX];
    size_t n;
};

/* Reads text. False: err says why in words that follow "OPTION TEXT: ". upstream: http:// and one trailing
 * slash are taken, port 0 is not. */
bool addr_parse(struct addr *a, const char *text, bool upstream, char *err, size_t err_size);
/* The path in an upstream as it was given, longer than "/"; NULL: none. */
const char *addr_path(const char *upstream);
/* Makes a->shown, with that port. */
void addr_show_port(struct addr *a, uint16_t port);
/* All addresses of a, in the order to be tried. 0, or a getaddrinfo error (EAI_*); waits for the resolver. */
int addr_resolve(const struct addr *a, struct addr_list *list);
/* Whether a's addresses can change: a name, neither an address nor a path nor missing. */
bool addr_is_name(const struct addr *a);
/* Adds what getaddrinfo found (struct addrinfo list), with the port, up to ADDR_MAX. */
struct addrinfo;
void addr_take(struct addr_list *list, const struct addrinfo *found, uint16_t port);

socklen_t addr_len(const union addr_any *x);
uint16_t addr_port(const union addr_any *x);
void addr_set_port(union addr_any *x, uint16_t port);
bool addr_equal(const union addr_any *a, const union addr_any *b);

#endif
