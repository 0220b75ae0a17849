/* traceanalyze check: is a trace whole, and what is lost. Reads each file alone; tells all files before it
 * ends. */
#include "analyzer/args.h"
#include "analyzer/commands.h"
#include "analyzer/inputs.h"
#include "analyzer/load_part.h"
#include "analyzer/show.h"
#include "analyzer/wall.h"
#include "schema/trr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"text", NULL};
static const struct args_spec spec = {
    "check", OPT_SOURCE, formats,
    "traceanalyze check TRACE... [--tz ZONE]\n\n"
    "One line a file: sealed, growing, unsealed, torn at an offset, damaged, foreign or newer; then what was "
    "lost and what\n"
    "is odd. Exit status 0: whole; 3: torn, damaged, empty or newer; 2: not a trace.\n",
    "a trace"};

/* All losses of one kind in one file. */
struct lost {
    uint64_t rows, count, bytes, requests, last_request;
    int64_t from_ns, to_ns;
};

struct checked {
    struct lost lost[N_LOSSES];
    struct wall wall;
    uint64_t damages, first_damage;
};

static void on_loss(void *ctx, enum loss l, int64_t t0_ns, int64_t t1_ns, uint64_t count, uint64_t bytes,
                    uint64_t request) {
    struct checked *c = ctx;
    if ((unsigned)l >= N_LOSSES) return;
    struct lost *x = &c->lost[l];
    if (x->rows++ == 0) x->from_ns = t0_ns, x->to_ns = t1_ns;
    if (t0_ns < x->from_ns) x->from_ns = t0_ns;
    if (t1_ns > x->to_ns) x->to_ns = t1_ns;
    x->count += count;
    x->bytes += bytes;
    if (request && request != x->last_request) x->requests++;
    x->last_request = request;
}

static void on_gap(void *ctx, uint64_t first, uint64_t n, int64_t before_ns, int64_t after_ns) {
    on_loss(ctx, LOSS_blocks_missing, before_ns, after_ns, n, 0, 0);
}

static void on_damage(void *ctx, uint64_t offset, uint64_t bytes, const char *why) {
    struct checked *c = ctx;
    if (c->damages++ == 0) c->first_damage = offset;
    c->lost[LOSS_block_damaged].rows++;
    c->lost[LOSS_block_damaged].count++;
    c->lost[LOSS_block_damaged].bytes += bytes;
}

static void on_anchor(void *ctx, int64_t mono_ns, int64_t wall_ns, int64_t uncertainty_ns) {
    struct checked *c = ctx;
    wall_add(&c->wall, mono_ns, wall_ns);
}

/* "03:08:02.114 to 03:08:02.391", or nothing where times or anchors are not known. */
static void print_span(const struct checked *c, int64_t from_ns, int64_t to_ns, int decimals,
                       const struct show_mode *m) {
    char a[SHOW_MAX], b[SHOW_MAX];
    int64_t from, to;
    if (!wall_of(&c->wall, from_ns, &from) || !wall_of(&c->wall, to_ns, &to)) return;
    printf("%s to %s", show_time(a, from, decimals, m), show_time(b, to, decimals, m));
}

static const char *content_of(const struct trr_head *h) {
    for (size_t i = 0; i < h->n_pairs; i++)
        if (strcmp(h->pairs[2 * i], "content") == 0) return h->pairs[2 * i + 1];
    return "none";
}

static void print_state(const struct checked *c, const char *name, enum trr_state state,
                        const struct trr_totals *t, const struct trr_head *h, const struct show_mode *m) {
    char shown[4096], blocks[SHOW_MAX], size[SHOW_MAX], content[64], value[64];
    printf("%s  %s", show_safe(shown, sizeof shown, name, strlen(name), m->utf8), trr_state_name(state));
    if (state == TRR_TORN) printf(" at %llu", (unsigned long long)t->good_bytes);
    if (state == TRR_DAMAGED && c->damages) printf(" at %llu", (unsigned long long)c->first_damage);
    printf(", %s blocks, %s", show_count(blocks, (double)t->blocks), show_bytes(size, (double)t->file_bytes));
    if (t->blocks > 0 && c->wall.n > 0) {
        printf(", ");
        print_span(c, t->first_ns, t->last_ns, 0, m);
    }
    snprintf(value, sizeof value, "%s", content_of(h));
    printf(", format %u, content %s\n", h->format,
           show_safe(content, sizeof content, value, strlen(value), m->utf8));
}

static void print_losses(const struct checked *c, const struct show_mode *m) {
    for (int i = 0; i < N_LOSSES; i++) {
        const struct lost *x = &c->lost[i];
        const struct loss_info *l = &loss_infos[i];
        char count[SHOW_MAX], size[SHOW_MAX];
        if (x->rows == 0) continue;
        printf("  %s %-18s %s", strcmp(l->severity, "loss") == 0 ? "LOST" : l->severity, l->name,
               show_count(count, (double)x->count));
        if (x->bytes) printf("   %s", show_bytes(size, (double)x->bytes));
        if (x->requests)
            printf("   %llu request%s", (unsigned long long)x->requests, x->requests == 1 ? "" : "s");
        printf("   ");
        if (i != LOSS_block_damaged) print_span(c, x->from_ns, x->to_ns, 3, m);
        printf("   %s: %s\n", l->side, l->meaning);
    }
}

static int exit_status_of(enum trr_state state) {
    switch (state) {
    case TRR_SEALED:
    case TRR_GROWING:
    case TRR_UNSEALED: return 0;
    case TRR_IO: return 1;
    default: return 3;
    }
}

static int check_file(const struct input *in, const struct show_mode *m) {
    static const struct trr_ops ops = {
        .loss = on_loss, .gap = on_gap, .damage = on_damage, .anchor = on_anchor};
    enum trr_state state;
    char why[256];
    struct trr *r = trr_open(in->path, &state, why, sizeof why);
    if (!r) return part_refuse(in, state, why);
    struct checked *c = calloc(1, sizeof *c);
    if (!c) {
        trr_close(r);
        return part_no_memory();
    }
    state = trr_read(r, INT64_MIN, INT64_MAX, &ops, c);
    struct trr_totals t;
    trr_totals(r, &t);
    print_state(c, in->name, state, &t, trr_head(r), m);
    print_losses(c, m);
    trr_close(r);
    wall_free(&c->wall);
    free(c);
    return exit_status_of(state);
}

/* The worst of two: wrong usage, failure and damage before done. */
static int worse(int a, int b) {
    return a == 0 || (a == 3 && b != 0) ? b : a;
}

int cmd_check(int argc, char **argv) {
    struct args o;
    struct inputs in;
    struct show_mode mode;
    int status = args_parse(&o, argc, argv, &spec);
    if (status >= 0) return status;
    if (!show_mode_of(&mode, stdout, o.source.tz)) {
        fprintf(stderr, "traceanalyze: --tz %s: no such zone; give local or a name such as Europe/Berlin\n",
                o.source.tz);
        return 2;
    }
    status = inputs_collect(&in, o.inputs, o.n_inputs);
    if (status == 0 && in.database) {
        fprintf(stderr,
                "traceanalyze: %s: a database, not a trace: SELECT * FROM losses tells what was lost\n",
                in.at[0].name);
        status = 2;
    }
    int worst = status;
    for (size_t i = 0; status == 0 && i < in.n; i++) worst = worse(worst, check_file(&in.at[i], &mode));
    inputs_free(&in);
    return worst;
}
