/* Wall-clock time of an instant on the monotonic clock, by the anchors of a recording. Pure. */
#ifndef ANALYZER_WALL_H
#define ANALYZER_WALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wall_anchor {
    int64_t mono_ns, wall_ns;
};
struct wall {
    struct wall_anchor *at; /* mono_ns ascending */
    size_t n, room;
};

/* Adds an anchor, in any order (usually the latest so far). False without memory. */
bool wall_add(struct wall *w, int64_t mono_ns, int64_t wall_ns);
/* ns since the epoch at mono_ns, by the anchor nearest before it (the first one, where none is before). False
 * when there is no anchor. */
bool wall_of(const struct wall *w, int64_t mono_ns, int64_t *wall_ns);
void wall_free(struct wall *w);

#endif
