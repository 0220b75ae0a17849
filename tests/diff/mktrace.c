/* Makes a trace of lines of text, so that a test can be read: mktrace OUT.trc < lines
 *
 *   head KEY VALUE                      before all others
 *   begin R|C ID      end R|C ID        a request or a connection
 *   ID FACT VALUE                       a fact by its name in facts.def: TIME in ms (10.5), INT, REAL, STR to
 * the line's end span ID FACT FROM_MS TO_MS VALUE event ID MS WHAT [bytes=N] [read=N] [choice=N] [running=N]
 * [ids=N] [logprobs=N] [wire=N] WHAT: content,reasoning,refusal,tool,audio,summary,finish,stop,contract,echo
 *   loss NAME FROM_MS TO_MS COUNT BYTES ID
 *   flush                               a block ends here
 *   # a comment
 *
 * ms count from an instant that is 2027-01-15 08:00:00 UTC. An event without read= has a read of its own. */
#include "schema/trw.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0_NS      1000000000000
#define T0_WALL_NS 1800000000000000000

static int line_number;
static struct trw *out;
static const char *head[64] = {"recorder", "mktrace", "source",     "proxy",
                               "host",     "test",    "upstream.0", "127.0.0.1:8000"};
static size_t n_head = 8;

static void fail(const char *why, const char *what) {
    fprintf(stderr, "mktrace: line %d: %s: %s\n", line_number, why, what ? what : "nothing");
    exit(1);
}

static char *word(char **p) {
    *p += strspn(*p, " ");
    char *w = *p;
    *p += strcspn(w, " ");
    if (**p) *(*p)++ = 0;
    return *w ? w : NULL;
}

static char *need(char **p, const char *what) {
    char *w = word(p);
    if (!w) fail("missing", what);
    return w;
}

static int64_t number(const char *w) {
    char *end;
    int64_t v = strtoll(w, &end, 10);
    if (*end) fail("no number", w);
    return v;
}

static int64_t ns(const char *w) {
    char *end;
    double ms = strtod(w, &end);
    if (*end) fail("no time in ms", w);
    return T0_NS + llround(ms * 1e6);
}

static enum fact fact_of(const char *name) {
    for (int f = 0; f < N_FACTS; f++)
        if (strcmp(fact_infos[f].name, name) == 0) return (enum fact)f;
    fail("no such fact", name);
    return N_FACTS;
}

static void open_trace(const char *path, struct trw_state *state) {
    char err[256];
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    struct trw_config c = {.fd = fd, .state = state, .head = head, .flush_interval_ns = 1000000000};
    if (fd < 0) fail("cannot make", path);
    out = trw_open(&c, err, sizeof err);
    if (!out) fail("cannot write", err);
    trw_anchor(out, T0_NS, T0_WALL_NS, 100);
}

static void fact(uint64_t id, char *rest) {
    enum fact f = fact_of(need(&rest, "a fact"));
    switch (fact_infos[f].type) {
    case FACT_TIME: trw_int(out, id, f, ns(need(&rest, "a time"))); break;
    case FACT_INT: trw_int(out, id, f, number(need(&rest, "a number"))); break;
    case FACT_REAL: trw_real(out, id, f, strtod(need(&rest, "a number"), NULL)); break;
    case FACT_STR: trw_str(out, id, f, rest, strlen(rest)); break;
    case FACT_SPAN: fail("a span is told by: span", fact_infos[f].name);
    }
}

static uint32_t what_of(char *list) {
    static const char *const names[] = {"content", "reasoning", "refusal", "tool",     "audio",
                                        "summary", "finish",    "stop",    "contract", "echo"};
    uint32_t what = 0;
    for (char *save, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        size_t i = 0;
        while (i < sizeof names / sizeof *names && strcmp(names[i], w) != 0) i++;
        if (i == sizeof names / sizeof *names && strcmp(w, "none") != 0) fail("no such kind of event", w);
        if (strcmp(w, "none") != 0) what |= 1u << i;
    }
    return what;
}

