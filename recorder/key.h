/* The key of all keyed hashes: 32 random bytes in the user's state folder, made at first use, never in a
 * trace. */
#ifndef RECORDER_KEY_H
#define RECORDER_KEY_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_BYTES 32

/* Reads the key, or makes it ($XDG_STATE_HOME/tracerec/key, else ~/.local/state/tracerec/key, mode 0600).
 * false: it could neither be read nor kept; key then holds random bytes good for this recording only. */
bool key_load(uint8_t key[KEY_BYTES]);

#endif
