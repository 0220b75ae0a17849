/*
 * The prefix cache: which leading blocks of a prompt the engine still holds. It does not know sequences or
 * time. Its one hard idea: a block's key is the hash of its tokens and of the key of the block before, so an
 * equal key means an equal whole prefix, and a look-up needs no tree.
 */
#ifndef SAMPLES_SIMSERVE_PREFIX_H
#define SAMPLES_SIMSERVE_PREFIX_H

#include <stddef.h>
#include <stdint.h>

struct prefix;

/* A cache of at most max_blocks blocks of block_tokens tokens; max_blocks 0 caches nothing. NULL: no memory.
 */
struct prefix *prefix_new(size_t max_blocks, unsigned block_tokens);
void prefix_free(struct prefix *cache);

/* How many leading tokens of the prompt are cached, in whole blocks and never the whole prompt: the last
 * token is always computed, since it yields the first output. Blocks found become the most recently used
 * ones. */
size_t prefix_match(struct prefix *cache, const uint32_t *tokens, size_t n);

/* Remembers all whole blocks of a prompt; the least recently used ones give way. */
void prefix_insert(struct prefix *cache, const uint32_t *tokens, size_t n);

/* Blocks held now. */
size_t prefix_blocks(const struct prefix *cache);

#endif
