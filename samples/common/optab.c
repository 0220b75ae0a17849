/* The option table's parser and help printer. */
#include "samples/common/optab.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_default(const struct optab *row) {
    if (row->kind == OPTAB_UINT) printf(" [%llu]", (unsigned long long)*(uint64_t *)row->at);
    if (row->kind == OPTAB_REAL) printf(" [%g]", *(double *)row->at);
    if (row->kind == OPTAB_TEXT && *(const char **)row->at) printf(" [%s]", *(const char **)row->at);
}

static void print_help(const struct optab *table, const char *about) {
    printf("%s\n", about);
    for (const struct optab *row = table; row->name; row++) {
        char left[64];

        if (row->kind == OPTAB_GROUP) {
            printf("\n%s\n", row->name);
            continue;
        }
        snprintf(left, sizeof left, "--%s %s", row->name, row->value ? row->value : "");
        printf("  %-26s %s", left, row->help);
        print_default(row);
        putchar('\n');
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static const struct optab *find(const struct optab *table, const char *name, size_t len) {
    for (const struct optab *row = table; row->name; row++) {
        if (row->kind != OPTAB_GROUP && strlen(row->name) == len && !memcmp(row->name, name, len)) return row;
    }
    return NULL;
}

static const char *set_number(const struct optab *row, const char *value) {
    static char why[96];
    char *end;
    double number;

    errno = 0;
    number = strtod(value, &end);
    if (end == value || *end != '\0' || errno == ERANGE || !isfinite(number)) return "it is not a number";
    if (row->kind == OPTAB_UINT && number != floor(number)) return "it is not a whole number";
    if (number < row->low || number > row->high) {
        snprintf(why, sizeof why, "it must lie between %g and %g", row->low, row->high);
        return why;
    }
    if (row->kind == OPTAB_UINT)
        *(uint64_t *)row->at = (uint64_t)number;
    else
        *(double *)row->at = number;
    return NULL;
}

static const char *set(const struct optab *row, const char *value) {
    switch (row->kind) {
    case OPTAB_FLAG: *(bool *)row->at = true; return NULL;
    case OPTAB_TEXT: *(const char **)row->at = value; return NULL;
    case OPTAB_CALL: return row->call(value, row->at);
    default: return set_number(row, value);
    }
}

static int refuse(const char *program, const char *arg, const char *why) {
    fprintf(stderr, "%s: %s: %s; see %s --help\n", program, arg, why, program);
    return 2;
}

int optab_parse(const struct optab *table, const char *program, const char *about, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        const char *equals = strchr(arg, '=');
        const char *value = equals ? equals + 1 : NULL;
        const struct optab *row;
        const char *why;

        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            print_help(table, about);
            return 1;
        }
        if (strncmp(arg, "--", 2) != 0) return refuse(program, arg, "options begin with --");
        row = find(table, arg + 2, (equals ? (size_t)(equals - arg) : strlen(arg)) - 2);
        if (!row) return refuse(program, arg, "there is no such option");
        if (row->kind == OPTAB_FLAG && value) return refuse(program, arg, "this option takes no value");
        if (row->kind != OPTAB_FLAG && !value) {
            if (i + 1 == argc) return refuse(program, arg, "a value is missing");
            value = argv[++i];
        }
        why = set(row, value);
        if (why) return refuse(program, arg, why);
    }
    return 0;
}
