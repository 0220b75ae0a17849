#!/usr/bin/env python3
"""Checks the simulated engine from outside: simserve_test.py [--bin FOLDER-OF-PROGRAMS]

Other end-to-end tests compare a recording with simserve's usage and truth log, so these have to be true first.
Standard library only; talks to the loopback on ports the kernel chose; ends by itself.
"""

import argparse
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser(description="checks the simulated engine from outside")
parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
SIMSERVE = os.path.join(parser.parse_args().bin, "simserve")
DEADLINE_S = 20

Answer = collections.namedtuple("Answer", "status body events whole times")
# body: the decoded bytes; events: (index, data) of an event stream; times: when each event was read, monotonic ns;
# whole: the body came to its promised end.


class Server:
    """One simserve with a truth log; stop() ends it and gives the log's rows."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.truth_path = os.path.join(self.folder.name, "truth.ndjson")
        command = [SIMSERVE, "--port", "0", "--truth", self.truth_path, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(DEADLINE_S) == 0, "simserve did not end well"
        with open(self.truth_path) as file:
            return [json.loads(line) for line in file]

    def call(self, path, body=None, headers=None, leave_after_events=None):
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE_S) as sock:
            sock.sendall(request_bytes(path, body, headers or {}))
            return read_answer(sock, leave_after_events)

    def chat(self, headers=None, leave_after_events=None, **settings):
        body = {"messages": [{"role": "user", "content": "Where is the nearest harbour?"}], **settings}
        return self.call("/v1/chat/completions", body, headers, leave_after_events)


def request_bytes(path, body, headers):
    data = b"" if body is None else json.dumps(body).encode()
    lines = ["%s %s HTTP/1.1" % ("GET" if body is None else "POST", path), "Host: test", "Connection: close"]
    lines += ["Content-Length: %d" % len(data)] + ["%s: %s" % item for item in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Chunks:
    """Takes the chunked coding off, byte strings in, body bytes out."""

    def __init__(self):
        self.held, self.ended = b"", False

    def feed(self, data):
        self.held += data
        out = b""
        while not self.ended and b"\r\n" in self.held:
            size_line, rest = self.held.split(b"\r\n", 1)
            size = int(size_line, 16)
            if len(rest) < size + 2:
                break
            out += rest[:size]
            self.held = rest[size + 2 :]
            self.ended = size == 0
        return out


def read_answer(sock, leave_after_events):
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = sock.recv(65536)
        if not piece:
            return Answer(None, raw, [], False, [])
        raw += piece
    head, data = raw.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    chunks = Chunks() if headers.get("transfer-encoding") == "chunked" else None
    body, events, times, reset = b"", [], [], False
    while True:
        body += chunks.feed(data) if chunks else data
        while chunks and body.count(b"\n\n") > len(events):
            events.append(body.split(b"\n\n")[len(events)].decode()[len("data: ") :])
            times.append(time.monotonic_ns())
        if leave_after_events is not None and len(events) >= leave_after_events:
            break
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            reset = True
            break
        if not data:
            break
    whole = not reset and (chunks.ended if chunks else len(body) == int(headers["content-length"]))
    return Answer(int(lines[0].split()[1]), body, events, whole, times)


def objects(answer):
    return [json.loads(event) for event in answer.events if event != "[DONE]"]


def rows_of(rows, kind, req):
    return [row for row in rows if row["row"] == kind and row["req"] == req]


STREAM = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}


def test_events_usage_token_ids_and_truth_log_agree():
    for drafts in ("0", "4"):
        with Server("--drafts", drafts, "--request-metrics", "--accept", "0.8") as server:
            answer = server.chat(max_tokens=60, ignore_eos=True, return_token_ids=True, **STREAM)
            rows = server.stop()
        items = objects(answer)
        assert answer.status == 200 and answer.whole and answer.events[-1] == "[DONE]"
        assert items[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        per_event = [len(item["choices"][0]["token_ids"]) for item in items[1:-1]]
        running = [item["usage"]["completion_tokens"] for item in items[:-1]]
        assert [b - a for a, b in zip(running, running[1:])] == per_event
        usage = items[-1]["usage"]
        assert items[-1]["choices"] == [] and usage["completion_tokens"] == sum(per_event) == 60
        assert usage["total_tokens"] == usage["prompt_tokens"] + 60
        assert items[-2]["choices"][0]["finish_reason"] == "length"
        assert (max(per_event) > 1) == (drafts == "4")
        check_speculation(items[-1]["metrics"], drafts, per_event)
        check_truth(rows, answer, per_event)


def check_speculation(metrics, drafts, per_event):
    if drafts == "0":
        assert "speculative_decoding" not in metrics
        return
    spec = metrics["speculative_decoding"]
    histogram = spec["acceptance_histogram"]
    assert spec["num_spec_steps"] == sum(histogram) == len(per_event) - 1
    assert spec["num_accepted_draft_tokens"] == sum(i * n for i, n in enumerate(histogram))
    assert 1 + spec["num_spec_steps"] + spec["num_accepted_draft_tokens"] == 60
    assert [histogram[i] for i in range(5)] == [per_event[1:].count(i + 1) for i in range(5)]
    by_length = spec["acceptance_histogram_by_draft_length"]
    assert sum(int(length) * sum(steps) for length, steps in by_length.items()) == spec["num_draft_tokens"]


def check_truth(rows, answer, per_event):
    sends = [row for row in rows_of(rows, "send", 1) if "event" in row]
    assert [row["event"] for row in sends] == list(range(len(answer.events)))
    assert [row["tokens"] for row in sends if row["kind"] == "tokens"] == per_event
    for row, seen_ns in zip(sends, answer.times):
        assert row["ns"] <= seen_ns, "seen before it was sent"
    end = rows_of(rows, "end", 1)[0]
    assert end["why"] == "ok" and end["answer_tokens"] == sum(per_event)


def test_all_sequences_of_a_step_are_served_at_one_instant():
    with Server("--bandwidth", "4e11") as server:  # a step of 40 ms
        run = lambda: server.chat(max_tokens=12, ignore_eos=True, **STREAM)
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        rows = server.stop()
    steps = collections.defaultdict(list)
    for row in rows:
        if row["row"] == "send" and row["kind"] == "tokens":
            steps[row["step"]].append(row["ns"])
    full = {step: times for step, times in steps.items() if len(times) == 8}
    assert len(full) >= 8
    middle = sorted(max(times) - min(times) for times in full.values())[len(full) // 2]
    assert middle < 20e6, "half of the steps were spread over more than 20 ms"


def test_step_time_follows_the_formula():
    # 8 GB at 400 GB/s is 20 ms; 2 MB of cache a token adds 5 us a token of context; the overhead is 0.5 ms.
    options = ["--weight-bytes", "8e9", "--bandwidth", "4e11", "--kv-bytes", "2e6", "--overhead-ms", "0.5"]
    with Server(*options) as server:
        server.call("/v1/completions", {"prompt": [7] * 2000, "max_tokens": 30, "ignore_eos": True, **STREAM})
        rows = server.stop()
    times = [row["ns"] for row in rows if row["row"] == "send" and row["kind"] == "tokens"]
    mean_ms = (times[-1] - times[0]) / 1e6 / (len(times) - 1)
    context = 2000 + 15
    expected_ms = 0.5 + 20 + context * 2e6 / 4e11 * 1e3
    assert abs(mean_ms - expected_ms) < 0.1 * expected_ms, "%.2f ms a step, not %.2f" % (mean_ms, expected_ms)


def test_usage_comes_only_when_asked_for_and_n_answers_are_told_apart():
    with Server() as server:
        plain = server.chat(max_tokens=5, stream=True)
        two = server.chat(max_tokens=9, n=2, ignore_eos=True, **STREAM)
        whole = json.loads(server.chat(max_tokens=7, n=3, ignore_eos=True).body)
        server.stop()
    assert all("usage" not in item for item in objects(plain))
    counts = collections.Counter(c["index"] for item in objects(two)[2:] for c in item["choices"])
    assert counts == {0: 9, 1: 9}
    assert objects(two)[-1]["usage"]["completion_tokens"] == 18
    assert [c["index"] for c in whole["choices"]] == [0, 1, 2]
    assert whole["usage"]["completion_tokens"] == 21
    assert len({c["message"]["content"] for c in whole["choices"]}) == 3


def test_streamed_text_is_the_whole_answer_and_stop_texts_never_show():
    with Server("--mean-answer", "400") as server:
        whole = json.loads(server.chat(max_tokens=200).body)["choices"][0]
        text = whole["message"]["content"]
        stop = text[len(text) // 2 : len(text) // 2 + 5]
        streamed = objects(server.chat(max_tokens=200, **STREAM))
        stopped = objects(server.chat(max_tokens=200, stop=[stop], **STREAM))
        server.stop()
    join = lambda items: "".join(c["delta"]["content"] for item in items for c in item["choices"])
    assert join(streamed) == text
    assert join(stopped) == text[: text.index(stop)]
    last = stopped[-2]["choices"][0]
    assert last["finish_reason"] == "stop" and last["stop_reason"] == stop


def test_prefix_cache_is_reported_counted_and_limited():
    prompt = {"prompt": list(range(1000, 1100)), "max_tokens": 3}
    other = {"prompt": list(range(5000, 5200)), "max_tokens": 3}
    cached = lambda answer: json.loads(answer.body)["usage"].get("prompt_tokens_details", {}).get("cached_tokens")
    with Server("--cache-tokens", "208", "--block-tokens", "16") as server:
        first = server.call("/v1/completions", prompt)
        second = server.call("/v1/completions", prompt)
        shared = server.call("/v1/completions", {**prompt, "prompt": prompt["prompt"][:50] + [1] * 50})
        server.call("/v1/completions", other)  # 12 of the 13 blocks
        evicted = server.call("/v1/completions", prompt)
        page = server.call("/metrics").body.decode()
        rows = server.stop()
    assert [cached(a) for a in (first, second, shared)] == [None, 96, 48]
    assert cached(evicted) in (None, 16)
    value = lambda name: int(next(l for l in page.splitlines() if l.startswith("vllm:" + name + "{")).split()[-1])
    ends = [row for row in rows if row["row"] == "end"]
    assert value("prefix_cache_queries_total") == sum(row["prompt_tokens"] for row in ends)
    assert value("prefix_cache_hits_total") == sum(row["cached_tokens"] for row in ends)
    with Server("--report-zero-cache") as server:
        assert cached(server.call("/v1/completions", prompt)) == 0
        server.stop()


def test_failures_on_demand_end_as_they_should():
    with Server("--fault-after", "3") as server:
        ask = lambda fault, **more: server.chat({"X-Sim-Fault": fault}, max_tokens=20, ignore_eos=True, **more)
        error, cut, reset = (ask(kind, **STREAM) for kind in ("error", "cut", "reset"))
        stall = ask("stall:300", **STREAM)
        statuses = [ask(kind).status for kind in ("http500", "http429", "error")]
        half = ask("cut")
        fine = ask("none", **STREAM)
        rows = server.stop()
    assert json.loads(error.events[-2])["error"]["code"] == 500 and error.events[-1] == "[DONE]" and error.whole
    for broken in (cut, reset):
        assert broken.status == 200 and not broken.whole and len(broken.events) <= 4
    assert len(cut.events) == 4 and statuses == [500, 429, 500]
    assert half.status == 200 and not half.whole
    gaps = [b - a for a, b in zip(stall.times, stall.times[1:])]
    assert stall.whole and max(gaps) >= 295e6 and gaps.index(max(gaps)) == 3
    assert fine.whole and fine.events[-1] == "[DONE]"
    why = [row["why"] for row in rows if row["row"] == "end"]
    assert why == ["error", "cut", "reset", "ok", "error", "cut", "ok"]


def test_every_nth_request_fails_and_a_full_queue_says_429():
    with Server("--fault", "http500=/3", "--queue-limit", "1", "--max-running", "1") as server:
        statuses = [server.chat(max_tokens=2).status for _ in range(7)]
        results = []
        ask = lambda: results.append(server.chat({"X-Sim-Fault": "none"}, max_tokens=40, ignore_eos=True).status)
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        server.stop()
    assert statuses == [200, 200, 500, 200, 200, 500, 200]
    assert results.count(429) >= 1 and results.count(200) >= 2 and len(results) == 6


def test_a_client_that_leaves_frees_its_place():
    with Server() as server:
        server.chat(leave_after_events=3, max_tokens=5000, ignore_eos=True, **STREAM)
        until = time.monotonic() + DEADLINE_S
        page = "num_requests_running{} 1"
        while "num_requests_running{} 0" not in page and time.monotonic() < until:
            page = server.call("/metrics").body.decode().replace('engine="0",model_name="sim/kestrel-8b"', "")
        rows = server.stop()
    end = rows_of(rows, "end", 1)[0]
    assert end["why"] == "client_abort" and end["answer_tokens"] < 5000
    assert "num_requests_running{} 0" in page


def test_loading_answers_503_and_then_serves():
    with Server("--load-ms", "400") as server:
        loading = server.call("/v1/models")
        until = time.monotonic() + DEADLINE_S
        while server.call("/health").status != 200 and time.monotonic() < until:
            time.sleep(0.02)
        assert server.call("/v1/models").status == 200
        server.stop()
    assert loading.status == 503
    error = json.loads(loading.body)["error"]
    assert error["message"] == "Loading model" and error["code"] == 503


def test_the_same_seed_gives_the_same_answers():
    def run(seed):
        with Server("--seed", seed, "--drafts", "3") as server:
            answer = server.chat(return_token_ids=True, max_tokens=50, **STREAM)
            server.stop()
        return [item["choices"][0].get("token_ids") for item in objects(answer) if item["choices"]]

    assert run("5") == run("5")
    assert run("5") != run("6")


def main():
    passed = failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            passed += 1
            print("ok    ", name)
        except Exception as error:  # one broken test must not hide the others
            failed += 1
            print("FAILED", name, type(error).__name__, error)
            if os.environ.get("VERBOSE"):
                raise
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
