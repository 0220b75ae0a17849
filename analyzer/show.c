/* See show.h. */
#include "analyzer/show.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool zone_exists(const char *name) {
    char path[256];
    const char *dir = getenv("TZDIR");
    if (strstr(name, "..") || *name == '/' || !*name) return false;
    int n = snprintf(path, sizeof path, "%s/%s", dir ? dir : "/usr/share/zoneinfo", name);
    return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
}

static bool set_zone(struct show_mode *m, const char *tz) {
    m->zone = "UTC";
    m->local = false;
    if (!tz || strcmp(tz, "UTC") == 0 || strcmp(tz, "utc") == 0) return true;
    if (strcmp(tz, "local") != 0) {
        if (!zone_exists(tz)) return false;
        setenv("TZ", tz, 1);
    }
    tzset();
    m->local = true;
    m->zone = tz;
    return true;
}

static int columns_of(FILE *out, bool terminal) {
    const char *given = getenv("COLUMNS");
    int columns = given ? atoi(given) : 0;
    struct winsize w;
    if (columns <= 0 && terminal && ioctl(fileno(out), TIOCGWINSZ, &w) == 0) columns = w.ws_col;
    if (columns <= 0 || columns > 100) return 100;
    return columns < 40 ? 40 : columns;
}

bool show_mode_of(struct show_mode *m, FILE *out, const char *tz) {
    bool terminal = isatty(fileno(out));
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    setlocale(LC_CTYPE, "");
    m->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    m->colour = terminal && !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
    m->columns = columns_of(out, terminal);
    return set_zone(m, tz);
}

const char *show_decimals(char *out, double v, int decimals) {
    char digits[SHOW_MAX];
    if (isnan(v)) return strcpy(out, "-");
    if (isinf(v)) return strcpy(out, v > 0 ? "inf" : "-inf");
    if (fabs(v) >= 1e18) {
        snprintf(out, SHOW_MAX, "%.3g", v);
        return out;
    }
    snprintf(digits, sizeof digits, "%.*f", decimals, fabs(v));
    size_t whole = strcspn(digits, "."), at = 0;
    if (v < 0 && strspn(digits, "0.") != strlen(digits)) out[at++] = '-';
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    strcpy(out + at, digits + whole);
    return out;
}

/* Fewest decimals first: what rounds up to the next limit takes that limit's form (9.996 is 10.0). */
const char *show_ms(char *out, double ms) {
    double a = fabs(ms);
    return show_decimals(out, ms, a < 9.995 ? 2 : a < 99.95 ? 1 : 0);
}

const char *show_rate(char *out, double rate) {
    return show_ms(out, rate);
}

const char *show_share(char *out, double share) {
    double percent = 100 * share, a = fabs(percent);
    return show_decimals(out, percent, a > 0 && a < .995 ? 2 : 1);
}

const char *show_count(char *out, double n) {
    double a = fabs(n);
    if (!(a >= 999999.5) || isinf(a)) return show_decimals(out, n, 0);
    static const char units[] = "MGT";
    int u = 0;
    for (a /= 1e6; a >= 999.5 && u < 2; u++) a /= 1e3;
    snprintf(out, SHOW_MAX, "%s%.*f%c", n < 0 ? "-" : "", a < 9.995 ? 2 : a < 99.95 ? 1 : 0, a, units[u]);
    return out;
}

const char *show_bytes(char *out, double bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int u = 0;
    if (isnan(bytes)) return strcpy(out, "-");
    while (bytes >= 999.5 && u < 4) {
        bytes /= 1000;
        u++;
    }
    snprintf(out, SHOW_MAX, "%.*f %s", u && bytes < 9.95 ? 1 : 0, bytes, units[u]);
    return out;
}

const char *show_ratio(char *out, double ratio) {
    return show_decimals(out, ratio, 3);
}

const char *show_duration(char *out, double s, bool brief) {
    if (isnan(s)) return strcpy(out, "-");
    if (s < .9995) {
        snprintf(out, SHOW_MAX, "%.0f ms", 1000 * s);
    } else if (s < 59.95) {
        snprintf(out, SHOW_MAX, "%.1f s", s);
    } else {
        long long t = (long long)(s + .5);
        bool hours = t >= 3600, days = t >= 48 * 3600;
        long long big = days ? t / 86400 : hours ? t / 3600 : t / 60;
        long long small = days ? t % 86400 / 3600 : hours ? t % 3600 / 60 : t % 60;
        const char *bu = days ? "days" : hours ? "h" : "min", *su = days ? "h" : hours ? "min" : "s";
        if (small == 0 && brief)
            snprintf(out, SHOW_MAX, "%lld %s", big, bu);
        else
            snprintf(out, SHOW_MAX, brief ? "%lld %s %lld %s" : "%lld %s %02lld %s", big, bu, small, su);
    }
    return out;
}

