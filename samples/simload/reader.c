/* An answer read by http-parser; event streams are split into lines. */
#include "samples/simload/reader.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_HELD_BYTES = 64 << 20 };

static void take_count(const cJSON *usage, const char *name, int64_t *to) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(usage, name);

    if (cJSON_IsNumber(item)) *to = (int64_t)item->valuedouble;
}

static void take_usage(struct reader *r, const cJSON *root) {
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(root, "usage");

    take_count(usage, "prompt_tokens", &r->prompt_tokens);
    take_count(usage, "completion_tokens", &r->answer_tokens);
    take_count(cJSON_GetObjectItemCaseSensitive(usage, "prompt_tokens_details"), "cached_tokens",
               &r->cached_tokens);
}

static bool is_text(const cJSON *item) {
    return cJSON_IsString(item) && item->valuestring[0] != '\0';
}

static bool has_text(const cJSON *root) {
    const cJSON *choice;

    cJSON_ArrayForEach(choice, cJSON_GetObjectItemCaseSensitive(root, "choices")) {
        const cJSON *delta = cJSON_GetObjectItemCaseSensitive(choice, "delta");

        if (is_text(cJSON_GetObjectItemCaseSensitive(choice, "text"))) return true;
        if (is_text(cJSON_GetObjectItemCaseSensitive(delta, "content"))) return true;
    }
    return false;
}

static void take_json(struct reader *r, const char *text, size_t len) {
    cJSON *root = cJSON_ParseWithLength(text, len);

    take_usage(r, root);
    if (cJSON_GetObjectItemCaseSensitive(root, "error")) r->saw_error = true;
    if (has_text(root)) {
        if (!r->first_ns) r->first_ns = r->now_ns;
        r->last_ns = r->now_ns;
    }
    cJSON_Delete(root);
}

static void take_line(struct reader *r, const char *line, size_t len) {
    if (len > 0 && line[len - 1] == '\r') len--;
    if (len < 6 || memcmp(line, "data: ", 6) != 0) return;
    r->n_events++;
    if (len == 12 && !memcmp(line + 6, "[DONE]", 6))
        r->saw_marker = true;
    else
        take_json(r, line + 6, len - 6);
}

static bool hold(struct reader *r, const char *data, size_t len) {
    if (r->held_len + len > MAX_HELD_BYTES) return false;
    if (r->held_len + len > r->held_cap) {
        size_t cap = (r->held_len + len) * 2;
        char *grown = realloc(r->held, cap);

        if (!grown) return false;
        r->held = grown;
        r->held_cap = cap;
    }
    if (len > 0) memcpy(r->held + r->held_len, data, len);
    r->held_len += len;
    return true;
}

static void take_lines(struct reader *r) {
    char *line = r->held;
    char *lf;

    while ((lf = memchr(line, '\n', r->held_len - (size_t)(line - r->held)))) {
        take_line(r, line, (size_t)(lf - line));
        line = lf + 1;
    }
    r->held_len -= (size_t)(line - r->held);
    memmove(r->held, line, r->held_len);
}

static int on_value(http_parser *p, const char *at, size_t len) {
    struct reader *r = p->data;

    if (len >= 17 && !strncasecmp(at, "text/event-stream", 17)) r->stream = true;
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t len) {
    struct reader *r = p->data;

    if (!hold(r, at, len)) return 1;
    if (r->stream && r->held) take_lines(r);
    return 0;
}

static int on_complete(http_parser *p) {
    struct reader *r = p->data;

    if (p->status_code < 200) return 0; /* an interim answer; the real one follows */
    r->done = true;
    r->keep_alive = http_should_keep_alive(p) != 0;
    if (!r->stream && r->held_len > 0) take_json(r, r->held, r->held_len);
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_header_value = on_value, .on_body = on_body, .on_message_complete = on_complete};

void reader_init(struct reader *r) {
    memset(r, 0, sizeof *r);
    http_parser_init(&r->parser, HTTP_RESPONSE);
    r->parser.data = r;
    r->prompt_tokens = r->cached_tokens = r->answer_tokens = -1;
}

void reader_fini(struct reader *r) {
    free(r->held);
}

enum reader_st reader_feed(struct reader *r, const char *data, size_t len, uint64_t now_ns) {
    size_t used;

    r->now_ns = now_ns;
    used = http_parser_execute(&r->parser, &settings, data, len);
    if (r->done) return READER_DONE;
    return used == len && HTTP_PARSER_ERRNO(&r->parser) == HPE_OK ? READER_MORE : READER_BAD;
}

bool reader_end(struct reader *r) {
    if (!r->done) http_parser_execute(&r->parser, &settings, NULL, 0);
    return r->done;
}

unsigned reader_status(const struct reader *r) {
    return r->parser.status_code;
}
