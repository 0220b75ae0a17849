/* Only blanks break lines: names of options and fields stay whole. */
#include "analyzer/paragraph.h"

#include "analyzer/show.h"

#include <string.h>

void paragraph(FILE *f, const char *label, int indent, const char *text, int columns) {
    size_t room = columns > indent ? (size_t)(columns - indent) : 1, at = 0, n;
    fprintf(f, "%s%*s", label, indent - (int)show_width(label), "");
    for (const char *p = text; *p; p += n + strspn(p + n, " ")) {
        n = strcspn(p, " ");
        if (at && at + 1 + n > room) {
            fprintf(f, "\n%*s", indent, "");
            at = 0;
        }
        at += (size_t)fprintf(f, "%s%.*s", at ? " " : "", (int)n, p);
    }
    fputc('\n', f);
}
