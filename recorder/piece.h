/* What the forwarder tells the recorder: pieces of flows, in the order in which they happened.
 *
 * A piece is a fixed header and, for PIECE_DATA, the bytes that were forwarded. It lives in the ring between
 * the two processes and nowhere else: pieces hold prompts and keys. Knows no HTTP beyond "a message's head
 * starts here". */
#ifndef RECORDER_PIECE_H
#define RECORDER_PIECE_H

#include <stdint.h>

enum piece_kind {
    PIECE_PAD = 0,   /* ring's own: skip to the ring's start */
    PIECE_OPEN,      /* a client was accepted. value: index of the --proxy/--upstream pair; bytes: the peer's
                        address as      struct sockaddr (0 bytes for a unix socket). flags PIECE_RESUMED: the
                        recorder      was restarted and      this flow was already open: off/value2 tell the two
                        directions' offsets
                      */
    PIECE_CONNECTED, /* the connect to the upstream ended. t_ns: when, t2_ns: when it began, value: errno or 0
                      */
    PIECE_DATA,      /* bytes of one read, dir says from where; see struct piece */
    PIECE_WROTE,  /* dir, off: all bytes of that direction's stream before off were handed over; t_ns: right
                     before the  write that did it. Told for DIR_UP when a DATA piece could not carry its own
                     t2_ns */
    PIECE_FIN,    /* end of input from dir's sender at offset off. t_ns */
    PIECE_RESET,  /* dir's sender is gone: ECONNRESET on read, or EPIPE/ECONNRESET/ETIMEDOUT on write to it.
                     value: errno */
    PIECE_PAUSE,  /* reading of dir was paused since the other side is slow. value: bytes waiting */
    PIECE_RESUME, /* reading of dir goes on. t_ns; t2_ns: when the pause began */
    PIECE_DELIVERED, /* the client's kernel acknowledged all bytes before off. t_ns */
    PIECE_ANSWERED,  /* the forwarder itself answered since the upstream was not there. value: status (502) or
                        0 (reset),  value2: errno */
    PIECE_CLOSE,     /* both sides closed; the last piece of a flow. value: 1 when cut by our own stop */
    PIECE_LOSS,   /* value: enum loss; t_ns .. t2_ns: span; off: count; value2: bytes; flow: 0 or the flow */
    PIECE_STALL,  /* the loop stood still. t_ns .. t2_ns */
    PIECE_DOWN,   /* an upstream refused from t_ns to t2_ns. value: pair */
    PIECE_MARK,   /* SIGUSR1. value: ordinal */
    PIECE_CLOCK,  /* t_ns: monotonic, t2_ns: wall clock at it, value: uncertainty ns */
    PIECE_ROTATE, /* SIGHUP: begin a next part */
    N_PIECE_KINDS
};

enum dir { DIR_UP, DIR_DOWN }; /* from the client to the upstream; from the upstream to the client */

enum { PIECE_RESUMED = 1, PIECE_KERNEL_TIME = 2 };

#define NO_OFFSET UINT64_MAX

/* 88 bytes, then n_bytes bytes, padded to 8. */
struct piece {
    uint32_t size;    /* of header, bytes and padding; set by the ring */
    uint16_t kind;    /* enum piece_kind */
    uint8_t dir;      /* enum dir */
    uint8_t flags;    /* PIECE_RESUMED; PIECE_KERNEL_TIME: t_ns is the kernel's receive time */
    uint64_t flow;    /* ordinal of the client's connection, from 1 */
    int64_t t_ns;     /* when, CLOCK_MONOTONIC. DATA: the read */
    int64_t t2_ns;    /* DATA in DIR_UP: right before the write that handed all of it over; 0: not yet, WROTE
                         follows */
    uint64_t off;     /* DATA: stream offset of the first byte in its direction */
    uint64_t head_at; /* DATA: offset at which the first message head starting in this piece begins, else
                         NO_OFFSET */
    uint64_t end_at;  /* DATA: offset behind the last message that ended in this piece, else NO_OFFSET */
    uint32_t n_bytes; /* bytes that follow the header */
    uint32_t n_shed;  /* DATA: bytes of this read that do not follow since the ring was too full; after the
                         n_bytes */
    uint32_t late_ns; /* DATA: clock right after the read minus kernel time; capped; 0 without kernel time */
    uint32_t spare;
    int64_t value, value2;
};

#endif
