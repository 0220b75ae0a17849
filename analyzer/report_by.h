/* The report by groups: --by COLUMN,...: one row for each value (or combination) of these columns. */
#ifndef ANALYZER_REPORT_BY_H
#define ANALYZER_REPORT_BY_H

#include "analyzer/report_page.h"

enum { GROUP_TTFT, GROUP_TPOT, GROUP_E2E, N_GROUP_METRICS };

struct group {
    char **values;               /* one for each column; NULL: absent */
    size_t n, ok, hits, classed; /* classed: ok requests that have a cache class */
    struct summary s[N_GROUP_METRICS];
};
struct groups {
    char **columns; /* as shown: hit_band, model */
    size_t n_columns;
    struct group *v; /* largest n first, then by their values */
    size_t n;
};

/* Groups the generations of r by a comma list of columns. 0, or an exit status after one line on stderr.
 * groups_free in any case. */
int groups_read(struct groups *g, struct report *r, sqlite3 *db, const char *by);
void groups_free(struct groups *g);

int groups_text(const struct groups *g, const struct page *p);
int groups_markdown(const struct groups *g, const struct page *p);
int groups_csv(const struct groups *g, const struct report *r, FILE *f);
int groups_json(const struct groups *g, const struct report *r, FILE *f);

#endif
