#!/usr/bin/env python3
"""Holds the recorder's reading of generated streams against a second reader's.

    run.py --bin DIR [--streams 10000] [--seed N] [--connections 12] [--keep DIR] [--only SEED ...]

Every stream is made by generate.py from its own seed, written by a scripted upstream on loopback, and carried to a client by
a real tracerec; reader.py reads the same bytes in another way. Each difference is printed with its seed:
`generate.py SEED` shows the bytes. "N passed, N failed"; exit status 1 on any difference.

Compared: the bytes that the client received, every figure of COMPARED, and the tokens of the arrivals. How many bytes one read
of the recorder brings is not for a test to say, so that arrivals must join, in order, what the oracle has event by event;
where each write was made a segment of its own, what it has read by read (and mostly as many arrivals as that).
"""
import argparse, collections, multiprocessing, os, queue, signal, socket, sqlite3, struct, subprocess, sys, tempfile, threading, time

import generate

COMPARED = ("api status events comments token_source grade output_tokens prompt_tokens cached_tokens cache_write_tokens reasoning_tokens hidden_tokens draft_tokens accepted_tokens "
            "spec_steps predicted_accepted predicted_rejected finish_reason done_marker stream_error typed_end tool_calls tool_args_valid text_bytes reasoning_bytes token_events "
            "tokens_seen outcome event_cut bad_events "
            "streamed response_body_bytes body_whole finished_choices response_id").split()
# Facts that the log leaves out when they are 0 or false, as facts.def has them ("1: ...").
ZERO_IS_ABSENT = {"finished_choices", "choices", "streamed", "done_marker", "stream_error", "typed_end", "event_cut", "tool_calls", "bad_events", "comments", "events", "text_bytes", "reasoning_bytes", "hidden_tokens", "token_events", "tokens_seen"}
PACE_S = 0.004      # above the arrival window of 1 ms, with room for a busy machine


