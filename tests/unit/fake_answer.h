/* One request and its answer, handed to a dialect piece by piece, and what it says of them held against what
 * is right. Needs fake_trw.h. */
#ifndef TESTS_FAKE_ANSWER_H
#define TESTS_FAKE_ANSWER_H

#include "recorder/dissect/dialect.h"

/* Around all tests of a program. d: the dialect that answers are in unless they show another. */
void fake_answer_start(const struct dialect *d);
void fake_answer_stop(void);

/* Around each request. end() holds that nothing was leaked or misused. */
void begin(void);
void end(void);

void asked(const char *path, const char *body);
void event(const char *data); /* of a stream, without a name */
void named(const char *name, const char *data);
void body(const char *text); /* a whole response */
void status(unsigned status);

/* What was told, after end(). hold: -1 for nothing. hold_text: NULL for nothing. */
void hold(enum fact f, int64_t right);
void hold_text(enum fact f, const char *right);
void hold_event(size_t i, uint32_t what, uint32_t text_bytes, int64_t running);
size_t n_events(void);

struct row {
    const char *path, *body, *api;
};
/* Each request is in the API of its row. */
void hold_apis(const struct row *rows, size_t n);

#endif
