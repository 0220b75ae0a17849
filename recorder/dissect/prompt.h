/* The messages of a request, counted: what APIs ask in different shapes, told under the same facts. */
#ifndef RECORDER_DISSECT_PROMPT_H
#define RECORDER_DISSECT_PROMPT_H

#include "recorder/dissect/answer.h"

struct prompt {
    int64_t messages, system, user, assistant, tool; /* messages, and those of each role */
    int64_t media;                                   /* image, audio or file parts */
    int64_t bytes;                                   /* UTF-8 bytes of text */
};

/* Counts a message by its role; an unknown or missing role counts as a message alone. */
void prompt_message(struct prompt *p, const char *role);
/* Counts text and media of a content value: a text, a part, or a list of parts, parts within parts included.
 * Tool calls among them are no prompt text. */
void prompt_content(struct prompt *p, const struct json *content);
/* A text that stands beside the messages and is one of the system's; absent and empty count nothing. */
void prompt_system(struct prompt *p, const struct json *content);
void prompt_tell(struct answer *a, const struct prompt *p);

#endif
