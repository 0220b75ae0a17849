/* Anchors in order, found by halving. Sums are unsigned, since a damaged trace may bring any numbers. */
#include "analyzer/wall.h"

#include <stdlib.h>
#include <string.h>

/* How many anchors are at or before mono_ns. */
static size_t upto(const struct wall *w, int64_t mono_ns) {
    size_t lo = 0, hi = w->n;
    if (hi > 0 && w->at[hi - 1].mono_ns <= mono_ns) return hi;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (w->at[mid].mono_ns <= mono_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool wall_add(struct wall *w, int64_t mono_ns, int64_t wall_ns) {
    if (w->n == w->room) {
        size_t room = w->room ? w->room * 2 : 64;
        struct wall_anchor *p = realloc(w->at, room * sizeof *p);
        if (!p) return false;
        w->at = p;
        w->room = room;
    }
    size_t i = upto(w, mono_ns);
    memmove(w->at + i + 1, w->at + i, (w->n - i) * sizeof *w->at);
    w->at[i] = (struct wall_anchor){mono_ns, wall_ns};
    w->n++;
    return true;
}

bool wall_of(const struct wall *w, int64_t mono_ns, int64_t *wall_ns) {
    if (w->n == 0) return false;
    size_t i = upto(w, mono_ns);
    const struct wall_anchor *a = &w->at[i ? i - 1 : 0];
    *wall_ns = (int64_t)((uint64_t)a->wall_ns + (uint64_t)mono_ns - (uint64_t)a->mono_ns);
    return true;
}

void wall_free(struct wall *w) {
    free(w->at);
    *w = (struct wall){0};
}
