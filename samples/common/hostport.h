/* HOST:PORT on a command line to a socket address. It does not know what the address is for. */
#ifndef SAMPLES_COMMON_HOSTPORT_H
#define SAMPLES_COMMON_HOSTPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { HOSTPORT_TEXT_BYTES = 80 };

/* Reads "HOST:PORT", "[V6]:PORT", ":PORT" or "PORT" (no host: 127.0.0.1) into *out.
 * Answers NULL, or why not as a sentence in static storage. May ask the system's resolver for a name. */
const char *hostport_parse(const char *text, struct sockaddr_storage *out);

/* Writes the address as HOST:PORT into buf (HOSTPORT_TEXT_BYTES). */
void hostport_text(const struct sockaddr_storage *addr, char *buf);

/* Whether the address is this machine's loopback. */
bool hostport_is_loopback(const struct sockaddr_storage *addr);

void hostport_set_port(struct sockaddr_storage *addr, unsigned port);

#endif
