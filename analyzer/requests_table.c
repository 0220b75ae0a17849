/* See requests_table.h.
 *
 * Columns that say nothing in any row are left out, and what is too wide for the terminal gives way. */
#include "analyzer/requests_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER,
    ARRIVED,
    MODEL,
    CLIENT,
    CLASS,
    OUTCOME,
    PROMPT,
    CACHED,
    OUTPUT,
    LOAD,
    TTFT,
    PREFILL,
    DECODE,
    E2E,
    N_SHOWN
};

static const struct grid_column heads[N_SHOWN] = {
    [NUMBER] = {{NULL, "#"}, GRID_RIGHT, 1},          [ARRIVED] = {{NULL, "arrived"}, GRID_LEFT, 1},
    [MODEL] = {{NULL, "model"}, GRID_LEFT, 1},        [CLIENT] = {{NULL, "client"}, GRID_LEFT, 1},
    [CLASS] = {{NULL, "class"}, GRID_LEFT, 1},        [OUTCOME] = {{NULL, "outcome"}, GRID_LEFT, 1},
    [PROMPT] = {{"prompt", "tokens"}, GRID_RIGHT, 1}, [CACHED] = {{NULL, "cached"}, GRID_RIGHT, 1},
    [OUTPUT] = {{"out-", "put"}, GRID_RIGHT, 1},      [LOAD] = {{NULL, "load"}, GRID_RIGHT, 1},
    [TTFT] = {{"ttft_", "server"}, GRID_RIGHT, 2},    [PREFILL] = {{"prefill", "_tps"}, GRID_RIGHT, 1},
    [DECODE] = {{"decode", "_tps"}, GRID_RIGHT, 1},   [E2E] = {{"e2e_", "client"}, GRID_RIGHT, 2},
};

/* In the order of the enumeration; two more tell where the prefill figure is from. */
static const char query[] =
    "SELECT request, arrived_wall_ns, CASE WHEN api IN ('other', 'upgraded', 'opaque') THEN path ELSE model "
    "END,"
    " coalesce(user_agent, client), cache_class, outcome, prompt_tokens, cached_tokens, output_tokens,"
    " reported_load_ns / 1e6, ttft_server_ns / 1e6,"
    " CASE WHEN reported_prefill_ns > 0 THEN prompt_tokens * 1e9 / reported_prefill_ns ELSE prefill_tps END,"
    " decode_tps, e2e_client_ns / 1e6, reported_prefill_ns > 0 FROM selected %s";

struct shown_row {
    char *cell[N_SHOWN];
};

struct shown {
    struct shown_row *rows;
    size_t n, room;
    bool told[N_SHOWN]; /* some row says something in this column */
    size_t width[N_SHOWN];
};

static double number(sqlite3_stmt *s, int i) {
    return sqlite3_column_type(s, i) == SQLITE_NULL ? NAN : sqlite3_column_double(s, i);
}

/* The product of a User-Agent with the first two parts of its version: aiohttp/3.11. */
static size_t product(const char *s) {
    size_t n = strcspn(s, " ("), dots = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] == '.' && ++dots == 2) return i;
    return n;
}

static const char *text_cell(sqlite3_stmt *s, int i, char *out, size_t size, const struct show_mode *m) {
    const char *t = (const char *)sqlite3_column_text(s, i);
    if (!t || !*t) return "-";
    return show_safe(out, size, t, i == CLIENT ? product(t) : strlen(t), m->utf8);
}

static const char *value_cell(sqlite3_stmt *s, int i, char *out, const struct show_mode *m) {
    double v = number(s, i);
    switch (i) {
    case NUMBER: return show_decimals(out, v, 0);
    case ARRIVED: return isnan(v) ? "-" : show_time(out, sqlite3_column_int64(s, i), 0, m);
    case PROMPT:
    case CACHED:
    case OUTPUT: return show_count(out, v);
    case PREFILL:
        show_rate(out, v);
        if (!isnan(v) && sqlite3_column_int(s, N_SHOWN)) strcat(out, "r");
        return out;
    case DECODE: return show_rate(out, v);
    default: return show_ms(out, v);
    }
}

