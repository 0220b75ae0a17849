/* The routes: one table, one function each. */
#include "samples/simserve/routes.h"

#include "samples/simserve/gen.h"
#include "samples/simserve/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char json_type[] = "application/json";

/* A request on its way to an answer. */
struct call {
    struct server *srv;
    struct conn *c;
    const struct http_in *req;
    const char *api;
    uint64_t number;
};

/* The answer's row is put together first: after the answer the request's memory is gone. */
static void answer(const struct call *call, unsigned status, const char *type, const char *head,
                   const char *body, size_t len) {
    char path[sizeof call->req->path], id[sizeof call->req->request_id];
    struct truth_simple row = {.req = call->number,
                               .conn = conn_number(call->c),
                               .first_byte_ns = conn_first_byte_ns(call->c),
                               .api = call->api,
                               .path = path,
                               .x_request_id = id,
                               .status = status};

    memcpy(path, call->req->path, sizeof path);
    memcpy(id, call->req->request_id, sizeof id);
    row.sent = conn_reply(call->c, status, type, head, body, len);
    truth_simple(call->srv->truth, &row);
}

/* json is freed. */
static void answer_json(const struct call *call, unsigned status, const char *head, char *json) {
    if (json)
        answer(call, status, json_type, head, json, strlen(json));
    else
        answer(call, 500, json_type, "", "", 0);
    render_free(json);
}

static void answer_bad(const struct call *call, const char *why) {
    answer_json(call, 400, "", render_error(why, "BadRequestError", 400));
}

static void on_health(const struct call *call) {
    answer(call, 200, json_type, "", "", 0);
}

static void on_models(const struct call *call) {
    answer_json(call, 200, "", render_models(call->srv->opts.model, call->srv->opts.max_len));
}

static void on_metrics(const struct call *call) {
    struct server *srv = call->srv;
    struct engine_stats stats = engine_stats(srv->engine);
    size_t len = 0;
    char *page = metrics_page(&srv->metrics, &stats, &srv->opts.engine, srv->opts.model, &len);

    if (page)
        answer(call, 200, "text/plain; version=0.0.4; charset=utf-8", "", page, len);
    else
        answer_json(call, 500, "", NULL);
    free(page);
}

static void on_tokenize(const struct call *call) {
    struct body body;
    const char *why = body_read_tokenize(&body, call->req->body, call->req->body_len);

    if (why)
        answer_bad(call, why);
    else
        answer_json(call, 200, "", render_tokens(&body.prompt, call->srv->opts.max_len));
    body_fini(&body);
}

static const char *too_long(const struct server *srv, const struct body *b) {
    uint64_t answer_tokens = b->max_tokens ? b->max_tokens : 1;

    if (b->prompt.n == 0) return "the prompt has no tokens";
    if (b->prompt.n + answer_tokens > srv->opts.max_len) {
        return "This model's maximum context length is exceeded by prompt and max_tokens together";
    }
    return NULL;
}

static struct fault choose_fault(struct server *srv, const struct http_in *req) {
    struct fault fault = fault_pick(&srv->opts.faults, srv->opts.engine.seed, ++srv->n_generations);

    if (req->fault[0]) fault_parse(req->fault, &fault);
    return fault;
}

static bool queue_is_full(const struct server *srv) {
    return srv->opts.queue_limit > 0 && engine_stats(srv->engine).waiting >= srv->opts.queue_limit;
}

/* True when the request was answered without a generation. */
static bool refuse(const struct call *call, struct fault fault) {
    if (fault.kind == FAULT_HTTP_500) {
        answer_json(call, 500, "", render_error("Internal server error", "InternalServerError", 500));
        return true;
    }
    if (fault.kind == FAULT_HTTP_429 || queue_is_full(call->srv)) {
        answer_json(call, 429, "retry-after: 1\r\n",
                    render_error("Too many requests wait", "RateLimitError", 429));
        return true;
    }
    return false;
}

static void generate(const struct call *call, bool chat) {
    struct body body;
    const char *why = body_read(&body, call->req->body, call->req->body_len, chat);

    if (!why) why = too_long(call->srv, &body);
    if (why) {
        answer_bad(call, why);
    } else {
        struct fault fault = choose_fault(call->srv, call->req);

        if (!refuse(call, fault)) {
            if (gen_start(call->srv, call->c, call->req, call->number, &body, fault)) return;
            answer_json(call, 500, "", NULL);
        }
    }
    body_fini(&body);
}

static void on_chat(const struct call *call) {
    generate(call, true);
}

static void on_completions(const struct call *call) {
    generate(call, false);
}

static const struct route {
    const char *method, *path, *api;
    void (*handle)(const struct call *call);
} routes[] = {{"POST", "/v1/chat/completions", "chat", on_chat},
              {"POST", "/v1/completions", "completions", on_completions},
              {"POST", "/tokenize", "other", on_tokenize},
              {"GET", "/v1/models", "other", on_models},
              {"GET", "/metrics", "other", on_metrics},
              {"GET", "/health", "other", on_health}};

static const char not_found[] = "{\"detail\":\"Not Found\"}";
static const char not_allowed[] = "{\"detail\":\"Method Not Allowed\"}";

void routes_on_request(struct conn *c, const struct http_in *req, void *arg) {
    struct call call = {
        .srv = arg, .c = c, .req = req, .api = "other", .number = ++((struct server *)arg)->n_requests};
    const struct route *found = NULL;

    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!strcmp(routes[i].path, req->path)) found = &routes[i];
    }
    if (found) call.api = found->api;
    if (pacer_now_ns() < call.srv->ready_ns) {
        answer_json(&call, 503, "", render_error("Loading model", "unavailable_error", 503));
    } else if (!found) {
        answer(&call, 404, json_type, "", not_found, sizeof not_found - 1);
    } else if (!http_in_method_is(req, found->method)) {
        answer(&call, 405, json_type, "", not_allowed, sizeof not_allowed - 1);
    } else {
        found->handle(&call);
    }
}
