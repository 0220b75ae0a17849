/* The model's event is JSON of any dialect, which recognises it by its shape as ever. */
#include "recorder/dissect/bedrock_invoke.h"

#include <stdlib.h>
#include <string.h>

static const char metrics_key[] = "amazon-bedrock-invocationMetrics";

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 in place; its bytes, or -1 when it is none. */
static long decode(char *p, size_t n) {
    unsigned bits = 0, n_bits = 0;
    size_t len = 0;
    while (n > 0 && p[n - 1] == '=') n--;
    for (size_t i = 0; i < n; i++) {
        int d = digit(p[i]);
        if (d < 0) return -1;
        bits = bits << 6 | (unsigned)d;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        p[len++] = (char)(bits >> n_bits & 0xff);
    }
    return (long)len;
}

/* The wrapped event, decoded and for the caller to free; NULL: there is none. *n: its bytes, -1 when they
 * cannot be decoded. */
static char *unwrap(const struct event *e, long *n) {
    static const char key[] = "\"bytes\"";
    char *copy = NULL;
    if (!memmem(e->data, e->n_data, key, sizeof key - 1)) return NULL;
    struct json_doc d = json_open(e->data, e->n_data);
    const struct json *bytes = json_get(d.root, "bytes");
    if (json_text(bytes)) copy = strdup(json_text(bytes));
    json_close(&d);
    if (copy) *n = decode(copy, strlen(copy));
    return copy;
}

static bool told(const struct answer *a, enum fact f) {
    return (a->has[f] & ANSWER_INT) != 0;
}

/* The prompt's count excludes what came from or went to the cache. Counts that the model's own events told
 * are the same and stay. */
static void counts(struct answer *a, const struct json *metrics) {
    int64_t input, read = 0, write = 0, prompt;
    if (!told(a, F_output_tokens_told))
        answer_keep_total(a, F_output_tokens_told, json_get(metrics, "outputTokenCount"));
    if (told(a, F_prompt_tokens) || !json_int(json_get(metrics, "inputTokenCount"), &input) || input < 0)
        return;
    answer_keep_total(a, F_cached_tokens, json_get(metrics, "cacheReadInputTokenCount"));
    answer_keep_total(a, F_cache_write_tokens, json_get(metrics, "cacheWriteInputTokenCount"));
    if (told(a, F_cached_tokens)) read = a->latest[F_cached_tokens];
    if (told(a, F_cache_write_tokens)) write = a->latest[F_cache_write_tokens];
    if (!__builtin_add_overflow(input, read, &prompt) && !__builtin_add_overflow(prompt, write, &prompt))
        answer_keep(a, F_prompt_tokens, prompt);
}

static void read_metrics(struct answer *a, const char *p, size_t n) {
    const double ms = 1e6;
    if (!memmem(p, n, metrics_key, sizeof metrics_key - 1)) return;
    struct json_doc d = json_open(p, n);
    const struct json *metrics = json_get(d.root, metrics_key);
    counts(a, metrics);
    answer_keep_ns(a, F_reported_ttft_ns, json_get(metrics, "firstByteLatency"), ms);
    answer_keep_ns(a, F_reported_total_ns, json_get(metrics, "invocationLatency"), ms);
    json_close(&d);
}

void bedrock_invoke_event(struct answer *a, const struct event *e) {
    long n = 0;
    char *inner = unwrap(e, &n);
    struct event of_model = *e;
    if (inner && n >= 0)
        of_model.data = inner, of_model.n_data = (size_t)n, of_model.name = e->error_type ? e->name : "";
    else if (inner)
        of_model.data = "", of_model.n_data = 0, of_model.unread = true;
    answer_take_event(a, &of_model);
    if (inner && n >= 0) read_metrics(a, inner, (size_t)n);
    free(inner);
}
