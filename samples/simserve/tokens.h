/*
 * A toy tokenizer and a toy vocabulary. It does not know chats, HTTP or time.
 * Its one hard idea: text to tokens only has to be stable and of a plausible density (about four bytes a
 * token), since the engine looks at nothing but how many tokens there are and which ones are equal.
 */
#ifndef SAMPLES_SIMSERVE_TOKENS_H
#define SAMPLES_SIMSERVE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKENS_EOS = 2 };

/* A growing list of token ids. `failed` is sticky: memory ran out and the list is short. */
struct tokens {
    uint32_t *id;
    size_t n, cap;
    bool failed;
};

void tokens_init(struct tokens *list);
void tokens_fini(struct tokens *list);

void tokens_add(struct tokens *list, uint32_t id);

/* Appends the tokens of UTF-8 text; invalid bytes are tokens of their own. */
void tokens_add_text(struct tokens *list, const char *text, size_t len);

/* A special token, such as the mark in front of a role; never equal to one made from text. */
void tokens_add_special(struct tokens *list, const char *name);

/* The id of the output token at a position of the answer with this key. */
uint32_t tokens_answer(uint64_t key, uint64_t position);

/* The text of an output token ("" for TOKENS_EOS and for ids that are not of the answer vocabulary). */
const char *tokens_text(uint32_t id);

#endif
