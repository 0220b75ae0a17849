"""Made-up traffic, and what metrics.md says of each of its requests.

Times are whole ns after an instant; a trace keeps 100 ns. A request knows what happened to it; metrics() says what follows, from
the definitions (metrics.md 1 to 4 and 7). Fractions where a division is inside.
"""
import itertools, random, statistics
from fractions import Fraction

MS, WALL_NS = 1_000_000, 1_800_000_000_000_000_000      # mktrace's instant 0 on the wall clock
WINDOW_NS, TICK_NS = MS, 100
FAILED = {"upstream_refused", "http_error", "stream_error", "client_abort", "upstream_reset", "upstream_timeout", "truncated"}
STREAM_ENDS = ["ok"] * 12 + ["client_abort", "client_abort", "upstream_reset", "upstream_timeout", "truncated", "stream_error", "lost", "in_flight", "refused_text"]


class Arrival:
    def __init__(self, t, k, pressed=False):
        self.t, self.k, self.pressed = t, k, pressed


class Request:
    """asked: for a stream. events: (choice, t, tokens told or None, bytes of text), by time."""
    def __init__(self, ident, arrive):
        self.id, self.arrive = ident, arrive
        self.received = self.forwarded = self.first_byte = self.end = self.intended = self.lost_from = self.total = None
        self.asked, self.source, self.outcome, self.status = True, "ids", "ok", 200
        self.prompt = self.cached = None
        self.events, self.pauses, self.choices = [], [], 1

    # ---- tokens and arrivals

    def known_events(self):
        """Before the loss, where there is one: a request keeps them as facts, though none of its figures but the first token's."""
        return [e for e in self.events if self.lost_from is None or e[1] < self.lost_from]

    def grade_and_tokens(self):
        """Grade, and the tokens of each event."""
        told = [k for _, _, k, _ in self.known_events()]
        if not told: return None, []
        if self.source in ("ids", "running", "logprobs"): return "exact", told
        if self.total is None: return "events", [1] * len(told)
        if self.total == len(told): return "exact", [1] * len(told)
        return "prorated", prorate(self.total, [b for *_, b in self.known_events()])

    def series(self):
        """Arrivals of each choice: events within 1 ms of the first read of an arrival belong to it."""
        out = {}
        for (choice, t, _, _), k in zip(self.known_events(), self.grade_and_tokens()[1]):
            line = out.setdefault(choice, [])
            if line and t - line[-1].t <= WINDOW_NS: line[-1].k += k
            else: line.append(Arrival(t, k))
        for line in out.values():
            for before, a in itertools.pairwise(line): a.pressed = any(x < a.t and before.t < y for x, y in self.pauses)
        return list(out.values())

    def output(self):
        """The server's total, else the sum of all events: of some of them it is not known."""
        if self.total is None and self.lost_from is not None: return None
        return self.total if self.total is not None else sum(self.grade_and_tokens()[1]) or None

    def buffered(self):
        """At least 16 tokens that came at once: one arrival, of each choice."""
        at = [a.t for line in self.series() for a in line]
        return self.asked and len(at) == len(self.series()) > 0 and max(at) - min(at) <= WINDOW_NS and sum(self.grade_and_tokens()[1]) >= 16

    def gaps(self):
        """Lists, one a choice, of (gap ns, tokens): none where a loss, buffering or no stream makes them unknown."""
        if not self.asked or self.lost_from is not None or self.buffered(): return []
        return [[(a.t - before.t, a.k) for before, a in itertools.pairwise(line) if not a.pressed] for line in self.series()]

    # ---- metrics

    def done(self):
        return None if self.outcome in ("lost", "in_flight") else self.end

    def metrics(self):
        """Name as in the report: value in ns, or tokens a second."""
        m, done, output, gaps = {}, self.done(), self.output(), [g for line in self.gaps() for g in line]
        server = None if self.first_byte is not None and self.forwarded is not None and self.first_byte < self.forwarded else self.forwarded
        token = min((t for _, t, _, _ in self.known_events()), default=None) if self.asked and not self.buffered() else None
        last = max((a.t for line in self.series() for a in line), default=None) if self.asked and self.lost_from is None else None
        for name, end in (("ttft", token), ("e2e", done)):
            for start, at in (("queued", self.intended), ("client", self.arrive), ("server", server)): m[f"{name}_{start}"] = less(end, at)
        m |= {"client_queue": less(self.arrive, self.intended), "ttfa_server": m["ttft_server"], "ttfb_server": less(self.first_byte, server),
              "upload": less(self.received, self.arrive), "forward_lag": less(self.forwarded, self.received), "tail": less(done, last)}
        tokens = sum(k for _, k in gaps)
        exact_tpot = Fraction(sum(g for g, _ in gaps), tokens) if tokens else None
        m["tpot"] = None if exact_tpot is None else int(exact_tpot + Fraction(1, 2))     # tables have whole ns
        m["decode_tps"] = 10**9 / exact_tpot if exact_tpot else None
        m["e2e_tps"] = Fraction(10**9 * output, m["e2e_client"]) if output is not None and m["e2e_client"] else None
        return m

    def waited(self, trace_end):
        """Until when it was waited for in vain."""
        return {"in_flight": trace_end, "lost": self.lost_from}.get(self.outcome, self.end)


