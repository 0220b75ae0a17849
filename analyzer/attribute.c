/* Which source tells the tokens of a request's events, and how many each has: the rules of metrics.md 2, in
 * the order of its table. */
#include "analyzer/attribute_impl.h"

#include <stdlib.h>
#include <string.h>

#define BEARING(what) (((what)&TOK_TEXT) && !((what)&TOK_ECHO))
/* A total above this is no count of tokens but a fault: it is kept as the total and shared out to no event.
 */
#define MAX_TOTAL INT32_MAX

const char *token_source_name(enum token_source s) {
    static const char *const names[] = {NULL,       "token_ids", "running_usage", "engine_event",
                                        "logprobs", "prorated",  "events"};
    return names[s];
}

bool attribute_room(void **p, size_t *room, size_t n, size_t size) {
    if (n <= *room) return true;
    size_t want = *room + *room / 2 > n ? *room + *room / 2 : n;
    if (want > SIZE_MAX / size) return false;
    void *q = realloc(*p, want * size);
    if (!q) return false;
    *p = q;
    *room = want;
    return true;
}

static inline uint16_t count16(int32_t v) {
    return v < 0 ? ATTRIBUTE_NO_COUNT : v < ATTRIBUTE_NO_COUNT ? (uint16_t)v : ATTRIBUTE_NO_COUNT - 1;
}

static inline uint32_t running32(int64_t v) {
    return v < 0 ? ATTRIBUTE_NO_RUNNING : v < ATTRIBUTE_NO_RUNNING ? (uint32_t)v : ATTRIBUTE_NO_RUNNING - 1;
}

bool attribute_push(struct attribute_events *v, const struct tok_event *e, size_t n) {
    if (!attribute_room((void **)&v->e, &v->room, v->n + n, sizeof *v->e)) return false;
    struct attribute_event *to = v->e + v->n;
    uint32_t choices = v->choices;
    for (size_t i = 0; i < n; i++, e++, to++) {
        uint16_t choice = e->choice < UINT16_MAX ? (uint16_t)e->choice : UINT16_MAX;
        *to = (struct attribute_event){.t_ns = e->t_ns,
                                       .read = (uint32_t)e->read,
                                       .text_bytes = e->text_bytes,
                                       .wire_bytes = e->wire_bytes,
                                       .running = running32(e->running),
                                       .choice = choice,
                                       .what = (uint16_t)(e->what & TOK_ALL),
                                       .ids = count16(e->ids),
                                       .logprobs = count16(e->logprobs)};
        if (choice >= choices) choices = choice + 1u;
    }
    v->choices = choices;
    v->n += n;
    return true;
}

void attribute_free(struct attribute_events *v) {
    free(v->e);
    *v = (struct attribute_events){0};
}

void attributor_free(struct attributor *a) {
    free(a->arrivals);
    free(a->sorted);
    free(a->choices);
    free(a->rests);
    *a = (struct attributor){0};
}

/* What one pass over the events shows. */
struct scan {
    size_t n;                /* events that count: those up to the cut */
    uint64_t texts, bytes;   /* E, and B of rule 5 */
    uint64_t stops;          /* choices that finished for another reason than length, without text */
    uint64_t ids, contracts; /* events that say token ids, that are one token by contract */
    bool ids_missing, logprobs_missing, contract_missing;
    bool reasoning, summary; /* summary: reasoning text that the API says is one (Anthropic) */
    int64_t t_summary_ns;
};

static inline void scan_text(struct scan *s, struct attribute_choice *c, const struct attribute_event *e) {
    s->texts++;
    s->bytes += e->text_bytes;
    s->ids_missing |= e->ids == ATTRIBUTE_NO_COUNT;
    s->logprobs_missing |= e->logprobs == ATTRIBUTE_NO_COUNT;
    s->contract_missing |= !(e->what & TOK_CONTRACT);
    s->reasoning |= (e->what & TOK_REASONING) != 0;
    s->summary |= (e->what & TOK_SUMMARY) != 0;
    c->texts++;
    if (e->running == ATTRIBUTE_NO_RUNNING)
        c->running_missing = true;
    else if (c->texts <= 2 && e->running > 0)
        c->running_positive = true;
}

