/* What a request asks and its response says, as it becomes known: the place where dialects leave what they
 * read.
 *
 * Knows JSON and the trace writer, neither HTTP nor flows. Times and sizes of events are set by the caller
 * before it hands on an event. */
#ifndef RECORDER_DISSECT_ANSWER_H
#define RECORDER_DISSECT_ANSWER_H

#include "recorder/dissect/json.h"
#include "recorder/dissect/pool.h"
#include "recorder/dissect/sse.h"
#include "recorder/dissect/template.h"
#include "recorder/shared.h"
#include "schema/trw.h"

struct dialect;

/* Flags of answer.has. */
enum { ANSWER_INT = 1, ANSWER_REAL = 2, ANSWER_BY_USAGE = 4 };

#define ANSWER_CHOICES_MAX 256                 /* choices and tool calls of a response that are told apart */
#define ANSWER_ARGS_MAX    ((size_t)256 << 10) /* bytes of one tool call's arguments that are checked */

#define RETOLD_COUNTS 8

/* What is remembered of a choice whose events may tell its text again from the beginning (SGLang), each with
 * counts of its own. */
struct retold {
    enum { TEXT_UNSETTLED, TEXT_RETOLD, TEXT_PIECES } text;
    uint64_t held_bytes;          /* of texts so far that counted as told before */
    uint64_t text_hash, ids_hash; /* while unsettled: of the bytes seen, of the last event's token ids */
    int64_t counts[RETOLD_COUNTS];
};

struct choice {
    int64_t index;
    char finish[48];
    bool finished;
    bool finish_counted; /* an event with its finish was seen */
    int64_t echo_left;   /* bytes of the echoed prompt still to come; -1: it lasts until its first event */
    int64_t told;        /* output tokens by its latest running count */
    uint64_t text_seen;  /* bytes of a text that is told again from its beginning with each event */
    struct retold retold;
};

/* What a tool call's arguments are. */
enum tool_args {
    ARGS_TEXT,   /* a text that should be JSON, or none */
    ARGS_VALUES, /* values inside the body's own JSON: valid as they stand */
    ARGS_FREE,   /* free text: nothing to be checked */
};

struct tool_call {
    int64_t choice, index;
    struct buf args;
    enum tool_args args_are;
    bool too_long; /* the arguments were not kept whole */
};

struct answer {
    /* where facts go */
    struct trw *trw;
    struct shared *shared;
    struct pool *pool;
    const uint8_t *key; /* of hashes */
    uint64_t id;

    const struct dialect *dialect;
    bool recognised;   /* the response's JSON has shown which dialect it is, or that it is none */
    bool asked;        /* the request's api was told */
    bool may_generate; /* the method is one of generations */
    bool asked_model, echo;
    int64_t echo_bytes; /* of the prompt that is echoed; -1: not known */
    unsigned status;
    bool streamed;

    /* the event at hand */
    int64_t t_ns;
    uint64_t read;
    uint32_t wire_bytes;
    const char *event_name; /* "" without one and in a whole body; borrowed */

    /* facts of which the last value counts; told when the response ends */
    int64_t latest[N_FACTS];
    uint8_t has[N_FACTS];
    uint8_t told[N_FACTS]; /* texts that were told and stay */

    struct choice *choices;
    struct tool_call *tools;
    size_t n_choices, n_tools;
    bool more_choices, more_tools; /* than are told apart */
    bool total_of_choice;   /* the total told last is one choice's count: theirs add up (choice.told) */
    int64_t beside_running; /* output tokens that are in no running count (Gemini's thoughts) */
    uint64_t events, bearing, bad_events, repairs, text_bytes, reasoning_bytes, stop_finishes,
        length_finishes;
    bool blind;               /* a part of the response was not read */
    bool done, typed_end;     /* [DONE]; the API's own last event or field */
    bool ended, stream_error; /* a finish reason was seen */

    struct templates templates;
    const char *plain_path;       /* set while an event is read: it is plain but for the text at this path */
    struct tok_event plain_event; /* what it said */
};

/* Facts that are told at once. Text is made valid UTF-8 and cut; NULL and empty are not told. */
void answer_int(struct answer *a, enum fact f, int64_t v);
void answer_text(struct answer *a, enum fact f, const char *p, size_t n);
/* The same once: what comes later is ignored. */
void answer_text_once(struct answer *a, enum fact f, const struct json *v);
void answer_loss(struct answer *a, enum loss l, uint64_t count, uint64_t bytes);

/* Keeps a value; a later one takes its place. Absent, null and what is no number keep nothing. */
void answer_keep(struct answer *a, enum fact f, int64_t v);
/* The same for a count that changes with each event: templates have a hole for it. A zero replaces none. */
void answer_keep_running(struct answer *a, enum fact f, int64_t v);
void answer_keep_count(struct answer *a, enum fact f, const struct json *v); /* nor does a negative number */
void answer_keep_real(struct answer *a, enum fact f, const struct json *v);
/* A count that is a total. Some servers write zeros where they have no count: a zero replaces none. */
void answer_keep_total(struct answer *a, enum fact f, const struct json *v);
/* A duration: v times unit_ns, rounded. */
void answer_keep_ns(struct answer *a, enum fact f, const struct json *v, double unit_ns);

/* The choice of that index, made when it is new. NULL: there are too many. */
struct choice *answer_choice(struct answer *a, int64_t index);
/* A running count that one choice told: where several did, and no total came after, the total is their sum.
 */
void answer_count_of_choice(struct answer *a, int64_t index, int64_t running);
/* A finish reason, as told. Whether it is the length is said by the event's TOK_STOP. */
void answer_finish(struct answer *a, struct choice *c, const char *reason);
/* A piece of a tool call: counted once, its arguments kept for a check. The call; NULL: there are too many.
 */
struct tool_call *answer_tool(struct answer *a, int64_t choice, int64_t index, const char *args);
/* Logs an event of a choice when it carries text, a finish, a count or ids. */
void answer_event(struct answer *a, struct tok_event *e);
/* An error object or text inside a body. */
void answer_error(struct answer *a, const struct json *error, const struct json *root);

/* -- for whoever has the bodies */
void answer_take_request(struct answer *a, const char *method, const char *path, const char *p, size_t n,
                         bool whole);
void answer_take_event(struct answer *a, const struct event *e);
void answer_take_body(struct answer *a, const char *p, size_t n, bool whole);
/* The response is over, whole or not: tells what was kept. */
void answer_end(struct answer *a);
void answer_free(struct answer *a);

#endif
