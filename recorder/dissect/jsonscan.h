/* The few facts of a request's body that is too large, too deep or too cut to be parsed. Pure; takes a JSON
 * object's beginning and never fails. */
#ifndef RECORDER_DISSECT_JSONSCAN_H
#define RECORDER_DISSECT_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonscan {
    const char *model; /* inside the text, as written there; NULL: not seen */
    size_t n_model;
    int stream;                       /* 1, 0, or -1: not seen */
    int64_t max_tokens;               /* -1: not seen */
    int64_t messages, tools, prompts; /* elements of these arrays, as far as seen; -1: not seen */
    bool has_prompt;
};

struct jsonscan jsonscan(const char *p, size_t n);

#endif
