/* That a text begins with the one before proves little: pieces repeat ("ha", "ha"). Evidence, best first:
 *
 * - as many token ids as there are tokens so far: ids are retold, and no server retells them without the text
 * - the text does not begin with the one before: pieces
 * - the same text and the same ids as before: pieces, since a retold text would hold it twice
 * - it goes on behind RETOLD_SURE bytes or more that were seen before: retold, as that is no chance
 *
 * Ids that are not retold do not prove pieces: servers send new ids beside a text that is retold. */
#include "recorder/dissect/retold.h"

#include <string.h>

static const uint64_t FNV_BASIS = 14695981039346656037u, FNV_PRIME = 1099511628211u;

static uint64_t hash(uint64_t h, const void *p, size_t n) {
    for (const unsigned char *b = p; n > 0; b++, n--) h = (h ^ *b) * FNV_PRIME;
    return h;
}

static uint64_t hash_ids(const struct json *list) {
    uint64_t h = FNV_BASIS;
    int64_t id;
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (json_int(v, &id)) h = hash(h, &id, sizeof id);
    return h;
}

static bool begins_with_seen(const struct choice *c, const char *text, size_t n) {
    return n >= c->text_seen && hash(FNV_BASIS, text, c->text_seen) == c->retold.text_hash;
}

static void settle(struct choice *c, const struct retelling *r, size_t n, uint64_t ids_hash) {
    int64_t n_ids = json_count(r->ids);
    bool told = n_ids > 0 && r->before > 0, seen = c->text_seen > 0;
    bool go_on = told && n_ids == r->running - r->before;
    if (told && n_ids == r->running) {
        c->retold.text = TEXT_RETOLD;
    } else if (r->by_ids && go_on) {
        c->retold.text = TEXT_PIECES;
    } else if (seen && r->text && !begins_with_seen(c, r->text, n)) {
        if (n >= c->text_seen || !r->may_shrink) c->retold.text = TEXT_PIECES;
    } else if (seen && n == c->text_seen && n_ids > 0 && ids_hash == c->retold.ids_hash) {
        c->retold.text = TEXT_PIECES;
    } else if (c->text_seen >= RETOLD_SURE && n > c->text_seen) {
        c->retold.text = TEXT_RETOLD;
    }
}

/* Bytes of a piece, with those that were held for a repetition before it was known to be one. */
static size_t piece(struct choice *c, size_t n) {
    uint64_t held = c->retold.held_bytes;
    c->retold.held_bytes = 0;
    return n + (size_t)held;
}

size_t retold_new_bytes(struct choice *c, const struct retelling *r) {
    size_t n = r->text ? strlen(r->text) : 0;
    if (c->retold.text == TEXT_UNSETTLED) {
        uint64_t ids = hash_ids(r->ids);
        settle(c, r, n, ids);
        c->retold.ids_hash = ids;
    }
    if (c->retold.text == TEXT_PIECES) return piece(c, n);
    size_t fresh = n > c->text_seen ? n - c->text_seen : 0;
    c->retold.held_bytes += n - fresh;
    if (fresh > 0) {
        c->text_seen = n;
        if (c->retold.text == TEXT_UNSETTLED) c->retold.text_hash = hash(FNV_BASIS, r->text, n);
    }
    return fresh;
}
