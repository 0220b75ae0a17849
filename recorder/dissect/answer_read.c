/* Bodies and events on their way to the dialect: JSON opened, repairs and faults counted, errors seen, and
 * most events answered from a template without any of it. */
#include "recorder/dissect/askpath.h"
#include "recorder/dissect/dialect.h"
#include "recorder/dissect/jsonscan.h"

#include <string.h>

static void tell_api(struct answer *a, const struct dialect *d) {
    if (a->dialect == d && a->asked) return;
    if (a->dialect != d) a->templates.version++; /* what one dialect said of an event, another may not */
    a->dialect = d;
    a->asked = true;
    answer_text(a, F_api, d->name, strlen(d->name));
}

/* Counts what reading took. */
static void note(struct answer *a, const struct json_doc *d) {
    a->repairs += d->repairs;
    if (d->too_large > 0) answer_loss(a, LOSS_number_too_large, d->too_large, 0);
}

/* What a scanner finds in a body that no parser may have. */
static void scanned_request(struct answer *a, const char *method, const char *path, const char *p, size_t n) {
    struct jsonscan s = jsonscan(p, n);
    tell_api(a, dialect_of_request(method, path, NULL));
    if (s.model) {
        answer_text(a, F_model, s.model, s.n_model);
        a->asked_model = true;
    }
    if (s.stream >= 0) answer_int(a, F_stream, s.stream);
    if (s.max_tokens >= 0) answer_int(a, F_max_tokens, s.max_tokens);
    if (s.messages >= 0) answer_int(a, F_messages, s.messages);
    if (s.tools >= 0) answer_int(a, F_tools, s.tools);
    if (s.prompts >= 0) answer_int(a, F_prompts, s.prompts);
    answer_int(a, F_request_cut, 1);
}

void answer_take_request(struct answer *a, const char *method, const char *path, const char *p, size_t n,
                         bool whole) {
    struct json_doc d = {.verdict = JSON_BAD};
    a->may_generate = dialect_may_generate(method, path);
    if (whole) d = json_open(p, n);
    note(a, &d);
    if (d.verdict == JSON_OK) {
        tell_api(a, dialect_of_request(method, path, d.root));
        a->dialect->request(a, d.root);
    } else if (n > 0 && (!whole || d.verdict == JSON_LARGE)) {
        scanned_request(a, method, path, p, n);
    } else {
        tell_api(a, dialect_of_request(method, path, NULL));
    }
    askpath_read(a, path);
    json_close(&d);
}

/* The body's shape wins over the request's path. */
static void recognise(struct answer *a, const struct json *root) {
    if (json_is_array(root)) root = json_first(root); /* several answers in one body are alike */
    if (a->recognised || !a->may_generate || !json_is_object(root)) return;
    const struct dialect *d = dialect_of_response(root);
    if (!d) return;
    a->recognised = true;
    tell_api(a, d);
}

static bool is_error_name(const char *name) {
    return strcmp(name, "error") == 0;
}

/* An event named error says so in its data too where servers leave names out (Responses, Anthropic). */
static bool is_error(const struct json *root, const char *name) {
    const char *object = json_text(json_get(root, "object")), *type = json_text(json_get(root, "type"));
    return is_error_name(name) || (object && is_error_name(object)) || (type && is_error_name(type));
}

/* Errors of frameworks stand at the root: vLLM of before, FastAPI; so do those of Responses' error events. */
static void root_error(struct answer *a, const struct json *root) {
    const struct json *message = json_get(root, "message");
    answer_error(a, json_text(message) ? message : json_get(root, "detail"), root);
}

static void errors(struct answer *a, const struct json *root, const char *name) {
    if (json_is_array(root)) root = json_first(root); /* Gemini's errors, where it would have streamed one */
    const struct json *error = json_get(root, "error");
    if (!json_truthy(error)) error = json_at(root, "response.error"); /* Responses' last event */
    bool named = is_error(root, name), object = json_truthy(error);
    if (object)
        answer_error(a, error, root);
    else if (named || a->status >= 300)
        root_error(a, root);
    if (object || named) a->stream_error = true;
}

