"""From runs to figures: medians with quartiles, ratios paired by round, each beside its target.

`runs` is {kind: [{target: run}, ...]}, one dictionary a round; a run that failed is {"failed": why}. It knows nothing of
how a run was made.
"""
import statistics

from measure import quantile

SHAPES = ("phase", "step")
RATE_FLOOR, RATE_SHARE = 200_000, .9
DELAY_RATIO = {"p50": 1.05, "p99": 1.25}
CPU_FAST_US, CPU_PACED_RATIO = 4, 1.1
BYTES_PER_EVENT, CLOCK_P99_US = 4, 50
LOAD_EVENTS_PER_S, LOAD_MB = 15e6, 400
PEER, OURS = "haproxy", "tracerec"


def spread(values):
    """Median and quartiles of the rounds, None without any."""
    if not values: return None
    return {"median": statistics.median(values), "q1": quantile(values, .25), "q3": quantile(values, .75),
            "n": len(values)}


def pick(run, path):
    """run["a"]["b"] for "a.b", or None where the run failed or lacks it."""
    for key in path.split("."):
        run = run.get(key) if isinstance(run, dict) else None
    return run


def per_target(rounds, path, minus=None):
    """{target: [value or None per round]}; `minus` names a target whose value in the same round is subtracted."""
    out = {}
    for name in dict.fromkeys(n for r in rounds for n in r):
        if name == minus: continue
        out[name] = column = []
        for r in rounds:
            v, base = pick(r.get(name), path), pick(r.get(minus), path) if minus else 0
            column.append(None if v is None or base is None else v - base)
    return out


def some(column): return [v for v in column if v is not None]


def ratios(columns):
    """Ours over the peer's of the same round. A round in which the peer's is not above zero is noise and has none."""
    pairs = zip(columns.get(OURS, ()), columns.get(PEER, ()))
    return [a / b for a, b in pairs if a is not None and b is not None and b > 0]


def lossy(rounds):
    """How many of our runs lost something, and what the first of them said."""
    said = [r[OURS]["trace"]["lost"] for r in rounds if pick(r.get(OURS), "trace.lost")]
    return (len(said), f"LOSSY in {len(said)} of {len(rounds)} rounds: {said[0][0]}") if said else (0, "")


def ratio_of_medians(columns):
    a, b = (median_of(some(columns.get(n, ()))) for n in (OURS, PEER))
    return a / b if a and b and b > 0 else None


def median_of(values): return statistics.median(values) if values else None


def figure(name, unit, columns, target, verdicts=(), notes=(), rounds=()):
    """One row. `verdicts`: (value or None, holds) of each part of the target; no parts: for information. A figure with a
    target holds only if nothing was lost in its `rounds`: not to record is cheap."""
    n_lossy, loss = lossy(rounds) if verdicts else (0, "")
    verdicts = [*verdicts, *[(n_lossy, False)] * bool(n_lossy)]
    note = "; ".join(n for n in (loss, *notes) if n)
    known = [ok for value, ok in verdicts if value is not None]
    verdict = "" if not verdicts else "-" if len(known) < len(verdicts) else "PASS" if all(known) else "FAIL"
    return {"name": name, "unit": unit, "targets": {k: spread(some(v)) for k, v in columns.items()},
            "ratio": spread(ratios(columns)), "ratio_of_medians": ratio_of_medians(columns), "target": target,
            "verdict": verdict, "note": note}


def at_most(value, limit): return value, value is not None and value <= limit


def at_least(value, limit): return value, value is not None and value >= limit


def delay(runs):
    rows = []
    for shape in SHAPES:
        for p, limit in DELAY_RATIO.items():
            added = per_target(runs[shape], f"delay_us.{p}", minus="direct")
            r = ratios(added)
            short = len(runs[shape]) - len(r)
            notes = [f"no ratio in {short} rounds: {PEER} added nothing above the noise"] if r and short else []
            rows.append(figure(f"added delay {p}, {shape}", "us", added, f"ratio <= {limit}",
                               [at_most(median_of(r), limit)], notes, runs[shape]))
        for p in DELAY_RATIO:
            rows.append(figure(f"  whole delay {p}, {shape}", "us", per_target(runs[shape], f"delay_us.{p}"), ""))
    return rows


def rate(runs):
    columns = per_target(runs["fast"], "sustained_per_s")
    drain = median_of(some(per_target(runs["fast"], "drain_ms").get(OURS, ())))
    notes = [f"recorder idle {drain:.0f} ms after the last event"] if drain is not None else []
    ours = median_of(some(columns.get(OURS, ())))
    return [figure("events, as fast as they come", "/s", columns, f">= {RATE_FLOOR:,}, ratio >= {RATE_SHARE}, no loss",
                   [at_least(ours, RATE_FLOOR), at_least(median_of(ratios(columns)), RATE_SHARE)],
                   notes, runs["fast"])]


