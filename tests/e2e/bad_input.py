#!/usr/bin/env python3
"""Every kind of bad input to both programs: one clear line, the right exit status, nothing lost, nothing dead.

    bad_input.py --bin DIR

Starts its own servers on loopback. Prints "N passed, N failed".
"""
import argparse, json, os, resource, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time

BIN = None
WORK = None
results = []
running = [] # every recorder started: none outlives this script


def check(title, ok, detail=""):
    results.append(bool(ok))
    if not ok: print(f"FAILED {title}: {detail}")


def one_line(title, p, status, *words, program):
    """The program ended with status and said one line that begins with its name and holds the words."""
    lines = [l for l in p.stderr.splitlines() if l.strip()]
    ok = p.returncode == status and len(lines) == 1 and lines[0].startswith(program + ":") and all(w in lines[0] for w in words)
    check(title, ok, f"exit {p.returncode} (right is {status}), stderr {p.stderr[-400:]!r}, wanted {words}")


def rec(*args, **kw):
    return subprocess.run([f"{BIN}/tracerec", *args], capture_output=True, text=True, timeout=30, **kw)


def ana(*args):
    return subprocess.run([f"{BIN}/traceanalyze", *args], capture_output=True, text=True, timeout=120)


class Server:
    """Answers each request with the bytes that `answer` makes of (path, head, body); keeps what it received."""

    def __init__(self, answer, port=0):
        self.sock = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port, self.answer, self.bodies = self.sock.getsockname()[1], answer, []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try: c, _ = self.sock.accept()
            except OSError: return
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        try:
            buf = bytearray()
            while True:
                while b"\r\n\r\n" not in buf:
                    d = c.recv(1 << 18)
                    if not d: return
                    buf += d
                i = buf.index(b"\r\n\r\n") + 4
                head = bytes(buf[:i])
                n = next((int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")), 0)
                while len(buf) < i + n:
                    d = c.recv(1 << 18)
                    if not d: return
                    buf += d
                body = bytes(buf[i:i + n])
                self.bodies.append((head, body))
                del buf[:i + n]
                for part in self.answer(head.split(b" ")[1].decode("latin-1"), head, body): c.sendall(part)
        except OSError: pass
        finally: c.close()


def json_answer(obj):
    b = obj if isinstance(obj, bytes) else json.dumps(obj).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(b) + b


PLAIN = {"id": "c-1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "AB"}, "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}


class Recorder:
    def __init__(self, upstream, trace, *args, limit=None, upstream_name=None):
        self.text, (r, w) = [], os.pipe() # a pipe: the limit on file sizes would hold for a file
        pre = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))) if limit is not None else None
        self.p = subprocess.Popen([f"{BIN}/tracerec", "--proxy", "127.0.0.1:0", "--upstream", upstream_name or f"127.0.0.1:{upstream}", "-o", trace, *args], stderr=w, preexec_fn=pre)
        os.close(w)
        threading.Thread(target=self._listen, args=(os.fdopen(r, errors="replace"),), daemon=True).start()
        self.trace, self.port = trace, None
        running.append(self.p)
        limit_s = time.monotonic() + 10
        while self.port is None and time.monotonic() < limit_s:
            line = next((l for l in self.said().splitlines() if "listening on" in l), None)
            if line: self.port = int(line.split("listening on 127.0.0.1:")[1].split(",")[0].split(" ")[0])
            elif self.p.poll() is not None: break
            else: time.sleep(0.01)

    def _listen(self, f):
        for line in f: self.text.append(line)

    def said(self): return "".join(self.text)

    def child(self):
        with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f: return [int(x) for x in f.read().split()]

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        try: code = self.p.wait(40)
        except subprocess.TimeoutExpired: self.p.kill(); code = -1
        return code

    def rows(self):
        p = ana("requests", self.trace, "--format", "ndjson")
        return p, [json.loads(l) for l in p.stdout.splitlines() if l.strip()]


