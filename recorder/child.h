/* The recorder's process: started before there is any thread, restarted when it dies.
 *
 * Knows processes and descriptors; what the recorder does is record_run's. */
#ifndef RECORDER_CHILD_H
#define RECORDER_CHILD_H

#include "recorder/record.h"

#include <sys/types.h>

struct child {
    struct record_config config;
    pid_t pid; /* 0: none runs */
};

/* Forks it. False: errno tells why not. */
bool child_start(struct child *c);
/* Looks whether it has died, without waiting. True: it has; *status is waitpid's. */
bool child_reap(struct child *c, int *status);
/* It died of a fault of its own, which the piece it was at may have caused. */
bool child_died_of_fault(int status);
/* Waits for its end, at most limit_ns. True: it ended with exit status 0. */
bool child_wait(struct child *c, int64_t limit_ns);

#endif
