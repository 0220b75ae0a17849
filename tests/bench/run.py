#!/usr/bin/env python3
"""The benchmark: what recording costs and how right it is, beside HAProxy and nginx in the same run.

    run.py [--bin DIR] [--only NAME]... [--rounds 15] [--seconds 4] [--targets direct,haproxy,nginx,tracerec] [--json FILE]

Prints a table and writes everything measured to a JSON file. Exit 0 when all was measured, whatever the verdicts; 1 when
something could not be measured (said on stderr); 2 for wrong usage. README.md beside this file says what each figure means.
"""
import argparse, datetime, json, os, platform, shutil, signal, subprocess, sys, tempfile

sys.dont_write_bytecode = True       # the source tree stays as it was
import figures, measure, recorded
from procs import TARGETS, BenchError, Busy, Haproxy, until

LOAD_EVENTS, LOAD_TIMES = 5_000_000, 5
REPEATS, QUIET_WAIT_S = 20, 600
BUSY_ROUNDS, SIZE_ROUNDS, SIZE_SECONDS = 5, 3, 12


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default="build/bin", help="folder of the built programs (build/bin)")
    p.add_argument("--tracerec", help="the recorder (BIN/tracerec)")
    p.add_argument("--traceanalyze", help="the analyzer (BIN/traceanalyze)")
    p.add_argument("--only", action="append", choices=figures.FIGURES, help="one figure (repeatable)")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--seconds", type=float, default=4, help="of a paced run; a fast one takes half")
    p.add_argument("--targets", default=",".join(TARGETS), help="leave some out: direct,haproxy,nginx,tracerec")
    p.add_argument("--max-others", type=float, metavar="PERCENT",
                   help="on a shared machine: repeat runs during which other programs used more of its CPU than this")
    p.add_argument("--self-check", action="store_true",
                   help="a second HAProxy in tracerec's place: its ratios should be 1, and what they differ by is noise")
    p.add_argument("--json", default="bench.json", help="where everything measured goes (bench.json)")
    a = p.parse_args()
    if a.self_check: second_haproxy(a)
    a.names = a.targets.split(",")
    for n in a.names:
        if n not in TARGETS: p.error(f"--targets {n}: no such target; there are {', '.join(TARGETS)}")
    if a.rounds < 1 or a.seconds <= 0: p.error("--rounds and --seconds must be above 0")
    a.source, a.sink = (os.path.join(a.bin, n) for n in ("bench_source", "bench_sink"))
    a.tracerec = a.tracerec or os.path.join(a.bin, "tracerec")
    a.traceanalyze = a.traceanalyze or os.path.join(a.bin, "traceanalyze")
    a.repeated = 0
    a.haproxy, a.nginx = "haproxy", "nginx"
    return a


def second_haproxy(a):
    """Measures HAProxy beside itself: what the harness says of two equals is how far its ratios can be trusted."""
    figures.OURS = "haproxy again"
    TARGETS[figures.OURS] = type("HaproxyAgain", (Haproxy,), {"name": figures.OURS})
    a.targets, a.only = f"direct,haproxy,{figures.OURS}", a.only or ["delay", "rate", "cpu"]