static bool is_done(const struct event *e) {
    const char *p = e->data;
    size_t n = e->n_data;
    while (n > 0 && strchr(" \t\n", *p) && *p) p++, n--;
    while (n > 0 && strchr(" \t\n", p[n - 1]) && p[n - 1]) n--;
    return n == 6 && memcmp(p, "[DONE]", 6) == 0;
}

static bool from_template(struct answer *a, const struct event *e) {
    struct tok_event says;
    if (!template_match(&a->templates, e->data, e->n_data, &says)) return false;
    if (says.what & TOK_REASONING)
        a->reasoning_bytes += says.text_bytes;
    else
        a->text_bytes += says.text_bytes;
    if (says.running >= 0 && a->dialect->counts_by_choice)
        answer_count_of_choice(a, says.choice, says.running);
    if (says.running >= 0) answer_keep_running(a, F_output_tokens_told, says.running + a->beside_running);
    answer_event(a, &says);
    return true;
}

/* Remembers an event that is plain but for its text, and numbers that change with each event. */
static void learn(struct answer *a, const struct event *e) {
    struct hole_path holes[TEMPLATE_HOLES] = {{a->plain_path, HOLE_TEXT}};
    const struct dialect *d = a->dialect;
    size_t n = d->n_holes < TEMPLATE_HOLES ? d->n_holes : TEMPLATE_HOLES - 1;
    if (n > 0) memcpy(holes + 1, d->holes, n * sizeof *holes);
    template_learn(&a->templates, e->data, e->n_data, holes, n + 1, &a->plain_event);
}

static void unread(struct answer *a, const struct event *e) {
    a->blind = true;
    answer_keep(a, F_body_unread_bytes, a->latest[F_body_unread_bytes] + (int64_t)e->wire_bytes);
    answer_loss(a, LOSS_body_unread, 1, e->wire_bytes);
}

static void parsed(struct answer *a, const struct event *e) {
    struct json_doc d = json_open_without(e->data, e->n_data, a->dialect->skipped);
    note(a, &d);
    a->plain_path = NULL;
    a->event_name = e->name;
    if (d.verdict == JSON_OK) {
        recognise(a, d.root);
        errors(a, d.root, e->name);
        a->dialect->chunk(a, d.root);
        if (a->plain_path && !a->stream_error && d.repairs == 0 && d.too_large == 0) learn(a, e);
    } else if (d.verdict == JSON_LARGE) {
        unread(a, e);
    } else if (!e->cut) {
        a->bad_events++;
        answer_loss(a, LOSS_bad_json, 1, e->n_data);
        if (is_error_name(e->name)) a->stream_error = true;
    }
    json_close(&d);
}

void answer_take_event(struct answer *a, const struct event *e) {
    /* what the end of the stream cut off is no event of the framing, but what it says is read */
    if (!e->cut) a->events++;
    a->wire_bytes = e->wire_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)e->wire_bytes;
    if (e->error_type) {
        a->stream_error = true;
        answer_text(a, F_error_type, e->error_type, strlen(e->error_type));
    }
    if (e->unread)
        unread(a, e);
    else if (e->error_type && e->n_data == 0)
        return;
    else if (!is_error_name(e->name) && from_template(a, e))
        return;
    else if (is_done(e))
        a->done = true;
    else
        parsed(a, e);
}

void answer_take_body(struct answer *a, const char *p, size_t n, bool whole) {
    struct json_doc d = {.verdict = JSON_BAD};
    if (whole) d = json_open_without(p, n, a->dialect->skipped);
    note(a, &d);
    a->event_name = "";
    if (d.verdict == JSON_OK) {
        recognise(a, d.root);
        errors(a, d.root, "");
        a->dialect->body(a, d.root);
    } else if (d.verdict == JSON_LARGE) {
        answer_keep(a, F_body_unread_bytes, (int64_t)n);
        answer_loss(a, LOSS_body_unread, 1, n);
    } else if (whole && n > 0) {
        answer_loss(a, LOSS_bad_json, 1, n);
    }
    json_close(&d);
}
