/* One streamed answer as the benchmark's client reads it: see answer.h. */
#include "tests/bench/answer.h"

#include <string.h>

void answer_init(struct answer *a, const char *request_id) {
    event_stream_init(&a->stream, request_id);
    a->part = PART_HEAD;
    a->next = NEXT_ROLE;
    a->in_event = 0;
    a->n_tokens = 0;
    a->body_bytes = a->chunk_left = 0;
    a->n_carried = 0;
}

/* Whether the line is that message (which ends in two line feeds). */
static int same(const char *message, size_t message_bytes, const char *line, size_t bytes) {
    return bytes + 2 == message_bytes && !memcmp(message, line, bytes);
}

static const char *on_event(struct answer *a, const char *line, size_t bytes, answer_token_fn *on_token) {
    char m[EVENT_MAX_BYTES];
    uint64_t sent_ns;
    switch (a->next) {
    case NEXT_TOKEN:
        if (event_token_read(&a->stream, a->n_tokens, line, bytes, &sent_ns)) {
            a->n_tokens++;
            on_token(sent_ns);
            return NULL;
        }
        a->next = NEXT_USAGE;
        return same(m, event_finish(&a->stream, m), line, bytes) ? NULL
                                                                 : "a token event differs from what was sent";
    case NEXT_ROLE:
        a->next = NEXT_TOKEN;
        return same(m, event_role(&a->stream, m), line, bytes) ? NULL : "the first event is not the role";
    case NEXT_USAGE:
        a->next = NEXT_DONE;
        return same(m, event_usage(&a->stream, a->n_tokens, m), line, bytes)
                   ? NULL
                   : "completion_tokens differs from the token events that came";
    case NEXT_DONE:
        a->next = NEXT_NOTHING;
        return same(m, event_done(m), line, bytes) ? NULL : "the end mark is missing";
    case NEXT_NOTHING: break;
    }
    return "an event after the end mark";
}

static const char *on_line(struct answer *a, const char *line, size_t bytes, answer_token_fn *on_token) {
    int blank = bytes == 0;
    if (blank != a->in_event)
        return blank ? "a blank line without an event" : "an event without its blank line";
    a->in_event = !blank;
    return blank ? NULL : on_event(a, line, bytes, on_token);
}

/* Cuts body bytes into lines; a line that is not whole yet is carried over. */
static const char *on_body(struct answer *a, const char *at, size_t bytes, answer_token_fn *on_token) {
    const char *wrong = NULL;
    a->body_bytes += bytes;
    while (bytes && !wrong) {
        const char *feed = memchr(at, '\n', bytes);
        size_t piece = feed ? (size_t)(feed - at) : bytes, line_bytes = a->n_carried + piece;
        const char *line = at;
        if (a->n_carried || !feed) {
            if (line_bytes > sizeof a->carry) return "a line longer than any that was sent";
            memcpy(a->carry + a->n_carried, at, piece);
            a->n_carried = line_bytes;
            line = a->carry;
        }
        if (!feed) return NULL;
        a->n_carried = 0;
        wrong = on_line(a, line, line_bytes, on_token);
        at += piece + 1, bytes -= piece + 1;
    }
    return wrong;
}

/* Collects the head in `carry`; returns how many bytes it took. */
static size_t on_head(struct answer *a, const char *at, size_t bytes, const char **wrong) {
    size_t took = 0;
    while (took < bytes && a->n_carried < sizeof a->carry - 1) {
        char *head = a->carry;
        head[a->n_carried++] = at[took++];
        if (a->n_carried < 4 || memcmp(head + a->n_carried - 4, "\r\n\r\n", 4)) continue;
        head[a->n_carried] = 0;
        if (strncmp(head, "HTTP/1.1 200", 12))
            *wrong = "the status is not 200";
        else if (!strcasestr(head, "\r\ntransfer-encoding: chunked\r\n"))
            *wrong = "the answer is not chunked";
        a->n_carried = 0;
        a->part = PART_SIZE;
        return took;
    }
    if (took < bytes) *wrong = "the answer's head is too long";
    return took;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of framing, outside of chunk data. */
static const char *on_framing(struct answer *a, char c) {
    int digit = hex_digit(c);
    switch (a->part) {
    case PART_SIZE:
        if (digit >= 0 && a->chunk_left < 1u << 28)
            a->chunk_left = a->chunk_left * 16 + (uint64_t)digit;
        else if (c == '\r' || c == ';')
            a->part = PART_SIZE_REST;
        else
            return "a chunk size that is no number";
        return NULL;
    case PART_SIZE_REST:
        if (c == '\n') a->part = a->chunk_left ? PART_DATA : PART_LAST;
        return NULL;
    case PART_DATA_END:
        if (c != '\r' && c != '\n') return "a chunk longer than its size";
        if (c == '\n') a->part = PART_SIZE;
        return NULL;
    default: /* PART_LAST: the blank line behind the last chunk; trailers are not used by anyone here */
        if (c != '\r' && c != '\n') return "a trailer";
        if (c == '\n') a->part = PART_WHOLE;
        return NULL;
    }
}

const char *answer_feed(struct answer *a, const char *at, size_t bytes, answer_token_fn *on_token) {
    const char *wrong = NULL, *end = at + bytes;
    while (at < end && !wrong) {
        if (a->part == PART_WHOLE) return "bytes behind the answer";
        if (a->part == PART_HEAD)
            at += on_head(a, at, (size_t)(end - at), &wrong);
        else if (a->part == PART_DATA) {
            size_t n = (size_t)(end - at) < a->chunk_left ? (size_t)(end - at) : a->chunk_left;
            wrong = on_body(a, at, n, on_token);
            at += n;
            a->chunk_left -= n;
            if (!a->chunk_left) a->part = PART_DATA_END;
        } else
            wrong = on_framing(a, *at++);
    }
    if (!wrong && a->part == PART_WHOLE && (a->next != NEXT_NOTHING || a->in_event))
        wrong = "the answer ends before its end mark";
    return wrong;
}
