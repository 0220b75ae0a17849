/* The text report: its page, and the blocks that print to it in order. Only report_*.c include this. */
#ifndef ANALYZER_REPORT_PAGE_H
#define ANALYZER_REPORT_PAGE_H

#include "analyzer/report.h"
#include "analyzer/table.h"

struct page {
    const struct report *r;
    sqlite3 *db;
    const struct args *o;
    const struct show_mode *m;
    FILE *f;
};

/* A line of items that goes on in the next one, indented, when it is full. */
struct para {
    const struct page *p;
    size_t at, indent, gap;
    bool begun; /* an item stands in the line */
};
/* Begins with a label padded to indent columns; gap blanks stand between items. */
void para_begin(struct para *w, const struct page *p, const char *label, size_t indent, size_t gap);
/* Appends one item, never broken. Made safe to print; our own symbols follow the mode. */
void para_item(struct para *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a sentence, broken between words where it must be. */
void para_words(struct para *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void para_end(struct para *w);

/* "from -> to" of a metric out of definitions, with the mode's arrow; "" when there is none. out: 64 bytes.
 */
const char *page_from_to(const struct page *p, const char *metric, char *out, size_t size);
/* The inputs as they can be pasted behind a command, shortened when there are many. */
const char *page_inputs(const struct page *p, char *out, size_t size);

void page_head(const struct page *p);
void page_losses(const struct page *p);
void page_outcomes(const struct page *p);
void page_over_time(const struct page *p);
void page_latency(const struct page *p);
void page_cache(const struct page *p);
void page_throughput(const struct page *p);
void page_speculation(const struct page *p);
void page_goodput(const struct page *p);
void page_foot(const struct page *p);
/* The page of at most 20 generations: each its own row. False after one line on stderr. */
bool page_few(const struct page *p);
/* Why there is no generation. */
void page_none(const struct page *p);

/* The latency table in the order of the screen; columns that do not fit into width are left out (0: none is).
 */
struct grid *latency_grid(const struct page *p, size_t width);
struct grid *cache_grid(const struct page *p, bool narrow);
/* Is the metric one that --columns asks for. */
bool page_asked(const struct page *p, const char *metric);

#endif