def less(a, b):
    return None if a is None or b is None else a - b


def prorate(total, sizes):
    """First one each; the rest by bytes, largest remainder first, ties to the earlier."""
    rest, whole = total - len(sizes), sum(sizes)
    share = [Fraction(rest * b, whole) for b in sizes]
    k = [int(s) for s in share]
    for i in sorted(range(len(sizes)), key=lambda i: (k[i] - share[i], i))[:rest - sum(k)]: k[i] += 1
    return [1 + x for x in k]


def stalls(requests):
    """Gaps, requests: a gap above max(200 ms, 5 x the median gap), of the model where the request has fewer than 10."""
    own = [[g for line in r.gaps() for g, _ in line] for r in requests]
    everyone = [g for gaps in own for g in gaps]
    common = Fraction(statistics.median(everyone)) if everyone else 0
    per = [sum(g > max(200 * MS, 5 * (Fraction(statistics.median(gaps)) if len(gaps) >= 10 else common)) for g in gaps) for gaps in own]
    return sum(per), sum(x > 0 for x in per)


# ---- traffic

def traffic(seed, n, kind):
    """n generations. kind: clean (exact, streamed, ok), mixed, failing."""
    rnd = random.Random(seed)
    step = rnd.choice([TICK_NS, TICK_NS, MS, 5 * MS])           # a coarse step makes many equal values
    at, requests, slow = 0, [], 1.0
    for ident in range(1, n + 1):
        at += step * max(0 if rnd.random() < 0.02 else 1, round(rnd.expovariate(1 / (30 * MS)) / step))
        slow = min(8.0, max(0.5, slow * rnd.lognormvariate(0, 0.1)))        # drifts: neighbours are alike
        requests.append(one(rnd, ident, at, kind, step, slow))
    return requests


def one(rnd, ident, at, kind, step, slow):
    r = Request(ident, at)
    later = lambda mean, least=1: step * max(least, round(rnd.expovariate(1 / (mean * MS)) / step))
    r.received = at + later(1, 0)
    r.forwarded = r.received + later(0.2, 0)
    if kind != "clean":
        r.outcome = rnd.choice(STREAM_ENDS) if kind == "mixed" or rnd.random() < 0.4 else rnd.choice(sorted(FAILED))
        r.asked = rnd.random() < 0.85
        r.source = rnd.choice(["ids", "running", "logprobs", "total", "total", "none"])
        r.choices = rnd.choice([1, 1, 1, 1, 2])
        if rnd.random() < 0.5: r.intended = at - later(20, 0)
    if rnd.random() < 0.8: r.prompt, r.cached = rnd.randrange(10, 4000), rnd.choice([None, 0, 5])
    if r.outcome == "refused_text": r.outcome, r.status = "http_error", rnd.choice([400, 404, 408, 429, 500, 503])
    elif r.outcome == "http_error": r.status = rnd.choice([400, 429, 502])
    if r.outcome == "upstream_refused":
        r.forwarded, r.end, r.prompt, r.cached = None, r.received + later(1), None, None
        return r
    t = r.forwarded + later(100 * slow)
    r.first_byte = t - min(later(20, 0), t - r.forwarded)
    if kind != "clean" and rnd.random() < 0.02 and r.forwarded > at + step: r.first_byte = r.forwarded - step     # answered early
    speak(rnd, r, t, later, slow)
    finish(rnd, r, step, later)
    return r