/* The sums are returned, not kept in memory that the events could alias: this pass is the longest one. */
static struct scan scan_events(struct attribute_choice *choices, struct attribute_events *v, int64_t cut_ns) {
    struct scan s = {.t_summary_ns = ATTRIBUTE_NONE};
    int64_t until_ns = cut_ns != ATTRIBUTE_NONE ? cut_ns : INT64_MAX;
    size_t n = v->n;
    for (; s.n < n; s.n++) {
        struct attribute_event *e = &v->e[s.n];
        if (e->t_ns > until_ns) break;
        struct attribute_choice *c = &choices[e->choice];
        if (BEARING(e->what))
            scan_text(&s, c, e);
        else if (e->what & TOK_SUMMARY && s.t_summary_ns == ATTRIBUTE_NONE)
            s.t_summary_ns = e->t_ns;
        s.ids += e->ids != ATTRIBUTE_NO_COUNT && e->ids > 0;
        s.contracts += (e->what & TOK_CONTRACT) != 0;
        if (!(e->what & TOK_FINISH) || c->finished) continue;
        c->finished = true;
        if (!(e->what & TOK_STOP) || e->what & TOK_TEXT) continue;
        s.stops++;
        e->what |= ATTRIBUTE_STOP_TOKEN;
    }
    return s;
}

/* A running count is one only if every choice's events carry it from the first or second on; else it is a
 * total. */
static bool is_running(const struct attribute_choice *c, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (c[i].texts == 0) continue;
        if (c[i].running_missing || !c[i].running_positive) return false;
        any = true;
    }
    return any;
}

static enum token_source pick(const struct scan *s, const struct attribute_choice *c, size_t n,
                              int64_t total) {
    if (s->ids > 0 && !s->ids_missing) return SOURCE_TOKEN_IDS;
    if (is_running(c, n)) return SOURCE_RUNNING_USAGE;
    if (s->contracts > 0 && !s->contract_missing) return SOURCE_ENGINE_EVENT;
    if (s->texts == 0) return SOURCE_NONE;
    if (!s->logprobs_missing) return SOURCE_LOGPROBS;
    return total > 0 && total <= MAX_TOTAL ? SOURCE_PRORATED : SOURCE_EVENTS;
}

/* Tokens of each event where events tell them: they go into e->running. The sum of them is returned. */
static uint64_t count_events(struct attribute_event *e, size_t n, enum token_source source) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++, e++) {
        uint32_t k = 0;
        if (source == SOURCE_TOKEN_IDS)
            k = e->ids == ATTRIBUTE_NO_COUNT ? 0 : e->ids;
        else if (source == SOURCE_LOGPROBS)
            k = e->logprobs == ATTRIBUTE_NO_COUNT ? 0 : e->logprobs;
        else if (source == SOURCE_ENGINE_EVENT)
            k = (e->what & TOK_CONTRACT) != 0;
        else if (source == SOURCE_EVENTS)
            k = BEARING(e->what);
        e->what &= (uint16_t)~ATTRIBUTE_STOP_TOKEN;
        e->running = k;
        sum += k;
    }
    return sum;
}

/* Rises of the running counts, each choice its own. With several choices an event without text or finish that
 * says the total of the whole request is that total, not the count of the choice it stands under. */
static uint64_t count_rises(struct attribute_event *e, size_t n, struct attribute_choice *choices,
                            bool several, int64_t told) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++, e++) {
        struct attribute_choice *c = &choices[e->choice];
        uint32_t k = 0;
        bool total = several && !(e->what & (TOK_TEXT | TOK_FINISH)) && e->running == told;
        if (e->running != ATTRIBUTE_NO_RUNNING && e->running > c->running && !total) {
            k = e->running - c->running;
            c->running = e->running;
        }
        e->what &= (uint16_t)~ATTRIBUTE_STOP_TOKEN;
        e->running = k;
        sum += k;
    }
    return sum;
}

/* Rule 5 with one token an event, and one for each stop token at its finish event if with_stops. */
static void share_ones(struct attribute_event *e, size_t n, bool with_stops) {
    for (size_t i = 0; i < n; i++, e++) {
        if (!with_stops) e->what &= (uint16_t)~ATTRIBUTE_STOP_TOKEN;
        e->running = BEARING(e->what) || e->what & ATTRIBUTE_STOP_TOKEN;
    }
}

static inline uint64_t weight(const struct attribute_event *e, uint64_t bytes) {
    return bytes ? e->text_bytes : 1;
}

