/* One block of a trace in memory, and its two forms on disk: the body, the framed block around it.
 *
 * The same rows are filled by the writer (block_encode makes bytes of them) and by the reader (block_decode
 * makes rows of bytes); tracefile.h describes the bytes. Knows no file, no thread, and nothing outside the
 * block. The one idea: token events are never rows on the reader's side. Their columns stay where they
 * are in the body until they are told, checked as a whole before. */
#ifndef SCHEMA_BLOCK_H
#define SCHEMA_BLOCK_H

#include "schema/bytes.h"
#include "schema/facts.h"
#include "schema/hist.h"
#include "schema/tracefile.h"

#define ROWS(type)                                                                                           \
    struct {                                                                                                 \
        type *at;                                                                                            \
        size_t n, cap;                                                                                       \
    }
/* Pointer to a new zeroed row at the end, NULL when memory ran out. */
#define ROWS_ADD(rows) rows_add(&(rows)->at, &(rows)->n, &(rows)->cap, sizeof *(rows)->at)
void *rows_add(void *at, size_t *n, size_t *cap, size_t size);

/* A request that is open at the block's start. */
struct block_line {
    uint64_t request, events; /* events in earlier blocks */
    int64_t last_ns;          /* time of the last of them; 0 when there is none */
};
struct block_subject {
    uint64_t id;
    enum subject subject;
    bool snapshot;
};
struct block_fact {
    uint64_t id;
    uint32_t fact;
    enum value_kind kind;
    union {
        int64_t i; /* INT; TIME in ns */
        double r;
        struct {
            uint32_t at, n; /* STR: where in block.text */
        };
    };
};
struct block_span {
    uint64_t id;
    uint32_t fact;
    int64_t t0_ns, t1_ns, value;
};
struct block_loss {
    uint32_t loss;
    int64_t t0_ns, t1_ns;
    uint64_t count, bytes, request;
};
struct block_anchor {
    int64_t mono_ns, wall_ns, uncertainty_ns;
};
/* The events of one request in the block. */
struct block_run {
    uint64_t request;
    size_t first, n;   /* in the columns, or (writer) n alone */
    uint64_t read;     /* reader: first read */
    uint64_t so_far;   /* events before the block, from the open line */
    int64_t last_tick; /* of the event before, or the base */
};

enum event_column {
    EV_TIME,
    EV_WHAT,
    EV_TEXT,
    EV_WIRE,
    EV_READ,
    EV_CHOICE,
    EV_TOLD,
    EV_RUNNING,
    EV_IDS,
    EV_LOGPROBS,
    EV_COLUMNS
};

struct block {
    int64_t first_ns, last_ns; /* of the times in it; first > last: none yet */
    int64_t base_tick;
    ROWS(struct block_line) lines;
    ROWS(struct block_subject) begins;
    ROWS(struct block_subject) ends;
    ROWS(struct block_fact) facts;
    ROWS(struct block_span) spans;
    ROWS(struct block_loss) losses;
    ROWS(struct block_anchor) anchors;
    ROWS(struct block_run) runs;
    ROWS(struct tok_event) events; /* writer only, in the order they came */
    ROWS(uint32_t) event_run;      /* writer only: index in runs of each event */
    struct hist *hists[N_HISTS];   /* owned, allocated on first use */
    uint32_t hists_set;            /* bit per distribution told in this block */
    struct bytes text;             /* texts of facts (reader: views the body) */
    bool text_borrowed;
    size_t weight; /* writer only: bytes of the body, estimated */
    /* reader only */
    size_t n_events;
    unsigned predictor;
    uint64_t step, wire_base; /* D and W */
    struct column columns[EV_COLUMNS];
};

/* Takes all rows out, keeps the memory. */
void block_clear(struct block *b);
void block_free(struct block *b);
bool block_empty(const struct block *b);
static inline void block_time(struct block *b, int64_t t_ns) {
    if (t_ns < b->first_ns) b->first_ns = t_ns;
    if (t_ns > b->last_ns) b->last_ns = t_ns;
}

#define SPLITS_MAX 16
/* The writer's side: body, frame, and what is reused from block to block. Zero it before first use. */
struct encoder {
    struct bytes raw, out;
    size_t split[SPLITS_MAX]; /* offsets in raw where bytes of another kind begin: a hint to the compressor */
    unsigned n_splits;
    size_t noise;     /* where in raw the columns of times begin that run up to the events' lowest bytes */
    uint64_t *column; /* scratch: numbers of one column */
    const struct tok_event **ev; /* scratch: events grouped by run */
    struct block_run *run;       /* scratch: runs by request */
    size_t cap;                  /* of the three */
    void *zstd;                  /* ZSTD_CCtx */
};
void encoder_free(struct encoder *e);

/* Body of b into e->raw. Sorts b->lines. False when memory ran out or the body would be too large. */
bool block_encode(struct encoder *e, struct block *b);
bool block_encode_events(struct encoder *e, const struct block *b);
/* e->raw as a whole block (header and frame) in e->out. */
bool block_seal_up(struct encoder *e, uint32_t salt, uint64_t seq, int64_t first_ns, int64_t last_ns);
/* The sequence number and checksums of the block in e->out, set anew. */
void block_header_finish(uint8_t *block, uint64_t seq);
/* A seal into out[BLOCK_HEADER]. */
void block_put_seal(uint8_t *out, uint32_t salt, uint64_t seq, int64_t t_ns);

struct block_header {
    uint64_t seq;
    uint32_t raw_bytes, body_bytes; /* both 0: a seal */
    int64_t first_ns, last_ns;
    uint32_t body_crc;
};
/* Checks B1 to B3 on BLOCK_HEADER bytes. Returns NULL when they hold, else what does not. */
const char *block_header_get(struct block_header *h, const uint8_t *p, uint32_t salt);

/* Inflates a body to exactly n bytes at `to`. */
bool block_inflate(void *zstd_dctx, uint8_t *to, size_t n, const uint8_t *body, size_t body_n);
/* Decodes an inflated body into b, which refers to raw until cleared. False: it does not decode, b is to be
 * cleared. Any bytes may be given. */
bool block_decode(struct block *b, const uint8_t *raw, size_t n, int64_t first_ns);
bool block_decode_events(struct block *b, struct cursor *c);

/* Where one is in telling a run's events. */
struct run_at {
    size_t done;
    uint64_t tick, step, read, running;
};
/* The next up to EVENTS_CHUNK events of a run; 0 at its end. at is zeroed before the first call. */
#define EVENTS_CHUNK 128
size_t block_events(const struct block *b, const struct block_run *run, struct run_at *at,
                    struct tok_event *out);

#endif
