/* What Bedrock wraps around a model's own events when a model is invoked with a response stream. */
#ifndef RECORDER_DISSECT_BEDROCK_INVOKE_H
#define RECORDER_DISSECT_BEDROCK_INVOKE_H

#include "recorder/dissect/answer.h"

/* Takes a frame of an AWS event stream: of {"bytes": base64} the model's event inside is read as if it had
 * come alone, and the counts and times that Bedrock puts into it are kept; any other frame is read as it is.
 */
void bedrock_invoke_event(struct answer *a, const struct event *e);

#endif
