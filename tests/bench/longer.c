/* What changes from event to event is known by its key; everything else stays as the sample has it. Texts and
 * lists that a sample tells again from their beginning with each event (SGLang) grow with the stream. */
#include "tests/bench/longer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum change {
    KEEP,
    TEXT,     /* the next word */
    COUNT,    /* tokens so far */
    TOTAL,    /* tokens so far and those of a prompt */
    ID,       /* a token's id */
    IDS,      /* a list of as many ids */
    DECIMAL,  /* a logprob, a time */
    PADDING,  /* letters, now more, now less */
    TIMESTAMP /* digits behind the second */
};
static const struct {
    const char *key;
    enum change change;
} changes[] = {
    {"content", TEXT},
    {"text", TEXT},
    {"reasoning", TEXT},
    {"reasoning_content", TEXT},
    {"thinking", TEXT},
    {"response", TEXT},
    {"delta", TEXT},
    {"partial_json", TEXT},
    {"arguments", TEXT},
    {"text_output", TEXT},
    {"completion_tokens", COUNT},
    {"tokens_predicted", COUNT},
    {"predicted_n", COUNT},
    {"candidatesTokenCount", COUNT},
    {"sequence_number", COUNT},
    {"total_tokens", TOTAL},
    {"totalTokenCount", TOTAL},
    {"id", ID},
    {"token_ids", IDS},
    {"output_ids", IDS},
    {"tokens", IDS},
    {"logprob", DECIMAL},
    {"token_logprobs", DECIMAL},
    {"avg_decoded_tokens_per_iter", DECIMAL},
    {"predicted_ms", DECIMAL},
    {"predicted_per_token_ms", DECIMAL},
    {"predicted_per_second", DECIMAL},
    {"obfuscation", PADDING},
    {"p", PADDING},
    {"created_at", TIMESTAMP},
};
static const char *const words[] = {" the", " harbour", ",",      " is",     " a",   " quarter",
                                    " to",  "-",        " night", "ing",     ".\\n", " caf\xc3\xa9",
                                    " so",  " \\\"",    " and",   " anchors"};

struct span {
    const char *p;
    size_t n;
};

/* The state of the stream that is being made. */
struct stream {
    struct longer *l;
    const struct sample *s;
    uint32_t seed;
    size_t k; /* the event at hand, from 1 */
    bool texts_grow, ids_grow;
    char *said; /* all words so far, when texts grow */
    size_t n_said;
    char *text; /* the event at hand */
    size_t n, room;
    bool failed;
};

static uint32_t any(struct stream *x) {
    return (x->seed = x->seed * 1664525u + 1013904223u) >> 8;
}

static bool grow(char **p, size_t *room, size_t want) {
    if (want <= *room) return true;
    char *more = realloc(*p, 2 * want);
    if (!more) return false;
    *p = more;
    *room = 2 * want;
    return true;
}

static void put(struct stream *x, const char *p, size_t n) {
    x->failed = x->failed || !grow(&x->text, &x->room, x->n + n);
    if (x->failed) return;
    memcpy(x->text + x->n, p, n);
    x->n += n;
}
static void put_number(struct stream *x, double v, int decimals) {
    char number[64];
    put(x, number, (size_t)snprintf(number, sizeof number, "%.*f", decimals, v));
}

/* -- values */
static const char *behind_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++) p += *p == '\\';
    return p < end ? p + 1 : end;
}

static const char *behind_value(const char *p, const char *end) {
    int depth = 0;
    if (p < end && *p == '"') return behind_string(p, end);
    for (; p < end; p++) {
        if (depth == 0 && strchr(",}]\r\n", *p)) return p;
        depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
        if (depth == 0 && (*p == ']' || *p == '}')) return p + 1;
    }
    return end;
}

static void put_text(struct stream *x) {
    const char *word = words[any(x) % (sizeof words / sizeof *words)];
    put(x, "\"", 1);
    if (x->texts_grow) {
        char *more = realloc(x->said, x->n_said + strlen(word));
        x->failed = x->failed || !more;
        if (!more) return;
        x->said = more;
        memcpy(x->said + x->n_said, word, strlen(word));
        x->n_said += strlen(word);
        put(x, x->said, x->n_said);
    } else {
        put(x, word, strlen(word));
    }
    put(x, "\"", 1);
}

static void put_list(struct stream *x, struct span old, bool decimals) {
    size_t n = old.n > 2;
    for (size_t i = 0; i < old.n; i++) n += old.p[i] == ',';
    if (x->ids_grow && !decimals) n = x->k;
    put(x, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i) put(x, ",", 1);
        put_number(x, decimals ? -(double)(any(x) % 9999) / 1000 : any(x) % 128000, decimals ? 4 : 0);
    }
    put(x, "]", 1);
}

