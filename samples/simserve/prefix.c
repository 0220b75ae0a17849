/* The prefix cache: a hash table of block keys whose entries also form one list by time of use. */
#include "samples/simserve/prefix.h"

#include "samples/common/rng.h"

#include <stdlib.h>

enum { NIL = 0 };

/* Entries are numbered from 1, so that zeroed memory is an empty table. */
struct entry {
    uint64_t key;
    uint32_t chain;        /* next entry of the same bucket */
    uint32_t newer, older; /* list by time of use */
};

struct prefix {
    unsigned block_tokens;
    size_t max, n;
    size_t n_buckets; /* a power of two */
    uint32_t *bucket;
    struct entry *entry;
    uint32_t newest, oldest;
};

struct prefix *prefix_new(size_t max_blocks, unsigned block_tokens) {
    struct prefix *c = calloc(1, sizeof *c);

    if (!c) return NULL;
    c->max = max_blocks;
    c->block_tokens = block_tokens;
    for (c->n_buckets = 64; c->n_buckets < max_blocks; c->n_buckets *= 2) {
    }
    c->bucket = calloc(c->n_buckets, sizeof *c->bucket);
    c->entry = calloc(max_blocks + 1, sizeof *c->entry);
    if (c->bucket && c->entry) return c;
    prefix_free(c);
    return NULL;
}

void prefix_free(struct prefix *c) {
    if (!c) return;
    free(c->bucket);
    free(c->entry);
    free(c);
}

static uint64_t block_key(uint64_t before, const uint32_t *tokens, unsigned n) {
    uint64_t key = before;

    for (unsigned i = 0; i < n; i++) key = rng_mix(key, tokens[i]);
    return key;
}

static uint32_t find(const struct prefix *c, uint64_t key) {
    uint32_t at = c->bucket[key & (c->n_buckets - 1)];

    while (at != NIL && c->entry[at].key != key) at = c->entry[at].chain;
    return at;
}

static void list_remove(struct prefix *c, uint32_t at) {
    struct entry *e = &c->entry[at];

    if (e->newer)
        c->entry[e->newer].older = e->older;
    else
        c->newest = e->older;
    if (e->older)
        c->entry[e->older].newer = e->newer;
    else
        c->oldest = e->newer;
}

static void list_add_newest(struct prefix *c, uint32_t at) {
    c->entry[at].older = c->newest;
    c->entry[at].newer = NIL;
    if (c->newest)
        c->entry[c->newest].newer = at;
    else
        c->oldest = at;
    c->newest = at;
}

static void unchain(struct prefix *c, uint32_t at) {
    uint32_t *link = &c->bucket[c->entry[at].key & (c->n_buckets - 1)];

    while (*link != at) link = &c->entry[*link].chain;
    *link = c->entry[at].chain;
}

static uint32_t take_slot(struct prefix *c) {
    uint32_t at = c->oldest;

    if (c->n < c->max) return (uint32_t)++c->n;
    list_remove(c, at);
    unchain(c, at);
    return at;
}

/* The last block goes first: when the cache must drop a part of a chain it drops the end, which alone is
 * useless. */
static void touch_from_the_end(struct prefix *c, uint64_t *keys, size_t n) {
    while (n-- > 0) {
        uint32_t at = find(c, keys[n]);

        if (at == NIL) continue;
        list_remove(c, at);
        list_add_newest(c, at);
    }
}

static uint64_t *chain_keys(const struct prefix *c, const uint32_t *tokens, size_t n_blocks) {
    uint64_t *keys = malloc((n_blocks + 1) * sizeof *keys);
    uint64_t key = c->block_tokens;

    for (size_t i = 0; keys && i < n_blocks; i++) {
        key = block_key(key, tokens + i * c->block_tokens, c->block_tokens);
        keys[i] = key;
    }
    return keys;
}

size_t prefix_match(struct prefix *c, const uint32_t *tokens, size_t n) {
    size_t n_blocks = n ? (n - 1) / c->block_tokens : 0;
    uint64_t *keys = chain_keys(c, tokens, n_blocks);
    size_t hit = 0;

    if (!keys) return 0;
    while (hit < n_blocks && find(c, keys[hit]) != NIL) hit++;
    touch_from_the_end(c, keys, hit);
    free(keys);
    return hit * c->block_tokens;
}

static void add(struct prefix *c, uint64_t key) {
    uint32_t at = take_slot(c);
    uint32_t *head = &c->bucket[key & (c->n_buckets - 1)];

    c->entry[at].key = key;
    c->entry[at].chain = *head;
    *head = at;
    list_add_newest(c, at);
}

void prefix_insert(struct prefix *c, const uint32_t *tokens, size_t n) {
    size_t n_blocks = n / c->block_tokens;
    uint64_t *keys;

    if (n_blocks > c->max) n_blocks = c->max;
    keys = chain_keys(c, tokens, n_blocks);
    if (!keys) return;
    /* First: or adding the missing blocks could push out the very ones that precede them. */
    touch_from_the_end(c, keys, n_blocks);
    for (size_t i = 0; i < n_blocks; i++) {
        if (find(c, keys[i]) == NIL) add(c, keys[i]);
    }
    touch_from_the_end(c, keys, n_blocks);
    free(keys);
}

size_t prefix_blocks(const struct prefix *c) {
    return c->n;
}
