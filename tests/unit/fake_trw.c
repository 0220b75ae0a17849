/* Linear lists: tests tell little. Ids of requests and connections are kept apart by the fact's subject. */
#include "tests/unit/fake_trw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct told {
    uint64_t id;
    enum fact fact;
    int64_t i;
    double r;
    char *s;
};

static struct {
    struct told *facts;
    struct tok_event *events;
    struct fake_span *spans;
    struct fake_loss *losses;
    size_t n_facts, n_events, n_spans, n_losses;
    struct {
        enum subject s;
        uint64_t id;
        bool ended;
    } * subjects;
    size_t n_subjects;
    bool misused;
} state;

#define MORE(array, n) ((array) = realloc((array), ((n) + 1) * sizeof *(array)), &(array)[(n)++])

struct trw *fake_trw(void) {
    return (struct trw *)&state;
}

void fake_reset(void) {
    for (size_t i = 0; i < state.n_facts; i++) free(state.facts[i].s);
    free(state.facts);
    free(state.events);
    free(state.spans);
    free(state.losses);
    free(state.subjects);
    memset(&state, 0, sizeof state);
}

static void check(enum subject s, uint64_t id) {
    if (s == SUBJECT_T) return;
    for (size_t i = state.n_subjects; i-- > 0;)
        if (state.subjects[i].s == s && state.subjects[i].id == id) {
            if (state.subjects[i].ended) state.misused = true;
            return;
        }
    state.misused = true;
}

static struct told *fact(uint64_t id, enum fact f, enum fact_type a, enum fact_type b) {
    check(fact_infos[f].subject, id);
    if (fact_infos[f].type != a && fact_infos[f].type != b) state.misused = true;
    for (size_t i = 0; i < state.n_facts; i++)
        if (state.facts[i].id == id && state.facts[i].fact == f) return &state.facts[i];
    struct told *t = MORE(state.facts, state.n_facts);
    *t = (struct told){.id = id, .fact = f};
    return t;
}

