#!/usr/bin/env python3
"""kill -9 of the forwarder, of the recorder, and of both, at random moments while streams run: the design's bounds.

    kill.py --bin DIR [--rounds 60] [--seed N] [--late-ms 300]

recorder killed   no stream notices; the trace goes on in the same file, is sealed, and says recorder_restarted; a request
                  that begins after the restart is recorded whole.
forwarder killed  what it handed over is recorded: at most the last read of each stream is missing; the trace is sealed.
both killed       all that is older than 100 ms is in the trace; it reads without damage. On a machine that is busy a
                  process may not run for longer than that: --late-ms says what is still taken as in time.
 Prints "N passed, N failed".
"""
import argparse, json, os, random, select, signal, socket, subprocess, sys, tempfile, threading, time

STREAMS, STEP_S = 6, 0.004
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(i):
    data = b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"w%d "},"finish_reason":null}]}\n\n' % i
    return b"%x\r\n%s\r\n" % (len(data), data)


END = b'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
TAIL = b"%x\r\n%s\r\n0\r\n\r\n" % (len(END), END)


def upstream():
    """Streams as many events as the path says, one each STEP_S."""
    s = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve(c):
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            buf = b""
            while b"\r\n\r\n" not in buf or not buf.endswith(b"}"):
                d = c.recv(65536)
                if not d: return
                buf += d
            n = int(buf.split(b"X-Events: ")[1].split(b"\r\n")[0])
            c.sendall(HEAD)
            begin = time.monotonic()
            for i in range(n):
                c.sendall(event(i))
                wait = begin + (i + 1) * STEP_S - time.monotonic()
                if wait > 0: time.sleep(wait)
            c.sendall(TAIL)
            while c.recv(65536): pass
        except OSError: pass
        finally: c.close()

    def accept():
        while True:
            c, _ = s.accept()
            threading.Thread(target=serve, args=(c,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return s.getsockname()[1]


def stream(port, ident, n, out):
    """One client: keeps when each of its events arrived, and whether it saw the end."""
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    seen, ended, buf = [], False, b""
    out[ident] = (seen, lambda: ended, n)
    try:
        c = socket.create_connection(("127.0.0.1", port), timeout=10)
        c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Events: %d\r\nX-Request-Id: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                  % (n, ident.encode(), len(body)) + body)
        while True:
            d = c.recv(65536)
            if not d: break
            now, buf = time.monotonic(), buf + d
            while len(seen) < buf.count(b'"content":"w'): seen.append(now)
            if buf.endswith(b"0\r\n\r\n"): ended = True; break
        c.close()
    except OSError: pass


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f: return [int(x) for x in f.read().split()]


def wait_for(what, seconds=10):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        x = what()
        if x: return x
        time.sleep(0.005)
    raise SystemExit(f"kill.py: waited {seconds} s for {what.__name__}")


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f: return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError: return True


def rows(tool, command, trace):
    p = subprocess.run([tool, command, trace, "--format", "ndjson"], capture_output=True, text=True, timeout=60)
    return p.returncode, [json.loads(l) for l in p.stdout.splitlines() if l.strip()], p.stderr


def one_round(o, up, kind, rng, work, k):
    trace = os.path.join(work, f"{k}.trc")
    err = open(os.path.join(work, f"{k}.err"), "w+")
    rec = subprocess.Popen([os.path.join(o.bin, "tracerec"), "--proxy", "127.0.0.1:0", "--upstream", f"127.0.0.1:{up}", "-o", trace], stderr=err)

    def ready():
        err.seek(0)
        line = next((l for l in err.read().splitlines() if "listening on" in l), None)
        return line and int(line.split("listening on 127.0.0.1:")[1].split(",")[0].split(" ")[0])
    port = wait_for(ready)
    child = wait_for(lambda: children(rec.pid))[0]
    seen, threads = {}, []

    def start(ident, n):
        t = threading.Thread(target=stream, args=(port, ident, n, seen), daemon=True)
        threads.append(t); t.start()
    for i in range(STREAMS): start(f"a{i}", rng.randint(30, 110))
    time.sleep(rng.uniform(0.01, 0.45))
    t_kill = time.monotonic()
    for pid in {"recorder": [child], "forwarder": [rec.pid], "both": [rec.pid, child]}[kind]: os.kill(pid, signal.SIGKILL)
    if kind == "recorder":
        def restarted(): return [c for c in children(rec.pid) if c != child and not gone(c)]
        wait_for(restarted)
        for i in range(3): start(f"b{i}", 20)
    for t in threads: t.join(20)
    if kind == "recorder":
        rec.send_signal(signal.SIGTERM)
    code = rec.wait(40)
    if kind == "forwarder": wait_for(lambda: gone(child), 20)
    err.close()
    bad = []
    status, reqs, why = rows(os.path.join(o.bin, "traceanalyze"), "requests", trace)
    if status != 0: return [f"requests: exit {status}: {why.strip()[-200:]}"]
    _, arr, _ = rows(os.path.join(o.bin, "traceanalyze"), "arrivals", trace)
    by_id = {r["request_id"]: r for r in reqs if r.get("request_id")}
    got = {i: sum(a["events"] for a in arr if a["request"] == r["request"]) for i, r in by_id.items()}
    check = subprocess.run([os.path.join(o.bin, "traceanalyze"), "check", trace], capture_output=True, text=True).stdout
    if kind in ("recorder", "forwarder") and " sealed" not in check: bad.append(f"not sealed: {check.splitlines()[:1]}")
    for ident, (times, ended, n) in seen.items():
        have = got.get(ident, 0)
        if have > n: bad.append(f"{ident}: {have} events recorded, {n} were sent")
        if kind == "recorder":
            if not ended() or len(times) != n: bad.append(f"{ident}: the client noticed: {len(times)} of {n} events, end {ended()}")
            if ident[0] == "b" and (have != n or by_id.get(ident, {}).get("outcome") != "ok"): bad.append(f"{ident}: began after the restart, {have} of {n} recorded, {by_id.get(ident, {}).get('outcome')}")
        if kind == "forwarder" and have < len(times) - 1: bad.append(f"{ident}: {have} recorded, the client had {len(times)}")
        if kind != "forwarder":
            old = sum(1 for t in times if t < t_kill - o.late_ms / 1000)
            if have < old: bad.append(f"{ident}: {have} recorded, {old} were older than {o.late_ms} ms at the kill")
    if kind == "recorder":
        if code != 0: bad.append(f"tracerec's exit status {code}")
        if "recorder_restarted" not in check: bad.append("check does not say recorder_restarted")
    return bad


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True); ap.add_argument("--rounds", type=int, default=60); ap.add_argument("--seed", type=int, default=int(time.time())); ap.add_argument("--late-ms", type=int, default=300)
    o = ap.parse_args()
    rng, up = random.Random(o.seed), upstream()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="kill-") as work:
        for k in range(o.rounds):
            kind = ("recorder", "forwarder", "both")[k % 3]
            bad = one_round(o, up, kind, rng, work, k)
            if bad:
                failed += 1
                print(f"round {k} (seed {o.seed}), {kind} killed:")
                for b in bad: print(f"    {b}")
            else: passed += 1
            for f in os.listdir(work): os.unlink(os.path.join(work, f))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__": sys.exit(main())
