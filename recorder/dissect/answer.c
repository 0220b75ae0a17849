/* Facts of which the last value counts are kept and told once at the end, since a stream may tell a count
 * with every event. */
#include "recorder/dissect/answer.h"

#include "recorder/dissect/utf8.h"
#include "recorder/keyhash.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_TEXT = TOK_TEXT | TOK_SUMMARY | TOK_ECHO };

void answer_int(struct answer *a, enum fact f, int64_t v) {
    trw_int(a->trw, a->id, f, v);
}

void answer_text(struct answer *a, enum fact f, const char *p, size_t n) {
    char text[FACT_STR_MAX];
    unsigned n_bad = 0;
    size_t cut = 0;
    if (!p || n == 0) return;
    size_t len = utf8_clean(p, n, text, sizeof text, &n_bad, &cut);
    a->repairs += n_bad;
    if (cut > 0) answer_loss(a, LOSS_fact_cut, 1, cut);
    trw_str(a->trw, a->id, f, text, len);
}

void answer_text_once(struct answer *a, enum fact f, const struct json *v) {
    const char *text = json_text(v);
    if (!text || !*text || a->told[f]) return;
    a->told[f] = 1;
    answer_text(a, f, text, strlen(text));
    if (f == F_response_model && !a->asked_model) answer_text(a, F_model, text, strlen(text));
}

void answer_loss(struct answer *a, enum loss l, uint64_t count, uint64_t bytes) {
    trw_loss(a->trw, l, a->t_ns, a->t_ns, count, bytes, a->id);
    if (a->shared) a->shared->counts.loss[l] += count;
}

void answer_keep(struct answer *a, enum fact f, int64_t v) {
    if (a->latest[f] != v || !a->has[f]) a->templates.version++;
    a->latest[f] = v;
    a->has[f] |= ANSWER_INT;
}

void answer_keep_running(struct answer *a, enum fact f, int64_t v) {
    if (v == 0 && a->has[f]) return;
    a->latest[f] = v;
    a->has[f] |= ANSWER_INT;
}

void answer_keep_count(struct answer *a, enum fact f, const struct json *v) {
    int64_t n;
    if (json_int(v, &n) && n >= 0) answer_keep(a, f, n);
}

void answer_keep_total(struct answer *a, enum fact f, const struct json *v) {
    int64_t n;
    if (json_int(v, &n) && n >= 0 && (n > 0 || !a->has[f])) answer_keep(a, f, n);
}

void answer_keep_real(struct answer *a, enum fact f, const struct json *v) {
    double real;
    int64_t bits;
    if (!json_real(v, &real)) return;
    memcpy(&bits, &real, sizeof bits);
    if (a->latest[f] != bits || !a->has[f]) a->templates.version++;
    a->latest[f] = bits;
    a->has[f] |= ANSWER_REAL;
}

void answer_keep_ns(struct answer *a, enum fact f, const struct json *v, double unit_ns) {
    double real;
    if (json_real(v, &real) && real >= 0 && real * unit_ns < 1e18) answer_keep(a, f, llround(real * unit_ns));
}

/* Room for one more in an array that grows by doubling; NULL: no memory. */
static void *one_more(void *array, size_t n, size_t size) {
    return n & (n - 1) ? array : realloc(array, (n ? 2 * n : 1) * size);
}

struct choice *answer_choice(struct answer *a, int64_t index) {
    for (size_t i = 0; i < a->n_choices; i++)
        if (a->choices[i].index == index) return &a->choices[i];
    if (a->n_choices == ANSWER_CHOICES_MAX) {
        a->more_choices = true;
        return NULL;
    }
    struct choice *more = one_more(a->choices, a->n_choices, sizeof *more);
    if (!more) return NULL;
    a->choices = more;
    struct choice *c = &a->choices[a->n_choices++];
    *c = (struct choice){.index = index, .echo_left = a->echo ? a->echo_bytes : 0};
    return c;
}

void answer_count_of_choice(struct answer *a, int64_t index, int64_t running) {
    struct choice *c = answer_choice(a, index);
    if (c) c->told = running;
    a->total_of_choice = true;
}

