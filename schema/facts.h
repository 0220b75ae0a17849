/* What the log can say: facts, token events, losses. Made from facts.def and losses.def.
 *
 * This is the vocabulary shared by the recorder and the analyzer. It knows neither files nor sockets. */
#ifndef SCHEMA_FACTS_H
#define SCHEMA_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum subject { SUBJECT_R, SUBJECT_C, SUBJECT_T, N_SUBJECTS };
enum fact_type { FACT_TIME, FACT_INT, FACT_REAL, FACT_STR, FACT_SPAN };

enum fact {
#define FACT(subject, name, type, sentence) F_##name,
#include "schema/facts.def"
#undef FACT
    N_FACTS
};

struct fact_info {
    const char *name; /* column name */
    enum subject subject;
    enum fact_type type;
    const char *sentence; /* what it means, its unit */
};
extern const struct fact_info fact_infos[N_FACTS];

enum loss {
#define LOSS(name, severity, side, meaning, remedy) LOSS_##name,
#include "schema/losses.def"
#undef LOSS
    N_LOSSES
};

struct loss_info {
    const char *name, *severity, *side, *meaning, *remedy;
};
extern const struct loss_info loss_infos[N_LOSSES];

/* Longest text a STR fact keeps, bytes; longer ones are cut and counted as LOSS_fact_cut. */
#define FACT_STR_MAX 1024

/* What an event of a stream carried for one choice. Bits of tok_event.what. */
enum {
    TOK_CONTENT = 1,    /* answer text */
    TOK_REASONING = 2,  /* reasoning text */
    TOK_REFUSAL = 4,    /* refusal text */
    TOK_TOOL = 8,       /* tool-call data, the name included */
    TOK_AUDIO = 16,     /* audio data */
    TOK_SUMMARY = 32,   /* a summary of reasoning: sets the first token's time, bears no token. Beside
                           TOK_REASONING: its text has a share of the total, but gaps are not known */
    TOK_FINISH = 64,    /* a finish reason */
    TOK_STOP = 128,     /* that reason is another one than length */
    TOK_CONTRACT = 256, /* one token by the API's contract (TGI) */
    TOK_ECHO = 512,     /* echoed prompt: no output */
    TOK_TEXT = TOK_CONTENT | TOK_REASONING | TOK_REFUSAL | TOK_TOOL | TOK_AUDIO,
    TOK_ALL = 1023
};

/* One event of a stream, for one choice, as it was seen. Nothing here is computed over several events. Logged
 * for every event that carries text, a finish, or a count; role-only, keep-alive, comment and [DONE] events
 * are not logged. */
struct tok_event {
    uint64_t request;    /* ordinal of the request */
    int64_t t_ns;        /* the read that completed the event; kept to 100 ns */
    uint64_t read;       /* ordinal of that read within the request: events of one read share it */
    uint32_t choice;     /* index of the choice */
    uint32_t what;       /* TOK_* */
    uint32_t text_bytes; /* decoded UTF-8 bytes of content, reasoning, refusal, tool name and arguments */
    uint32_t wire_bytes; /* bytes of the event in the body, its framing (data:, blank line) included */
    int64_t running;     /* cumulative output tokens told by this event, else -1 */
    int32_t ids;         /* token ids of this event (disjoint lists), else -1 */
    int32_t logprobs;    /* entries of its logprob list, else -1 */
};

#endif