static bool add_row(struct shown *t, sqlite3_stmt *s, const struct show_mode *m) {
    char buf[1024];
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct shown_row *grown = realloc(t->rows, room * sizeof *grown);
        if (!grown) return false;
        t->rows = grown;
        t->room = room;
    }
    struct shown_row *row = &t->rows[t->n++];
    for (int i = 0; i < N_SHOWN; i++) {
        bool text = i >= MODEL && i <= OUTCOME;
        const char *cell = text ? text_cell(s, i, buf, sizeof buf, m) : value_cell(s, i, buf, m);
        row->cell[i] = strdup(cell);
        if (!row->cell[i]) row->cell[i] = strdup("");
        size_t w = show_width(cell);
        if (w > t->width[i]) t->width[i] = w;
        if (strcmp(cell, "-") != 0) t->told[i] = true;
        if (i == OUTCOME && strcmp(cell, "ok") == 0) t->told[i] = t->told[i] && t->n > 1 && t->width[i] > 2;
    }
    return true;
}

/* Shortens a cell to width columns; the cut shows. */
static void cut(char **cell, size_t width, const struct show_mode *m) {
    const char *mark = m->utf8 ? "…" : "~";
    if (show_width(*cell) <= width) return;
    size_t n = strlen(*cell);
    while (n && show_width(*cell) > width - 1) {
        do n--;
        while (n && ((unsigned char)(*cell)[n] & 0xc0) == 0x80);
        (*cell)[n] = 0;
    }
    char *shorter = realloc(*cell, n + strlen(mark) + 1);
    if (!shorter) return;
    strcpy(shorter + n, mark);
    *cell = shorter;
}

static size_t total_width(struct shown *t) {
    size_t total = 1;
    for (int i = 0; i < N_SHOWN; i++) {
        if (!t->told[i]) continue;
        for (int h = 0; h < 2; h++)
            if (heads[i].head[h] && show_width(heads[i].head[h]) > t->width[i])
                t->width[i] = show_width(heads[i].head[h]);
        total += t->width[i] + (size_t)heads[i].gap;
    }
    return total;
}

/* First the texts of free length give way, then whole columns. */
static void fit(struct shown *t, const struct show_mode *m) {
    enum { LEAST = 12 };
    static const int dispensable[] = {PREFILL, CLIENT, CACHED, LOAD};
    size_t total = total_width(t), limit = (size_t)m->columns;
    while (total > limit && (t->width[MODEL] > LEAST || t->width[CLIENT] > LEAST)) {
        t->width[t->width[MODEL] >= t->width[CLIENT] ? MODEL : CLIENT]--;
        total--;
    }
    for (int i = 0; i < 4 && total > limit; i++) {
        t->told[dispensable[i]] = false;
        total = total_width(t);
    }
    for (size_t r = 0; r < t->n; r++) {
        cut(&t->rows[r].cell[MODEL], t->width[MODEL], m);
        cut(&t->rows[r].cell[CLIENT], t->width[CLIENT], m);
    }
}

static struct grid *to_grid(struct shown *t, const struct show_mode *m) {
    struct grid_column columns[N_SHOWN];
    size_t n = 0;
    t->told[CACHED] = true; /* that caching is not told is worth a column of its own */
    for (int i = 0; i < N_SHOWN; i++) t->told[i] |= t->n == 0;
    fit(t, m);
    for (int i = 0; i < N_SHOWN; i++)
        if (t->told[i]) columns[n++] = heads[i];
    struct grid *g = grid_new(columns, n);
    for (size_t r = 0; g && r < t->n; r++) {
        const char *cells[N_SHOWN];
        size_t k = 0;
        for (int i = 0; i < N_SHOWN; i++)
            if (t->told[i]) cells[k++] = t->rows[r].cell[i];
        grid_row(g, cells);
    }
    return g;
}

struct grid *requests_table(sqlite3 *db, const char *tail, const struct show_mode *m, bool *marked) {
    struct shown t = {0};
    struct grid *g = NULL;
    sqlite3_stmt *s = NULL;
    char *sql = sqlite3_mprintf(query, tail);
    int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &s, NULL) : SQLITE_NOMEM;
    *marked = false;
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW) break;
        *marked |= sqlite3_column_int(s, N_SHOWN) != 0;
        if (!add_row(&t, s, m)) rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_DONE)
        g = to_grid(&t, m);
    else
        fprintf(stderr, "traceanalyze: requests: %s\n", sqlite3_errmsg(db));
    *marked &= t.told[PREFILL]; /* the mark is explained only where it is seen */
    for (size_t r = 0; r < t.n; r++)
        for (int i = 0; i < N_SHOWN; i++) free(t.rows[r].cell[i]);
    free(t.rows);
    sqlite3_finalize(s);
    sqlite3_free(sql);
    return g;
}
