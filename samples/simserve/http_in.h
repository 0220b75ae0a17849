/*
 * One HTTP/1.x request read from bytes. It does not know sockets and answers nothing.
 * Its one hard idea: the parser pauses at the end of a message, so bytes of a pipelined request stay with the
 * caller until this one is answered.
 */
#ifndef SAMPLES_SIMSERVE_HTTP_IN_H
#define SAMPLES_SIMSERVE_HTTP_IN_H

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>

enum http_in_st { HTTP_IN_MORE, HTTP_IN_DONE, HTTP_IN_BAD, HTTP_IN_TOO_LARGE };

/* Too long a path is cut (and so unknown); too long a header value is cut. */
struct http_in {
    http_parser parser;
    size_t max_body;
    char path[256]; /* without the query */
    char request_id[129];
    char fault[33];
    char *body; /* NUL behind it; owned */
    size_t body_len, body_cap;
    bool expects_continue; /* the client waits for a 100 before it sends its body */
    bool keep_alive;
    bool http10;
    bool done, too_large, in_value;
    char field[32], value[160];
};

void http_in_init(struct http_in *in, size_t max_body);
void http_in_fini(struct http_in *in);

/* Forgets the request that is done; the next one may be fed. */
void http_in_next(struct http_in *in);

/* Reads bytes; *used says how many (all of them unless DONE or wrong). */
enum http_in_st http_in_feed(struct http_in *in, const char *data, size_t len, size_t *used);

/* Whether the request that is done has this method. */
bool http_in_method_is(const struct http_in *in, const char *method);

#endif
