#!/usr/bin/env python3
"""Holds the statistics of `traceanalyze report` against a second computation.

    run.py --bin DIR [--traces 12] [--seed N] [--most 5000] [--show N] [--keep DIR]

Makes seeded traffic (model.py), writes it as a trace by mktrace, and compares every figure of the report, as JSON, with
report.py's: distributions, intervals, few_samples, p_all, goodput, throughput, stalls. "N passed, N failed"; a figure is one.
"""
import argparse, collections, json, math, os, subprocess, sys, tempfile

import by_hand, model, reference, report

ALWAYS = ["1", "5", "10", "50", "90", "95", "99"]
MORE = [[], ["80", "99.9"], ["60", "75", "99.5"]]
T_SLACK = 1e-6      # Student's t may be an expansion that is right to 1e-6 from 19 degrees of freedom on
SIZES = [10, 19, 30, 40, 75, 150, 199, 200, 201, 257, 400, 900, 2000, 5000]
KINDS = ["clean", "mixed", "mixed", "failing"]


class Tally:
    def __init__(self, show):
        self.passed, self.failed, self.show, self.kinds = 0, 0, show, collections.Counter()

    def same(self, where, got, want):
        self.say(where, equal(got, want), got, want)

    def say(self, where, good, got, want):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if good: return
        self.kinds[where.split(" ", 1)[1]] += 1
        if self.failed <= self.show: print(f"{where}: {got!r}, right is {plain(want)!r}")


def plain(v):
    return [plain(x) for x in v] if isinstance(v, list) else v if v is None or isinstance(v, (bool, int, str)) else float(v)


def equal_ends(got, want):
    """An end that differs must lie between those that a t off by T_SLACK gives."""
    if len(got) == 2 and all(map(equal, got, want)): return True
    less, more = map(plain, (list(want.again(-T_SLACK)), list(want.again(T_SLACK))))
    return all(equal(g, w) or g is not None and None not in (a, b) and min(a, b) <= g * (1 + 1e-12) and g * (1 - 1e-12) <= max(a, b) for g, w, a, b in zip(got, want, less, more))


def equal(got, want):
    if not isinstance(want, reference.Ends): want = plain(want)
    if isinstance(want, reference.Ends) and isinstance(got, list): return equal_ends(got, want)
    if isinstance(want, list): return isinstance(got, list) and len(got) == len(want) and all(map(equal, got, want))
    if want is None or got is None or isinstance(want, bool): return got is want
    if want == math.inf or got == "inf": return got == "inf" and want == math.inf
    if not isinstance(got, (int, float)): return False
    return math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-12)


def same_summary(tally, where, have, want):
    for field, value in want.items():
        if field == "withheld" or field.endswith("_few"): continue
        # below 20 requests a token series is marked; whether its interval is printed is not said
        if field.endswith("_ci95") and want["withheld"] and have.get(field) == [None, None]: continue
        tally.same(f"{where}.{field}", have.get(field, "missing"), value)
    tally.same(f"{where}.few_samples", have.get("few_samples"), want["p99_few"])


def compare(tally, where, got, expected):
    for name, want in expected.metrics().items(): same_summary(tally, f"{where} {name}", got["metrics"][name], want)
    cache = expected.cache()
    if cache: same_summary(tally, f"{where} prefill_tps", got["metrics"]["prefill_tps"], cache.pop("prefill_tps"))
    for name, of in cache.items():
        for key, want in of.items(): same_summary(tally, f"{where} cache.{name}.{key}", got["cache"][name][key], want)
    window, through = expected.throughput()
    tally.same(f"{where} window_s", got["window_s"], window)
    for name, value in through.items(): tally.same(f"{where} throughput.{name}", got["throughput"][name], value)
    for name, value in expected.goodput(window).items(): tally.same(f"{where} goodput.{name}", got["goodput"][name], value)
    others = expected.others()
    tally.same(f"{where} tokens_per_arrival", got["metrics"]["tokens_per_arrival"], others["tokens_per_arrival"])
    for name, value in others["stall"].items(): tally.same(f"{where} stall.{name}", got["metrics"]["stall"][name], value)


def trace_of(binaries, path, requests):
    subprocess.run([os.path.join(binaries, "mktrace"), path], input=model.lines(requests), text=True, check=True)


def report_of(binaries, path, *options):
    return json.loads(subprocess.run([os.path.join(binaries, "traceanalyze"), "report", path, "--format", "json", *options], capture_output=True, text=True, check=True).stdout)


def one(tally, options, folder, seed, n):
    kind, more = KINDS[seed % len(KINDS)], MORE[seed % len(MORE)]
    requests, path = model.traffic(seed, n, kind), os.path.join(folder, f"{seed}.trc")
    trace_of(options.bin, path, requests)
    limits = ",".join(f"{name}={value}ms" for name, value in report.SLO.items())
    for rule in (reference.LINEAR, reference.NEAREST_RANK):
        got = report_of(options.bin, path, "--slo", limits, "--quantile", rule, *(["--percentiles", ",".join(more)] if more else []))
        compare(tally, f"seed={seed},n={n},{kind},{rule}", got, report.Expected(requests, model.last_instant(requests), ALWAYS + more, rule, options.open))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--traces", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--most", type=int, default=5000, help="requests in a trace")
    p.add_argument("--show", type=int, default=20)
    p.add_argument("--open", nargs="*", default=[], choices=["lost", "grades", "gone"], help="findings not decided yet: compare as the report has it")
    p.add_argument("--keep")
    options = p.parse_args()
    tally, sizes = Tally(options.show), [s for s in SIZES if s <= options.most]
    by_hand.check(tally, options.bin, trace_of, report_of)
    with tempfile.TemporaryDirectory() as made:
        for seed in range(options.seed, options.seed + options.traces): one(tally, options, options.keep or made, seed, sizes[seed % len(sizes)])
    for name, n in tally.kinds.most_common(40): print(f"{n:6} {name}")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__": sys.exit(main())
