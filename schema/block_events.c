/* Token events to columns and back.
 *
 * Events are grouped by request (a run), runs lie in order of the request's ordinal, and each column goes
 * through all runs. What stays the same from event to event, or can be told from the event before, becomes a
 * constant column of two bytes; what is left is the noise of the times and the sizes of the texts. */
#include "schema/block.h"

#include <stdlib.h>
#include <string.h>

#define STEP_SAMPLES 255
#define SPLIT_ROWS   1024 /* a column of as many has a code table of its own */
#define SPLIT_BYTES  128  /* the noise of fewer events is not worth being set apart */

static int runs_by_request(const void *a, const void *b) {
    uint64_t x = ((const struct block_run *)a)->request, y = ((const struct block_run *)b)->request;
    return (x > y) - (x < y);
}

/* What the open line of a run's request says; *line goes through the lines as the runs ascend. */
static void from_line(const struct block *b, size_t *line, struct block_run *r) {
    while (*line < b->lines.n && b->lines.at[*line].request < r->request) ++*line;
    const struct block_line *l = *line < b->lines.n ? &b->lines.at[*line] : NULL;
    bool open = l && l->request == r->request && l->events;
    r->so_far = open ? l->events : 0;
    r->last_tick = open ? to_tick(l->last_ns) : b->base_tick;
}

/* Sorts the runs, gives each its place and its open line's figures, and sets e->ev in that order. */
static void group(struct encoder *e, const struct block *b) {
    size_t m = b->runs.n, at = 0;
    for (size_t i = 0; i < m; i++) {
        e->run[i] = b->runs.at[i];
        e->run[i].read = i; /* the writer's index of the run, for the moment */
    }
    qsort(e->run, m, sizeof *e->run, runs_by_request);
    for (size_t i = 0, line = 0; i < m; i++) {
        struct block_run *r = &e->run[i];
        from_line(b, &line, r);
        r->first = at;
        e->column[r->read] = at;
        at += r->n;
    }
    for (size_t i = 0; i < b->events.n; i++) e->ev[e->column[b->event_run.at[i]]++] = &b->events.at[i];
    for (size_t i = 0; i < m; i++) e->run[i].read = e->ev[e->run[i].first]->read;
}