def cpu(runs):
    fast = per_target(runs["fast"], "cpu_us_per_event")
    rows = [figure("CPU an event, as fast as they come", "us", fast, f"<= {CPU_FAST_US} us",
                   [at_most(median_of(some(fast.get(OURS, ()))), CPU_FAST_US)], (), runs["fast"])]
    for shape in SHAPES:
        paced = per_target(runs[shape], "cpu_us_per_event")
        rows.append(figure(f"CPU an event, 3,200/s, {shape}", "us", paced, f"ratio <= {CPU_PACED_RATIO}",
                           [at_most(median_of(ratios(paced)), CPU_PACED_RATIO)], (), runs[shape]))
    return rows


def size(runs):
    rows = []
    for shape in SHAPES:
        each = [r[OURS]["trace"] for r in runs[f"size {shape}"] if pick(r.get(OURS), "trace.events")]
        bytes_each = [t["bytes"] / t["events"] for t in each]
        rows.append(figure(f"trace, 64 x 20 ms, {shape}", "B/event", {OURS: bytes_each} if each else {},
                           f"<= {BYTES_PER_EVENT}", [at_most(median_of(bytes_each), BYTES_PER_EVENT)], (),
                           runs[f"size {shape}"]))
    return rows


def clock(runs):
    rows = []
    for kind, said in ((s, f"{s}, quiet") for s in SHAPES): rows += clock_rows(runs[kind], said)
    for shape in SHAPES: rows += clock_rows(runs[f"busy {shape}"], f"{shape}, 2 busy")
    return rows


def clock_rows(rounds, said):
    mine = [{OURS: r[OURS]} for r in rounds if OURS in r]
    p99 = per_target(mine, "trace.clock_us.p99_abs")
    middle = median_of(some(per_target(mine, "trace.clock_us.p50").get(OURS, ())))
    lowest = some(per_target(mine, "trace.clock_us.min").get(OURS, ()))
    notes = [f"p50 {middle:.1f}, min {min(lowest):.1f}"] if lowest else []
    return [figure(f"recorded - sent p99, {said}", "us", p99, f"<= {CLOCK_P99_US} us",
                   [at_most(median_of(some(p99.get(OURS, ()))), CLOCK_P99_US)], notes, mine)]


def load(runs):
    got = [r[OURS] for r in runs["load"] if "failed" not in r.get(OURS, {"failed": 1})]
    speed, peak = [g["events_per_s"] for g in got], [g["peak_mb"] for g in got]
    notes = [f"{got[0]['events']:,} events"] if got else []
    return [figure("traceanalyze load", "events/s", {OURS: speed} if got else {}, f">= {LOAD_EVENTS_PER_S / 1e6:.0f} M/s",
                   [at_least(median_of(speed), LOAD_EVENTS_PER_S)], notes),
            figure("traceanalyze load, peak", "MB", {OURS: peak} if got else {}, f"<= {LOAD_MB} MB",
                   [at_most(median_of(peak), LOAD_MB)])]


# Which runs each figure needs: (kind, all targets or ours alone).
FIGURES = {
    "delay": (delay, {"phase": "all", "step": "all"}),
    "rate": (rate, {"fast": "proxies"}),
    "cpu": (cpu, {"phase": "proxies", "step": "proxies", "fast": "proxies"}),
    "size": (size, {"size phase": "ours", "size step": "ours"}),
    "clock": (clock, {"phase": "ours", "step": "ours", "busy phase": "ours", "busy step": "ours"}),
    "load": (load, {"load": "ours"}),
}


def number(v): return f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.1f}" if abs(v) >= 100 else f"{v:.2f}"


def cell(s): return f"{number(s['median'])} ({number(s['q1'])}..{number(s['q3'])})" if s else "-"


def table(rows, names):
    """The rows as text, for people."""
    head = ["figure: median (quartiles)", "unit", *names, f"{OURS}/{PEER}", "of medians", "target", ""]
    lines = [head] + [[r["name"], r["unit"], *(cell(r["targets"].get(n)) for n in names), cell(r["ratio"]),
                       number(r["ratio_of_medians"]) if r["ratio_of_medians"] else "-", r["target"], r["verdict"]] for r in rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = []
    for line, row in zip(lines, [None, *rows]):
        text.append("  ".join(c.ljust(w) for c, w in zip(line, width)).rstrip())
        if row and row["note"]: text.append(f"    {row['note']}")
    return "\n".join(text)
