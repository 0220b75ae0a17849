/* What the forwarder tells the recorder: pieces of flows, in the order in which they happened.
 *
 * A piece is a fixed header and, for PIECE_DATA, the bytes that were forwarded. It lives in the ring between
 * the two processes and nowhere else: pieces hold prompts and keys. Knows no HTTP beyond "a message's head
 * starts here". */
#ifndef RECORDER_PIECE_H
#define RECORDER_PIECE_H

#include <stdint.h>

enum piece_kind {
    /* The ring's own: skip to the ring's start. */
    PIECE_PAD = 0,
    /* A client was accepted. value: index of the --proxy/--upstream pair; bytes: the peer's address as struct
     * sockaddr (none for a Unix socket). With PIECE_RESUMED this flow was open already, when the recorder was
     * restarted or when an earlier OPEN found no room; off and value2 are then the stream offsets reached at
     * that moment, off of DIR_UP, value2 of DIR_DOWN: what lies before them is not told again. */
    PIECE_OPEN,
    /* The connect to the upstream ended. t_ns: when; t2_ns: when it began; value: errno or 0. */
    PIECE_CONNECTED,
    /* Bytes of one read, dir says from where; see struct piece. */
    PIECE_DATA,
    /* All bytes before off of dir's stream were handed over; t_ns: right before the write that did it. Told
     * for DIR_UP when a DATA piece could not carry its own t2_ns. */
    PIECE_WROTE,
    /* End of input from dir's sender at offset off. */
    PIECE_FIN,
    /* dir's sender is gone: ECONNRESET on read, or EPIPE, ECONNRESET or ETIMEDOUT on write to it. value:
     * errno; off: what was read from it. */
    PIECE_RESET,
    /* Reading of dir was paused since the other side is slow. value: bytes waiting. */
    PIECE_PAUSE,
    /* Reading of dir goes on. t2_ns: when the pause began. */
    PIECE_RESUME,
    /* The client's kernel acknowledged all bytes before off. */
    PIECE_DELIVERED,
    /* The forwarder itself answered since the upstream was not there. value: status (502) or 0 (a reset);
     * value2: errno. */
    PIECE_ANSWERED,
    /* Both sides are closed; the last piece of a flow. value: 1 when cut by our own stop. */
    PIECE_CLOSE,
    /* value: enum loss; t_ns to t2_ns: span; off: count; value2: bytes; flow: 0 or the flow. Of what finds no
     * room only pieces that were not queued are told so; bytes shed from queued ones are in n_shed. */
    PIECE_LOSS,
    /* The loop stood still from t_ns to t2_ns. */
    PIECE_STALL,
    /* An upstream refused from t_ns to t2_ns. value: pair. */
    PIECE_DOWN,
    /* SIGUSR1. value: ordinal. */
    PIECE_MARK,
    /* t_ns: monotonic; t2_ns: wall clock at it; value: uncertainty in ns. */
    PIECE_CLOCK,
    /* SIGHUP: begin a next part. */
    PIECE_ROTATE,
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
    int64_t t2_ns;    /* DATA in DIR_UP: right before the write of all of it; 0: not yet, WROTE follows */
    uint64_t off;     /* DATA: stream offset of the first byte in its direction */
    uint64_t head_at; /* DATA: where the first message head that starts in it begins, else NO_OFFSET */
    uint64_t end_at;  /* DATA: offset behind the last message that ended in it, else NO_OFFSET */
    uint32_t n_bytes; /* that follow the header */
    uint32_t n_shed;  /* DATA: bytes of this read, behind the n_bytes, left out since the ring was too full */
    uint32_t late_ns; /* DATA: clock right after the read minus kernel time; capped; 0 without kernel time */
    uint32_t spare;
    int64_t value, value2;
};

#endif
