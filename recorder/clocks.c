/* A pair is monotonic, wall, monotonic: the wall clock was read somewhere between the two, so half their
 * distance bounds the error. A reading that was interrupted is wide; the narrowest is kept. */
#include "recorder/clocks.h"

struct clocks_pair clocks_pair(int tries) {
    struct clocks_pair best = {.uncertainty_ns = INT64_MAX};
    for (int i = 0; i < tries; i++) {
        int64_t before = clocks_mono(), wall = clocks_wall(), after = clocks_mono();
        int64_t half = (after - before + 1) / 2;
        if (half < best.uncertainty_ns) best = (struct clocks_pair){before + half, wall, half};
    }
    return best;
}