static void put_padding(struct stream *x) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    put(x, "\"", 1);
    put(x, letters, 1 + any(x) % 16);
    put(x, "\"", 1);
}

/* The same instant with other digits behind its second. */
static void put_timestamp(struct stream *x, struct span old) {
    const char *dot = memchr(old.p, '.', old.n);
    size_t n = dot ? (size_t)(dot - old.p) + 1 : old.n;
    put(x, old.p, n);
    for (; dot && n < old.n; n++) {
        char digit = (char)('0' + any(x) % 10);
        put(x, old.p[n] >= '0' && old.p[n] <= '9' ? &digit : old.p + n, 1);
    }
}

/* A value in place of the old one, when that is of the kind which changes. */
static bool change(struct stream *x, enum change how, struct span old) {
    bool string = *old.p == '"', list = *old.p == '[',
         number = *old.p == '-' || (*old.p >= '0' && *old.p <= '9');
    bool empty = old.n <= 2; /* reasoning beside content, and the like: one of the two has text */
    if (how == TEXT && string && !empty)
        put_text(x);
    else if (how == PADDING && string)
        put_padding(x);
    else if (how == TIMESTAMP && string)
        put_timestamp(x, old);
    else if (how == COUNT && number)
        put_number(x, (double)x->k, 0);
    else if (how == TOTAL && number)
        put_number(x, (double)x->k + 50, 0);
    else if (how == ID && number)
        put_number(x, any(x) % 128000, 0);
    else if (how == DECIMAL && number)
        put_number(x, (*old.p == '-' ? -1.0 : 1.0) * (any(x) % 99999 + 1) / 1000, 6);
    else if (list && (how == IDS || how == DECIMAL) && old.n > 1 && old.p[1] != '"')
        put_list(x, old, how == DECIMAL);
    else
        return false;
    return true;
}

static enum change change_of(struct span key) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strlen(changes[i].key) == key.n && memcmp(changes[i].key, key.p, key.n) == 0)
            return changes[i].change;
    return KEEP;
}

/* Appends JSON text, or text with JSON in it, with other values. */
static void vary(struct stream *x, struct span from) {
    const char *p = from.p, *end = from.p + from.n;
    while (p < end) {
        if (*p != '"') {
            put(x, p++, 1);
            continue;
        }
        const char *behind = behind_string(p, end);
        struct span key = {p + 1, (size_t)(behind - p) - 2};
        put(x, p, (size_t)(behind - p));
        p = behind;
        if (p == end || *p != ':') continue;
        put(x, p++, 1);
        while (p < end && *p == ' ') put(x, p++, 1);
        if (p == end) break;
        const char *to = behind_value(p, end);
        if (change(x, change_of(key), (struct span){p, (size_t)(to - p)})) p = to;
    }
}

