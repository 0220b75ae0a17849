/* A chained hash by ordinal: open ones are few, and ids of a recording follow each other, so the id is its
 * own hash. */
#include "analyzer/load_open.h"

#include <stdlib.h>
#include <string.h>

struct open_subject *open_find(const struct open_set *s, uint64_t id) {
    if (s->n == 0) return NULL;
    struct open_subject *o = s->buckets[id & (s->n_buckets - 1)];
    while (o && o->id != id) o = o->next;
    return o;
}

static bool grow(struct open_set *s) {
    size_t n = s->n_buckets ? s->n_buckets * 2 : 64;
    struct open_subject **b = calloc(n, sizeof(struct open_subject *));
    if (!b) return false;
    for (size_t i = 0; i < s->n_buckets; i++)
        for (struct open_subject *o = s->buckets[i], *next; o; o = next) {
            next = o->next;
            o->next = b[o->id & (n - 1)];
            b[o->id & (n - 1)] = o;
        }
    free(s->buckets);
    s->buckets = b;
    s->n_buckets = n;
    return true;
}

struct open_subject *open_get(struct open_set *s, uint64_t id) {
    struct open_subject *o = open_find(s, id);
    if (o) return o;
    if (s->n >= s->n_buckets && !grow(s)) return NULL;
    o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->id = id;
    o->t_lost_ns = ATTRIBUTE_NONE;
    struct open_subject **b = &s->buckets[id & (s->n_buckets - 1)];
    o->next = *b;
    *b = o;
    s->n++;
    return o;
}

void open_take(struct open_set *s, struct open_subject *o) {
    struct open_subject **p = &s->buckets[o->id & (s->n_buckets - 1)];
    while (*p && *p != o) p = &(*p)->next;
    if (!*p) return;
    *p = o->next;
    s->n--;
}

void open_drop(struct open_subject *o) {
    for (int f = 0; f < N_FACTS; f++)
        if (o->facts[f].kind == VALUE_IS_TEXT) free(o->facts[f].s);
    attribute_free(&o->events);
    free(o->pauses);
    free(o);
}

void open_free(struct open_set *s) {
    for (size_t i = 0; i < s->n_buckets; i++)
        for (struct open_subject *o = s->buckets[i], *next; o; o = next) {
            next = o->next;
            open_drop(o);
        }
    free(s->buckets);
    *s = (struct open_set){0};
}

static struct value *emptied(struct open_subject *o, enum fact f) {
    struct value *v = &o->facts[f];
    if (v->kind == VALUE_IS_TEXT) free(v->s);
    v->kind = VALUE_ABSENT;
    return v;
}

bool open_set_text(struct open_subject *o, enum fact f, const char *p, size_t n) {
    struct value *v = emptied(o, f);
    v->s = malloc(n + 1);
    if (!v->s) return false;
    memcpy(v->s, p, n);
    v->s[n] = 0;
    v->n = (uint32_t)n;
    v->kind = VALUE_IS_TEXT;
    return true;
}

void open_set_int(struct open_subject *o, enum fact f, int64_t i) {
    struct value *v = emptied(o, f);
    v->kind = VALUE_IS_INT;
    v->i = i;
}

void open_set_real(struct open_subject *o, enum fact f, double r) {
    struct value *v = emptied(o, f);
    v->kind = VALUE_IS_REAL;
    v->r = r;
}

bool open_add_pause(struct open_subject *o, int64_t from_ns, int64_t to_ns) {
    if (!attribute_room((void **)&o->pauses, &o->pauses_room, o->n_pauses + 1, sizeof *o->pauses))
        return false;
    o->pauses[o->n_pauses++] = (struct attribute_pause){from_ns, to_ns};
    return true;
}

int64_t open_int(const struct open_subject *o, enum fact f, int64_t fallback) {
    return o->facts[f].kind == VALUE_IS_INT ? o->facts[f].i : fallback;
}

void open_lose(struct open_subject *o, int64_t t_ns) {
    o->lost = true;
    if (o->t_lost_ns == ATTRIBUTE_NONE || t_ns < o->t_lost_ns) o->t_lost_ns = t_ns;
}
