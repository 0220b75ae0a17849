/* Request bodies. */
#include "samples/simserve/body.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const cJSON *get(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_set(const cJSON *object, const char *name) {
    return cJSON_IsTrue(get(object, name));
}

/* A whole number from low to high into *to; absent and null leave it. */
static bool read_number(const cJSON *object, const char *name, double low, double high, uint64_t *to) {
    const cJSON *item = get(object, name);

    if (!item || cJSON_IsNull(item)) return true;
    if (!cJSON_IsNumber(item)) return false;
    if (item->valuedouble != floor(item->valuedouble)) return false;
    if (item->valuedouble < low || item->valuedouble > high) return false;
    *to = (uint64_t)item->valuedouble;
    return true;
}

static bool add_stop(struct body *b, const cJSON *item) {
    if (!cJSON_IsString(item) || item->valuestring[0] == '\0') return false;
    if (b->n_stops == BODY_MAX_STOPS || strlen(item->valuestring) >= BODY_STOP_BYTES) return false;
    snprintf(b->stop[b->n_stops++], BODY_STOP_BYTES, "%s", item->valuestring);
    return true;
}

static bool read_stop(struct body *b, const cJSON *root) {
    const cJSON *stop = get(root, "stop");
    const cJSON *item;

    if (!stop || cJSON_IsNull(stop)) return true;
    if (!cJSON_IsArray(stop)) return add_stop(b, stop);
    cJSON_ArrayForEach(item, stop) {
        if (!add_stop(b, item)) return false;
    }
    return true;
}

static const char *read_settings(struct body *b, const cJSON *root) {
    const cJSON *options = get(root, "stream_options");

    b->n = 1;
    b->stream = is_set(root, "stream");
    b->token_ids = is_set(root, "return_token_ids");
    b->ignore_eos = is_set(root, "ignore_eos");
    b->include_usage = b->stream && is_set(options, "include_usage");
    b->continuous_usage = b->include_usage && is_set(options, "continuous_usage_stats");
    if (!read_number(root, "max_tokens", 1, 1e7, &b->max_tokens)) return "max_tokens must be a number from 1";
    if (!read_number(root, "max_completion_tokens", 1, 1e7, &b->max_tokens)) {
        return "max_completion_tokens must be a number from 1";
    }
    if (!read_number(root, "min_tokens", 0, 1e7, &b->min_tokens)) return "min_tokens must be a number from 0";
    if (!read_number(root, "n", 1, BODY_MAX_CHOICES, &b->n)) return "n must be a number from 1 to 8";
    if (!read_number(root, "seed", 0, 1e15, &b->seed)) return "seed must be a whole number from 0";
    if (!read_stop(b, root)) return "stop must be a text or up to 4 texts of 1 to 63 bytes";
    return NULL;
}

/* A text, or a list of parts of which the text ones count. */
static bool add_content(struct tokens *to, const cJSON *content) {
    const cJSON *part;

    if (!content || cJSON_IsNull(content)) return true;
    if (cJSON_IsString(content)) {
        tokens_add_text(to, content->valuestring, strlen(content->valuestring));
        return true;
    }
    if (!cJSON_IsArray(content)) return false;
    cJSON_ArrayForEach(part, content) {
        const cJSON *text = get(part, "text");

        if (cJSON_IsString(text)) tokens_add_text(to, text->valuestring, strlen(text->valuestring));
    }
    return true;
}

/* The chat template: <role> text <end> for each message, and <assistant> at the end. */
static const char *read_messages(struct body *b, const cJSON *messages) {
    const cJSON *message;

    if (!cJSON_IsArray(messages) || cJSON_GetArraySize(messages) == 0)
        return "messages must be a list of messages";
    cJSON_ArrayForEach(message, messages) {
        const cJSON *role = get(message, "role");

        if (!cJSON_IsString(role)) return "a message needs a role";
        tokens_add_special(&b->prompt, role->valuestring);
        if (!add_content(&b->prompt, get(message, "content")))
            return "content must be a text or a list of parts";
        tokens_add_special(&b->prompt, "end");
    }
    tokens_add_special(&b->prompt, "assistant");
    return NULL;
}

static const char *read_prompt(struct body *b, const cJSON *prompt) {
    const cJSON *item;

    if (cJSON_IsArray(prompt) && cJSON_GetArraySize(prompt) == 1 && cJSON_IsString(prompt->child))
        prompt = prompt->child;
    if (cJSON_IsString(prompt)) {
        tokens_add_special(&b->prompt, "begin");
        tokens_add_text(&b->prompt, prompt->valuestring, strlen(prompt->valuestring));
        return NULL;
    }
    if (!cJSON_IsArray(prompt) || !prompt->child) return "prompt must be a text or a list of token ids";
    cJSON_ArrayForEach(item, prompt) {
        if (!cJSON_IsNumber(item)) return "prompt must be one text or one list of token ids";
        tokens_add(&b->prompt, (uint32_t)item->valueint);
    }
    return NULL;
}

static const char *finish(struct body *b, const char *why) {
    if (!why && b->prompt.failed) return "out of memory";
    return why;
}

const char *body_read(struct body *b, const char *json, size_t len, bool chat) {
    cJSON *root;
    const char *why;

    memset(b, 0, sizeof *b);
    b->chat = chat;
    tokens_init(&b->prompt);
    root = json ? cJSON_ParseWithLength(json, len) : NULL;
    if (!cJSON_IsObject(root))
        why = "the body must be a JSON object";
    else
        why = read_settings(b, root);
    if (!why) why = chat ? read_messages(b, get(root, "messages")) : read_prompt(b, get(root, "prompt"));
    cJSON_Delete(root);
    return finish(b, why);
}

const char *body_read_tokenize(struct body *b, const char *json, size_t len) {
    cJSON *root;
    const char *why = "the body must be a JSON object";

    memset(b, 0, sizeof *b);
    tokens_init(&b->prompt);
    root = json ? cJSON_ParseWithLength(json, len) : NULL;
    if (cJSON_IsObject(root)) {
        const cJSON *messages = get(root, "messages");

        why = messages ? read_messages(b, messages) : read_prompt(b, get(root, "prompt"));
    }
    cJSON_Delete(root);
    return finish(b, why);
}

void body_fini(struct body *b) {
    tokens_fini(&b->prompt);
}
