/* What no dialect knows: still timed and sized, and its model, stream flag and errors are read where they
 * stand under the usual names. */
#include "recorder/dissect/dialect.h"

static bool never_asked(const char *path, const struct json *body) {
    return false;
}
static bool never_answered(const struct json *root) {
    return false;
}

static void request(struct answer *a, const struct json *body) {
    dialect_common_request(a, body);
}

static void chunk(struct answer *a, const struct json *root) {
    answer_text_once(a, F_response_model, json_get(root, "model"));
}

const struct dialect dialect_other = {
    .name = "other",
    .asked = never_asked,
    .answered = never_answered,
    .request = request,
    .chunk = chunk,
    .body = chunk,
};
