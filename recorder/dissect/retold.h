/* Texts of which it is not said whether an event tells them from the beginning or goes on where the last one
 * ended. */
#ifndef RECORDER_DISSECT_RETOLD_H
#define RECORDER_DISSECT_RETOLD_H

#include "recorder/dissect/answer.h"

/* An event of such a text. */
struct retelling {
    const char *text;       /* NULL: it has none */
    const struct json *ids; /* its token ids; NULL: it has none */
    int64_t running;        /* tokens up to and with this event; -1: not told */
    int64_t before;         /* tokens up to the event before */
    bool may_shrink;        /* a matched stop string may have been cut off again */
    bool by_ids;            /* lists of ids that go on say that the text does, too */
};

/* Bytes of the event's text that are new. As long as it is not settled which of the two it is, the text is
 * taken for retold; it is settled at the choice's second event with text nearly always. What was taken for a
 * repetition until then is told with the event that shows pieces: the sum is right, an event before it short.
 */
#define RETOLD_SURE 16
size_t retold_new_bytes(struct choice *c, const struct retelling *r);

#endif
