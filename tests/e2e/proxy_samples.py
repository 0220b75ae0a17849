#!/usr/bin/env python3
"""Every sample of tests/wire through both programs: what `requests` and `arrivals` say is what expected.json says, with
metrics.md 2 on top: shares of a total, hidden tokens, stop tokens. Every event is sent when the client has the one
before it, so that each comes in a read of its own and each bearing one is an arrival.
"""
import contextlib, gzip, json, os, re, struct, subprocess, zlib
import proxylib
from proxylib import Tracerec, Upstream, main, read_exactly, read_head, until

WIRE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire")
TYPES = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "json": "application/json",
         "aws-eventstream": "application/vnd.amazon.eventstream"}
SOURCES = {"usage_cumulative": "running_usage", "meta_cumulative": "running_usage", "count_cumulative": "running_usage",
           "timings_cumulative": "running_usage", "one_per_event": "engine_event", "usage_total": "prorated",
           "event_count": "events"}
# Shares of a total by rule 5, worked out by hand; a stop token that the rule gives is the last one.
SHARES = {"anthropic-messages.sse": [7, 4, 2, 5, 1], "azure-chat.sse": [5, 4], "openai-chat-tools-stream.sse": [5, 2, 2, 2, 3, 1],
          "sglang-chat-stream.sse": [2, 2, 3, 1], "openrouter-chat.sse": [2, 1, 2], "sse-framing-torture.sse": [1, 3, 2, 3],
          "vllm-stream-interval.sse": [2, 4, 4, 2]}


def load(name):
    with open(os.path.join(WIRE, name), "rb") as f:
        return f.read()


def events(body, framing):
    """The body cut behind each event."""
    if framing == "aws-eventstream":
        at, cuts = 0, []
        while at < len(body):
            n = struct.unpack_from(">I", body, at)[0]
            cuts.append(body[at:at + n])
            at += n
        return cuts
    if framing == "json":
        return [body]
    ends = [m.end() for m in re.finditer(rb"\n" if framing == "ndjson" else rb"(?:\r\n|\n|\r(?!\n)){2}", body)]
    return [body[a:b] for a, b in zip([0] + ends, ends + [len(body)]) if a < b]


def flushed(pieces):
    """gzip-coded, with a flush behind each piece."""
    z = zlib.compressobj(wbits=31)
    coded = [z.compress(p) + z.flush(zlib.Z_SYNC_FLUSH) for p in pieces]
    return coded[:-1] + [coded[-1] + z.flush()]


def serve(sample, received, conn):
    head, rest = read_head(conn)
    read_exactly(conn, int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(rest))
    body = load(sample["file"])
    more = "".join(f"{k}: {v}\r\n" for k, v in sample.get("response_headers", {}).items())
    coded = sample.get("content_encoding")
    if coded:
        more += f"Content-Encoding: {coded}\r\n"
    sent = 0

    def send(data):
        nonlocal sent
        conn.sendall(data)
        sent += len(data)
        until(lambda: received[0] >= sent, "the client has what was sent")

    send(f"HTTP/1.1 {sample.get('http_status', 200)} X\r\nContent-Type: {TYPES[sample['framing']]}\r\n{more}"
         "Transfer-Encoding: chunked\r\n\r\n".encode())
    pieces = events(gzip.decompress(body) if coded else body, sample["framing"])
    for piece in flushed(pieces) if coded else pieces:
        send(b"%x\r\n%s\r\n" % (len(piece), piece))
    if not sample.get("truncated"):
        send(b"0\r\n\r\n")