def ask(port, body, path="/v1/chat/completions", ident="r", headers=b"", until=None):
    """Sends one request; returns all that came back within the answer's length or up to the close."""
    c = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nX-Request-Id: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), ident.encode(), headers, len(body))
    threading.Thread(target=lambda: c.sendall(head + body), daemon=True).start()
    got = b""
    while True:
        d = c.recv(1 << 20)
        if not d: break
        got += d
        if until and got.endswith(until): break
        if b"\r\n\r\n" in got and not until:
            h, _, b = got.partition(b"\r\n\r\n")
            n = next((int(l.split(b":")[1]) for l in h.split(b"\r\n") if l.lower().startswith(b"content-length:")), None)
            if n is not None and len(b) >= n: break
    c.close()
    return got


def tracerec_arguments():
    one_line("unknown option", rec("--proxi", ":1", "--upstream", ":2"), 2, "--proxi", "--proxy", program="tracerec")
    one_line("path in --upstream", rec("--proxy", "8001", "--upstream", "http://localhost:11434/v1"), 2, "--upstream", "/v1", "base URL", program="tracerec")
    one_line("https upstream", rec("--proxy", ":0", "--upstream", "https://localhost:1"), 2, "https", program="tracerec")
    one_line("no --upstream", rec("--proxy", ":0"), 2, "--upstream", program="tracerec")
    one_line("bad port", rec("--proxy", ":99999", "--upstream", ":1"), 2, "99999", program="tracerec")
    r = Recorder(None, f"{WORK}/name.trc", upstream_name="no-such-host.invalid:1")
    check("a name that does not resolve yet is no reason not to start", r.port and ask(r.port, b"{}").startswith(b"HTTP/1.1 502") and "no-such-host.invalid" in r.said(), r.said())
    check("exit beside such a name", r.stop() == 0, r.said())
    taken = socket.create_server(("127.0.0.1", 0))
    one_line("port taken", rec("--proxy", f"127.0.0.1:{taken.getsockname()[1]}", "--upstream", ":1", "-o", f"{WORK}/taken.trc"), 1, str(taken.getsockname()[1]), "taken", program="tracerec")
    check("port taken leaves no file", not os.path.exists(f"{WORK}/taken.trc"))
    open(f"{WORK}/exists.trc", "w").write("precious")
    one_line("output exists", rec("--proxy", ":0", "--upstream", ":1", "-o", f"{WORK}/exists.trc"), 2, "exists.trc", program="tracerec")
    check("output that exists is untouched", open(f"{WORK}/exists.trc").read() == "precious")
    os.symlink(f"{WORK}/target.trc", f"{WORK}/link.trc")
    p = rec("--proxy", ":0", "--upstream", ":1", "-o", f"{WORK}/link.trc")
    check("output is a link", p.returncode in (1, 2) and not os.path.exists(f"{WORK}/target.trc"), p.stderr)
    one_line("folder missing", rec("--proxy", ":0", "--upstream", ":1", "-o", f"{WORK}/no/such/x.trc"), 1, "no/such", program="tracerec")
    one_line("folder is a file", rec("--proxy", ":0", "--upstream", ":1", "-o", f"{WORK}/exists.trc/x.trc"), 1, "exists.trc", program="tracerec")


def upstream_comes_and_goes():
    s = socket.create_server(("127.0.0.1", 0)); port = s.getsockname()[1]; s.close()
    r = Recorder(port, f"{WORK}/away.trc")
    got = ask(r.port, b"{}", ident="before")
    check("502 while the upstream is away", got.startswith(b"HTTP/1.1 502") and str(port).encode() in got, got[:200])
    up = Server(lambda *a: [json_answer(PLAIN)], port)
    check("200 once it is there", ask(r.port, b"{}", ident="while").startswith(b"HTTP/1.1 200"))
    up.sock.shutdown(socket.SHUT_RDWR); up.sock.close()
    check("502 when it has gone", ask(r.port, b"{}", ident="after").startswith(b"HTTP/1.1 502"))
    check("exit status after an upstream that came and went", r.stop() == 0)
    p, rows = r.rows()
    told = {x["request_id"]: (x["outcome"], x["status"]) for x in rows}
    check("outcomes while it came and went", told == {"before": ("upstream_refused", None), "while": ("ok", 200), "after": ("upstream_refused", None)}, told)


