/* Failures on demand. */
#include "samples/simserve/fault.h"

#include "samples/common/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STALL_MS = 600000 };

static const char *const names[] = {
    [FAULT_NONE] = "none",   [FAULT_HTTP_500] = "http500", [FAULT_HTTP_429] = "http429",
    [FAULT_ERROR] = "error", [FAULT_CUT] = "cut",          [FAULT_RESET] = "reset",
    [FAULT_STALL] = "stall"};
enum { N_KINDS = sizeof names / sizeof names[0] };

const char *fault_name(enum fault_kind kind) {
    return names[kind];
}

static bool parse_stall(const char *text, struct fault *out) {
    char *end;
    unsigned long long ms = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || ms == 0 || ms > MAX_STALL_MS) return false;
    *out = (struct fault){.kind = FAULT_STALL, .stall_ms = ms};
    return true;
}

bool fault_parse(const char *text, struct fault *out) {
    if (!strncmp(text, "stall:", 6)) return parse_stall(text + 6, out);
    for (int kind = 0; kind < N_KINDS; kind++) {
        if (kind == FAULT_STALL || strcmp(text, names[kind]) != 0) continue;
        *out = (struct fault){.kind = (enum fault_kind)kind};
        return true;
    }
    return false;
}

static bool parse_how_often(const char *text, double *share, uint64_t *every) {
    char *end;

    if (text[0] == '/') {
        *every = strtoull(text + 1, &end, 10);
        return text[1] >= '0' && text[1] <= '9' && *end == '\0' && *every > 0;
    }
    *share = strtod(text, &end) / 100;
    return end != text && !strcmp(end, "%") && *share >= 0 && *share <= 1;
}

const char *fault_add_rule(const char *text, void *at) {
    struct fault_rules *rules = at;
    const char *equals = strchr(text, '=');
    char kind[32];

    if (rules->n == FAULT_MAX_RULES) return "there are too many failure rules";
    if (!equals || (size_t)(equals - text) >= sizeof kind) return "it must look like cut=5% or stall:800=/40";
    snprintf(kind, sizeof kind, "%.*s", (int)(equals - text), text);
    if (!fault_parse(kind, &rules->rule[rules->n].fault)) {
        return "the kinds are http500, http429, error, cut, reset and stall:MILLISECONDS";
    }
    if (!parse_how_often(equals + 1, &rules->rule[rules->n].share, &rules->rule[rules->n].every)) {
        return "how often is a share as in 5% or a count as in /40 (every 40th)";
    }
    rules->n++;
    return NULL;
}

struct fault fault_pick(const struct fault_rules *rules, uint64_t seed, uint64_t n) {
    for (unsigned i = 0; i < rules->n; i++) {
        bool strikes = rules->rule[i].every
                           ? n % rules->rule[i].every == 0
                           : rng_unit(rng_mix(rng_mix(seed, 77 + i), n)) < rules->rule[i].share;

        if (strikes) return rules->rule[i].fault;
    }
    return (struct fault){.kind = FAULT_NONE};
}
