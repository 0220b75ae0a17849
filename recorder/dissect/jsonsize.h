/* Size of a JSON value as text: of tool arguments that come as values and not as text. */
#ifndef RECORDER_DISSECT_JSONSIZE_H
#define RECORDER_DISSECT_JSONSIZE_H

#include "recorder/dissect/json.h"

/* Bytes of v written without white space, its texts as UTF-8 without escapes; 0 when it is absent. */
size_t jsonsize(const struct json *v);

#endif
