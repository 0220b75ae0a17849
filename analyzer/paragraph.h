/* Running text behind a label, in lines of a given width. */
#ifndef ANALYZER_PARAGRAPH_H
#define ANALYZER_PARAGRAPH_H

#include <stdio.h>

/* Prints label, then text from column `indent` on, words wrapped so that no line is longer than `columns`. */
void paragraph(FILE *f, const char *label, int indent, const char *text, int columns);

#endif