void answer_finish(struct answer *a, struct choice *c, const char *reason) {
    c->finished = a->ended = true;
    snprintf(c->finish, sizeof c->finish, "%.47s", reason);
    if (strcmp(reason, "error") == 0 || strcmp(reason, "abort") == 0 || strcmp(reason, "failed") == 0)
        a->stream_error = true;
}

struct tool_call *answer_tool(struct answer *a, int64_t choice, int64_t index, const char *args) {
    struct tool_call *t = NULL;
    for (size_t i = 0; i < a->n_tools && !t; i++)
        if (a->tools[i].choice == choice && a->tools[i].index == index) t = &a->tools[i];
    if (!t) {
        if (a->n_tools == ANSWER_CHOICES_MAX) {
            a->more_tools = true;
            return NULL;
        }
        struct tool_call *more = one_more(a->tools, a->n_tools, sizeof *more);
        if (!more) return NULL;
        a->tools = more;
        t = &a->tools[a->n_tools++];
        *t = (struct tool_call){.choice = choice, .index = index};
    }
    size_t n = args ? strlen(args) : 0;
    if (t->args.n + n > ANSWER_ARGS_MAX || !buf_add(&t->args, a->pool, args, n)) t->too_long = true;
    return t;
}

/* Of each choice the first event with a finish counts. */
static void count_finish(struct answer *a, const struct tok_event *e) {
    struct choice *c = e->what & TOK_FINISH ? answer_choice(a, e->choice) : NULL;
    if (!c || c->finish_counted) return;
    c->finish_counted = true;
    a->length_finishes += !(e->what & TOK_STOP);
    a->stop_finishes += a->streamed && (e->what & TOK_STOP) && !(e->what & TOK_TEXT);
}

void answer_event(struct answer *a, struct tok_event *e) {
    a->plain_event = *e;
    count_finish(a, e);
    if (!a->streamed) return;
    if (!(e->what & (ANY_TEXT | TOK_FINISH | TOK_CONTRACT)) && e->running < 0 && e->ids <= 0 &&
        e->logprobs <= 0)
        return;
    e->request = a->id, e->t_ns = a->t_ns, e->read = a->read, e->wire_bytes = a->wire_bytes;
    trw_event(a->trw, e);
    if (!(e->what & TOK_TEXT)) return;
    a->bearing++;
    if (a->shared) {
        /* one writer: a plain store is enough, and far cheaper than a locked addition */
        uint64_t n = atomic_load_explicit(&a->shared->counts.token_events, memory_order_relaxed);
        atomic_store_explicit(&a->shared->counts.token_events, n + 1, memory_order_relaxed);
    }
}

/* A code may be a number or a text. */
static void code(struct answer *a, const struct json *v) {
    char text[24];
    int64_t n;
    if (json_int(v, &n)) {
        int len = snprintf(text, sizeof text, "%lld", (long long)n);
        answer_text(a, F_error_code, text, (size_t)len);
    } else if (json_text(v)) {
        answer_text(a, F_error_code, json_text(v), json_text_bytes(v));
    }
}

/* The word, not a part of another one (overloading), and of a model (not of an image). */
static bool says_loading(const char *text) {
    static const char word[] = "loading";
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if (at == text || !isalpha((unsigned char)at[-1])) return strcasestr(text, "model") != NULL;
    return false;
}

static void error_message(struct answer *a, const struct json *v) {
    const char *text = json_text(v);
    char hash[KEYHASH_CHARS];
    if (!text) return;
    size_t n = strlen(text);
    answer_int(a, F_error_bytes, (int64_t)n);
    keyhash(a->key, "error", text, n, hash);
    answer_text(a, F_error_hash, hash, strlen(hash));
    if (a->status == 503 && says_loading(text)) answer_int(a, F_loading, 1);
}

void answer_error(struct answer *a, const struct json *error, const struct json *root) {
    bool object = json_is_object(error);
    const struct json *from = object ? error : root, *type = json_get(from, "type");
    if (!json_text(type)) type = json_get(root, "error_type");
    if (!json_text(type)) type = json_get(object ? error : NULL, "status"); /* Gemini */
    if (json_text(type) && strcmp(json_text(type), "error") != 0)           /* that much is known */
        answer_text(a, F_error_type, json_text(type), json_text_bytes(type));
    code(a, json_get(from, json_is_null(json_get(from, "code")) ? "http_status_code" : "code"));
    const struct json *param = json_get(from, "param");
    if (json_text(param)) answer_text(a, F_error_param, json_text(param), json_text_bytes(param));
    error_message(a, json_text(error) ? error : json_get(from, "message"));
}

