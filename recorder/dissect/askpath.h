/* What a request's path says where its body does not: the model, and whether a stream is asked for. */
#ifndef RECORDER_DISSECT_ASKPATH_H
#define RECORDER_DISSECT_ASKPATH_H

#include "recorder/dissect/answer.h"

/* Tells the model of /deployments/NAME/ (Azure), /models/NAME:method (Gemini, Vertex, Triton) and
 * /model/NAME/ (Bedrock) unless the body told one, and F_stream of methods that are streams, or their twins
 * that are not.
 */
void askpath_read(struct answer *a, const char *path);

#endif
