"""What a report must say of made-up traffic: model.py's requests, summarised by reference.py as metrics.md 7 and 8 have it."""
import math
from fractions import Fraction

import reference as ref
from model import FAILED, MS, stalls

GRADES = ("exact", "prorated", "events")
DURATIONS = "client_queue ttft_queued ttft_client ttft_server ttfa_server ttfb_server e2e_queued e2e_client e2e_server upload forward_lag tail".split()
SLO = {"ttft_client": 150, "tpot": 25, "e2e_client": 1500, "itl": 80}       # ms


class Expected:
    def __init__(self, requests, trace_end, percentiles, rule, open_findings=()):
        self.all, self.end, self.rule, self.open = requests, trace_end, rule, set(open_findings)
        self.p = {"p" + name: ref.of_text(name) for name in percentiles}
        self.usual = {name: p for name, p in self.p.items() if p >= Fraction(1, 2)}     # durations; rates have their slow tail, too
        self.m = {r.id: r.metrics() for r in requests}
        self.grade = {r.id: r.grade_and_tokens()[0] for r in requests}
        self.ok = [r for r in requests if r.outcome == "ok"]

    # ---- distributions

    def metrics(self):
        out = {}
        for name in DURATIONS:
            out[name + "_ms"] = self.in_ms(ref.summary(self.values(name), self.usual, self.rule))
            if name.startswith(("ttft", "ttfa", "e2e")): self.add_all(out[name + "_ms"], self.lives(name))
        for i, grade in enumerate(GRADES):
            tail = f"_{grade}" if i else ""
            out[f"tpot{tail}_ms"] = self.in_ms(ref.summary(self.values("tpot", grade), self.usual, self.rule)) | self.share("tpot", grade)
            out[f"decode_tps{tail}"] = ref.summary(self.values("decode_tps", grade), self.p, self.rule) | self.share("decode_tps", grade)
            for name, spread in (("itl", lambda g, k: [(Fraction(g, k), k)]), ("itl_burst", lambda g, k: [(g, 1), (0, k - 1)])):
                out[f"{name}{tail}_ms"] = self.in_ms(self.tokens(spread, grade)) | self.share("itl", grade)
        self.add_all(out["tpot_ms"], self.lives("tpot"))
        out["e2e_tps"] = ref.summary(self.values("e2e_tps"), self.p, self.rule)
        out["chunk_gap_ms"] = self.in_ms(self.tokens(lambda g, k: [(g, 1)], None))
        for name in ("decode_tps", "e2e_tps"): self.add_zeros(out[name], name)
        return out

    def values(self, name, grade=None):
        of = [r for r in self.ok if grade is None or self.grade[r.id] == grade]
        return [self.m[r.id][name] for r in of if self.m[r.id][name] is not None]

    def tokens(self, spread, grade):
        of = [r for r in self.ok if grade is None or self.grade[r.id] == grade]
        requests = [[x for line in r.gaps() for g, k in line for x in spread(g, k) if x[1]] for r in of]
        return ref.token_summary(requests, self.usual, self.rule)

    def share(self, name, grade):
        has = [self.grade[r.id] for r in self.ok if (any(r.gaps()) if name == "itl" else self.m[r.id][name] is not None)]
        return {"grade_share": has.count(grade) / len(has) if has else 0}

    def in_ms(self, s):
        scale = lambda v: v if v is None else Fraction(v) / MS
        again = lambda ends: ref.Ends(map(scale, ends), lambda slack: [scale(x) for x in ends.again(slack)])
        return {k: again(v) if isinstance(v, list) else v if k == "n" or isinstance(v, bool) else
                v / MS if k == "sd" and v is not None else scale(v) for k, v in s.items()}

    # ---- estimates that keep failures in

    def lives(self, name):
        """Of every generation that could have the metric."""
        out, whole = [], name.startswith("e2e")
        for r in self.all:
            v, start = self.m[r.id][name], {"queued": r.intended, "client": r.arrive}.get(name.split("_")[-1], r.forwarded)
            if not whole and not r.asked or name.endswith("queued") and r.intended is None: continue
            if name == "tpot" and self.grade[r.id] not in (None, "exact") and "grades" not in self.open: continue   # never pooled with exact
            # "metric seen = event, whatever the outcome" cannot mean the end of a failure: a quick 503 would be a good e2e
            if v is not None and (r.outcome == "ok" or not whole): out.append((v, ref.SEEN))
            elif r.outcome in ("client_abort", "in_flight", "lost"):
                dropped = r.outcome == "lost" and "lost" in self.open
                if name != "tpot" and not dropped: out.append((r.waited(self.end) - start, ref.CENSORED))    # nobody waits for a tpot
            elif self.failed_by_server(r): out.append((None, ref.NEVER))
        return out

    def failed_by_server(self, r):
        """Never would have had it; other 4xx are the client's own and apart."""
        return r.outcome in FAILED - {"client_abort"} and not (r.outcome == "http_error" and r.status < 500 and r.status not in (408, 429))

    def add_all(self, summary, lives):
        for name, v in ref.product_limit(lives, self.usual).items(): summary[name + "_all"] = v if v is None or v == math.inf else Fraction(v) / MS

    def add_zeros(self, summary, name):
        """For rates a failure is 0."""
        could = [r for r in self.all if name != "decode_tps" or r.asked and (self.grade[r.id] in (None, "exact") or "grades" in self.open and r.outcome != "ok")]
        values = [self.m[r.id][name] if r.outcome == "ok" else 0 for r in could if r.outcome == "ok" or self.failed_by_server(r)]
        samples = ref.Samples((v, 1) for v in values if v is not None)
        for name, p in self.p.items(): summary[name + "_all"] = samples.quantile(p, self.rule)

    # ---- the rest

    def throughput(self):
        ends = [r.end for r in self.all if r.end is not None] + [self.end for r in self.all if r.outcome == "in_flight"]
        first, last = min(r.arrive for r in self.all), max(ends + [r.arrive for r in self.all])
        window, done = Fraction(last - first, 10**9), [r.end for r in self.ok]
        of = lambda values: sum(v for v in values if v is not None)
        spans = [(r.arrive, self.end if r.outcome == "in_flight" else r.end) for r in self.all]
        prompts = [r for r in self.all if r.prompt is not None]
        return window, {
            "output_tps_system": of(r.output() for r in self.all) / window, "prompt_tps_system": of(r.prompt for r in prompts) / window if prompts else None,
            "prefill_tps_system": of(r.prompt - r.cached for r in prompts if r.cached is not None) / window if any(r.cached is not None for r in prompts) else None,
            "request_rate": len(done) / window, "completion_rate": Fraction(len(done) - 1) * 10**9 / (max(done) - min(done)) if len(done) > 1 else None,
            "mean_concurrency": sum(b - a for a, b in spans) / Fraction(last - first),
            "highest_concurrency": highest(spans)}

    def others(self):
        gaps = [g for r in self.ok for line in r.gaps() for g in line]
        per, n = stalls(self.ok)
        return {"tokens_per_arrival": Fraction(sum(k for _, k in gaps), len(gaps)) if gaps else None, "stall": {"gaps": per, "requests": n}}

    def goodput(self, window):
        good = bad = undecided = 0
        for r in self.all:
            if r.outcome == "ok" and self.m[r.id]["ttft_client"] is None: continue      # limits on arrivals skip it
            broken = any(v is not None and v > SLO[name] * MS for name, v in self.limited(r).items())
            if r.outcome == "ok": good, bad = good + (not broken), bad + broken
            elif r.outcome in FAILED - {"client_abort"} or broken and (r.outcome != "lost" or "gone" in self.open): bad += 1
            else: undecided += 1
        lo, hi = ref.wilson(good, good + bad)
        return {"good": good, "decided": good + bad, "undecided": undecided, "share": good / (good + bad) if good + bad else None, "share_ci95": [lo, hi], "per_s": good / window}

    def limited(self, r):
        """What limits are held against; of one that is gone, how long it waited where it has no figure."""
        m, samples = self.m[r.id], ref.Samples((Fraction(g, k), k) for line in r.gaps() for g, k in line)
        out = {name: m[name] for name in ("ttft_client", "tpot", "e2e_client")}
        if r.outcome == "ok" or "gone" not in self.open: out["itl"] = samples.quantile(ref.of_text("99"), self.rule)
        if r.outcome in ("client_abort", "in_flight"):
            out["e2e_client"] = waited = r.waited(self.end) - r.arrive
            if m["ttft_client"] is None and (r.asked or "gone" in self.open): out["ttft_client"] = waited
        return out

    def cache(self):
        """Summaries by class, where nothing tells of a start. Prefill: of misses only."""
        if any(r.outcome == "upstream_refused" or r.status == 503 for r in self.all): return {}
        of = {"miss": lambda c: c == 0, "hit": lambda c: c, "unreported": lambda c: c is None}
        out = {}
        for name, holds in of.items():
            members = [r for r in self.ok if holds(r.cached) and self.m[r.id]["ttft_server"] is not None]
            out[name] = {"ttft_server_ms": self.in_ms(ref.summary([self.m[r.id]["ttft_server"] for r in members], self.usual, self.rule))} if members else {}
            if name == "miss": out["prefill_tps"] = ref.summary([Fraction(r.prompt * 10**9, self.m[r.id]["ttft_server"]) for r in members if self.m[r.id]["ttft_server"]], self.p, self.rule)
        return out


def highest(spans):
    edges = sorted([(a, 1) for a, b in spans if b > a] + [(b, -1) for a, b in spans if b > a])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