static void event(char *rest) {
    static uint64_t reads;
    struct tok_event e = {.running = -1, .ids = -1, .logprobs = -1, .wire_bytes = 100, .text_bytes = 4};
    e.request = (uint64_t)number(need(&rest, "an id"));
    e.t_ns = ns(need(&rest, "a time"));
    e.read = ++reads + 1000000;
    e.what = what_of(need(&rest, "what it is"));
    if (!(e.what & (TOK_TEXT | TOK_SUMMARY))) e.text_bytes = 0;
    for (const char *w; (w = word(&rest));) {
        const char *is = strchr(w, '=');
        if (!is) fail("not KEY=VALUE", w);
        int64_t v = number(is + 1);
        if (strncmp(w, "bytes=", 6) == 0)
            e.text_bytes = (uint32_t)v;
        else if (strncmp(w, "wire=", 5) == 0)
            e.wire_bytes = (uint32_t)v;
        else if (strncmp(w, "read=", 5) == 0)
            e.read = (uint64_t)v;
        else if (strncmp(w, "choice=", 7) == 0)
            e.choice = (uint32_t)v;
        else if (strncmp(w, "running=", 8) == 0)
            e.running = v;
        else if (strncmp(w, "ids=", 4) == 0)
            e.ids = (int32_t)v;
        else if (strncmp(w, "logprobs=", 9) == 0)
            e.logprobs = (int32_t)v;
        else
            fail("no such key", w);
    }
    trw_event(out, &e);
}

static void span(char *rest) {
    uint64_t id = (uint64_t)number(need(&rest, "an id"));
    enum fact f = fact_of(need(&rest, "a fact"));
    int64_t from = ns(need(&rest, "a time")), to = ns(need(&rest, "a time"));
    trw_span(out, id, f, from, to, number(need(&rest, "a number")));
}

static void loss(char *rest) {
    const char *name = need(&rest, "a loss");
    int l = 0;
    while (l < N_LOSSES && strcmp(loss_infos[l].name, name) != 0) l++;
    if (l == N_LOSSES) fail("no such loss", name);
    int64_t from = ns(need(&rest, "a time")), to = ns(need(&rest, "a time")),
            count = number(need(&rest, "a count")), bytes = number(need(&rest, "bytes"));
    trw_loss(out, (enum loss)l, from, to, (uint64_t)count, (uint64_t)bytes,
             (uint64_t)number(need(&rest, "an id")));
}

static void subject(const char *verb, char *rest) {
    enum subject s = *need(&rest, "R or C") == 'C' ? SUBJECT_C : SUBJECT_R;
    uint64_t id = (uint64_t)number(need(&rest, "an id"));
    if (*verb == 'b')
        trw_begin(out, s, id);
    else
        trw_end(out, s, id);
}

static void add_head(char *rest) {
    if (out || n_head + 2 >= sizeof head / sizeof *head) fail("head", "comes too late or too often");
    head[n_head++] = strdup(need(&rest, "a key"));
    head[n_head++] = strdup(rest);
}

int main(int argc, char **argv) {
    struct trw_state state = {0};
    char line[4096];
    if (argc != 2) fail("usage", "mktrace OUT.trc < lines");
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line;
        line_number++;
        line[strcspn(line, "\n")] = 0;
        const char *verb = word(&rest);
        if (!verb || *verb == '#') continue;
        if (strcmp(verb, "head") == 0) {
            add_head(rest);
            continue;
        }
        if (!out) open_trace(argv[1], &state);
        if (strcmp(verb, "begin") == 0 || strcmp(verb, "end") == 0)
            subject(verb, rest);
        else if (strcmp(verb, "event") == 0)
            event(rest);
        else if (strcmp(verb, "span") == 0)
            span(rest);
        else if (strcmp(verb, "loss") == 0)
            loss(rest);
        else if (strcmp(verb, "flush") == 0)
            trw_flush(out);
        else
            fact((uint64_t)number(verb), rest);
    }
    if (!out) open_trace(argv[1], &state);
    return trw_close(out) == 0 ? 0 : 1;
}
