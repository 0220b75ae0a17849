/* The arrivals of one request as one delta-coded blob, and back.
 *
 * An arrival (metrics.md 2) belongs to one choice. In the blob the series of choices follow each other, each
 * in order of time. Pure: knows neither SQL nor traces. */
#ifndef ANALYZER_ARRIVALS_H
#define ANALYZER_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arrival {
    int64_t t_ns;       /* the first read of the arrival, CLOCK_MONOTONIC of the recorder, to 100 ns */
    uint32_t choice;    /* index of the choice */
    uint32_t tokens;    /* k >= 1 */
    uint32_t events;    /* bearing events in it */
    uint32_t reads;     /* reads that brought them */
    uint32_t bytes;     /* bytes of these events on the wire */
    bool backpressured; /* the gap before it overlaps a pause of reading made for a slow client */
};

/* Upper bound of the blob's size for n arrivals, bytes. */
size_t arrivals_bound(size_t n);
/* Writes n arrivals (series by series, ascending t_ns within) and returns the bytes written. base_ns is
 * t_forwarded or, where that is unknown, t_arrive; the reader must give the same. */
size_t arrivals_encode(const struct arrival *a, size_t n, int64_t base_ns, unsigned char *out);

struct arrivals_reader {
    const unsigned char *p, *end;
    int64_t base_ns;
    struct arrival last;
};
void arrivals_read(struct arrivals_reader *r, const void *blob, size_t n_bytes, int64_t base_ns);
/* The next one; false at the end, or where the blob is damaged (r->p is then NULL). A change of a.choice
 * begins a series. */
bool arrivals_next(struct arrivals_reader *r, struct arrival *a);

#endif
