/* From the events of a stream to its tokens and arrivals: metrics.md 2 and the sums over arrivals of 3.
 *
 * Pure: takes the events of one request and the facts it needs, knows neither traces nor SQL. Its one hard
 * idea: how many tokens an event carries is only decided when all of it is known, so events are kept packed
 * until then. */
#ifndef ANALYZER_ATTRIBUTE_H
#define ANALYZER_ATTRIBUTE_H

#include "analyzer/arrivals.h"
#include "schema/facts.h"

#define ATTRIBUTE_NONE INT64_MIN /* a fact that was not seen, a result that is absent */

/* An event of a stream, packed: 32 bytes, since streams of millions of events are held whole. Counts that do
 * not fit are held at the largest that does. */
struct attribute_event {
    int64_t t_ns;
    uint32_t read, text_bytes, wire_bytes;
    uint32_t running; /* count told, ATTRIBUTE_NO_RUNNING: none; after attribute(): the event's tokens */
    uint16_t choice, what, ids, logprobs; /* ids, logprobs: ATTRIBUTE_NO_COUNT: none */
};
#define ATTRIBUTE_NO_RUNNING UINT32_MAX
#define ATTRIBUTE_NO_COUNT   UINT16_MAX

/* Makes room for n elements of a growable array; false without memory. */
bool attribute_room(void **p, size_t *room, size_t n, size_t size);

struct attribute_events {
    struct attribute_event *e;
    size_t n, room;
    uint32_t choices; /* highest index of a choice + 1 */
};
/* Appends n events, in order of time. False without memory: nothing was appended. */
bool attribute_push(struct attribute_events *v, const struct tok_event *e, size_t n);
void attribute_free(struct attribute_events *v);

struct attribute_pause {
    int64_t from_ns, to_ns;
};

/* What is asked of the request besides its events; absent: ATTRIBUTE_NONE. */
struct attribute_facts {
    int64_t t_end_ns;
    int64_t cut_ns; /* events after this are no arrivals: the client had left, or pieces were lost */
    int64_t t_first_summary_ns;
    int64_t output_tokens_told, reasoning_tokens, reasoning_bytes, rejected_prediction_tokens;
    bool lost, prediction, streamed;
    int64_t window_ns; /* reads this close to the first of an arrival belong to it; 0: none */
    const struct attribute_pause *pauses; /* ascending */
    size_t n_pauses;
};

enum token_source {
    SOURCE_NONE, /* no event bears a token */
    SOURCE_TOKEN_IDS,
    SOURCE_RUNNING_USAGE,
    SOURCE_ENGINE_EVENT,
    SOURCE_LOGPROBS,
    SOURCE_PRORATED,
    SOURCE_EVENTS
};
/* As it stands in the column token_source; NULL for SOURCE_NONE. */
const char *token_source_name(enum token_source s);

struct attribution {
    enum token_source source;
    const char *grade;      /* exact, prorated, events; NULL without an arrival */
    const char *itl_absent; /* as in the column; NULL: gaps are known */
    int64_t output_tokens, hidden_tokens, token_mismatch;
    int64_t t_first_token_ns, t_first_answer_ns, t_last_token_ns;
    uint64_t token_events, n_arrivals, series, tokens_seen, tokens_first;
    uint64_t series_tokens, series_arrivals, backpressured;
    int64_t series_span_ns, gap_max_ns;
    bool buffered;
    struct arrival *arrivals; /* n_arrivals, series by series; the attributor's, until its next use */
};

/* Memory kept from request to request. Zero is ready to use. */
struct attributor {
    struct arrival *arrivals, *sorted;
    size_t arrivals_room, sorted_room;
    struct attribute_choice *choices;
    size_t choices_room;
    uint64_t *rests;
    size_t rests_room;
};
void attributor_free(struct attributor *a);

/* Attributes one request; the events are changed. False without memory. */
bool attribute(struct attributor *a, struct attribute_events *v, const struct attribute_facts *f,
               struct attribution *out);

#endif