def disk_full():
    up = Server(lambda *a: [json_answer(PLAIN)])
    full = Recorder(up.port, f"{WORK}/full.trc", limit=0)
    check("forwards on a full disk", full.port and ask(full.port, b"{}", ident="full").startswith(b"HTTP/1.1 200"), full.said())
    limit_s = time.monotonic() + 10
    while "not recording" not in full.said() and time.monotonic() < limit_s: time.sleep(0.02)
    check("says that it does not record", "not recording" in full.said(), full.said())
    for pid in [full.p.pid, *full.child()]: resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    time.sleep(11)
    ask(full.port, b"{}", ident="later")
    check("exit after a disk that was full at start", full.stop() == 0, full.said())
    p, rows = full.rows()
    check("records once the disk is free", [x["outcome"] for x in rows if x["request_id"] == "later"] == ["ok"], (p.stderr, rows))
    check("the loss is told", any(w in ana("check", full.trace).stdout for w in ("not_recording", "disk_full")), ana("check", full.trace).stdout)
    must = subprocess.run([f"{BIN}/tracerec", "--proxy", ":0", "--upstream", ":1", "-o", f"{WORK}/must.trc", "--must-record"], capture_output=True, text=True, timeout=30,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)))
    check("--must-record makes a full disk fatal", must.returncode == 1 and "must.trc" in must.stderr, (must.returncode, must.stderr))

    r = Recorder(up.port, f"{WORK}/mid.trc", limit=20000)
    for i in range(400): ask(r.port, b'{"model":"m%d"}' % i, ident=f"m{i}-" + os.urandom(30).hex())
    time.sleep(0.3)
    check("alive when the disk fills in the middle", r.p.poll() is None and ask(r.port, b"{}", ident="x").startswith(b"HTTP/1.1 200"))
    for pid in [r.p.pid, *r.child()]: resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    time.sleep(2)
    ask(r.port, b"{}", ident="again")
    check("exit after a disk that filled in the middle", r.stop() == 0, r.said())
    p, rows = r.rows()
    check("resumes by itself", p.returncode == 0 and any(x["request_id"] == "again" and x["outcome"] == "ok" for x in rows), (p.returncode, p.stderr, len(rows)))
    check("what was lost is told", "disk_full" in ana("check", r.trace).stdout, ana("check", r.trace).stdout)