static void tell_finishes(struct answer *a) {
    char text[FACT_STR_MAX];
    size_t n = 0;
    int64_t finished = 0;
    /* by index: few, and nearly always in order already */
    for (int64_t last = -1;;) {
        const struct choice *next = NULL;
        for (size_t i = 0; i < a->n_choices; i++)
            if (a->choices[i].index > last && (!next || a->choices[i].index < next->index))
                next = &a->choices[i];
        if (!next) break;
        last = next->index;
        if (!next->finished) continue;
        finished++;
        if (n + sizeof next->finish + 1 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "," : "", next->finish);
    }
    answer_text(a, F_finish_reason, text, n);
    if (finished == 0) return;
    answer_int(a, F_finished_choices, finished);
    answer_int(a, F_stop_finishes, (int64_t)a->stop_finishes);
    answer_int(a, F_length_finishes, (int64_t)a->length_finishes);
}

/* -1: not known. */
static int args_valid(const struct tool_call *t) {
    if (t->too_long) return -1;
    if (t->args.n == 0) return 1; /* values, or a call without arguments */
    struct json_doc d = json_open(t->args.p, t->args.n);
    int valid = d.verdict == JSON_LARGE ? -1 : d.verdict == JSON_OK;
    json_close(&d);
    return valid;
}

static void tell_tools(struct answer *a) {
    bool valid = true, known = a->ended || a->done || a->typed_end, any = false;
    if (a->n_tools == 0 || a->more_tools) return; /* how many are more than can be told apart is not known */
    answer_int(a, F_tool_calls, (int64_t)a->n_tools);
    for (size_t i = 0; i < a->n_tools; i++) {
        if (a->tools[i].args_are == ARGS_FREE) continue;
        int v = args_valid(&a->tools[i]);
        any = true, known = known && v >= 0, valid = valid && v != 0;
    }
    if (known && any) answer_int(a, F_tool_args_valid, valid);
}

static void tell_kept(struct answer *a) {
    for (int f = 0; f < N_FACTS; f++) {
        double real;
        memcpy(&real, &a->latest[f], sizeof real);
        if (a->has[f] & ANSWER_INT)
            trw_int(a->trw, a->id, (enum fact)f, a->latest[f]);
        else if (a->has[f] & ANSWER_REAL)
            trw_real(a->trw, a->id, (enum fact)f, real);
    }
}

/* A stream that was cut before its usage: the counts of its choices are all there is. */
static void add_choices(struct answer *a) {
    int64_t sum = 0;
    if (!a->total_of_choice || a->n_choices < 2) return;
    for (size_t i = 0; i < a->n_choices; i++)
        if (__builtin_add_overflow(sum, a->choices[i].told, &sum)) return;
    answer_keep(a, F_output_tokens_told, sum);
}

void answer_end(struct answer *a) {
    add_choices(a);
    tell_finishes(a);
    tell_tools(a);
    tell_kept(a);
    if (a->n_choices > 0) {
        if (!a->more_choices) answer_int(a, F_choices, (int64_t)a->n_choices);
        answer_int(a, F_text_bytes, (int64_t)a->text_bytes);
        answer_int(a, F_reasoning_bytes, (int64_t)a->reasoning_bytes);
    }
    if (a->done) answer_int(a, F_done_marker, 1);
    if (a->typed_end) answer_int(a, F_typed_end, 1);
    if (a->blind) answer_int(a, F_answer_unread, 1);
    if (a->stream_error && a->status < 300) answer_int(a, F_stream_error, 1);
    if (a->repairs > 0) {
        answer_int(a, F_json_repairs, (int64_t)a->repairs);
        answer_loss(a, LOSS_json_repaired, a->repairs, 0);
    }
    if (a->bad_events > 0) answer_int(a, F_bad_events, (int64_t)a->bad_events);
}

void answer_free(struct answer *a) {
    for (size_t i = 0; i < a->n_tools; i++) buf_free(&a->tools[i].args, a->pool);
    free(a->tools);
    free(a->choices);
    template_free(&a->templates);
    a->tools = NULL, a->choices = NULL, a->n_tools = a->n_choices = 0;
}
