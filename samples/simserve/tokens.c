/* The toy tokenizer: pieces of words by character class, ids by hash. */
#include "samples/simserve/tokens.h"

#include "samples/common/rng.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ANSWER = 1000, FIRST_TEXT = 4096, N_TEXT_IDS = 120000, FIRST_SPECIAL = 128000 };

/* Quotes, a line end and characters of two, three and four bytes are here so that the JSON needs escapes. */
static const char *const words[] = {" the",
                                    " a",
                                    " of",
                                    " and",
                                    " to",
                                    " in",
                                    " on",
                                    " at",
                                    " with",
                                    " from",
                                    " harbour",
                                    " tide",
                                    " lantern",
                                    " rope",
                                    " sail",
                                    " keel",
                                    " wind",
                                    " gull",
                                    " mast",
                                    " deck",
                                    " anchor",
                                    " bell",
                                    " chart",
                                    " north",
                                    " south",
                                    " east",
                                    " west",
                                    " fog",
                                    " bank",
                                    " reef",
                                    " turns",
                                    " rises",
                                    " holds",
                                    " falls",
                                    " waits",
                                    " drifts",
                                    " opens",
                                    " closes",
                                    " pulls",
                                    " keeps",
                                    " slow",
                                    " bright",
                                    " heavy",
                                    " quiet",
                                    " cold",
                                    " broad",
                                    " narrow",
                                    " steady",
                                    " grey",
                                    " deep",
                                    ",",
                                    ".",
                                    " \"aye\"",
                                    "\n",
                                    " caf\xc3\xa9",
                                    " \xe2\x80\x93",
                                    " \xf0\x9f\x8c\x8a",
                                    ";",
                                    " then",
                                    " again"};
enum { N_WORDS = sizeof words / sizeof words[0] };

void tokens_init(struct tokens *list) {
    memset(list, 0, sizeof *list);
}

void tokens_fini(struct tokens *list) {
    free(list->id);
}

void tokens_add(struct tokens *list, uint32_t id) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 256;
        uint32_t *grown = realloc(list->id, cap * sizeof *grown);

        if (!grown) {
            list->failed = true;
            return;
        }
        list->id = grown;
        list->cap = cap;
    }
    list->id[list->n++] = id;
}

static bool is_letter(unsigned char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}
static bool is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}

/* The length of the piece at the start of text: [space] up to six letters, up to three digits, or one
 * character. */
static size_t piece(const char *text, size_t len) {
    size_t start = text[0] == ' ' && len > 1 && is_letter((unsigned char)text[1]);
    size_t n = start;

    while (n < len && n < start + 6 && is_letter((unsigned char)text[n])) n++;
    if (n > start) return n;
    while (n < len && n < 3 && is_digit((unsigned char)text[n])) n++;
    if (n > 0) return n;
    n = 1;
    if ((unsigned char)text[0] < 0xc0) return n;
    while (n < len && n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80) n++;
    return n;
}

static uint64_t hash_bytes(const char *text, size_t len) {
    uint64_t h = len;

    for (size_t i = 0; i < len; i++) h = rng_mix(h, (unsigned char)text[i]);
    return h;
}

void tokens_add_text(struct tokens *list, const char *text, size_t len) {
    while (len > 0 && !list->failed) {
        size_t n = piece(text, len);

        tokens_add(list, FIRST_TEXT + (uint32_t)(hash_bytes(text, n) % N_TEXT_IDS));
        text += n;
        len -= n;
    }
}

void tokens_add_special(struct tokens *list, const char *name) {
    tokens_add(list, FIRST_SPECIAL + (uint32_t)(hash_bytes(name, strlen(name)) % 256));
}

uint32_t tokens_answer(uint64_t key, uint64_t position) {
    return FIRST_ANSWER + (uint32_t)(rng_mix(key, position) % N_WORDS);
}

const char *tokens_text(uint32_t id) {
    if (id < FIRST_ANSWER || id >= FIRST_ANSWER + N_WORDS) return "";
    return words[id - FIRST_ANSWER];
}