def odd_traffic():
    deep = b"[" * 10000 + b"]" * 10000
    chunk = lambda b: b"%x\r\n%s\r\n" % (len(b), b)

    def answer(path, head, body):
        sse = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        if b"X-Kind: endless" in head:
            yield sse
            for _ in range(160): yield chunk(b"data: {\"a\":\"" + b"x" * 65524 if _ == 0 else b"x" * 65536)
            yield b"0\r\n\r\n"
        elif b"X-Kind: odd" in head:
            yield sse
            for d in (b'{"choices":[{"index":0,"delta":{"content":"\\ud800 lone \\udfff"},"logit":NaN,"x":-Infinity}]}', b'{"choices":[{"index":0,"delta":{"content":"b\\u0000"}}]}',
                      b'{"deep":' + deep + b'}', b'{not json', b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
                      b'{"choices":[],"usage":{"prompt_tokens":9007199254740993,"completion_tokens":2}}'):
                yield chunk(b"data: " + d + b"\n\n")
            yield chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        elif b"X-Kind: huge-number" in head:
            yield json_answer(b'{"choices":[{"index":0,"message":{"content":"A"},"finish_reason":"stop"}],"usage":{"prompt_tokens":92233720368547758080,"completion_tokens":1}}')
        else: yield json_answer(PLAIN)
    up = Server(answer)
    r = Recorder(up.port, f"{WORK}/odd.trc")
    direct = lambda **k: ask(up.port, b"{}", **k)
    check("head of 1 MiB", ask(r.port, b"{}", ident="head", headers=b"X-Big: " + b"h" * (1 << 20) + b"\r\n").startswith(b"HTTP/1.1 200"))
    check("head of 1 MiB reached the upstream", any(len(h) > 1 << 20 for h, _ in up.bodies))
    body = b'{"model":"big","messages":[{"role":"user","content":"' + b"y" * (100 << 20) + b'"}]}'
    check("body of 100 MiB", ask(r.port, body, ident="body").startswith(b"HTTP/1.1 200"))
    check("body of 100 MiB reached the upstream", any(b == body for _, b in up.bodies))
    up.bodies.clear()
    for kind in ("endless", "odd"):
        h = b"X-Kind: %s\r\n" % kind.encode()
        got = ask(r.port, b'{"stream":true,"model":"m"}', ident=kind, headers=h, until=b"0\r\n\r\n")
        check(f"{kind}: bytes as without the recorder", got == ask(up.port, b'{"stream":true,"model":"m"}', ident=kind, headers=h, until=b"0\r\n\r\n"), len(got))
    ask(r.port, b"{}", ident="huge-number", headers=b"X-Kind: huge-number\r\n")
    ask(r.port, b'{"model":"\xff\xfe\x80 evil\x1b[31m","stream":false}', ident="latin")
    ask(r.port, b'{"model":"nan","temperature":NaN,"max_tokens":9007199254740993}', ident="nan")
    ask(r.port, b'{"model":"deep","x":' + deep + b'}', ident="deep")
    check("alive after odd traffic", r.p.poll() is None)
    check("exit after odd traffic", r.stop() == 0, r.said())
    check("the recorder was never restarted", "restart" not in r.said(), r.said())
    p, rows = r.rows()
    check("requests reads it", p.returncode == 0, p.stderr)
    by = {x["request_id"]: x for x in rows}
    check("a row for each", set(by) == {"head", "body", "endless", "odd", "huge-number", "latin", "nan", "deep"}, sorted(by))
    check("true size of a body that was not read", by["body"]["request_bytes"] > 100 << 20, by["body"]["request_bytes"])
    check("model of a body that was not read whole", by["body"]["model"] == "big", by["body"]["model"])
    check("an event without an end is no arrival", by["endless"]["arrivals"] in (0, None), by["endless"]["arrivals"])
    check("odd JSON is read", by["odd"]["outcome"] == "ok" and by["odd"]["prompt_tokens"] in (9007199254740993, "9007199254740993") and by["odd"]["token_events"] == 2, by["odd"])
    check("a number above 2^63 is absent", by["huge-number"]["prompt_tokens"] is None, by["huge-number"]["prompt_tokens"])
    check("NaN and 2^53 + 1 in a request", by["nan"]["model"] == "nan" and by["nan"]["max_tokens"] in (9007199254740993, "9007199254740993"), by["nan"])
    check("model beside a depth of 10,000", by["deep"]["model"] == "deep", by["deep"]["model"])
    table = ana("requests", r.trace, "--columns", "request,model").stdout
    check("no control byte of a model's name reaches the terminal", "\x1b" not in table and "evil" in table, repr(table))


