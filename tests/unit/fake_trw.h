/* A stand-in for the trace writer: keeps what it is told, for tests to look at. */
#ifndef TESTS_FAKE_TRW_H
#define TESTS_FAKE_TRW_H

#include "schema/trw.h"

struct fake_span {
    uint64_t id;
    enum fact fact;
    int64_t t0_ns, t1_ns, value;
};
struct fake_loss {
    enum loss loss;
    uint64_t count, bytes, request;
};

/* Any non-NULL pointer will do as the writer; there is one state. */
struct trw *fake_trw(void);
void fake_reset(void);

/* The last value of a fact of a request, connection or the recording (id 0); false: not told. */
bool fake_int(uint64_t id, enum fact f, int64_t *v);
bool fake_real(uint64_t id, enum fact f, double *v);
const char *fake_str(uint64_t id, enum fact f); /* NULL: not told */
/* An integer fact, or `absent`. */
int64_t fake_get(uint64_t id, enum fact f, int64_t absent);

const struct tok_event *fake_events(size_t *n);
const struct fake_span *fake_spans(size_t *n);
const struct fake_loss *fake_losses(size_t *n);
uint64_t fake_loss_count(enum loss l); /* sum of its counts */
size_t fake_begun(enum subject s), fake_ended(enum subject s);
bool fake_misused(void); /* a fact of a subject that was not begun, or was ended */
/* All facts, events and losses of request id as text; the caller frees it. Reads are left out: they depend on
 * how the bytes were cut. */
char *fake_dump(uint64_t id);
/* True when `needle` stands in any text told. */
bool fake_holds(const char *needle);

#endif