def find_tools(a):
    """Makes every program's path absolute, or says which is missing."""
    need = ["source", "sink"] + [n for n in a.names if hasattr(a, n)] + ["traceanalyze"] * ("tracerec" in a.names)
    for n in need:
        path = shutil.which(getattr(a, n), path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        if not path: raise BenchError(f"{getattr(a, n)}: not there; build it, or leave it out with --targets")
        setattr(a, n, os.path.abspath(path))


def wanted(a):
    """({figure names}, {kind of run: [targets]}) for what was asked."""
    names, kinds = a.only or list(figures.FIGURES), {}
    for f in names:
        for kind, who in figures.FIGURES[f][1].items():
            for n in a.names:
                if who == "all" or (who == "proxies" and n != "direct") or n == figures.OURS: kinds.setdefault(kind, set()).add(n)
    return names, {k: [n for n in a.names if n in v] for k, v in kinds.items()}


def say(text): print(text, file=sys.stderr, flush=True)


def attempt(failures, what, measured):
    """One measurement; one that fails is said, kept and gone past."""
    try: return measured()
    except BenchError as e:
        failures.append(f"{what}: {e}")
        say(f"run.py: {what}: {e}")
        return {"failed": str(e)}


def undisturbed(a, run):
    """Runs when the machine is otherwise idle, and again while it was not, if that was asked for. What decides is what
    others used, never what was measured."""
    if a.max_others is None: return run()
    for _ in range(REPEATS):
        until("--max-others: a quiet machine", QUIET_WAIT_S, lambda: measure.others_share() * 100 <= a.max_others)
        got = run()
        if got["others_cpu"] * 100 <= a.max_others: return got
        a.repeated += 1
    raise BenchError(f"--max-others {a.max_others:g}: others used more during each of {REPEATS} runs")


def one(a, kind, name, seed):
    shape = kind.split()[-1]
    if kind.startswith("size"): return measure.paced_run(a, name, shape, SIZE_SECONDS, seed)
    if kind.startswith("busy"):
        with Busy(2): return measure.paced_run(a, name, shape, a.seconds, seed, clock=True)
    if kind == "fast": return undisturbed(a, lambda: measure.fast_run(a, name, a.seconds / 2))
    return undisturbed(a, lambda: measure.paced_run(a, name, shape, a.seconds, seed, clock=name == "tracerec"))


def rounds(a, kinds, count, failures):
    """{kind: [{target: run}]}. Each round goes through the targets in turn, every second one backwards (ABBA)."""
    runs = {k: [] for k in kinds}
    for i in range(count):
        for kind, names in kinds.items():
            say(f"round {i + 1} of {count}: {kind}")
            got = {}
            for name in names if i % 2 == 0 else names[::-1]:
                got[name] = attempt(failures, f"round {i + 1}, {kind}, {name}", lambda: one(a, kind, name, i))
            runs[kind].append(got)
    return runs


def load_runs(a, failures):
    """Records a trace of many events and loads it several times."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path, database = (os.path.join(folder, n) for n in ("many.trc", "many.sqlite"))
        say(f"load: recording {LOAD_EVENTS:,} events")

        def record():
            run = measure.record_many(a, LOAD_EVENTS, path)
            if run["trace"]["events"] < LOAD_EVENTS:
                raise BenchError(f"only {run['trace']['events']:,} events were recorded: {run['trace']['lost'][:1]}")
            return run

        run, out = attempt(failures, "load, recording", record), []
        for i in range(LOAD_TIMES if "failed" not in run else 0):
            say(f"load {i + 1} of {LOAD_TIMES}")

            def load():
                seconds, peak_mb = recorded.timed_load(a, path, database)
                n = run["trace"]["events"]
                return {"events": n, "seconds": seconds, "events_per_s": n / seconds, "peak_mb": peak_mb}

            out.append({"tracerec": attempt(failures, f"load {i + 1}", load)})
        return out


def machine():
    with open("/proc/cpuinfo") as f: model = next((r.split(": ")[1].strip() for r in f if r.startswith("model name")), "?")
    versions = {}
    for name, flag in (("haproxy", "-v"), ("nginx", "-v")):
        try: done = subprocess.run([name, flag], capture_output=True, text=True)
        except OSError: continue
        versions[name] = (done.stdout or done.stderr).splitlines()[0]
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "versions": versions,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def others_note(runs):
    """What else ran on the machine meanwhile: figures of a shared machine say less."""
    shares = [r["others_cpu"] for k, v in runs.items() if not k.startswith("busy") for got in v for r in got.values()
              if "others_cpu" in r]
    if not shares: return "", None
    s = figures.spread(shares)
    text = f"other programs used {s['median']:.0%} of the machine's CPU (median of the runs; highest {max(shares):.0%})"
    return text + ("; the figures are those of a busy machine" if s["median"] > .05 else ""), s


def measure_all(a, failures):
    names, kinds = wanted(a)
    few = {k: v for k, v in kinds.items() if k.startswith(("busy", "size"))}
    main_kinds = {k: v for k, v in kinds.items() if k in ("phase", "step", "fast")}
    runs = rounds(a, main_kinds, a.rounds, failures)
    for start, count in (("busy", BUSY_ROUNDS), ("size", SIZE_ROUNDS)):
        runs.update(rounds(a, {k: v for k, v in few.items() if k.startswith(start)}, min(count, a.rounds), failures))
    if "load" in kinds: runs["load"] = load_runs(a, failures)
    for kind in (k for n in names for k in figures.FIGURES[n][1]): runs.setdefault(kind, [])
    return names, runs


def main():
    a = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run.py: stopped by SIGTERM"))   # what was started is still ended
    failures = []
    try:
        find_tools(a)
        names, runs = measure_all(a, failures)
    except BenchError as e: sys.exit(f"run.py: {e}")
    except KeyboardInterrupt: sys.exit("run.py: interrupted; what was started is ended")
    rows = [row for n in names for row in figures.FIGURES[n][0](runs)]
    note, others = others_note(runs)
    print(figures.table(rows, a.names))
    if note: print(note)
    if a.repeated: print(f"{a.repeated} runs were repeated because other programs used more than {a.max_others:g} %")
    with open(a.json, "w") as f:
        json.dump({"machine": machine(), "rounds": a.rounds, "seconds": a.seconds, "figures": rows, "others_cpu": others,
                   "max_others": a.max_others, "repeated": a.repeated,
                   "failures": failures, "runs": runs}, f, indent=1)
    missing = [r["name"] for r in rows if r["verdict"] == "-"] if figures.OURS in a.names else []
    if failures: say(f"run.py: {len(failures)} runs failed, the first: {failures[0]}")
    if missing: say(f"run.py: could not be measured: {', '.join(missing)}")
    sys.exit(1 if missing or failures else 0)


if __name__ == "__main__": main()
