/* What the forwarder tells the recorder, and what it leaves out when the queue between them fills up.
 *
 * Never waits. Knows pieces and the ring, neither sockets nor HTTP. Everything left out is counted once:
 * bytes shed from a piece that is queued are told by that piece (n_shed), pieces that are not even queued are
 * counted for their flow and told as a loss as soon as there is room. Pieces that say how a request or a flow
 * ended are told late rather than never. */
#ifndef RECORDER_TAP_H
#define RECORDER_TAP_H

#include "recorder/ring.h"
#include "schema/facts.h"

/* Something that was left out: between when and when, how many pieces, how many bytes of traffic. */
struct tap_gap {
    int64_t from_ns, to_ns;
    uint64_t pieces, bytes;
};

/* A flow's part of the tap, embedded in whoever owns the flow. */
struct tap_flow {
    uint64_t id;
    struct tap_gap dropped; /* not told yet */
    bool known;             /* the recorder has been told of it: it must learn of its end */
    bool unopened;          /* its OPEN was dropped: to be told anew, as resumed, before its next bytes */
    uint64_t epoch, in_epoch, in_last_epoch; /* bytes queued, to know its share of the ring */
    struct tap_flow *prev, *next;            /* among those with something to tell */
};

enum { TAP_LATE_MAX = 4096 };

struct tap {
    struct ring *ring;
    bool gone;                  /* no recorder process: nothing is queued */
    bool congested;             /* went above 75 % and not yet below 50 % */
    int64_t budget;             /* bytes that may be queued before the ring is looked at again */
    size_t used;                /* at the last look */
    uint64_t queued;            /* bytes ever queued */
    uint64_t epoch, epoch_ends; /* an epoch ends when the consumer has passed this position */
    struct tap_flow common;     /* id 0: what concerns no flow, or one that is closed */
    struct tap_flow *untold;
    struct piece late[TAP_LATE_MAX]; /* without bytes; a queue, waiting for room */
    size_t late_first, n_late;
    struct tap_gap total_shed, total_dropped, without_recorder; /* for the summary */
};

void tap_init(struct tap *t, struct ring *ring);
void tap_flow_begin(struct tap_flow *f, uint64_t id);
/* Tells what is left to tell of f, then close, its last piece. What finds no room is told later; f may be
 * freed at once. */
void tap_flow_end(struct tap *t, struct tap_flow *f, struct piece close);

/* Any piece but DATA and CLOSE. f may be NULL: flow 0. */
void tap_push(struct tap *t, struct tap_flow *f, struct piece p);
/* Likewise, followed by p.n_bytes bytes. */
void tap_push_bytes(struct tap *t, struct tap_flow *f, struct piece p, const void *bytes);
/* A DATA piece of p.n_bytes bytes. When bytes must be shed, those at stream offsets [keep_from, keep_to) are
 * kept if there is room. */
void tap_data(struct tap *t, struct tap_flow *f, struct piece p, const char *bytes, uint64_t keep_from,
              uint64_t keep_to);
void tap_loss(struct tap *t, enum loss l, struct tap_gap g, uint64_t flow);

/* To be called each second: tells what waits to be told when there is room. */
void tap_tick(struct tap *t);
/* The recorder is gone, or there is one again (what was missed meanwhile is told). */
void tap_set_gone(struct tap *t, bool gone);

#endif