/* -- framings */
static uint32_t big(const char *at) {
    const unsigned char *p = (const unsigned char *)at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static void put_big(char *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (char)(v >> (24 - 8 * i));
}

/* A frame: lengths, headers and checksums around its varied payload. */
static void vary_frame(struct stream *x, struct span frame) {
    size_t head = 12 + big(frame.p + 4);
    put(x, frame.p, head);
    vary(x, (struct span){frame.p + head, frame.n - head - 4});
    put(x, "....", 4);
    if (x->failed) return;
    put_big(x->text, (uint32_t)x->n);
    put_big(x->text + 8, (uint32_t)crc32(0, (const Bytef *)x->text, 8));
    put_big(x->text + x->n - 4, (uint32_t)crc32(0, (const Bytef *)x->text, (uInt)x->n - 4));
}

/* The bytes of the next event, with what ends it. */
static struct span next_block(const struct sample *s, size_t at) {
    const char *p = s->bytes + at, *end = s->bytes + s->n, *q = p;
    if (strcmp(s->framing, "aws-eventstream") == 0) {
        size_t n = s->n - at >= 16 ? big(p) : 0;
        return (struct span){p, n >= 16 && n <= s->n - at ? n : s->n - at};
    }
    for (; q < end; q++) {
        if (*q != '\n') continue;
        if (strcmp(s->framing, "ndjson") == 0) return (struct span){p, (size_t)(q - p) + 1};
        if (end - q >= 2 && q[1] == '\n') return (struct span){p, (size_t)(q - p) + 2};
        if (end - q >= 3 && q[1] == '\r' && q[2] == '\n') return (struct span){p, (size_t)(q - p) + 3};
    }
    return (struct span){p, (size_t)(end - p)};
}

/* The framing counts it as an event: comments and blank lines are none. */
static bool is_event(const struct sample *s, struct span b) {
    if (strcmp(s->framing, "sse") != 0) return b.n > 2;
    if (b.n >= 5 && memcmp(b.p, "data:", 5) == 0) return true;
    for (size_t i = 0; i + 6 <= b.n; i++)
        if (memcmp(b.p + i, "\ndata:", 6) == 0) return true;
    return false;
}

/* One HTTP chunk. */
static void add_chunk(struct stream *x, const char *p, size_t n) {
    struct longer *l = x->l;
    size_t *ends = realloc(l->ends, (l->n_chunks + 1) * sizeof *ends);
    if (ends) l->ends = ends;
    x->failed = x->failed || !ends || !grow(&l->bytes, &l->room, l->n_bytes + n + 32);
    if (x->failed) return;
    l->n_bytes += (size_t)sprintf(l->bytes + l->n_bytes, "%zx\r\n", n);
    memcpy(l->bytes + l->n_bytes, p, n);
    l->n_bytes += n;
    l->n_bytes += (size_t)sprintf(l->bytes + l->n_bytes, "\r\n");
    l->ends[l->n_chunks++] = l->n_bytes;
}

static void add_varied(struct stream *x, struct span block) {
    x->n = 0;
    x->k++;
    if (strcmp(x->s->framing, "aws-eventstream") == 0)
        vary_frame(x, block);
    else
        vary(x, block);
    add_chunk(x, x->text, x->n);
}

/* The value of a key in an event; n is 0 when there is none. */
static struct span value_of(struct span b, const char *key) {
    char quoted[64];
    int n = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = memmem(b.p, b.n, quoted, (size_t)n);
    if (!at) return (struct span){0};
    return (struct span){at + n, (size_t)(behind_value(at + n, b.p + b.n) - at) - (size_t)n};
}

/* The value of b begins with all of that of a, its last byte (a quote, a bracket) aside, and is longer. */
static bool goes_on(struct span a, struct span b) {
    return a.n > 2 && b.n > a.n && memcmp(a.p, b.p, a.n - 1) == 0;
}

struct blocks {
    struct span all[256], tokens[256];
    bool repeated[256];       /* of all */
    size_t n, n_tokens, last; /* last: of all, the last one that is repeated */
};

static bool is_token(const struct sample *s, size_t event, size_t *at) {
    for (*at = 0; *at < s->n_token_events; ++*at)
        if ((size_t)s->token_events[*at] == event) return true;
    return false;
}

static bool take_apart(struct blocks *b, const struct sample *s) {
    size_t events = 0, token;
    *b = (struct blocks){0};
    for (size_t at = 0; at < s->n;) {
        if (b->n == sizeof b->all / sizeof *b->all) return false;
        struct span block = next_block(s, at);
        size_t i = b->n++;
        b->all[i] = block;
        at += block.n;
        if (!is_event(s, block) || !is_token(s, events++, &token)) continue;
        bool edge = token == 0 || token + 1 == s->n_token_events;
        if (edge && s->n_token_events > 2) continue;
        b->repeated[i] = true;
        b->tokens[b->n_tokens++] = block;
        b->last = i;
    }
    return events == s->n_events && b->n_tokens > 0;
}

bool longer_make(struct longer *l, const struct sample *s, size_t n_repeated) {
    struct blocks b;
    *l = (struct longer){0};
    struct stream x = {.l = l, .s = s, .seed = 7};
    if (!take_apart(&b, s)) return false;
    for (size_t i = 0; i + 1 < b.n_tokens; i++) {
        x.texts_grow |= goes_on(value_of(b.tokens[i], "text"), value_of(b.tokens[i + 1], "text"));
        x.ids_grow |= goes_on(value_of(b.tokens[i], "output_ids"), value_of(b.tokens[i + 1], "output_ids"));
    }
    for (size_t i = 0; i < b.last; i++)
        if (!b.repeated[i]) add_chunk(&x, b.all[i].p, b.all[i].n);
    l->first = l->n_chunks, l->n = n_repeated;
    for (size_t k = 0; k < n_repeated; k++) add_varied(&x, b.tokens[k / s->run % b.n_tokens]);
    for (size_t i = b.last + 1; i < b.n; i++) add_chunk(&x, b.all[i].p, b.all[i].n);
    free(x.text);
    free(x.said);
    if (x.failed) longer_free(l);
    return !x.failed;
}

void longer_free(struct longer *l) {
    free(l->bytes);
    free(l->ends);
    *l = (struct longer){0};
}