def ask(proxy, sample, received, asks):
    a = asks[sample["api"]]
    body = a["body"].encode()
    conn = proxy.connect()
    received[0] = 0
    conn.sendall(f"POST {a['path']} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: {sample['file']}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    with contextlib.suppress(ConnectionResetError):
        while data := conn.recv(1 << 16):
            received[0] += len(data)


def record(samples):
    """The trace's rows: {file: request}, {file: [arrival]}."""
    with open(os.path.join(WIRE, "asks.json")) as f:
        asks = json.load(f)
    now, received = {}, [0]
    upstream = Upstream(lambda conn: serve(now["sample"], received, conn))
    with Tracerec(upstream.address) as proxy:
        for now["sample"] in samples:
            ask(proxy, now["sample"], received, asks)
        assert proxy.stop() == 0
        analyze = os.path.join(os.path.dirname(proxylib.Tracerec.path), "traceanalyze")
        rows = {}
        for command in ("requests", "arrivals"):
            out = subprocess.run([analyze, command, proxy.trace, "--format", "ndjson", "--arrival-window", "0", "--quiet"],
                                 capture_output=True, check=True).stdout
            rows[command] = [json.loads(line) for line in out.splitlines()]
    assert not upstream.errors, upstream.errors
    names = {r["request"]: r["request_id"] for r in rows["requests"]}
    series = {name: [] for name in names.values()}
    for a in rows["arrivals"]:
        series[names[a["request"]]].append(a)
    return {r["request_id"]: r for r in rows["requests"]}, series


def right_tokens(sample):
    """Tokens of each arrival, where the documents say them."""
    if sample["file"] in SHARES:
        return SHARES[sample["file"]]
    told, shown = sample["output_tokens"], sum(k for _, k in sample["token_events"])
    if sample["exact"] or told is None or told - (sample.get("reasoning_tokens") or 0) == shown:
        return [k for _, k in sample["token_events"]]
    return None


def check(sample, row, arrivals):
    def same(what, seen, right):
        assert seen == right, f"{sample['file']}: {what} is {seen!r}, right is {right!r}"

    error, streamed = sample.get("error"), sample["framing"] != "json"
    for key in ("prompt_tokens", "cached_tokens"):
        same(key, row.get(key), sample[key])
    same("api", row["api"], sample["api"])
    same("output_tokens", row.get("output_tokens"), sample["output_tokens"] if sample["output_tokens"] is not None or not streamed
         else sum(k for _, k in sample["token_events"]))
    outcome = "http_error" if sample.get("http_status", 200) >= 300 else "stream_error" if error else None
    if outcome or not sample.get("truncated"):
        same("outcome", row["outcome"], outcome or "ok")
    if sample.get("cold_start") and row["status"] < 300:
        same("cache_class", row.get("cache_class"), "cold")
    if not streamed:
        return
    same("token_source", row.get("token_source"), SOURCES.get(sample["tokens_source"], sample["tokens_source"]))
    ks = [a["tokens"] for a in sorted(arrivals, key=lambda a: (a["t_ms"], a["choice"]))]
    right = right_tokens(sample)
    hidden = row.get("hidden_tokens") or 0
    if right is None:
        same("sum of tokens and hidden ones", sum(ks) + hidden, sample["output_tokens"])
        same("arrivals", len(ks) >= len(sample["token_events"]), True)
    elif sum(ks) == sum(right) + 1:  # a stop token apart
        same("tokens", ks[:-1], right)
    else:
        same("tokens", ks, right)
    if "hidden_tokens" in sample:
        same("hidden_tokens", hidden, sample["hidden_tokens"])
    check_identity(sample, row, arrivals)


def check_identity(sample, row, arrivals):
    """upload + forward_lag + ttft_server + sum of gaps + tail = e2e_client, to the 100 ns that a trace keeps."""
    if row.get("ttft_server_ms") is None or row.get("tail_ms") is None:
        return
    gaps = max(a["t_ms"] for a in arrivals) - row["ttft_server_ms"]
    whole = row["upload_ms"] + row["forward_lag_ms"] + row["ttft_server_ms"] + gaps + row["tail_ms"]
    assert abs(whole - row["e2e_client_ms"]) < 0.001, f"parts are {whole} ms of {row['e2e_client_ms']}"


def test_every_sample_through_both_programs():
    samples = json.loads(load("expected.json"))
    rows, series = record(samples)
    wrong = []
    for s in samples:
        try:
            check(s, rows[s["file"]], series[s["file"]])
        except (AssertionError, KeyError) as e:
            wrong.append(f"{s['file']}: {e!r}")
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main(globals())
