/* A table for people, on a terminal or in Markdown. Widths are known only when all rows are, so rows are
 * kept. */
#include "analyzer/table.h"

#include <stdlib.h>
#include <string.h>

struct grid {
    size_t n_columns, n_rows, room;
    struct grid_column *columns;
    size_t *widths;
    char **cells; /* n_rows * n_columns */
};

struct grid *grid_new(const struct grid_column *columns, size_t n) {
    struct grid *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->n_columns = n;
    g->columns = calloc(n + 1, sizeof *columns);
    g->widths = calloc(n + 1, sizeof *g->widths);
    if (!g->columns || !g->widths) {
        grid_free(g);
        return NULL;
    }
    memcpy(g->columns, columns, n * sizeof *columns);
    for (size_t i = 0; i < n; i++)
        for (int h = 0; h < 2; h++) {
            size_t w = columns[i].head[h] ? show_width(columns[i].head[h]) : 0;
            if (w > g->widths[i]) g->widths[i] = w;
        }
    return g;
}

static bool is_number(const char *s) {
    return s[strspn(s, "0123456789.,:-?")] == 0 || strcmp(s, "inf") == 0;
}

void grid_row(struct grid *g, const char *const *cells) {
    if (g->n_rows == g->room) {
        size_t room = g->room ? 2 * g->room : 32;
        char **grown = realloc(g->cells, room * g->n_columns * sizeof *grown);
        if (!grown) return;
        g->cells = grown;
        g->room = room;
    }
    char **row = g->cells + g->n_rows++ * g->n_columns;
    for (size_t i = 0; i < g->n_columns; i++) {
        size_t w = show_width(cells[i]);
        row[i] = strdup(cells[i]);
        if (g->columns[i].align == GRID_AUTO && !is_number(cells[i])) g->columns[i].align = GRID_LEFT;
        if (w > g->widths[i]) g->widths[i] = w;
    }
}

static size_t gap_before(const struct grid *g, size_t i) {
    return i == 0 ? 0 : g->columns[i].gap ? (size_t)g->columns[i].gap : 2;
}

size_t grid_width(const struct grid *g) {
    size_t w = 0;
    for (size_t i = 0; i < g->n_columns; i++) w += gap_before(g, i) + g->widths[i];
    return w;
}

/* One line: blanks are owed and paid only before the next visible character, so none trail. */
static void print_line(const struct grid *g, FILE *f, int indent, const char *const *cells) {
    size_t owed = (size_t)indent;
    for (size_t i = 0; i < g->n_columns; i++) {
        const char *s = cells[i] ? cells[i] : "";
        size_t pad = g->widths[i] - show_width(s), n = strlen(s), visible = n;
        while (visible && s[visible - 1] == ' ') visible--;
        owed += gap_before(g, i) + (g->columns[i].align != GRID_LEFT ? pad : 0);
        if (visible) {
            fprintf(f, "%*s%.*s", (int)owed, "", (int)visible, s);
            owed = 0;
        }
        owed += n - visible + (g->columns[i].align == GRID_LEFT ? pad : 0);
    }
    fputc('\n', f);
}

void grid_print(const struct grid *g, FILE *f, int indent) {
    const char **line = calloc(g->n_columns + 1, sizeof *line);
    if (!line) return;
    for (int h = 0; h < 2; h++) {
        bool any = false;
        for (size_t i = 0; i < g->n_columns; i++) {
            line[i] = g->columns[i].head[h];
            any |= line[i] && *line[i];
        }
        if (any) print_line(g, f, indent, line);
    }
    for (size_t r = 0; r < g->n_rows; r++)
        print_line(g, f, indent, (const char *const *)g->cells + r * g->n_columns);
    free(line);
}

static void markdown_cell(FILE *f, const char *s) {
    for (; *s; s++) {
        if (strchr("|\\`*_<>[]", *s)) fputc('\\', f);
        fputc(*s, f);
    }
}

void grid_markdown(const struct grid *g, FILE *f) {
    for (size_t i = 0; i < g->n_columns; i++) {
        const char *a = g->columns[i].head[0], *b = g->columns[i].head[1];
        fputs("| ", f);
        markdown_cell(f, a ? a : "");
        markdown_cell(f, b ? b : "");
        fputc(' ', f);
    }
    fputs("|\n", f);
    for (size_t i = 0; i < g->n_columns; i++) fputs(g->columns[i].align != GRID_LEFT ? "|---:" : "|---", f);
    fputs("|\n", f);
    for (size_t r = 0; r < g->n_rows; r++) {
        for (size_t i = 0; i < g->n_columns; i++) {
            fputs("| ", f);
            markdown_cell(f, g->cells[r * g->n_columns + i]);
            fputc(' ', f);
        }
        fputs("|\n", f);
    }
}

void grid_free(struct grid *g) {
    if (!g) return;
    for (size_t i = 0; i < g->n_rows * g->n_columns; i++) free(g->cells[i]);
    free(g->cells);
    free(g->columns);
    free(g->widths);
    free(g);
}
