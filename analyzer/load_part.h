/* One file of a trace: its head, what is wrong with it in one line, and its reading into a recording. */
#ifndef ANALYZER_LOAD_PART_H
#define ANALYZER_LOAD_PART_H

#include "analyzer/inputs.h"
#include "analyzer/load_recording.h"

struct part {
    const char *path, *name; /* the input's */
    uint8_t recording[16];
    uint64_t part;
    size_t order;   /* place on the command line */
    uint64_t bytes; /* size of the file when it was opened */
    char *recorder; /* owned; NULL: the head does not say */
};

/* Reads the head. 0, or an exit status after one line on stderr. */
int part_open(struct part *p, const struct input *in, size_t order);
void part_free(struct part *p);
/* The line for a file that is no trace that can be read; returns its exit status. */
int part_refuse(const struct input *in, enum trr_state state, const char *why);
int part_no_memory(void);

struct progress;
/* Reads the part's blocks into r and stores what the file itself says: its head and its state. */
enum trr_state part_read(struct part *p, struct recording *r, struct store *s, struct progress *progress);
/* One line on stderr (unless quiet and harmless) about a state that is not sealed. True when it is damage. */
bool part_say_state(const struct part *p, enum trr_state state, bool quiet);

/* A progress bar on a terminal's stderr; it appears when a load takes longer than half a second. */
struct progress {
    bool on, shown;
    uint64_t all_bytes, done_bytes; /* of the parts read before the one at hand */
    const struct trr *reader;
    int64_t next_ns; /* when to draw again */
    unsigned blocks;
};
void progress_begin(struct progress *p, bool quiet);
void progress_block(void *progress);
void progress_end(struct progress *p);

#endif
