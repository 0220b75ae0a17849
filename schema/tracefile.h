/* clang-format off */
/* FILE FORMAT of a trace, byte by byte. Version 1.
 *
 * A file is a head, then blocks, then (when it was closed) a seal. All numbers are little-endian; times are ns on
 * the recording host's monotonic clock; a "tick" is 100 ns (floor of ns / 100); "varint", "zigzag" and "column(n)"
 * are described in bytes.h; crc32 is zlib's.
 *
 * HEAD
 *   offset  size  what
 *        0     8  magic: 89 'T' 'R' 'C' 0d 0a 1a 0a
 *        8     4  format version
 *       12     4  header_size: bytes of the whole head, 72 .. 1 MiB
 *       16     8  required features: a reader that does not know one of the bits must refuse the file
 *       24     8  optional features: a reader may ignore them
 *       32    16  UUID of the recording, the same in all its parts
 *       48     8  number of this part, from 0 on
 *       56     4  salt: random, not 0, stands in each block of this file, so that leftovers of others never fit
 *       60     4  crc32 of bytes 0 .. 59
 *       64     4  number of pairs
 *       68        pairs: u32 length of key, u32 length of value, key, value
 *   end - 4     4  crc32 of bytes 64 .. header_size - 5
 * Bytes 0 .. 63 keep their meaning in every version.
 *
 * A head is valid when
 *   (H1) the file has at least one byte (else: empty) and begins with the magic as far as it goes (else: foreign);
 *        at least 64 bytes are there (else: torn)
 *   (H2) the crc32 at 60 fits (else: damaged)
 *   (H3) the version is at most this one and no unknown bit is required (else: newer)
 *   (H4) header_size lies within its bounds (else: damaged) and the file has as many bytes (else: torn)
 *   (H5) the last crc32 fits and the pairs lie inside (else: the pairs are left out, which is told as damage; the
 *        blocks are read all the same)
 *
 * BLOCK
 *   offset  size  what
 *        0     4  mark: e5 'T' 'B' b7
 *        4     4  the file's salt
 *        8     8  sequence number, from 1 on in each file
 *       16     4  raw length: bytes of the body before compression, at most 4 MiB
 *       20     4  body length: bytes of the body in the file
 *       24     8  first time in the block, ns
 *       32     8  last time in the block, ns
 *       40     4  crc32 of the body as it lies in the file
 *       44     4  crc32 of bytes 0 .. 43
 *       48        body: one zstd frame, on its own
 * The seal is a block with both lengths 0 and ff ff ff ff at 40; its sequence number is that of the block which
 * would have come. Nothing follows it.
 *
 * A block is valid when
 *   (B1) mark and salt fit. The mark is not zero, so that a run of zero bytes is never a block
 *   (B2) the crc32 at 44 fits
 *   (B3) the lengths are within their bounds: both 0 (a seal), or raw 1 .. 4 MiB and body 1 .. 4 MiB + 64 KiB
 *   (B4) the body lies whole within the file
 *   (B5) the crc32 at 40 fits
 *   (B6) the frame inflates to exactly the raw length and the body decodes (below)
 *   (B7) its sequence number was not seen yet: it is the one after the last, or larger
 * The first and last times span every time in the block: events, TIME facts, spans, losses, anchors. In a block
 * that tells old facts again (a snapshot) the first time may lie long before the block was written.
 *
 * READER ALGORITHM
 *   at = header_size
 *   repeat: is there a block at `at` (B1 .. B6)?
 *     yes: tell the gap when its sequence number is larger than the one expected, tell the block unless (B7) fails,
 *          go on after it
 *     no:  look for the next offset after `at` where mark and salt stand and (B2) .. (B5) hold; all up to there is
 *          damage; go on there. None: the rest is the tail
 *   The tail decides the state. No tail: sealed or unsealed. A tail that is the beginning of a block which ends
 *   beyond the file ((B1) as far as its bytes go, (B2), not (B4)) is torn. Any other tail is damage. While the
 *   file is locked a tail is neither: the writer is at it, or will cut it off.
 *   A block outside of the window asked for is not inflated: (B6) is taken for granted.
 * There is no guess in this: an offset inside other data passes for a block with a chance of 2^-96.
 *
 * LOCK
 * The writer holds an OFD write lock (F_OFD_SETLK) over the whole file. It belongs to the open file description,
 * which forwarder and recorder share over fork: it lasts until the last process that has the description open is
 * gone, however it went. Locked and without a seal: growing. Not locked and without a seal: the recorder was
 * killed.
 *
 * SEQUENCE AND LOSS
 * Sequence numbers are given when a block is written, so that a missing number means that the file lost something
 * which had been in it. A block that the writer itself had to drop (disk full, write failed, writer behind) leaves
 * no gap: the next block written has a loss row with its time span, its events and its bytes (estimated, before
 * compression), and the open lines count its events. After such a loss what is open is told once more, as a
 * snapshot.
 *
 * BODY (after inflating)
 *   zigzag  base tick - first tick: times below are relative to the base
 *   then sections, each: u32 (length << 8 | tag), then `length` bytes, all of them used. Tags ascend. A section of an
 *   unknown tag is skipped, and so is a row of an unknown fact, loss or distribution. Counts (n, m) are varints,
 *   at most 131,072: a constant column takes no bytes, so that the bytes alone do not bound them.
 *    2 begins    n, column(n) subject | snapshot << 2, column(n) zigzag id - previous id
 *    4 strings   n, n varint lengths, the bytes. Each distinct text of the block once
 *    6 facts     n, column(n) zigzag id - previous id, column(n) fact << 3 | kind of value, then n values:
 *                  0 zigzag (INT)   1 zigzag tick - base (TIME)   2 8 bytes, IEEE 754 (REAL)
 *                  3 varint index of a string (STR)   4 .. 7 varint length and bytes, for later versions
 *    8 spans     n, then each: varint fact, varint id, zigzag tick - base, zigzag to - from, zigzag number
 *   10 losses    n, then each: varint loss, zigzag tick - base, zigzag to - from, varints count, bytes, request
 *   12 anchors   n, then each: zigzag mono ns - base ns, zigzag wall ns, zigzag uncertainty ns
 *   14 hists     n, then each: varints name, count, sum, max, zigzag t_max ns, varint k, k times (varint buckets
 *                  skipped since the last one, varint count)
 *   16 ends      like begins
 *   18 open      n, column(n) id - previous id - 1 (ids ascend), column(n) events so far,
 *                  column(n) zigzag base - tick of the last event (0 when there was none)
 *   20 events    n events, m runs (the events of one request), 1 byte predictor, zigzag D, zigzag W, then columns
 *                of n numbers, run after run:
 *        time      zigzag step - predicted step, in ticks; a step leads from the event before to this one.
 *                  Predicted: D (predictor 0), or the run's step before (predictor 1), for its first one D. The
 *                  first event of a run without events before (no open line, or 0 in it) steps from the base,
 *                  predicted 0
 *        what      TOK_*
 *        text      text bytes
 *        wire      zigzag wire bytes - text bytes - W
 *        read      zigzag read - previous read - 1; 0 for the first of a run
 *        choice
 *        told      1: a running total was told
 *        running   zigzag running - previous running - 1, the events so far being the one before the first; 0
 *                  when none was told
 *        ids       ids + 1, 32 bits
 *        logprobs  logprobs + 1, 32 bits
 *                then column(m) request - previous request - 1 (requests ascend), column(m) events of the run - 1,
 *                column(m) zigzag first read - events so far
 * "Previous" is 0 for the first of a section, but for the ascending ids of open and events, where it is -1.
 * Differences wrap around at 2^64, so that every value comes back exactly. A request's "events so far" are those
 * of its open line in the same block, else 0. D and W are what the writer finds to fit most events.
 */