/* -- the writer's calls */
struct trw *trw_open(const struct trw_config *config, char *err, size_t err_size) {
    return fake_trw();
}
void trw_begin(struct trw *w, enum subject s, uint64_t id) {
    (void)w;
    for (size_t i = 0; i < state.n_subjects; i++)
        if (state.subjects[i].s == s && state.subjects[i].id == id) state.misused = true;
    void *p = MORE(state.subjects, state.n_subjects);
    (void)p;
    state.subjects[state.n_subjects - 1].s = s;
    state.subjects[state.n_subjects - 1].id = id;
    state.subjects[state.n_subjects - 1].ended = false;
}
void trw_end(struct trw *w, enum subject s, uint64_t id) {
    check(s, id);
    for (size_t i = 0; i < state.n_subjects; i++)
        if (state.subjects[i].s == s && state.subjects[i].id == id) state.subjects[i].ended = true;
}
void trw_int(struct trw *w, uint64_t id, enum fact f, int64_t value) {
    fact(id, f, FACT_INT, FACT_TIME)->i = value;
}
void trw_real(struct trw *w, uint64_t id, enum fact f, double value) {
    fact(id, f, FACT_REAL, FACT_REAL)->r = value;
}
void trw_str(struct trw *w, uint64_t id, enum fact f, const char *p, size_t n) {
    struct told *t = fact(id, f, FACT_STR, FACT_STR);
    free(t->s);
    t->s = strndup(p, n);
}
void trw_span(struct trw *w, uint64_t id, enum fact f, int64_t t0_ns, int64_t t1_ns, int64_t value) {
    check(fact_infos[f].subject, id);
    *MORE(state.spans, state.n_spans) = (struct fake_span){id, f, t0_ns, t1_ns, value};
}
void trw_event(struct trw *w, const struct tok_event *e) {
    check(SUBJECT_R, e->request);
    *MORE(state.events, state.n_events) = *e;
}
void trw_loss(struct trw *w, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
              uint64_t request) {
    *MORE(state.losses, state.n_losses) = (struct fake_loss){l, count, bytes, request};
}
void trw_anchor(struct trw *w, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {}
void trw_hist(struct trw *w, enum hist_name name, const struct hist *h) {}
void trw_tick(struct trw *w, int64_t now_ns) {}
bool trw_needs_new_file(struct trw *w) {
    return false;
}
void trw_flush(struct trw *w) {}
int trw_rotate(struct trw *w, int fd, char *err, size_t err_size) {
    return 0;
}
int trw_close(struct trw *w) {
    return 0;
}
void trw_totals(const struct trw *w, struct trw_totals *t) {
    memset(t, 0, sizeof *t);
}

/* -- looking */
static const struct told *find(uint64_t id, enum fact f) {
    for (size_t i = 0; i < state.n_facts; i++)
        if (state.facts[i].id == id && state.facts[i].fact == f) return &state.facts[i];
    return NULL;
}
bool fake_int(uint64_t id, enum fact f, int64_t *v) {
    const struct told *t = find(id, f);
    if (t) *v = t->i;
    return t != NULL;
}
bool fake_real(uint64_t id, enum fact f, double *v) {
    const struct told *t = find(id, f);
    if (t) *v = t->r;
    return t != NULL;
}
const char *fake_str(uint64_t id, enum fact f) {
    const struct told *t = find(id, f);
    return t ? t->s : NULL;
}
int64_t fake_get(uint64_t id, enum fact f, int64_t absent) {
    fake_int(id, f, &absent);
    return absent;
}
const struct tok_event *fake_events(size_t *n) {
    *n = state.n_events;
    return state.events;
}
const struct fake_span *fake_spans(size_t *n) {
    *n = state.n_spans;
    return state.spans;
}
const struct fake_loss *fake_losses(size_t *n) {
    *n = state.n_losses;
    return state.losses;
}
uint64_t fake_loss_count(enum loss l) {
    uint64_t sum = 0;
    for (size_t i = 0; i < state.n_losses; i++)
        if (state.losses[i].loss == l) sum += state.losses[i].count;
    return sum;
}
size_t fake_begun(enum subject s) {
    size_t n = 0;
    for (size_t i = 0; i < state.n_subjects; i++) n += state.subjects[i].s == s;
    return n;
}
size_t fake_ended(enum subject s) {
    size_t n = 0;
    for (size_t i = 0; i < state.n_subjects; i++) n += state.subjects[i].s == s && state.subjects[i].ended;
    return n;
}
bool fake_misused(void) {
    return state.misused;
}

static void dump_fact(FILE *f, const struct told *t) {
    const struct fact_info *i = &fact_infos[t->fact];
    fprintf(f, "%s = ", i->name);
    if (i->type == FACT_STR)
        fprintf(f, "%s\n", t->s);
    else if (i->type == FACT_REAL)
        fprintf(f, "%.17g\n", t->r);
    else
        fprintf(f, "%lld\n", (long long)t->i);
}

char *fake_dump(uint64_t id) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    for (int fact_no = 0; fact_no < N_FACTS; fact_no++) {
        const struct told *t = fact_infos[fact_no].subject == SUBJECT_R ? find(id, (enum fact)fact_no) : NULL;
        if (t) dump_fact(f, t);
    }
    for (size_t i = 0; i < state.n_events; i++) {
        const struct tok_event *e = &state.events[i];
        if (e->request == id)
            fprintf(f, "event t %lld choice %u what %u text %u wire %u running %lld ids %d logprobs %d\n",
                    (long long)e->t_ns, e->choice, e->what, e->text_bytes, e->wire_bytes,
                    (long long)e->running, e->ids, e->logprobs);
    }
    for (size_t i = 0; i < state.n_losses; i++)
        if (state.losses[i].request == id)
            fprintf(f, "loss %s %llu %llu\n", loss_infos[state.losses[i].loss].name,
                    (unsigned long long)state.losses[i].count, (unsigned long long)state.losses[i].bytes);
    fclose(f);
    return text;
}

bool fake_holds(const char *needle) {
    for (size_t i = 0; i < state.n_facts; i++)
        if (state.facts[i].s && strstr(state.facts[i].s, needle)) return true;
    return false;
}
