/* Where the trace goes: its name, and the file, made without overwriting or following anything. Used by both
 * processes: the forwarder begins the first part, the recorder the next ones. */
#ifndef RECORDER_OUTPUT_H
#define RECORDER_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    char path[PATH_MAX];
    char dir[PATH_MAX]; /* with a slash behind it; "" unless a folder was given */
};

/* Names the first part. given: FILE, DIR/, or NULL for trace-<UTC>.trc in the working folder. False: too
 * long. */
bool output_name(struct output *o, const char *given);
/* Names a next part: in trace_dir when there is one (not NULL, not ""), else trace_path with the number
 * before its extension. False: too long. */
bool output_next_part(const char *trace_path, const char *trace_dir, unsigned part, char *path, size_t size);
/* Makes the file, for reading and writing, 0600. -1: errno, and err says why not and what to do. */
int output_open(const char *path, char *err, size_t err_size);
/* errno of output_open is one that passes by itself when space is freed or the disk comes back. */
bool output_may_come(int err);
/* The free space below which recording pauses by default: 1 GB or 5 % of path's disk, the smaller; bytes. */
uint64_t output_min_free(const char *path);

#endif
