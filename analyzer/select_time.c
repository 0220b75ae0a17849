/* Times of day and durations as screens print them. */
#include "analyzer/select.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define DAY_NS   (86400 * NS_PER_S)

bool select_duration(const char *text, int64_t *ns) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && v * units[i].ns < 9e18) {
            *ns = (int64_t)(v * units[i].ns);
            return true;
        }
    return false;
}

/* Exactly n digits at *p, moved past; -1 when they are not there. */
static int digits(const char **p, int n) {
    int v = 0;
    for (; n > 0; n--, ++*p) {
        if (!isdigit((unsigned char)**p)) return -1;
        v = v * 10 + (**p - '0');
    }
    return v;
}

/* .4 or .123456789 at *p, else 0. */
static int64_t fraction(const char **p) {
    int64_t ns = 0, unit = NS_PER_S / 10;
    if (**p != '.') return 0;
    for (++*p; isdigit((unsigned char)**p); ++*p, unit /= 10) ns += (**p - '0') * unit;
    return ns;
}

/* HH:MM[:SS[.fff]] at *p, moved past. */
static bool clock_time(const char **p, struct tm *tm, int64_t *ns) {
    tm->tm_hour = digits(p, 2);
    if (tm->tm_hour < 0 || tm->tm_hour > 23 || *(*p)++ != ':') return false;
    tm->tm_min = digits(p, 2);
    if (tm->tm_min < 0 || tm->tm_min > 59) return false;
    tm->tm_sec = 0;
    *ns = 0;
    if (**p != ':') return true;
    ++*p;
    tm->tm_sec = digits(p, 2);
    *ns = fraction(p);
    return tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

/* Runs mktime or gmtime's kin under a zone: NULL UTC, "local" that of the process, else a zone's name. */
static time_t to_epoch(struct tm *tm, const char *tz) {
    if (!tz) return timegm(tm);
    tm->tm_isdst = -1;
    if (strcmp(tz, "local") == 0) return mktime(tm);
    const char *before = getenv("TZ");
    char *kept = before ? strdup(before) : NULL;
    setenv("TZ", tz, 1);
    tzset();
    time_t t = mktime(tm);
    if (kept)
        setenv("TZ", kept, 1);
    else
        unsetenv("TZ");
    tzset();
    free(kept);
    return t;
}

/* The day on which an instant falls in a zone. */
static struct tm day_of(int64_t wall_ns, const char *tz) {
    time_t t = (time_t)(wall_ns / NS_PER_S);
    struct tm tm = {0};
    gmtime_r(&t, &tm);
    if (!tz) return tm;
    /* The offset of the zone at that instant, by turning UTC's reading of it around. */
    struct tm copy = tm;
    t += t - to_epoch(&copy, tz);
    gmtime_r(&t, &tm);
    return tm;
}

static bool time_of_day(const char *text, const char *tz, int64_t start_ns, int64_t end_ns,
                        int64_t *wall_ns) {
    struct tm tm = day_of(start_ns, tz);
    int64_t ns;
    if (!clock_time(&text, &tm, &ns) || *text) return false;
    *wall_ns = to_epoch(&tm, tz) * NS_PER_S + ns;
    /* A trace over midnight: the time may be meant on its second day. */
    if (*wall_ns < start_ns && *wall_ns + DAY_NS <= end_ns) *wall_ns += DAY_NS;
    return true;
}

static bool zone(const char **p, int64_t *offset_s) {
    int sign = **p == '-' ? -1 : 1;
    if (**p == 'Z' || **p == 'z') {
        ++*p;
        *offset_s = 0;
        return true;
    }
    if (*(*p)++ == 0) return false;
    int h = digits(p, 2);
    if (**p == ':') ++*p;
    int m = digits(p, 2);
    *offset_s = sign * (h * 3600 + m * 60);
    return h >= 0 && m >= 0;
}

static bool rfc3339(const char *text, const char *tz, int64_t *wall_ns) {
    const char *p = text;
    struct tm tm = {0};
    int64_t ns = 0, offset = 0;
    tm.tm_year = digits(&p, 4) - 1900;
    if (tm.tm_year < 70 || tm.tm_year > 350 || *p++ != '-') return false;
    tm.tm_mon = digits(&p, 2) - 1;
    if (tm.tm_mon < 0 || tm.tm_mon > 11 || *p++ != '-') return false;
    tm.tm_mday = digits(&p, 2);
    if (tm.tm_mday < 1 || tm.tm_mday > 31 || (*p != 'T' && *p != 't' && *p != ' ')) return false;
    p++;
    if (!clock_time(&p, &tm, &ns)) return false;
    if (*p == 0) {
        *wall_ns = to_epoch(&tm, tz) * NS_PER_S + ns;
        return true;
    }
    if ((*p != 'Z' && *p != 'z' && *p != '+' && *p != '-') || !zone(&p, &offset) || *p) return false;
    *wall_ns = (timegm(&tm) - offset) * NS_PER_S + ns;
    return true;
}

bool select_time(const char *text, const char *tz, int64_t start_wall_ns, int64_t end_wall_ns,
                 int64_t *wall_ns) {
    int64_t d;
    if (*text == '+' || *text == '-') {
        if (!select_duration(text + 1, &d)) return false;
        *wall_ns = *text == '+' ? start_wall_ns + d : end_wall_ns - d;
        return true;
    }
    return time_of_day(text, tz, start_wall_ns, end_wall_ns, wall_ns) || rfc3339(text, tz, wall_ns);
}
