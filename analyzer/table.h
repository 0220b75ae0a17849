/* Rows of values as CSV, JSON lines, and tables for people and for Markdown.
 *
 * Knows cells, not what they mean. Its one hard idea: a row is written once as cells, and each format has its
 * own way to say "absent", to quote, and to keep what others wrote from doing harm. */
#ifndef ANALYZER_TABLE_H
#define ANALYZER_TABLE_H

#include "analyzer/show.h"

enum cell_kind {
    CELL_NULL,
    CELL_INT,
    CELL_REAL,
    CELL_NS_AS_MS, /* i: whole ns, written as ms without loss */
    CELL_WALL,     /* i: ns since the epoch, written as RFC 3339 */
    CELL_TEXT      /* s, n; borrowed until the row is written */
};

struct cell {
    enum cell_kind kind;
    int64_t i;
    double d;
    const char *s;
    size_t n;
};

/* Shortest decimal that reads back as the same double; "null" for NaN, "inf" for infinity. out: SHOW_MAX. */
const char *table_double(char *out, double d);
/* Whole ns as ms, exact: 1234567 is 1.234567. out: SHOW_MAX. */
const char *table_ns_as_ms(char *out, int64_t ns);

/* One CSV line (RFC 4180, LF). Text cells that a spreadsheet would run get a ' in front; absent is empty. */
void table_csv(FILE *f, const struct cell *cells, size_t n);
/* One JSON object on one line; names[i] is the key of cells[i]. Whole numbers above 2^53 are strings. */
void table_ndjson(FILE *f, const char *const *names, const struct cell *cells, size_t n);
void table_json_string(FILE *f, const char *s, size_t n);

/* A table for people: all of it is kept, then laid out. Cells are safe text. */
struct grid;
enum grid_align {
    GRID_LEFT,
    GRID_RIGHT,
    GRID_AUTO /* right, unless a cell of the column is no number */
};
struct grid_column {
    const char *head[2]; /* up to two heading lines, the second is the lower one; NULL: none */
    enum grid_align align;
    int gap; /* blanks before the column, 0: two */
};
/* Columns are copied (their headings borrowed). NULL when memory is short. */
struct grid *grid_new(const struct grid_column *columns, size_t n);
/* Appends a row of n cells (copied). */
void grid_row(struct grid *g, const char *const *cells);
/* Widest lines in columns, as it would be printed. */
size_t grid_width(const struct grid *g);
/* Prints with indent blanks before each line and no trailing blanks; heading lines that are empty are left
 * out. */
void grid_print(const struct grid *g, FILE *f, int indent);
/* The same as a Markdown table: one heading line, pipes escaped. */
void grid_markdown(const struct grid *g, FILE *f);
void grid_free(struct grid *g);

#endif
