/* An API as it is spoken over HTTP: how to know it and what its bodies say.
 *
 * A dialect is one struct of functions and one row in DIALECTS. Rules are keyed on the presence of a field,
 * never on an engine or a version. */
#ifndef RECORDER_DISSECT_DIALECT_H
#define RECORDER_DISSECT_DIALECT_H

#include "recorder/dissect/answer.h"

struct dialect {
    const char *name; /* value of the fact api */
    bool generates;   /* its requests are generations */
    /* A request is in this dialect. body: NULL when it has none that is JSON. */
    bool (*asked)(const char *path, const struct json *body);
    /* A response's event or body is, by its shape. */
    bool (*answered)(const struct json *root);
    void (*request)(struct answer *a, const struct json *body);
    void (*chunk)(struct answer *a,
                  const struct json *root); /* an event of a stream; its name: a->event_name */
    void (*body)(struct answer *a, const struct json *root); /* a whole response */
    /* Where numbers and texts stand that change with each event and say nothing else, beside a->plain_path.
     */
    const struct hole_path *holes;
    size_t n_holes;
    /* Members of an answer's outermost object that can be large and say nothing: not parsed. NULL at the end.
     */
    const char *const *skipped;
    bool counts_by_choice; /* a running count beside a choice is that choice's own: see
                              answer_count_of_choice() */
    bool ends_with_body;   /* its streams have no end sign: their whole body is the end */
};

/* The dialects, most specific first. */
/* clang-format off */
#define DIALECTS(X) \
    X(anthropic_messages) \
    X(openai_responses) \
    X(lmstudio_chat) \
    X(gemini_generate) \
    X(bedrock_converse) \
    X(ollama_chat) \
    X(ollama_generate) \
    X(llamacpp_completion) \
    X(triton_generate) \
    X(tgi_generate) \
    X(lmdeploy_generate) \
    X(sglang_generate) \
    X(openai_chat) \
    X(openai_completions)
/* clang-format on */
#define DIALECT(id) extern const struct dialect dialect_##id;
DIALECTS(DIALECT)
#undef DIALECT
extern const struct dialect dialect_other; /* of what none of them knows */

/* False: no answer to it is a generation's, whatever its shape: another method than POST, or a path of
 * embedding, counting, speech, stored answers and the like. */
bool dialect_may_generate(const char *method, const char *path);
/* The dialect of a request; never NULL. */
const struct dialect *dialect_of_request(const char *method, const char *path, const struct json *body);
/* The dialect of a response by its shape; NULL: it does not say. */
const struct dialect *dialect_of_response(const struct json *root);

/* Facts that nearly every API's request has under the same names. */
void dialect_common_request(struct answer *a, const struct json *body);
/* The path ends with suffix, a slash at its end aside. */
bool dialect_path_ends(const char *path, const char *suffix);

#endif
