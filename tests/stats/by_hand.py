"""Five figures worked out on paper, against the report and against reference.py: what both might have misread, a sum by hand shows.

BINOMIAL   Ten requests with ttft 100, 200 ... 1000 ms. B counts how many of 10 lie below the median: P(B <= 0) = 1/1024, P(B <= 1) = 11/1024
           = .0107, P(B <= 2) = 56/1024 = .0547. l is the largest j with P(B <= j - 1) <= .025: 2, so 200. u is the smallest j with
           P(B >= j) <= .025; P(B >= 9) = .0107, P(B >= 8) = .0547: 9, so 900. For p90, P(B <= 6) = .0128 and P(B <= 7) = .0702: 700; P(B >= 10) = .35: no upper end.
           (Percentiles: p50 = 500 + .5 * 100 at rank 9 * .5 = 4.5; p90 = 900 + .1 * 100 at 8.1; nearest-rank p90: the 9th.)
WILSON     The same ten with ttft <= 800 ms: 8 of 10. z = 1.95996, z^2 = 3.84146. Centre (.8 + 3.84146/20) / (1 + .384146) = .992073 / 1.384146
           = .716740. Half z * sqrt(.8 * .2/10 + 3.84146/400) / 1.384146 = 1.95996 * .160012 / 1.384146 = .226578. So .490162 to .943318.
WEIGHTED   Arrivals at 100 (1 token), 150 (3) and 200 ms (2): itl has 3 samples of 50/3 and 2 of 25. p50 at rank 4 * .5 = 2: 16.6667;
           p60 at 2.4: 16.6667 + .4 * 8.3333 = 20; p90 at 3.6: 25. Of the two arrivals alone p60 would be 21.67, another figure.
CLUSTERS   200 requests in 20 blocks of 10 by t_arrive; ttft 1, 2 ... 100 ms in the 1st, 3rd ... block, 201, 202 ... 300 in the others. The
           median is at rank 199 * .5 = 99.5: (100 + 201) / 2 = 150.5. Of a block all or none lie below: d = 10 - 5 or 0 - 5, d^2 = 25.
           se = sqrt(20/19 * 20 * 25) / 200 = 22.9416 / 200 = .114708; t(.975, 19) = 2.09302; reach .240087. Lower end at .259913:
           rank 51.7227, 52.7227 ms. Upper end at .740087: rank 147.2773, 248.2773 ms. As independent they would be 86.5 and 215.5 or so.
LIMIT      ttft 10, 20 and 40 ms seen; one client left at 15; one upstream reset without a token. At 10, 5 wait: S = 4/5. At 20, 3 wait (who
           left is gone, who failed waits for ever): S = 4/5 * 2/3 = .5333. At 40, 2 wait: S = .2667. p50_all: S <= .5 first at 40;
           p70_all: S <= .3, 40; p75_all: S <= .25, never: inf. Were who left dropped, p50_all would be 20; a failure, p70_all inf.
"""
import os, tempfile

import reference as ref
from model import MS, Request


def request(ident, arrive_ms, ttft_ms, outcome="ok", more=()):
    """A stream whose tokens come at ttft and at more, (ms, tokens)."""
    r = Request(ident, arrive_ms * MS)
    r.received = r.forwarded = r.arrive
    r.outcome, r.end = outcome, r.arrive + ttft_ms * MS
    if outcome == "ok":
        r.first_byte = r.end
        r.events = [(0, r.arrive + t * MS, k, 4) for t, k in [(ttft_ms, 1), *more]]
        r.end = r.events[-1][1]
    return r


def ten(): return [request(i, 2000 * i, 100 * i) for i in range(1, 11)]
def clusters(): return [request(i + 1, 1000 * i, (i // 20 * 10 + i % 10 + 1) + (200 if i // 10 % 2 else 0)) for i in range(200)]
def limit(): return [request(i + 1, 1000 * i, t, o) for i, (t, o) in enumerate([(10, "ok"), (20, "ok"), (40, "ok"), (15, "client_abort"), (5, "upstream_reset")])]


CASES = [
    ("binomial", ten, [], {"ttft_client_ms": {"p50": 550, "p50_ci95": [200, 900], "p90": 910, "p90_ci95": [700, None], "few_samples": True}}),
    ("nearest rank", ten, ["--quantile", "nearest-rank"], {"ttft_client_ms": {"p50": 500, "p90": 900}}),
    ("wilson", ten, ["--slo", "ttft_client=800ms"], {"goodput": {"good": 8, "decided": 10, "share": 0.8, "share_ci95": [0.490162, 0.943318]}}),
    ("weighted", lambda: [request(1, 0, 100, more=[(150, 3), (200, 2)])], ["--percentiles", "60"], {"itl_ms": {"n": 5, "mean": 20, "p50": 50 / 3, "p60": 20, "p90": 25}}),
    ("clusters", clusters, [], {"ttft_client_ms": {"p50": 150.5, "p50_ci95": [52.7227, 248.2773]}}),
    ("limit", limit, ["--percentiles", "70,75"], {"ttft_client_ms": {"p50": 20, "p50_all": 40, "p70_all": 40, "p75_all": "inf"}}),
]


def near(got, want):
    if got == want: return True
    if isinstance(want, list): return isinstance(got, list) and all(map(near, got, want))
    if isinstance(want, (str, bool)) or want is None or got is None or isinstance(got, str): return got == want
    return abs(got - want) <= 1e-5 * max(1, abs(want))


def check_reference(tally):
    p = lambda text: ref.of_text(text)
    sevens = ref.Samples([(50 / 3, 3), (25, 2)])
    tens = ref.summary([100 * i for i in range(1, 11)], {"p50": p(50), "p90": p(90)})
    blocks = ref.summary([(i // 20 * 10 + i % 10 + 1) + (200 if i // 10 % 2 else 0) for i in range(200)], {"p50": p(50)})
    lives = ref.product_limit([(10, ref.SEEN), (20, ref.SEEN), (40, ref.SEEN), (15, ref.CENSORED), (0, ref.NEVER)], {"a": p(50), "b": p(70), "c": p(75)})
    for name, got, want in (("binomial", tens["p50_ci95"] + tens["p90_ci95"], [200, 900, 700, None]), ("wilson", list(ref.wilson(8, 10)), [0.490162, 0.943318]),
                            ("weighted", [sevens.quantile(p(x)) for x in (50, 60, 90)], [50 / 3, 20, 25]), ("clusters", blocks["p50_ci95"], [52.7227, 248.2773]),
                            ("limit", [lives["a"], lives["b"], lives["c"]], [40, 40, float("inf")]), ("least", [ref.least(p(x)) for x in ("50", "90", "95", "99", "99.9")], [6, 36, 72, 368, 3688]),
                            ("t", [ref.t975(n) for n in (1, 3, 19, 120)], [12.7062, 3.18245, 2.09302, 1.97993])):
        tally.say(f"reference.py by hand: {name}", near(got, want), got, want)


def check(tally, binaries, trace_of, report_of):
    check_reference(tally)
    with tempfile.TemporaryDirectory() as folder:
        for name, made, options, figures in CASES:
            path = os.path.join(folder, name.replace(" ", "_") + ".trc")
            trace_of(binaries, path, made())
            got = report_of(binaries, path, *options)
            for group, fields in figures.items():
                have = got[group] if group in got else got["metrics"][group]
                for field, want in fields.items(): tally.say(f"report by hand: {name} {group}.{field}", near(have.get(field, "missing"), want), have.get(field), want)
