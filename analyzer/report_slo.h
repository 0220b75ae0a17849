/* Goodput: the share and the rate of generations that are ok and meet every limit of --slo (metrics.md 8). */
#ifndef ANALYZER_REPORT_SLO_H
#define ANALYZER_REPORT_SLO_H

#include "analyzer/stats.h"

#include <stdbool.h>
#include <stddef.h>

#define SLO_MOST 8
/* Stands for the p99 of a request's inter-token latencies, which is no metric of the view. */
#define SLO_ITL (-1)

struct report;

struct slo_limit {
    char name[32]; /* the metric's full name: ttft_client */
    int metric;    /* enum metric, or SLO_ITL */
    double ms;
    size_t missed; /* ok requests above it */
};
struct slo {
    struct slo_limit v[SLO_MOST];
    size_t n;
    size_t good, decided, failed, gone; /* gone: left or still running, having broken a limit */
    size_t several;                     /* missed more than one limit */
    size_t without_tokens,
        undecided;         /* not judged: nothing to hold a limit on arrivals against; left or running */
    struct interval share; /* Wilson, 95 % */
};

/* Reads "ttft=500ms,tpot=50ms,e2e=10s". queued: the short names ttft and e2e mean the _queued metrics, since
 * the times meant are a replay's. 0, or 2 after one line on stderr. */
int slo_parse(struct slo *s, const char *text, bool queued);
/* Is a limit on itl among them. */
bool slo_has_itl(const struct slo *s);
/* Judges every generation of r. */
void slo_judge(struct slo *s, const struct report *r);

#endif
