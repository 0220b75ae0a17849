/* Buckets: durations below 16 ns have one each; above, the top bit picks the doubling and the next four bits
 * the part. */
#include "schema/hist.h"

const char *const hist_names[N_HISTS] = {
#define X(name, sentence) #name,
    HIST_NAMES(X)
#undef X
};

unsigned hist_bucket(uint64_t ns) {
    if (ns < HIST_SUB) return (unsigned)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns);
    unsigned b = (top - 3) * HIST_SUB + (unsigned)((ns >> (top - 4)) & (HIST_SUB - 1));
    return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

uint64_t hist_lowest(unsigned bucket) {
    if (bucket < HIST_SUB) return bucket;
    unsigned top = bucket / HIST_SUB + 3;
    return ((uint64_t)HIST_SUB + bucket % HIST_SUB) << (top - 4);
}

void hist_add(struct hist *h, int64_t ns, int64_t t_ns) {
    uint64_t v = ns > 0 ? (uint64_t)ns : 0;
    h->bucket[hist_bucket(v)]++;
    h->count++;
    h->sum_ns += v;
    if (v >= h->max_ns) h->max_ns = v, h->t_max_ns = t_ns;
}

uint64_t hist_quantile(const struct hist *h, double p) {
    uint64_t seen = 0, want = (uint64_t)(p * (double)h->count);
    for (unsigned b = 0; b < HIST_BUCKETS; b++) {
        seen += h->bucket[b];
        if (seen > want || (seen == h->count && seen > 0)) {
            uint64_t top = hist_lowest(b + 1) - 1;
            return top < h->max_ns ? top : h->max_ns;
        }
    }
    return 0;
}