def speak(rnd, r, t, later, slow):
    """Its tokens' events, as if it ended well."""
    silent = r.status != 200 or not r.asked or rnd.random() < 0.03
    lone = rnd.random() < 0.03
    for _ in range(0 if silent else 1 if lone else rnd.choice([1, 2, 3, 5, 12, 25])):
        for choice in [c for c in range(r.choices) for _ in range(1 + (not lone and rnd.random() < 0.1))]:
            r.events.append((choice, t, rnd.randrange(16, 30) if lone else rnd.choice([1, 1, 1, 2, 3, 7]), rnd.randrange(1, 12)))
            t += rnd.choice([0, 3 * TICK_NS, later(0.3)]) if r.choices > 1 else 3 * TICK_NS
        gap = later(20 * slow) * (20 if rnd.random() < 0.01 else 1)
        if rnd.random() < 0.03: r.pauses.append((t + 4 * TICK_NS, t + 5 * TICK_NS + gap // 2 // TICK_NS * TICK_NS))
        t += max(gap, 1_100_000)
    if r.source == "none" and not silent: r.total = None
    elif r.source == "total" and not silent: r.total = max(len(r.events) + rnd.choice([0, 2, 9, 40]), 1)
    elif silent and r.status == 200 and not r.asked: r.total = rnd.randrange(1, 300)
    r.end = t + later(5)


def finish(rnd, r, step, later):
    """Cuts a request where its outcome says: the tokens and totals that come later are not there."""
    if r.outcome == "ok": return
    r.total = r.prompt = r.cached = None                                    # told at the end
    if r.outcome == "http_error": return
    cut = r.end if rnd.random() < 0.3 else r.first_byte + round(rnd.random() * (r.end - r.first_byte)) // step * step + 2 * TICK_NS
    if r.outcome in ("client_abort", "upstream_reset", "in_flight", "upstream_timeout") and rnd.random() < 0.4:
        cut, r.first_byte = r.forwarded + later(50), None                   # before the answer began
    r.events = [e for e in r.events if r.first_byte is not None and e[1] < cut]
    r.pauses = [p for p in r.pauses if p[1] < cut]
    r.end = cut
    if r.outcome == "lost": r.lost_from, r.end = cut, cut + later(5)
    if r.outcome == "in_flight": r.end = None


# ---- the trace

def last_instant(requests):
    known = [[r.arrive, r.received, r.forwarded, r.first_byte, r.end, r.lost_from] + [e[1] for e in r.events] for r in requests]
    return max(t for times in known for t in times if t is not None)


def lines(requests):
    """mktrace's text, in order of time."""
    timed = [(r.arrive, 0, i, line) for r in requests for i, line in enumerate(beginning(r))]
    for r in requests:
        running = {}
        for i, (choice, t, k, size) in enumerate(r.events):
            running[choice] = running.get(choice, 0) + k
            said = {"ids": f"ids={k}", "logprobs": f"logprobs={k}", "running": f"running={running[choice]}"}.get(r.source, "")
            if r.lost_from is None or t < r.lost_from: timed.append((t, 1, i, f"event {r.id} {ms(t)} content choice={choice} bytes={size} {said}"))
        timed += [(y, 2, i, f"span {r.id} paused {ms(x)} {ms(y)} 100") for i, (x, y) in enumerate(r.pauses)]
        if r.lost_from is not None: timed.append((r.lost_from, 3, 0, f"loss queue_full {ms(r.lost_from)} {ms(r.lost_from)} 1 10 {r.id}"))
        if r.first_byte is not None: timed += [(r.first_byte, 0, i, line) for i, line in enumerate(head(r))]
        if r.end is not None: timed += [(r.end, 4, i, line) for i, line in enumerate(ending(r))]
    return "\n".join(line for *_, line in sorted(timed, key=lambda x: x[:3])) + "\n"


def ms(t):
    return f"{t / MS:.4f}"


def beginning(r):
    yield f"begin R {r.id}"
    yield f"{r.id} t_arrive_ns {ms(r.arrive)}"
    yield f"{r.id} t_received_ns {ms(r.received)}"
    if r.forwarded is not None: yield f"{r.id} t_forwarded_ns {ms(r.forwarded)}"
    for name, value in (("api", "openai-chat"), ("model", "m"), ("path", "/v1/chat/completions"), ("upstream", "127.0.0.1:8000"), ("stream", int(r.asked))): yield f"{r.id} {name} {value}"
    if r.intended is not None:
        yield f"{r.id} queue_start_wall_ns {WALL_NS + r.intended}"
        yield f"{r.id} arrive_wall_ns {WALL_NS + r.arrive}"


def head(r):
    yield f"{r.id} t_first_byte_ns {ms(r.first_byte)}"
    yield f"{r.id} status {r.status}"
    yield f"{r.id} streamed {int(r.asked and r.status == 200)}"


def ending(r):
    """What is known at the end; a request in flight has none of it."""
    facts = {"upstream_refused": {"end_by": "refused", "sent_status": 502}, "client_abort": {"end_by": "client_reset", "t_client_gone_ns": ms(r.end)},
             "upstream_reset": {"end_by": "upstream_reset"}, "upstream_timeout": {"end_by": "upstream_timeout"}, "lost": {"end_by": "complete"},
             "truncated": {"end_by": "complete", "body_whole": 0}, "stream_error": {"end_by": "complete", "stream_error": 1, "body_whole": 1},
             "http_error": {"end_by": "complete", "body_whole": 1}, "ok": {"end_by": "complete", "body_whole": 1, "finish_reason": "length", "done_marker": 1}}[r.outcome]
    facts |= {"output_tokens_told": r.total, "prompt_tokens": r.prompt, "cached_tokens": r.cached}
    for name, value in facts.items():
        if value is not None: yield f"{r.id} {name} {value}"
    yield f"{r.id} t_end_ns {ms(r.end)}"
    yield f"end R {r.id}"
