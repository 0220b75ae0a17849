/* A request read by http-parser. */
#include "samples/simserve/http_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Appends a piece to a string of limited size; what does not fit is dropped. */
static void append(char *to, size_t cap, const char *from, size_t len) {
    size_t at = strlen(to);

    if (len > cap - 1 - at) len = cap - 1 - at;
    memcpy(to + at, from, len);
    to[at + len] = '\0';
}

static void header_done(struct http_in *in) {
    if (!strcasecmp(in->field, "x-request-id"))
        snprintf(in->request_id, sizeof in->request_id, "%.128s", in->value);
    if (!strcasecmp(in->field, "x-sim-fault")) snprintf(in->fault, sizeof in->fault, "%.32s", in->value);
    if (!strcasecmp(in->field, "expect")) in->expects_continue = !strcasecmp(in->value, "100-continue");
    in->field[0] = in->value[0] = '\0';
    in->in_value = false;
}

static int on_url(http_parser *p, const char *at, size_t len) {
    struct http_in *in = p->data;

    append(in->path, sizeof in->path, at, len);
    return 0;
}

static int on_field(http_parser *p, const char *at, size_t len) {
    struct http_in *in = p->data;

    if (in->in_value) header_done(in);
    append(in->field, sizeof in->field, at, len);
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t len) {
    struct http_in *in = p->data;

    in->in_value = true;
    append(in->value, sizeof in->value, at, len);
    return 0;
}

/* `upgrade` is cleared: a client that offers h2c beside an ordinary POST gets its ordinary answer. */
static int on_headers(http_parser *p) {
    struct http_in *in = p->data;

    header_done(in);
    p->upgrade = 0;
    in->path[strcspn(in->path, "?#")] = '\0';
    in->http10 = p->http_major == 1 && p->http_minor == 0;
    in->keep_alive = http_should_keep_alive(p) != 0;
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t len) {
    struct http_in *in = p->data;

    if (in->body_len + len > in->max_body) {
        in->too_large = true;
        return 1;
    }
    if (in->body_len + len + 1 > in->body_cap) {
        size_t cap = (in->body_len + len + 1) * 2;
        char *grown = realloc(in->body, cap);

        if (!grown) return 1;
        in->body = grown;
        in->body_cap = cap;
    }
    memcpy(in->body + in->body_len, at, len);
    in->body_len += len;
    in->body[in->body_len] = '\0';
    return 0;
}

static int on_complete(http_parser *p) {
    struct http_in *in = p->data;

    in->done = true;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {.on_url = on_url,
                                              .on_header_field = on_field,
                                              .on_header_value = on_value,
                                              .on_headers_complete = on_headers,
                                              .on_body = on_body,
                                              .on_message_complete = on_complete};

void http_in_init(struct http_in *in, size_t max_body) {
    memset(in, 0, sizeof *in);
    http_parser_init(&in->parser, HTTP_REQUEST);
    in->parser.data = in;
    in->max_body = max_body;
}

void http_in_fini(struct http_in *in) {
    free(in->body);
}

void http_in_next(struct http_in *in) {
    size_t max_body = in->max_body;

    http_in_fini(in);
    http_in_init(in, max_body);
}

enum http_in_st http_in_feed(struct http_in *in, const char *data, size_t len, size_t *used) {
    *used = http_parser_execute(&in->parser, &settings, data, len);
    if (in->done) return HTTP_IN_DONE;
    if (in->too_large) return HTTP_IN_TOO_LARGE;
    if (*used != len || HTTP_PARSER_ERRNO(&in->parser) != HPE_OK) return HTTP_IN_BAD;
    return HTTP_IN_MORE;
}

bool http_in_method_is(const struct http_in *in, const char *method) {
    return !strcmp(http_method_str((enum http_method)in->parser.method), method);
}
