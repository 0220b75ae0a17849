/* Values grow by doubling from 64 bytes; a head has few of those that are kept. */
#include "recorder/dissect/heads.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TARGET_MAX = 8 << 10 };
static const int64_t SECONDS_MAX = INT64_MAX / 1000000000; /* since the epoch, in ns */

/* clang-format off */
static const struct {
    const char *name;
    enum head_field field;
} fields[] = {
    {"x-request-id", HEAD_REQUEST_ID},
    {"request-id", HEAD_SHORT_REQUEST_ID}, /* Anthropic's */
    {"traceparent", HEAD_TRACEPARENT},
    {"user-agent", HEAD_USER_AGENT},
    {"x-stainless-retry-count", HEAD_RETRY_COUNT},
    {"x-request-start", HEAD_REQUEST_START},
    {"x-queue-start", HEAD_QUEUE_START},
    {"expect", HEAD_EXPECT},
    {"authorization", HEAD_AUTHORIZATION},
    {"api-key", HEAD_API_KEY},
    {"x-api-key", HEAD_API_KEY},
    {"x-goog-api-key", HEAD_API_KEY},
    {"upgrade", HEAD_UPGRADE},
    {"content-type", HEAD_CONTENT_TYPE},
    {"content-encoding", HEAD_CONTENT_ENCODING},
    {"server", HEAD_SERVER},
    {"retry-after", HEAD_RETRY_AFTER},
#define FIELD(field, name, fact, unit_ns) {name, field},
    HEAD_FIGURES(FIELD)
#undef FIELD
};
/* clang-format on */

static void wipe(char *text) {
    if (text) explicit_bzero(text, strlen(text));
    free(text);
}

void head_free(struct head *h) {
    for (int i = 0; i < N_HEAD_FIELDS; i++) wipe(h->value[i]);
    wipe(h->target);
    *h = (struct head){0};
}

void head_begin(struct head *h) {
    head_free(h);
    h->field = -1;
}

/* Appends to a text that ends with a terminator; what goes beyond max is dropped. */
static void append(char **text, const char *p, size_t n, size_t max) {
    size_t len = *text ? strlen(*text) : 0;
    if (n > max - len) n = max - len;
    char *more = realloc(*text, len + n + 1);
    if (!more) return;
    memcpy(more + len, p, n);
    more[len + n] = 0;
    *text = more;
}

void head_target(struct head *h, const char *p, size_t n) {
    append(&h->target, p, n, TARGET_MAX);
}

void head_name(struct head *h, const char *p, size_t n) {
    if (h->done) return;
    if (h->in_value) h->in_value = false, h->n_name = 0;
    size_t room = sizeof h->name - h->n_name;
    if (n > room) n = room;
    memcpy(h->name + h->n_name, p, n);
    h->n_name += n; /* a name that fills the room is none of ours */
}

/* The field that this value belongs to; of a repeated one the first counts. */
static int find(const struct head *h) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].name) == h->n_name && strncasecmp(fields[i].name, h->name, h->n_name) == 0)
            return h->value[fields[i].field] ? -1 : (int)fields[i].field;
    return -1;
}

void head_value(struct head *h, const char *p, size_t n) {
    if (h->done) return;
    if (!h->in_value) h->in_value = true, h->field = find(h);
    if (h->field >= 0) append(&h->value[h->field], p, n, HEAD_VALUE_MAX);
}

const char *head_get(const struct head *h, enum head_field f) {
    return h->value[f] ? h->value[f] : "";
}

void head_path(const struct head *h, char *out, size_t size) {
    const char *p = h->target ? h->target : "", *authority = strstr(p, "://");
    if (authority && p[0] != '/') {
        p = authority + 3;
        p += strcspn(p, "/?#");
        if (*p != '/') p = "/";
    }
    size_t n = strcspn(p, "?#");
    if (n > size - 1) n = size - 1;
    memcpy(out, p, n);
    out[n] = 0;
}

void head_media_type(const struct head *h, char *out, size_t size) {
    const char *p = head_get(h, HEAD_CONTENT_TYPE);
    size_t n = strcspn(p, ";, \t");
    if (n > size - 1) n = size - 1;
    for (size_t i = 0; i < n; i++) out[i] = (char)tolower((unsigned char)p[i]);
    out[n] = 0;
}

bool head_queue_start(const char *value, int64_t *wall_ns) {
    static const struct {
        size_t digits;
        int64_t unit_ns;
    } units[] = {{10, 1000000000}, {13, 1000000}, {16, 1000}, {19, 1}};
    if (strncmp(value, "t=", 2) == 0) value += 2;
    size_t whole = strspn(value, "0123456789"), n = strlen(value);
    if (value[whole] == '.' && whole > 0 && whole <= 10) {
        int64_t ns = 0;
        for (size_t i = whole + 1; i < whole + 10; i++) {
            bool digit = i < n && isdigit((unsigned char)value[i]);
            if (i < n && !digit) return false;
            ns = ns * 10 + (digit ? value[i] - '0' : 0);
            n = digit ? n : i;
        }
        int64_t seconds = strtoll(value, NULL, 10);
        *wall_ns = seconds < SECONDS_MAX ? seconds * 1000000000 + ns : 0;
        return seconds < SECONDS_MAX;
    }
    if (whole != n) return false;
    for (size_t i = 0; i < 4; i++)
        if (n == units[i].digits) {
            long long v = strtoll(value, NULL, 10); /* a value beyond its range comes back as the largest */
            if (v >= INT64_MAX / units[i].unit_ns) return false;
            *wall_ns = v * units[i].unit_ns;
            return true;
        }
    return false;
}

static bool is_hex(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)p[i]) && (p[i] < 'a' || p[i] > 'f')) return false;
    return true;
}

bool head_traceparent(const char *value, char trace[33], char parent[17]) {
    size_t n = strlen(value);
    if (n < 55 || (n > 55 && value[55] != '-')) return false;
    if (!is_hex(value, 2) || strncmp(value, "ff", 2) == 0) return false;
    if (value[2] != '-' || value[35] != '-' || value[52] != '-') return false;
    if (!is_hex(value + 3, 32) || !is_hex(value + 36, 16) || !is_hex(value + 53, 2)) return false;
    if (strspn(value + 3, "0") >= 32 || strspn(value + 36, "0") >= 16) return false;
    memcpy(trace, value + 3, 32);
    memcpy(parent, value + 36, 16);
    trace[32] = parent[16] = 0;
    return true;
}
