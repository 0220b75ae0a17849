"""What a recorded trace says, asked of `traceanalyze` and held against what the source and the sink saw.

It knows the fixed command line and the fixed object names of the database, nothing of the trace's format.
"""
import json, os, re, sqlite3, struct, subprocess, time

from procs import BenchError

ID_BYTES, RECORD = 64, struct.Struct("=IIQ")


def analyze(tools, *args):
    done = subprocess.run([tools.traceanalyze, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
        raise BenchError(f"traceanalyze {args[0]}: ended with {done.returncode}: {why[0]}")
    return done.stdout


def lost(tools, trace, summary):
    """The lines that say something was lost: of the recorder's summary and of `check`."""
    lines = summary.splitlines() + analyze(tools, "check", trace).splitlines()
    return [line.strip() for line in lines if re.search(r"\bLOST\b", line)]


def to_database(tools, trace):
    """Loads a trace; returns the database's path (beside the trace)."""
    path = os.path.splitext(trace)[0] + ".sqlite"
    analyze(tools, "load", trace, "-o", path)
    return path


def requests(database):
    """{request: (request_id, t_forwarded_ns, token_events)}."""
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try: rows = db.execute("SELECT request, request_id, t_forwarded_ns, token_events FROM requests").fetchall()
    except sqlite3.Error as e: raise BenchError(f"{os.path.basename(database)}: requests: {e}")
    finally: db.close()
    return {r: (ident, t, n) for r, ident, t, n in rows}


def sent_log(path):
    """{request id: [sent ns of token 0, 1, ...]} as the source wrote it."""
    with open(path, "rb") as f: raw = f.read()
    n_ids, n_records = struct.unpack_from("=II", raw)
    ids = [raw[8 + i * ID_BYTES:8 + (i + 1) * ID_BYTES].split(b"\0")[0].decode() for i in range(n_ids)]
    sent = {i: [] for i in ids}
    for request, ordinal, ns in RECORD.iter_unpack(raw[8 + n_ids * ID_BYTES:]):
        if ordinal != len(sent[ids[request]]): raise BenchError("the source's log is out of order: ids are not unique")
        sent[ids[request]].append(ns)
    if sum(map(len, sent.values())) != n_records: raise BenchError("the source's log is short")
    return sent


def recorded_minus_sent_ns(tools, trace, database, log, skip):
    """Recorded time minus the sender's clock for each token, the first `skip` of a stream left out. A read that brought
    several tokens gives each of them its time. Every token must be there."""
    sent, known = sent_log(log), requests(database)
    at, diffs = {}, []
    for line in analyze(tools, "arrivals", trace, "--arrival-window", "0", "--format", "ndjson").splitlines():
        row = json.loads(line)
        ident, forwarded_ns, _ = known[row["request"]]
        ns = forwarded_ns + round(row["t_ms"] * 1e6)
        for _ in range(row["events"]):
            i = at[ident] = at.get(ident, -1) + 1
            if i >= len(sent.get(ident, ())): raise BenchError(f"request {ident}: more tokens recorded than sent")
            if i >= skip: diffs.append(ns - sent[ident][i])
    missing = sum(map(len, sent.values())) - sum(n + 1 for n in at.values())
    if missing: raise BenchError(f"{missing} tokens that were sent are not among the arrivals")
    return diffs


def timed_load(tools, trace, database):
    """(seconds, peak MB) of one `traceanalyze load` into a new database."""
    if os.path.exists(database): os.unlink(database)
    began = time.monotonic()
    p = subprocess.Popen([tools.traceanalyze, "load", trace, "-o", database], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with p.stderr: said = p.stderr.read().decode(errors="replace").strip()
    _, status, used = os.wait4(p.pid, 0)
    seconds = time.monotonic() - began
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode: raise BenchError(f"traceanalyze load: ended with {p.returncode}: {said}")
    return seconds, used.ru_maxrss / 1024
