/* Shaped like the errors of OpenAI's API, since that is what the clients of these servers read. */
#include "recorder/refusal.h"

#include <stdio.h>
#include <string.h>

/* Copies text as the inside of a JSON string. */
static void json_text(char *out, size_t size, const char *text) {
    size_t n = 0;
    for (; *text && n + 7 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') out[n++] = '\\';
        if (c < 0x20 || c == 0x7f)
            n += (size_t)snprintf(out + n, size - n, "\\u%04x", c);
        else
            out[n++] = (char)c;
    }
    out[n] = 0;
}

size_t refusal_502(char *out, size_t size, const char *upstream, const char *reason, bool bodiless) {
    char where[600], why[300], body[1200];
    json_text(where, sizeof where, upstream);
    json_text(why, sizeof why, reason);
    int n = snprintf(body, sizeof body,
                     "{\"error\":{\"message\":\"upstream %s cannot be reached: %s\","
                     "\"type\":\"upstream_unreachable\",\"code\":502}}\n",
                     where, why);
    int len = snprintf(out, size,
                       "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                       "Connection: close\r\n\r\n%s",
                       n, bodiless ? "" : body);
    return (size_t)len < size ? (size_t)len : size - 1;
}