static uint64_t tick_of(const struct tok_event *ev) {
    return (uint64_t)to_tick(ev->t_ns);
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median step between two events of a request, from up to STEP_SAMPLES of them. */
static uint64_t usual_step(const struct encoder *e, size_t m, size_t n) {
    int64_t steps[STEP_SAMPLES];
    size_t n_steps = 0, every = n / STEP_SAMPLES + 1, skip = 0;
    for (size_t i = 0; i < m; i++) {
        const struct block_run *r = &e->run[i];
        uint64_t last = (uint64_t)r->last_tick;
        for (size_t j = 0; j < r->n; j++) {
            uint64_t tick = tick_of(e->ev[r->first + j]);
            if ((j || r->so_far) && skip++ % every == 0 && n_steps < STEP_SAMPLES)
                steps[n_steps++] = (int64_t)(tick - last);
            last = tick;
        }
    }
    if (!n_steps) return 0;
    qsort(steps, n_steps, sizeof *steps, by_value);
    return (uint64_t)steps[n_steps / 2];
}

/* Steps against their prediction into e->column; returns their size in bits. */
static uint64_t time_column(struct encoder *e, size_t m, unsigned predictor, uint64_t usual) {
    uint64_t bits = 0;
    for (size_t i = 0; i < m; i++) {
        const struct block_run *r = &e->run[i];
        uint64_t last = (uint64_t)r->last_tick, predicted = r->so_far ? usual : 0;
        for (size_t j = 0; j < r->n; j++) {
            uint64_t tick = tick_of(e->ev[r->first + j]), step = tick - last;
            uint64_t v = zigzag_diff(step, predicted);
            e->column[r->first + j] = v;
            bits += 64u - (unsigned)__builtin_clzll(v | 1);
            predicted = predictor && (j || r->so_far) ? step : usual;
            last = tick;
        }
    }
    return bits;
}

static void run_column(struct encoder *e, size_t m, enum event_column what) {
    for (size_t i = 0; i < m; i++) {
        const struct block_run *r = &e->run[i];
        uint64_t read = r->read - 1, running = r->so_far;
        for (size_t j = 0; j < r->n; j++) {
            const struct tok_event *ev = e->ev[r->first + j];
            uint64_t v = 0;
            if (what == EV_READ) {
                v = zigzag_diff(ev->read, read + 1);
                read = ev->read;
            } else if (ev->running != -1) {
                v = zigzag_diff((uint64_t)ev->running, running + 1);
                running = (uint64_t)ev->running;
            }
            e->column[r->first + j] = v;
        }
    }
}

static uint64_t event_value(const struct tok_event *ev, enum event_column what, uint64_t wire_base) {
    switch (what) {
    case EV_WHAT: return ev->what;
    case EV_TEXT: return ev->text_bytes;
    case EV_WIRE: return zigzag_diff((uint64_t)ev->wire_bytes - ev->text_bytes, wire_base);
    case EV_CHOICE: return ev->choice;
    case EV_TOLD: return ev->running != -1;
    case EV_IDS: return (uint32_t)ev->ids + 1u;
    default: return (uint32_t)ev->logprobs + 1u;
    }
}

static void put_runs(struct encoder *e, size_t m) {
    for (size_t i = 0; i < m; i++)
        e->column[i] = e->run[i].request - (i ? e->run[i - 1].request : UINT64_MAX) - 1;
    bytes_put_column(&e->raw, e->column, m);
    for (size_t i = 0; i < m; i++) e->column[i] = e->run[i].n - 1;
    bytes_put_column(&e->raw, e->column, m);
    for (size_t i = 0; i < m; i++) e->column[i] = zigzag_diff(e->run[i].read, e->run[i].so_far);
    bytes_put_column(&e->raw, e->column, m);
}

/* The lowest bytes of the times, those of the open lines before them included, are noise: the compressor is
 * told where it begins and ends. */
static void put_times(struct encoder *e, size_t n) {
    size_t start = e->raw.n;
    unsigned planes = bytes_put_column(&e->raw, e->column, n);
    if (planes < 2 || n < SPLIT_BYTES) return;
    e->split[e->n_splits++] = e->noise ? e->noise : start + 1;
    e->split[e->n_splits++] = start + 1 + n;
    if (n >= SPLIT_ROWS) e->split[e->n_splits++] = e->raw.n;
}

/* A long column gets a code table of its own. */
static void put_column(struct encoder *e, size_t n) {
    unsigned planes = bytes_put_column(&e->raw, e->column, n);
    if (planes && n >= SPLIT_ROWS) e->split[e->n_splits++] = e->raw.n;
}

bool block_encode_events(struct encoder *e, const struct block *b) {
    size_t n = b->events.n, m = b->runs.n;
    group(e, b);
    uint64_t usual = usual_step(e, m, n);
    unsigned predictor = time_column(e, m, 1, usual) < time_column(e, m, 0, usual);
    uint64_t wire_base = (uint64_t)e->ev[n / 2]->wire_bytes - e->ev[n / 2]->text_bytes;
    bytes_put_varint(&e->raw, n);
    bytes_put_varint(&e->raw, m);
    bytes_put_u8(&e->raw, (uint8_t)predictor);
    bytes_put_zigzag(&e->raw, (int64_t)usual);
    bytes_put_zigzag(&e->raw, (int64_t)wire_base);
    time_column(e, m, predictor, usual);
    put_times(e, n);
    for (enum event_column what = EV_TIME + 1; what < EV_COLUMNS; what++) {
        if (what == EV_READ || what == EV_RUNNING)
            run_column(e, m, what);
        else
            for (size_t i = 0; i < n; i++) e->column[i] = event_value(e->ev[i], what, wire_base);
        put_column(e, n);
    }
    put_runs(e, m);
    return true;
}

/* Runs of the columns taken; false when they do not add up to n events. */
static bool get_runs(struct block *b, struct cursor *c, size_t m, size_t n) {
    struct column step = cursor_column(c, m, 8), count = cursor_column(c, m, 3);
    struct column read = cursor_column(c, m, 8);
    uint64_t id = UINT64_MAX;
    size_t first = 0, line = 0;
    for (size_t i = 0; i < m && !c->failed; i++) {
        struct block_run *r = ROWS_ADD(&b->runs);
        if (!r) return false;
        r->request = id + 1 + column_at(&step, i);
        if (i && r->request <= id) return false;
        id = r->request;
        r->first = first;
        r->n = column_at(&count, i) + 1;
        if (r->n > n - first) return false;
        first += r->n;
        from_line(b, &line, r);
        r->read = r->so_far + (uint64_t)unzigzag(column_at(&read, i));
    }
    return !c->failed && first == n;
}

bool block_decode_events(struct block *b, struct cursor *c) {
    static const uint8_t max_planes[EV_COLUMNS] = {
        [EV_WHAT] = 4, [EV_TEXT] = 4,    [EV_WIRE] = 8, [EV_READ] = 8,     [EV_CHOICE] = 4,
        [EV_TOLD] = 1, [EV_RUNNING] = 8, [EV_IDS] = 4,  [EV_LOGPROBS] = 4, [EV_TIME] = 8};
    uint64_t n = cursor_varint(c), m = cursor_varint(c);
    if (n > BLOCK_ROWS_MAX || m > n || c->failed) return false;
    b->n_events = (size_t)n;
    b->predictor = cursor_u8(c);
    if (b->predictor > 1) return false;
    b->step = (uint64_t)cursor_zigzag(c);
    b->wire_base = (uint64_t)cursor_zigzag(c);
    for (int i = 0; i < EV_COLUMNS; i++) b->columns[i] = cursor_column(c, (size_t)n, max_planes[i]);
    return !c->failed && get_runs(b, c, (size_t)m, (size_t)n);
}

/* Numbers of a column, or NULL where all are the same: most columns are, and then nothing is done for each
 * event. */
static const uint64_t *varying(const struct column *col, size_t first, size_t n, uint64_t *v) {
    if (!col->planes) return NULL;
    column_read(col, first, n, v);
    return v;
}

/* Undoes the columns in which an event is told by the one before. */
static void tell_times(const struct block *b, const struct block_run *r, struct run_at *at, size_t n,
                       const uint64_t *residual, struct tok_event *out) {
    uint64_t tick = at->tick, step = at->step;
    size_t i = 0;
    if (!at->done) {
        step += (uint64_t)unzigzag(residual[0]);
        out[i++].t_ns = from_tick((int64_t)(tick += step));
        if (!b->predictor || !r->so_far) step = b->step;
    }
    if (b->predictor)
        for (; i < n; i++) {
            step += (uint64_t)unzigzag(residual[i]);
            out[i].t_ns = from_tick((int64_t)(tick += step));
        }
    else
        for (; i < n; i++) out[i].t_ns = from_tick((int64_t)(tick += step + (uint64_t)unzigzag(residual[i])));
    at->tick = tick;
    at->step = step;
}

static void tell_reads(struct run_at *at, size_t n, uint64_t all, const uint64_t *v, struct tok_event *out) {
    uint64_t read = at->read, step = 1 + (uint64_t)unzigzag(all);
    if (v)
        for (size_t i = 0; i < n; i++) out[i].read = read += 1 + (uint64_t)unzigzag(v[i]);
    else
        for (size_t i = 0; i < n; i++) out[i].read = read += step;
    at->read = read;
}

static void tell_running(struct run_at *at, size_t n, const uint64_t *told, const uint64_t *v,
                         struct tok_event *out) {
    for (size_t i = 0; i < n; i++)
        if (told[i]) out[i].running = (int64_t)(at->running += 1 + (uint64_t)unzigzag(v[i]));
}

static void tell_sizes(const struct block *b, size_t first, size_t n, struct tok_event *out) {
    uint64_t v[EVENTS_CHUNK];
    const uint64_t *text = varying(&b->columns[EV_TEXT], first, n, v);
    for (size_t i = 0; text && i < n; i++) out[i].text_bytes = (uint32_t)text[i];
    const uint64_t *wire = varying(&b->columns[EV_WIRE], first, n, v);
    uint64_t same = b->wire_base + (uint64_t)unzigzag(b->columns[EV_WIRE].value);
    if (wire)
        for (size_t i = 0; i < n; i++)
            out[i].wire_bytes = (uint32_t)(out[i].text_bytes + b->wire_base + (uint64_t)unzigzag(wire[i]));
    else
        for (size_t i = 0; i < n; i++) out[i].wire_bytes = (uint32_t)(out[i].text_bytes + same);
}

/* The columns whose numbers are the fields themselves. */
static void tell_fields(const struct block *b, size_t first, size_t n, struct tok_event *out) {
    uint64_t v[EVENTS_CHUNK];
    const uint64_t *p = varying(&b->columns[EV_WHAT], first, n, v);
    for (size_t i = 0; p && i < n; i++) out[i].what = (uint32_t)p[i];
    p = varying(&b->columns[EV_CHOICE], first, n, v);
    for (size_t i = 0; p && i < n; i++) out[i].choice = (uint32_t)p[i];
    p = varying(&b->columns[EV_IDS], first, n, v);
    for (size_t i = 0; p && i < n; i++) out[i].ids = (int32_t)((uint32_t)p[i] - 1u);
    p = varying(&b->columns[EV_LOGPROBS], first, n, v);
    for (size_t i = 0; p && i < n; i++) out[i].logprobs = (int32_t)((uint32_t)p[i] - 1u);
}

/* An event made of the columns in which all numbers are the same; other fields are to be told. */
static struct tok_event usual_event(const struct block *b, const struct block_run *r) {
    return (struct tok_event){.request = r->request,
                              .what = (uint32_t)b->columns[EV_WHAT].value,
                              .text_bytes = (uint32_t)b->columns[EV_TEXT].value,
                              .choice = (uint32_t)b->columns[EV_CHOICE].value,
                              .running = -1,
                              .ids = (int32_t)((uint32_t)b->columns[EV_IDS].value - 1u),
                              .logprobs = (int32_t)((uint32_t)b->columns[EV_LOGPROBS].value - 1u)};
}

size_t block_events(const struct block *b, const struct block_run *r, struct run_at *at,
                    struct tok_event *out) {
    uint64_t v[EVENTS_CHUNK], told[EVENTS_CHUNK];
    const struct column *c = b->columns;
    size_t n = r->n - at->done, first = r->first + at->done;
    if (n > EVENTS_CHUNK) n = EVENTS_CHUNK;
    if (n == 0) return 0;
    if (!at->done)
        *at = (struct run_at){0, (uint64_t)r->last_tick, r->so_far ? b->step : 0, r->read - 1, r->so_far};
    out[0] = usual_event(b, r);
    for (size_t i = 1; i < n; i++) out[i] = out[0];
    tell_fields(b, first, n, out);
    tell_sizes(b, first, n, out);
    column_read(&c[EV_TIME], first, n, v);
    tell_times(b, r, at, n, v, out);
    tell_reads(at, n, c[EV_READ].value, varying(&c[EV_READ], first, n, v), out);
    if (c[EV_TOLD].planes || c[EV_TOLD].value) {
        column_read(&c[EV_TOLD], first, n, told);
        column_read(&c[EV_RUNNING], first, n, v);
        tell_running(at, n, told, v, out);
    }
    at->done += n;
    return n;
}
