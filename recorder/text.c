/* The locale is asked for by its variables alone: nothing else of it is wanted, decimal points least. */
#include "recorder/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

const char *text_count(char *out, uint64_t n) {
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), k = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = 0;
    return out;
}

const char *text_bytes(char *out, uint64_t bytes) {
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB"};
    double x = (double)bytes / 1000;
    size_t u = 0;
    if (bytes < 1000) {
        snprintf(out, TEXT_MAX, "%u B", (unsigned)bytes);
        return out;
    }
    while (x >= 999.5 && u + 1 < sizeof units / sizeof *units) x /= 1000, u++;
    snprintf(out, TEXT_MAX, x < 99.95 ? "%.1f %s" : "%.0f %s", x, units[u]);
    return out;
}

const char *text_delay(char *out, uint64_t ns) {
    double us = (double)ns / 1000;
    if (us < 999.5)
        snprintf(out, TEXT_MAX, "%.0f %s", us, text_utf8() ? "µs" : "us");
    else if (us < 999950)
        snprintf(out, TEXT_MAX, "%.1f ms", us / 1000);
    else
        snprintf(out, TEXT_MAX, "%.1f s", us / 1e6);
    return out;
}

const char *text_span(char *out, uint64_t ns) {
    unsigned long long s = ns / 1000000000ull;
    if (s < 60)
        snprintf(out, TEXT_MAX, "%.1f s", (double)ns / 1e9);
    else if (s < 3600)
        snprintf(out, TEXT_MAX, "%llu min %02llu s", s / 60, s % 60);
    else
        snprintf(out, TEXT_MAX, "%llu h %02llu min", s / 3600, s / 60 % 60);
    return out;
}

const char *text_time(char *out, int64_t wall_ns, bool date, bool ms) {
    time_t s = (time_t)(wall_ns / 1000000000);
    char seconds[32], fraction[8] = "";
    struct tm tm;
    gmtime_r(&s, &tm);
    strftime(seconds, sizeof seconds, date ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
    if (ms) snprintf(fraction, sizeof fraction, ".%03d", (int)(wall_ns / 1000000 % 1000));
    snprintf(out, TEXT_MAX, "%s%s%s", seconds, fraction, date ? "Z" : "");
    return out;
}

bool text_utf8(void) {
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