const char *show_span(char *out, double ns, const struct show_mode *m) {
    if (isnan(ns)) return strcpy(out, "-");
    double v = ns < 999.5e3 ? ns / 1e3 : ns < 999.5e6 ? ns / 1e6 : ns / 1e9;
    const char *unit = ns < 999.5e3 ? m->utf8 ? "µs" : "us" : ns < 999.5e6 ? "ms" : "s";
    snprintf(out, SHOW_MAX, "%.*f %s", v != 0 && v < 9.95 ? 1 : 0, v, unit);
    return out;
}

static void split(int64_t wall_ns, bool local, struct tm *tm, int64_t *ns) {
    time_t s = (time_t)(wall_ns / 1000000000);
    *ns = wall_ns % 1000000000;
    if (*ns < 0) {
        *ns += 1000000000;
        s--;
    }
    if (local)
        localtime_r(&s, tm);
    else
        gmtime_r(&s, tm);
}

const char *show_date(char *out, int64_t wall_ns, const struct show_mode *m) {
    struct tm tm;
    int64_t ns;
    split(wall_ns, m->local, &tm, &ns);
    strftime(out, SHOW_MAX, "%Y-%m-%d", &tm);
    return out;
}

const char *show_time(char *out, int64_t wall_ns, int decimals, const struct show_mode *m) {
    struct tm tm;
    int64_t ns, unit = 1000000000;
    for (int i = 0; i < decimals; i++) unit /= 10;
    split(wall_ns, m->local, &tm, &ns); /* cut, not rounded: a time never reads later than it was */
    size_t n = strftime(out, SHOW_MAX, "%H:%M:%S", &tm);
    if (decimals) snprintf(out + n, SHOW_MAX - n, ".%0*lld", decimals, (long long)(ns / unit));
    return out;
}

const char *show_rfc3339(char *out, int64_t wall_ns) {
    struct tm tm;
    int64_t ns;
    split(wall_ns, false, &tm, &ns);
    size_t n = strftime(out, SHOW_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, SHOW_MAX - n, ".%09lldZ", (long long)ns);
    return out;
}

size_t show_utf8(const char *text, size_t n, uint32_t *c) {
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80                   ? 1
                 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                 : (s[0] & 0xf0) == 0xe0       ? 3
                 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > n) return 0;
    *c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : len;
}

static bool is_hidden(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

/* ASCII for the symbols that our own screens use; NULL for others. */
static const char *ascii_of(uint32_t c) {
    static char bar[2];
    switch (c) {
    case 0x2192: return "->";
    case 0xb5: return "u";
    case 0x3bc: return "u";
    case 0x2265: return ">=";
    case 0x2264: return "<=";
    case 0x2212: return "-";
    case 0x2013: return "-";
    case 0x3a3: return "sum ";
    case 0xb7: return "*";
    case 0xd7: return "x";
    }
    if (c < 0x2581 || c > 0x2588) return NULL;
    bar[0] = (char)('1' + (c - 0x2581));
    return bar;
}

const char *show_safe(char *out, size_t size, const char *s, size_t n, bool utf8) {
    size_t at = 0;
    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        char piece[20];
        uint32_t c = 0;
        len = show_utf8(s + i, n - i, &c);
        const char *ascii = len > 1 && !utf8 ? ascii_of(c) : NULL;
        if (ascii) {
            strcpy(piece, ascii);
        } else if (len == 1 && !is_hidden(c)) {
            piece[0] = (char)c;
            piece[1] = 0;
        } else if (len && utf8 && !is_hidden(c)) {
            memcpy(piece, s + i, len);
            piece[len] = 0;
        } else {
            size_t k = 0, bytes = len ? len : 1;
            for (size_t b = 0; b < bytes; b++)
                k += (size_t)snprintf(piece + k, sizeof piece - k, "\\x%02x", (unsigned char)s[i + b]);
        }
        size_t add = strlen(piece);
        if (at + add >= size) break;
        memcpy(out + at, piece, add);
        at += add;
    }
    out[at] = 0;
    return out;
}

size_t show_width(const char *s) {
    size_t width = 0, n = strlen(s), len;
    for (size_t i = 0; i < n; i += len) {
        uint32_t c = 0;
        len = show_utf8(s + i, n - i, &c);
        if (len == 0) len = 1;
        if (c >= 0x300 && c < 0x370) continue; /* combining marks */
        bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
                    (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
                    (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
                    (c >= 0x1f300 && c < 0x1fb00) || (c >= 0x20000 && c < 0x3fffe);
        width += wide ? 2 : 1;
    }
    return width;
}

const char *show_bar(int eighths, const struct show_mode *m) {
    static const char *const bars[] = {".", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    if (eighths < 0) return " ";
    return m->utf8 ? bars[eighths > 8 ? 8 : eighths] : digits[eighths > 8 ? 8 : eighths];
}