/* Rule 5 for fewer tokens than events: by cumulative bytes, so that the first has one and none has a half. */
static void share_few(struct attribute_event *e, size_t n, const struct scan *s, uint64_t total) {
    uint64_t all = s->bytes ? s->bytes : s->texts, seen = 0, given = 0;
    for (size_t i = 0; i < n; i++, e++) {
        e->what &= (uint16_t)~ATTRIBUTE_STOP_TOKEN;
        uint32_t k = 0;
        if (BEARING(e->what)) {
            seen += weight(e, s->bytes);
            uint64_t upto = (uint64_t)(((unsigned __int128)total * seen + all - 1) / all);
            k = (uint32_t)(upto - given);
            given = upto;
        }
        e->running = k;
    }
}

static int by_size_falling(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Rule 5 for more tokens than events: one each, the rest by bytes, what is left by largest remainder, ties to
 * the earlier. Remainders are sorted to find the smallest that still gets one. */
static bool share_rest(struct attributor *a, struct attribute_event *e, size_t n, const struct scan *s,
                       uint64_t rest) {
    if (!attribute_room((void **)&a->rests, &a->rests_room, s->texts, sizeof *a->rests)) return false;
    uint64_t all = s->bytes ? s->bytes : s->texts, given = 0;
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        e[i].what &= (uint16_t)~ATTRIBUTE_STOP_TOKEN;
        uint32_t k = 0;
        if (BEARING(e[i].what)) {
            uint64_t part = rest * weight(&e[i], s->bytes); /* below 2^31 times 2^32 */
            k = 1 + (uint32_t)(part / all);
            given += part / all;
            a->rests[m++] = part % all;
        }
        e[i].running = k;
    }
    uint64_t left = rest - given;
    if (left == 0) return true;
    qsort(a->rests, m, sizeof *a->rests, by_size_falling);
    uint64_t least = a->rests[left - 1], above = 0;
    while (above < left && a->rests[above] > least) above++;
    uint64_t equal = left - above; /* of those with exactly the least remainder, the earliest so many */
    for (size_t i = 0; i < n; i++) {
        if (!BEARING(e[i].what)) continue;
        uint64_t r = rest * weight(&e[i], s->bytes) % all;
        if (r > least)
            e[i].running++;
        else if (r == least && equal > 0)
            e[i].running++, equal--;
    }
    return true;
}

static bool prorate(struct attributor *a, struct attribute_event *e, const struct scan *s, uint64_t total,
                    const char **grade) {
    *grade = "exact";
    if (total == s->texts || total == s->texts + s->stops) {
        share_ones(e, s->n, total != s->texts);
        return true;
    }
    *grade = "prorated";
    if (total < s->texts)
        share_few(e, s->n, s, total);
    else
        return share_rest(a, e, s->n, s, total - s->texts);
    return true;
}

/* Tokens that no event shows: reasoning whose text was not streamed, rejected tokens of a predicted output.
 */
static int64_t hidden(const struct attribute_facts *f, bool reasoning_seen) {
    bool told = false;
    int64_t n = 0;
    if (f->reasoning_tokens != ATTRIBUTE_NONE) {
        told = true;
        if (!reasoning_seen && !(f->reasoning_bytes > 0)) n = f->reasoning_tokens;
    }
    if (f->prediction && f->rejected_prediction_tokens != ATTRIBUTE_NONE) {
        told = true;
        if (__builtin_add_overflow(n, f->rejected_prediction_tokens, &n)) n = INT64_MAX;
    }
    return told ? n : ATTRIBUTE_NONE;
}

/* T of rule 5: the total without the hidden ones; ATTRIBUTE_NONE where it does not fit the events that were
 * kept. */
static int64_t shared_total(const struct attribute_facts *f, int64_t hidden_tokens, bool cut) {
    if (f->output_tokens_told == ATTRIBUTE_NONE || f->lost || cut) return ATTRIBUTE_NONE;
    int64_t total;
    if (__builtin_sub_overflow(f->output_tokens_told, hidden_tokens > 0 ? hidden_tokens : 0, &total))
        return ATTRIBUTE_NONE;
    return total;
}