class Upstream:
    """Plays the exchange that the request's X-Request-Id names, on connections that are kept alive."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port, self.scripts, self.drained = self.sock.getsockname()[1], {}, {}
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.sock.accept()
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        buf = b""
        try:
            while True:
                while b"\r\n\r\n" not in buf:
                    data = conn.recv(65536)
                    if not data: return
                    buf += data
                x = self.scripts[int(buf.split(b"X-Request-Id: s")[1].split(b"\r\n")[0])]
                while len(buf) < len(x.request): buf += conn.recv(65536)
                buf = buf[len(x.request):]
                if not self.play(conn, x): return
        except OSError: pass
        finally: conn.close()

    def play(self, conn, x):
        for w in x.writes:
            conn.sendall(w)
            if x.paced: time.sleep(PACE_S)
        if x.close == "rst":        # a reset may take what lies unread in the kernel with it: wait until the client has all
            self.drained[x.seed].wait(10)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return not x.close


class Client(threading.Thread):
    """Takes exchanges from the queue, one after another on a connection kept alive as long as it lasts."""

    def __init__(self, port, up, todo, bad):
        super().__init__(daemon=True)
        self.port, self.up, self.todo, self.bad, self.conn, self.got = port, up, todo, bad, None, b""

    def run(self):
        while True:
            xs = self.take()
            if not xs: return
            try:
                self.send(xs)
                for x in xs: self.receive(x)
            except OSError as e:
                for x in xs: self.bad[x.seed].append(f"client: {e}")
                self.conn = None

    def take(self):
        """The next exchange; now and then the two next ones, to be pipelined."""
        xs = []
        try:
            xs.append(self.todo.get_nowait())
            while not xs[-1].close and xs[-1].seed % 10 == 0 and len(xs) < 3: xs.append(self.todo.get_nowait())
        except queue.Empty: pass
        return xs

    def send(self, xs):
        if self.conn is None:
            self.conn, self.got = socket.create_connection(("127.0.0.1", self.port), timeout=20), b""
            self.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.conn.sendall(b"".join(x.request for x in xs))

    def receive(self, x):
        right = b"".join(x.writes)
        while len(self.got) < len(right):
            data = self.conn.recv(1 << 18)
            if not data: break
            self.got += data
        got, self.got = self.got[:len(right)], self.got[len(right):]
        if got != right: self.bad[x.seed].append(f"the client received {len(got)} bytes, other ones than the {len(right)} sent")
        self.up.drained[x.seed].set()
        if x.close or got != right:
            try: self.conn.recv(1)
            except ConnectionResetError: pass
            self.conn.close(); self.conn = None


def traffic(seeds, port, up, bad, connections, pool):
    """Makes a batch's exchanges, sends them through; the oracle's readings, and which were paced."""
    out, todo = {}, queue.Queue()
    for x, reading in pool.imap(generate.both, seeds, 50):
        reading.take = None
        out[x.seed] = (reading, x.paced, x.about)
        up.scripts[x.seed], up.drained[x.seed] = x, threading.Event()
        todo.put(x)
    clients = [Client(port, up, todo, bad) for _ in range(connections)]
    for c in clients: c.start()
    for c in clients: c.join()
    up.scripts.clear(); up.drained.clear()
    return out


def joins(seen, parts):
    """Whether `seen` can be had from `parts` by adding up neighbours."""
    if sum(seen) != sum(parts): return False
    ends, at = set(), 0
    for k in parts: at += k; ends.add(at)
    at = 0
    for k in seen:
        at += k
        if at not in ends: return False
    return True


def by_read(series):
    out = []
    for _, read, k in series:
        if out and out[-1][0] == read: out[-1][1] += k
        else: out.append([read, k])
    return [k for _, k in out]


def compare(row, arrivals, reading, paced):
    """(differences, whether the arrivals are exactly one a read)"""
    f, doubts, bad = reading.facts, reading.doubts, []
    for name in COMPARED:
        right, seen = f.get(name), row[name]
        if name in doubts or name == "event_cut" and right is None or name == "comments" and right is None and f.get("events") is not None: continue
        if isinstance(right, bool): right = int(right)
        if name in ZERO_IS_ABSENT: right, seen = right or None, seen or None
        if right != seen: bad.append(f"{name}: {seen!r}, right is {right!r}")
    if "series" in doubts: return bad, None
    exact = True
    for c in set(reading.series) | set(arrivals):
        series, seen = reading.series.get(c, []), arrivals.get(c, [])
        parts = by_read(series) if paced else [k for _, _, k in series]
        if not joins(seen, parts): bad.append(f"arrivals of choice {c}: {seen}, right is {parts} or neighbours of it together")
        exact = exact and seen == parts
    if paced and exact and reading.extra: bad += apart(row, reading.extra)
    return bad, exact if paced else None


def apart(row, first):
    """The first token and the first of an answer: at one time if one read brought them, else apart."""
    gap = (row["t_first_answer_ns"] or 0) - (row["t_first_token_ns"] or 0)
    if (gap >= PACE_S * 0.8e9) == (first["answer"] > first["token"]): return []
    return [f"t_first_answer: {gap} ns after t_first_token; they came in reads {first['answer']} and {first['token']}"]


def start(o, up, work):
    s = socket.create_server(("127.0.0.1", 0)); port = s.getsockname()[1]; s.close()
    trace = os.path.join(work, "oracle.trc")
    err = open(os.path.join(work, "tracerec.err"), "w")
    rec = subprocess.Popen([os.path.join(o.bin, "tracerec"), "--proxy", f"127.0.0.1:{port}", "--upstream", f"127.0.0.1:{up.port}", "-o", trace], stderr=err)
    while rec.poll() is None:
        try: socket.create_connection(("127.0.0.1", port)).close(); break
        except OSError: time.sleep(0.02)
    return rec, port, trace


def rows_of(o, trace, work):
    """{seed: row}, {seed: {choice: [tokens]}} from the trace."""
    base = os.path.join(work, "oracle.sqlite")
    p = subprocess.run([os.path.join(o.bin, "traceanalyze"), "load", trace, "-o", base, "--rows", "--quiet"], capture_output=True, text=True)
    if p.returncode: raise SystemExit(f"traceanalyze load: exit {p.returncode}: {p.stderr.strip()[-500:]}")
    db = sqlite3.connect(base); db.row_factory = sqlite3.Row
    rows, ids, arrivals = {}, {}, collections.defaultdict(dict)
    for row in db.execute("SELECT * FROM requests"):
        ident = row["request_id"] or ""
        if ident[1:].isdigit(): rows[int(ident[1:])] = row; ids[row["request"]] = int(ident[1:])
    for request, choice, tokens in db.execute("SELECT request, choice, tokens FROM arrivals ORDER BY request, choice, arrival"):
        if request in ids: arrivals[ids[request]].setdefault(choice, []).append(tokens)
    return rows, arrivals


def verdict(o, readings, bad, rows, arrivals):
    failed = paced = exact = 0
    kinds = collections.Counter()
    for seed, (reading, is_paced, about) in sorted(readings.items()):
        found = bad[seed]
        if seed not in rows: found.append("no row in `requests`")
        else:
            more, same = compare(rows[seed], arrivals.get(seed, {}), reading, is_paced)
            found += more
            if same is not None and reading.series: paced += 1; exact += same
        failed += bool(found)
        for line in found: kinds[(reading.facts["api"], line.split(":")[0])] += 1
        if found: print(f"seed {seed} ({about}; {reading.facts['api']})\n" + "\n".join(f"    {line}" for line in found))
    for (api, what), n in kinds.most_common(): print(f"{n:6} {api} {what}")
    if paced: print(f"one arrival a read in {exact} of {paced} streams whose writes came apart")
    if paced >= 50 and exact < paced / 2: failed += 1; print("fewer than half: reads that came apart are taken together")
    print(f"{len(readings) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True); ap.add_argument("--streams", type=int, default=10000); ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--connections", type=int, default=12); ap.add_argument("--keep"); ap.add_argument("--only", type=int, nargs="*")
    o = ap.parse_args()
    seeds = o.only or list(range(o.seed, o.seed + o.streams))
    work = o.keep or tempfile.mkdtemp(prefix="oracle-")
    os.makedirs(work, exist_ok=True)
    up, bad, readings = Upstream(), collections.defaultdict(list), {}
    with multiprocessing.Pool(2) as pool:
        rec, port, trace = start(o, up, work)
        for at in range(0, len(seeds), 1000): readings.update(traffic(seeds[at:at + 1000], port, up, bad, o.connections, pool))
    rec.send_signal(signal.SIGTERM)
    code = rec.wait(60)
    result = verdict(o, readings, bad, *rows_of(o, trace, work))
    if code: print(f"the recorder's exit status is {code}, right is 0"); result = 1
    if not o.keep: subprocess.run(["rm", "-rf", work])
    return result


if __name__ == "__main__":
    sys.exit(main())
