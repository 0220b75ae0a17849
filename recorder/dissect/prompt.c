/* Parts are told apart by their fields; only media need their type, since their bytes stand in many places.
 */
#include "recorder/dissect/prompt.h"

#include <string.h>

enum { DEPTH_MAX = 8 }; /* a tool result within a message has parts of its own; nothing goes deeper */

void prompt_message(struct prompt *p, const char *role) {
    static const struct {
        const char *role;
        size_t at;
    } roles[] = {
        {"system", offsetof(struct prompt, system)},       {"developer", offsetof(struct prompt, system)},
        {"user", offsetof(struct prompt, user)},           {"tool", offsetof(struct prompt, tool)},
        {"assistant", offsetof(struct prompt, assistant)}, {"model", offsetof(struct prompt, assistant)},
    };
    p->messages++;
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i].role) == 0) ++*(int64_t *)((char *)p + roles[i].at);
}

static bool is_media(const struct json *part) {
    static const char *const types[] = {"image",       "document",           "container_upload",
                                        "input_image", "input_audio",        "input_file",
                                        "image_url",   "computer_screenshot"};
    const char *type = json_text(json_get(part, "type"));
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0) return true;
    return false;
}

static void count(struct prompt *p, const struct json *v, int depth);

static void part(struct prompt *p, const struct json *v, int depth) {
    static const char *const keys[] = {"text", "thinking", "content", "output"};
    const struct json *source = json_get(v, "source"), *inside = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && json_is_null(inside); i++)
        inside = json_get(v, keys[i]);
    const char *type = json_text(json_get(source, "type"));
    if (!json_is_null(inside))
        count(p, inside, depth);
    else if (type && strcmp(type, "text") == 0) /* a document given as text */
        count(p, json_get(source, "data"), depth);
    else if (is_media(v))
        p->media++;
}

static void count(struct prompt *p, const struct json *v, int depth) {
    if (depth == DEPTH_MAX) return;
    p->bytes += (int64_t)json_text_bytes(v);
    if (json_is_object(v)) part(p, v, depth + 1);
    if (!json_is_array(v)) return;
    for (const struct json *e = json_first(v); e; e = json_next(e)) count(p, e, depth + 1);
}

void prompt_content(struct prompt *p, const struct json *content) {
    count(p, content, 0);
}

void prompt_system(struct prompt *p, const struct json *content) {
    if (!json_truthy(content)) return;
    prompt_message(p, "system");
    prompt_content(p, content);
}

void prompt_tell(struct answer *a, const struct prompt *p) {
    const struct {
        enum fact fact;
        int64_t n;
    } rows[] = {{F_messages_system, p->system},
                {F_messages_user, p->user},
                {F_messages_assistant, p->assistant},
                {F_messages_tool, p->tool},
                {F_images, p->media}};
    answer_int(a, F_messages, p->messages);
    answer_int(a, F_prompt_bytes, p->bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].n > 0) answer_int(a, rows[i].fact, rows[i].n);
}