static const char *why_no_gaps(const struct attribute_facts *f, const struct scan *s,
                               const struct attribution *out) {
    if (!f->streamed && s->n == 0) return "not_streamed";
    if (f->lost) return "lost";
    if (out->n_arrivals == 0) return "no_arrivals";
    if (out->buffered) return "buffered";
    bool summary = s->t_summary_ns != ATTRIBUTE_NONE || f->t_first_summary_ns != ATTRIBUTE_NONE;
    bool only = s->summary || (summary && !s->reasoning);
    return only && f->reasoning_tokens == ATTRIBUTE_NONE ? "summary_only" : NULL;
}

/* Where totals and exact counts differ. A stop token is no disagreement: log probabilities show visible
 * tokens only, and llama.cpp's running count takes it in on the usage event, which belongs to no choice. Nor
 * is what came after the client had left. */
static int64_t mismatch(const struct attribute_facts *f, const struct scan *s, const struct attribution *out,
                        uint64_t sum, bool cut) {
    enum token_source source = out->source;
    bool exact = source >= SOURCE_TOKEN_IDS && source <= SOURCE_LOGPROBS;
    if (!exact || f->lost || cut || f->output_tokens_told == ATTRIBUTE_NONE) return ATTRIBUTE_NONE;
    int64_t d;
    if (__builtin_sub_overflow(f->output_tokens_told, (int64_t)sum, &d)) return ATTRIBUTE_NONE;
    bool hides_stops = source == SOURCE_LOGPROBS || source == SOURCE_RUNNING_USAGE;
    /* Gemini's running count leaves out the hidden ones, others' take them in */
    if (source == SOURCE_RUNNING_USAGE && d > 0 && d == out->hidden_tokens) return ATTRIBUTE_NONE;
    if (d == 0 || (hides_stops && d == (int64_t)s->stops)) return ATTRIBUTE_NONE;
    return d;
}

static bool count(struct attributor *a, struct attribute_events *v, const struct attribute_facts *f,
                  struct scan *s, struct attribution *out) {
    out->hidden_tokens = hidden(f, s->reasoning);
    int64_t total = shared_total(f, out->hidden_tokens, s->n < v->n);
    out->source = pick(s, a->choices, v->choices, total);
    uint64_t sum = 0;
    out->grade = out->source == SOURCE_NONE ? NULL : out->source == SOURCE_EVENTS ? "events" : "exact";
    if (out->source == SOURCE_PRORATED) {
        if (!prorate(a, v->e, s, (uint64_t)total, &out->grade)) return false;
    } else if (out->source == SOURCE_RUNNING_USAGE) {
        sum = count_rises(v->e, s->n, a->choices, v->choices > 1, f->output_tokens_told);
    } else {
        sum = count_events(v->e, s->n, out->source);
    }
    out->token_mismatch = mismatch(f, s, out,
                                   sum + (out->hidden_tokens > 0 && out->source != SOURCE_RUNNING_USAGE
                                              ? (uint64_t)out->hidden_tokens
                                              : 0),
                                   s->n < v->n);
    out->output_tokens = f->output_tokens_told;
    if (out->output_tokens == ATTRIBUTE_NONE && !f->lost && out->source != SOURCE_NONE)
        out->output_tokens = (int64_t)sum;
    return true;
}

bool attribute(struct attributor *a, struct attribute_events *v, const struct attribute_facts *f,
               struct attribution *out) {
    *out = (struct attribution){.token_mismatch = ATTRIBUTE_NONE,
                                .t_first_token_ns = ATTRIBUTE_NONE,
                                .t_first_answer_ns = ATTRIBUTE_NONE,
                                .t_last_token_ns = ATTRIBUTE_NONE,
                                .gap_max_ns = ATTRIBUTE_NONE};
    if (!attribute_room((void **)&a->choices, &a->choices_room, v->choices, sizeof *a->choices)) return false;
    if (v->choices) memset(a->choices, 0, v->choices * sizeof *a->choices);
    struct scan s = scan_events(a->choices, v, f->cut_ns);
    if (!count(a, v, f, &s, out) || !attribute_arrivals(a, v, s.n, f, out)) return false;
    out->itl_absent = why_no_gaps(f, &s, out);
    int64_t summary = s.t_summary_ns != ATTRIBUTE_NONE ? s.t_summary_ns : f->t_first_summary_ns;
    if (summary != ATTRIBUTE_NONE &&
        (out->t_first_token_ns == ATTRIBUTE_NONE || summary < out->t_first_token_ns))
        out->t_first_token_ns = summary;
    return true;
}
