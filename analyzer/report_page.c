/* The page of the text report: flowing lines, names out of definitions, and the order of the blocks. */
#include "analyzer/report_page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void para_begin(struct para *w, const struct page *p, const char *label, size_t indent, size_t gap) {
    *w = (struct para){.p = p, .indent = indent, .gap = gap};
    fputs(label, p->f);
    w->at = show_width(label);
}

static void place(struct para *w, const char *safe, size_t gap) {
    size_t width = show_width(safe), blanks = w->begun             ? gap
                                              : w->at == 0         ? 0
                                              : w->at <= w->indent ? w->indent - w->at
                                                                   : 1;
    if (w->begun && w->at + blanks + width > (size_t)w->p->m->columns) {
        fprintf(w->p->f, "\n%*s", (int)w->indent, "");
        w->at = w->indent;
        blanks = 0;
    }
    fprintf(w->p->f, "%*s%s", (int)blanks, "", safe);
    w->at += blanks + width;
    w->begun = true;
}

void para_item(struct para *w, const char *format, ...) {
    char raw[512], safe[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    place(w, show_safe(safe, sizeof safe, raw, strlen(raw), w->p->m->utf8), w->gap);
}

void para_words(struct para *w, const char *format, ...) {
    char raw[1024], safe[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    size_t gap = w->gap;
    for (char *word = strtok(raw, " "); word; word = strtok(NULL, " ")) {
        place(w, show_safe(safe, sizeof safe, word, strlen(word), w->p->m->utf8), gap);
        gap = 1;
    }
}

void para_end(struct para *w) {
    fputc('\n', w->p->f);
}

const char *page_from_to(const struct page *p, const char *metric, char *out, size_t size) {
    sqlite3_stmt *s = NULL;
    char arrowed[128] = "";
    *out = 0;
    if (sqlite3_prepare_v2(
            p->db,
            "SELECT from_to FROM definitions WHERE name = ?1 AND kind = 'metric' AND from_to IS NOT NULL", -1,
            &s, NULL) != SQLITE_OK)
        return out;
    sqlite3_bind_text(s, 1, metric, -1, SQLITE_STATIC);
    const char *t = sqlite3_step(s) == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    for (size_t at = 0; t && *t && at + 4 < sizeof arrowed; t++) {
        bool arrow = t[0] == '-' && t[1] == '>' && p->m->utf8;
        at += (size_t)snprintf(arrowed + at, sizeof arrowed - at, arrow ? "→" : "%c", *t);
        t += arrow;
    }
    show_safe(out, size, arrowed, strlen(arrowed), p->m->utf8);
    sqlite3_finalize(s);
    return out;
}

/* A word as a shell takes it unchanged. */
static size_t quote(char *out, size_t size, const char *s) {
    bool plain =
        s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%,=")] == 0 && *s;
    size_t n = 0;
    for (const char *c = s; *c && n + 6 < size; c++) {
        if (!plain && c == s) out[n++] = '\'';
        if (*c == '\'')
            n += (size_t)snprintf(out + n, size - n, "'\\''");
        else
            out[n++] = *c;
    }
    if (!plain) out[n++] = '\'';
    out[n] = 0;
    return n;
}

const char *page_inputs(const struct page *p, char *out, size_t size) {
    size_t n = 0;
    char word[600];
    *out = 0;
    for (size_t i = 0; i < p->o->n_inputs; i++) {
        size_t add = quote(word, sizeof word, p->o->inputs[i]);
        if (i && n + add > 48) {
            snprintf(out + n, size - n, " ...");
            break;
        }
        if (n + add + 6 >= size) break;
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "", word);
    }
    return out;
}

bool page_asked(const struct page *p, const char *metric) {
    size_t n = strlen(metric);
    for (const char *c = p->o->columns; c && *c; c += strcspn(c, ",") + (c[strcspn(c, ",")] == ','))
        if (strcspn(c, ",") == n && memcmp(c, metric, n) == 0) return true;
    return false;
}

/* Colour says nothing that the words do not: LOST in red, headings in bold. */
static void print_coloured(const char *text, FILE *f) {
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), caps = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        bool lost = caps == 4 && memcmp(line, "LOST", 4) == 0, heading = caps >= 4;
        if (heading)
            fprintf(f, "\033[%sm%.*s\033[0m", lost ? "1;31" : "1", (int)caps, line);
        else
            caps = 0;
        fprintf(f, "%.*s\n", (int)(n - caps), line + caps);
        line += n + (line[n] == '\n');
    }
}

int report_text(const struct report *r, sqlite3 *db, const struct args *o, const struct show_mode *m,
                FILE *f) {
    char *text = NULL;
    size_t size = 0;
    FILE *kept = m->colour ? open_memstream(&text, &size) : f;
    if (!kept) return 1;
    struct page p = {r, db, o, m, kept};
    bool good = true;
    page_head(&p);
    page_losses(&p);
    if (r->n == 0) {
        page_none(&p);
    } else if (r->n <= 20 && !o->columns && o->n_percentiles == 0) {
        good = page_few(&p);
    } else {
        page_outcomes(&p);
        page_over_time(&p);
        page_latency(&p);
        page_cache(&p);
        page_throughput(&p);
        page_speculation(&p);
        page_goodput(&p);
        page_foot(&p);
    }
    if (m->colour) {
        fclose(kept);
        print_coloured(text, f);
        free(text);
    }
    return good ? 0 : 1;
}
