/* What the APIs of the OpenAI family share: usage objects, choices, and what engines ride on them. */
#ifndef RECORDER_DISSECT_OPENAI_COMMON_H
#define RECORDER_DISSECT_OPENAI_COMMON_H

#include "recorder/dissect/dialect.h"

/* Text, reasoning, refusal, audio and tool data of one choice go into e; what is plain text of one path is
 * said in a->plain_path. */
typedef void openai_texts(struct answer *a, const struct json *choice, struct tok_event *e);

/* What changes with each event beside its text. */
enum { OPENAI_HOLES = 5 };
extern const struct hole_path openai_holes[OPENAI_HOLES];

/* Reads an event or a whole body: ids, usage and timings, then each choice with texts(). */
void openai_read(struct answer *a, const struct json *root, openai_texts *texts);
/* Usage, timings, metrics and their kin, wherever they stand in root. The running count of output tokens that
 * root tells, or -1. */
int64_t openai_usage(struct answer *a, const struct json *root);
/* Tells F_spec_histogram of a list of whole numbers; anything else tells nothing. */
void openai_histogram(struct answer *a, const struct json *list);
/* Facts of a request. */
void openai_request(struct answer *a, const struct json *body);
/* The constraint on the output that a request asks for, NULL: none. */
const char *openai_schema(const struct json *body);
/* Bytes of text in a content value: a string or a list of parts. Parts that are no text are counted in
 * *n_media when it is not NULL. */
size_t openai_content_bytes(const struct json *content, int64_t *n_media);

#endif
