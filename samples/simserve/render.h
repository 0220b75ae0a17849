/*
 * Answers as JSON in the shape of vLLM's OpenAI server. It does not know connections or time.
 * Every function answers a text for render_free, or NULL when memory ran out.
 */
#ifndef SAMPLES_SIMSERVE_RENDER_H
#define SAMPLES_SIMSERVE_RENDER_H

#include "samples/simserve/gen.h"

/* The first event of a chat stream, for one choice. */
char *render_role(const struct gen *g, unsigned choice);

/* The event of the choice's last n tokens with its text from..until (finish and stop reason when it is done).
 */
char *render_delta(const struct gen_choice *ch, size_t from, size_t until, unsigned n);

/* The event with the whole usage and without choices. */
char *render_usage_event(const struct gen *g);

/* The answer of a request that does not stream. */
char *render_answer(const struct gen *g);

char *render_error(const char *message, const char *type, int code);
char *render_models(const char *model, uint64_t max_len);
char *render_tokens(const struct tokens *tokens, uint64_t max_len);

void render_free(char *json);

#endif
