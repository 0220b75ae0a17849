"""One run: a source, a target and a sink for some seconds, and everything that is read off them."""
import json, os, shutil, subprocess, tempfile, threading, time

import recorded
from procs import TARGETS, BenchError, Source, cpu_ns

STREAMS, INTERVAL_US, FAST_STREAMS = 64, 20000, 16
SKIP = 10              # tokens of each stream left out of delays: connections are still being made then
QUIET_WINDOW_S, QUIET_WINDOWS, QUIET_SHARE, IDLE_S = .02, 5, .03, 20


def quantile(values, p):
    """Linear between order statistics."""
    v = sorted(values)
    at = p * (len(v) - 1)
    low = int(at)
    return v[low] + (at - low) * (v[min(low + 1, len(v) - 1)] - v[low])


def machine_busy_s():
    """Seconds that the machine's CPUs were not idle since some instant: what its idle time, which the kernel counts
    exactly, leaves of the clock. (Its counts of busy time are samples of 100 a second.) Time stolen by a host is in it."""
    with open("/proc/stat") as f: t = [int(x) for x in f.readline().split()[1:9]]
    return time.monotonic() * os.cpu_count() - (t[3] + t[4]) / os.sysconf("SC_CLK_TCK")


def others_share(window_s=.25):
    """The share of the machine's CPU that is used while nothing of ours runs."""
    began, busy = time.monotonic(), machine_busy_s()
    time.sleep(window_s)
    return (machine_busy_s() - busy) / (time.monotonic() - began) / os.cpu_count()


def wait_idle(target):
    """Waits until the target has nothing left to do. Returns (when that began, CPU ns by then)."""
    pids = target.pids()            # looked up afresh: a process started during the load counts whole
    quiet, since, before, end = 0, time.monotonic_ns(), cpu_ns(pids), time.monotonic() + IDLE_S
    while pids and quiet < QUIET_WINDOWS:
        began = time.monotonic_ns()
        time.sleep(QUIET_WINDOW_S)
        now, used = time.monotonic_ns(), cpu_ns(pids)
        busy = used - before > QUIET_SHARE * (now - began)
        quiet, since, before = (0, now, used) if busy else (quiet + 1, since, used)
        if time.monotonic() > end: raise BenchError(f"{target.name}: still working {IDLE_S} s after the load's end")
    return since, before


def run_sink(tools, target, args, seconds):
    """Runs the sink; returns (its figures, CPU ns of the target, when the target was idle, when the last token came)."""
    before = cpu_ns(target.pids())
    sink = subprocess.Popen([tools.sink, "--port", str(target.port), *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(seconds * 5 + 60, sink.kill)
    watchdog.start()
    try:
        end_line = sink.stdout.readline()
        idle_ns, after = wait_idle(target) if end_line else (0, 0)
        figures, said = sink.stdout.read(), sink.stderr.read()       # a line or two each: neither pipe fills
        sink.wait()
    finally:
        watchdog.cancel()
        sink.kill()
        sink.wait()
        sink.stdout.close()
        sink.stderr.close()
    if sink.returncode: raise BenchError(f"{target.name}: {said.strip() or f'the sink ended with {sink.returncode}'}")
    return json.loads(figures), after - before, idle_ns, json.loads(end_line)["last_token_ns"]


def read_trace(tools, target, source, run, clock):
    """What the trace of the run says; the run is lossy if anything is missing."""
    t = run["trace"] = {"bytes": os.path.getsize(target.trace)}
    t["lost"] = recorded.lost(tools, target.trace, target.process.said())
    database = recorded.to_database(tools, target.trace)
    t["events"] = sum(n or 0 for _, _, n in recorded.requests(database).values())
    if t["events"] != run["tokens"] and not t["lost"]:
        t["lost"] = [f"{run['tokens'] - t['events']} of {run['tokens']} token events are missing, and nothing says so"]
    if clock and not t["lost"]:
        d = [x / 1e3 for x in recorded.recorded_minus_sent_ns(tools, target.trace, database, source.log, SKIP)]
        t["clock_us"] = {"n": len(d), "min": min(d), "p50": quantile(d, .5), "p99": quantile(d, .99), "max": max(d),
                         "p99_abs": quantile([abs(x) for x in d], .99)}


def one_run(tools, name, sink_args, seconds, paced, clock=False, keep_trace=None):
    """Starts everything, loads it, stops everything. Returns the figures; raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        source = Source(folder, tools, log=paced)
        target = TARGETS[name](folder, source.port, tools)
        try:
            target.start()
            began, busy, ours = time.monotonic(), machine_busy_s(), os.times()
            run, cpu, idle_ns, last_ns = run_sink(tools, target, sink_args, seconds)
            used = cpu / 1e9 + cpu_ns(source.process.pids()) / 1e9 + sum(os.times()[:4]) - sum(ours[:4])
            others, took = machine_busy_s() - busy - used, time.monotonic() - began
            if target.process: target.process.must_live()
            target.stop()
            source.stop()
            run["others_cpu"] = max(0, others / took / os.cpu_count())
            if name != "direct":
                run["cpu_us_per_event"] = cpu / 1e3 / run["tokens"]
                run["drain_ms"] = max(0, idle_ns - last_ns) / 1e6
            run["sustained_per_s"] = run["tokens"] / (run["seconds"] + run.get("drain_ms", 0) / 1e3)
            if name == "tracerec": read_trace(tools, target, source, run, clock)
            if keep_trace: shutil.move(target.trace, keep_trace)
            return run
        finally:
            target.abandon()
            try: source.stop()
            except BenchError: pass


def paced_run(tools, name, shape, seconds, seed, clock=False):
    """64 streams, a token each 20 ms: each with a phase of its own, or all in one engine step."""
    events = SKIP + max(1, round(seconds * 1e6 / INTERVAL_US))
    return one_run(tools, name, ["--streams", STREAMS, "--events", events, "--interval-us", INTERVAL_US, "--shape", shape,
                                 "--seed", seed, "--skip", SKIP], seconds, paced=True, clock=clock)


def fast_run(tools, name, seconds):
    """16 streams as fast as they come."""
    return one_run(tools, name, ["--streams", FAST_STREAMS, "--ms", round(seconds * 1e3), "--interval-us", 0], seconds,
                   paced=False)


def record_many(tools, events, path):
    """Records at least so many events, in answers of 1,000 tokens at no more than 100,000/s, into `path`."""
    requests = -(-events // (STREAMS * 1000))
    return one_run(tools, "tracerec", ["--streams", STREAMS, "--requests", requests, "--events", 1000,
                                       "--interval-us", 640], events / 1e5, paced=False, keep_trace=path)