/* clang-format on */
#ifndef SCHEMA_TRACEFILE_H
#define SCHEMA_TRACEFILE_H

#include "schema/bytes.h"

#define TRACE_MAGIC      "\x89TRC\r\n\x1a\n"
#define TRACE_FORMAT     1
#define TRACE_REQUIRED   0 /* feature bits this code knows */
#define TRACE_HEAD_FIXED 64
#define TRACE_HEAD_MIN   72
#define TRACE_HEAD_MAX   (1 << 20)

#define BLOCK_MARK     "\xe5TB\xb7"
#define BLOCK_HEADER   48
#define BLOCK_RAW_MAX  (4 << 20)
#define BLOCK_BODY_MAX (BLOCK_RAW_MAX + (64 << 10))
#define BLOCK_ROWS_MAX (1 << 17)
#define BLOCK_SEAL_CRC 0xffffffffu

#define TICK_NS 100

enum section {
    SECTION_BEGINS = 2,
    SECTION_STRINGS = 4,
    SECTION_FACTS = 6,
    SECTION_SPANS = 8,
    SECTION_LOSSES = 10,
    SECTION_ANCHORS = 12,
    SECTION_HISTS = 14,
    SECTION_ENDS = 16,
    SECTION_OPEN = 18,
    SECTION_EVENTS = 20
};

/* The fixed part of a head. */
struct trace_head {
    uint32_t format, header_size;
    uint64_t required, optional;
    uint8_t recording[16];
    uint64_t part;
    uint32_t salt;
};
/* A whole head with its pairs (KEY, VALUE ..., NULL) into out; header_size is found. */
void trace_head_put(struct bytes *out, struct trace_head *h, const char *const *pairs);
/* The fixed part of TRACE_HEAD_FIXED bytes, the magic checked by the caller. False when H2 does not hold. */
bool trace_head_get(struct trace_head *h, const uint8_t *p);

enum value_kind { VALUE_INT, VALUE_TIME, VALUE_REAL, VALUE_STR, VALUE_LATER };

/* ns to ticks, rounded down also below zero (but for the last tick that int64 has room for); and back. */
static inline int64_t to_tick(int64_t ns) {
    return ns / TICK_NS - (ns % TICK_NS < 0 && ns > INT64_MIN + TICK_NS);
}
static inline int64_t from_tick(int64_t tick) {
    return (int64_t)((uint64_t)tick * TICK_NS);
}

#endif