def odd_files():
    up = Server(lambda *a: [json_answer(PLAIN)])
    r = Recorder(up.port, f"{WORK}/good.trc")
    for i in range(30):
        ask(r.port, b'{"model":"m"}', ident=f"g{i}"); time.sleep(0.02)
    growing = ana("check", r.trace)
    check("growing is exit 0 and said", growing.returncode == 0 and "growing" in growing.stdout + growing.stderr, (growing.returncode, growing.stdout, growing.stderr))
    check("requests of a growing trace", ana("requests", r.trace).returncode == 0)
    check("exit of the good one", r.stop() == 0)
    good = open(r.trace, "rb").read()
    put = lambda name, b: open(f"{WORK}/{name}", "wb").write(b)
    put("empty.trc", b""); put("foreign.trc", b"POST /v1/ HTTP/1.1\r\nthis is no trace at all\r\n" * 40)
    put("torn.trc", good[:-100]); put("flip.trc", good[:len(good) // 2] + bytes([good[len(good) // 2] ^ 0xff]) + good[len(good) // 2 + 1:])
    put("zeros.trc", good + bytes(5000))
    one = lambda title, args, status, *words: one_line(title, ana(*args), status, *words, program="traceanalyze")
    for command in ("report", "requests", "arrivals", "check"):
        one(f"{command} of an empty file", (command, f"{WORK}/empty.trc"), 3, "empty.trc") if command != "check" else check("check of an empty file", ana("check", f"{WORK}/empty.trc").returncode == 3)
        one(f"{command} of a foreign file", (command, f"{WORK}/foreign.trc"), 2, "foreign.trc", "not a trace", "POST /v1/") if command != "check" else check("check of a foreign file", ana("check", f"{WORK}/foreign.trc").returncode == 2)
        one(f"{command} of a missing file", (command, f"{WORK}/missing.trc"), 2, "missing.trc") if command != "check" else check("check of a missing file", ana("check", f"{WORK}/missing.trc").returncode == 2)
    for name in ("torn.trc", "flip.trc", "zeros.trc"):
        p = ana("requests", f"{WORK}/{name}", "--format", "ndjson")
        n = len(p.stdout.splitlines())
        check(f"{name}: exit 3, whole blocks kept", p.returncode == 3 and 1 <= n <= 30, (p.returncode, n, p.stderr))
        check(f"{name}: said in check", any(w in ana("check", f"{WORK}/{name}").stdout for w in ("torn", "damaged")), ana("check", f"{WORK}/{name}").stdout)
    twice = ana("requests", r.trace, r.trace, "--format", "ndjson")
    check("the same trace twice is loaded once, and said", twice.returncode == 0 and len(twice.stdout.splitlines()) == 30 and "once" in twice.stderr, (len(twice.stdout.splitlines()), twice.stderr))
    db = f"{WORK}/x.sqlite"
    check("load", ana("load", r.trace, "-o", db).returncode == 0)
    check("database is 0600", os.stat(db).st_mode & 0o777 == 0o600)
    one("load onto a database that exists", ("load", r.trace, "-o", db), 2, "x.sqlite", "--append")
    check("requests of a database", len(ana("requests", db, "--format", "ndjson").stdout.splitlines()) == 30)
    other = sqlite3.connect(f"{WORK}/other.sqlite"); other.execute("CREATE TABLE t (a)"); other.commit(); other.close()
    one("a database of another program", ("report", f"{WORK}/other.sqlite"), 2, "other.sqlite")
    check("--append to a database of another program", ana("load", r.trace, "-o", f"{WORK}/other.sqlite", "--append").returncode in (2, 3))
    one("unknown command", ("reprot", r.trace), 2, "reprot", "report")
    one("unknown option", ("report", r.trace, "--formt", "json"), 2, "--formt", "--format")
    one("unknown column", ("requests", r.trace, "--columns", "modle"), 2, "modle", "model")
    one("sql that writes", ("sql", r.trace, "DELETE FROM traces"), 2)
    one("where that is no condition", ("requests", r.trace, "--where", "1) OR (1"), 2, "--where")
    one("no input", ("report",), 2)
    p = ana("sql", db, "SELECT count(*) FROM requests")
    check("sql", p.returncode == 0 and "30" in p.stdout, p.stdout + p.stderr)
    plain = sqlite3.connect(db)
    for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
        try: plain.execute(f'SELECT * FROM "{name}" LIMIT 3').fetchall()
        except sqlite3.Error as e: check(f"stock sqlite opens {name}", False, e)
    check("stock sqlite opens every object", True)


def main():
    global BIN, WORK
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True); ap.add_argument("only", nargs="*")
    o = ap.parse_args()
    BIN, WORK = os.path.abspath(o.bin), tempfile.mkdtemp(prefix="bad-input-")
    try:
        for part in (tracerec_arguments, upstream_comes_and_goes, disk_full, odd_traffic, odd_files):
            if not o.only or part.__name__ in o.only: part()
    finally:
        for p in running:
            if p.poll() is None: p.kill()
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__": sys.exit(main())
