#!/usr/bin/env python3
"""Holds three views of the same requests side by side: the recorder's, the client's, the server's own log.

The client and the recorder are joined by X-Request-Id. The server's log knows no request id, only tasks; a task is
joined by the times the server put on the wire (`timings`), which its log repeats rounded to 0.01 ms, and what is
left (no `timings` on the wire, or an aborted request) by the span in which the request was open.

Usage: compare.py [--requests requests.ndjson] --client client.ndjson --server server.log [--metrics metrics.txt]

Without --requests (a run without the recorder) the recorder's columns are empty.
"""

import argparse
import collections
import json
import re
import statistics

LINE = re.compile(r"^(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) \w slot +\S+ id +(\d+) \| task (\d+) \| (.*)$")
PREFILL = re.compile(r"prompt eval time = +([\d.]+) ms / +(\d+) tokens")
DECODE = re.compile(r"^ *eval time = +([\d.]+) ms / +(\d+) tokens")
DRAFT = re.compile(r"draft acceptance = .*?(\d+) accepted / +(\d+) generated")
CACHED = re.compile(r"cached n_tokens = (\d+)")
NEAR_MS = 5.0  # a difference in time worth a word


def read_ndjson(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_server(path):
    """The tasks of the server's log: {id: what it printed about it}, times in seconds since its start."""
    tasks = collections.defaultdict(dict)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            hit = LINE.match(line)
            if not hit:
                continue
            minutes, seconds, milli, micro, _, number, said = hit.groups()
            task = tasks[int(number)]
            now = int(minutes) * 60 + int(seconds) + int(milli) / 1e3 + int(micro) / 1e6
            if "processing task" in said:
                task["start_s"] = now
            if (found := CACHED.search(said)) and "cached" not in task:
                task["cached"] = int(found[1])
            if found := PREFILL.search(said):
                task.update(prefill_ms=float(found[1]), processed=int(found[2]), end_s=now)
            if found := DECODE.search(said):
                task.update(decode_ms=float(found[1]), output=int(found[2]))
            if found := DRAFT.search(said):
                task.update(accepted=int(found[1]), drafted=int(found[2]))
            if "stop processing" in said:
                task["release_s"] = now
    return {number: task for number, task in tasks.items() if "start_s" in task}


def read_metrics(path):
    with open(path, encoding="utf-8") as lines:
        pairs = (line.split() for line in lines if not line.startswith("#"))
        return {pair[0].removeprefix("llamacpp:"): float(pair[1]) for pair in pairs if len(pair) == 2}


def told(pair):
    """The times the server put on the wire, as its log would round them; from the recorder's row or the client's."""
    recorded, seen = pair
    timings = seen.get("timings") or {}
    if timings:
        return (round(timings["prompt_ms"], 2), round(timings["predicted_ms"], 2))
    if recorded.get("reported_prefill_ms") is not None and recorded.get("reported_decode_ms") is not None:
        return (round(recorded["reported_prefill_ms"], 2), round(recorded["reported_decode_ms"], 2))
    return None


def join_by_told(pairs, tasks):
    """Tasks whose logged times are those on the wire. Rounding may differ in the last digit: 0.011 ms is allowed."""
    joined = {name: [] for name in pairs}
    free = dict(tasks)
    for name, pair in pairs.items():
        key = told(pair)
        for number, task in list(free.items()):
            if (
                key
                and "decode_ms" in task
                and all(abs(a - b) < 0.011 for a, b in zip(key, (task["prefill_ms"], task["decode_ms"])))
            ):
                joined[name].append(free.pop(number))
                break
    return joined, free


def join_by_span(pairs, joined, free):
    """The rest: a task belongs to a request that was open when it started and misses a task, or has several choices.

    The server's clock counts from its start: the offset to the client's is the smallest seen, since a client can only
    see an end later than it was."""
    ends = [
        (pairs[name][1]["t_end_ns"] / 1e9 - tasks[0]["end_s"])
        for name, tasks in joined.items()
        if tasks and pairs[name][1]["outcome"] == "ok"
    ]
    if not ends:
        return None
    offset = min(ends)
    reaches_slot = (None, "exceed_context_size_error")  # other errors are answered before a task exists
    for task in sorted(free.values(), key=lambda task: task["start_s"]):
        start = task["start_s"] + offset
        for name, (_, seen) in pairs.items():
            wants = not joined[name] or seen["name"] in ("chat-n2", "text-two-prompts")
            is_open = seen["t_send_ns"] / 1e9 - 0.005 <= start <= seen["t_end_ns"] / 1e9
            if wants and is_open and seen.get("error_type") in reaches_slot:
                joined[name].append(task)
                break
    return offset


def span_ms(seen, first, last):
    if not seen.get(first) or not seen.get(last):
        return None
    return (seen[last] - seen[first]) / 1e6


def difference(a, b):
    return None if a is None or b is None else a - b


def total(tasks, key):
    values = [task[key] for task in tasks if key in task]
    return sum(values) if values else None


def measure(recorded, seen, tasks, offset):
    """One request in three views. `rec_` the recorder's, `cli_` the client's, `srv_` the server's log."""
    row = {
        "cli_ttft": span_ms(seen, "t_send_ns", "t_first_token_ns"),
        "rec_ttft": recorded.get("ttft_client_ms"),
        "cli_decode": span_ms(seen, "t_first_token_ns", "t_last_token_ns"),
        "rec_prompt": recorded.get("prompt_tokens"),
        "rec_cached": recorded.get("cached_tokens"),
        "rec_output": recorded.get("output_tokens"),
        "rec_drafted": recorded.get("draft_tokens"),
        "rec_accepted": recorded.get("accepted_tokens"),
        "srv_cached": total(tasks, "cached"),
        "srv_processed": total(tasks, "processed"),
        "srv_output": total(tasks, "output"),
        "srv_prefill": max((task["prefill_ms"] for task in tasks if "prefill_ms" in task), default=None),
        "srv_decode": max((task["decode_ms"] for task in tasks if "decode_ms" in task), default=None),
        "tasks": len(tasks),
    }
    parts = [recorded.get(key) for key in ("e2e_server_ms", "ttft_server_ms", "tail_ms")]
    row["rec_decode"] = None if None in parts else parts[0] - parts[1] - parts[2]
    row["srv_prompt"] = None if row["srv_processed"] is None else row["srv_processed"] + (row["srv_cached"] or 0)
    if tasks and offset is not None:
        row["srv_queue"] = max(0.0, (min(task["start_s"] for task in tasks) + offset) * 1e3 - seen["t_send_ns"] / 1e6)
    return row


def reasons(recorded, seen, row, attempts):
    """Why the views differ, where they do. A difference without a reason stands as it is, with a `!`."""
    said = []
    if attempts > 1:
        said.append(f"{attempts} attempts, the last one counts; the client's time holds them all")
    late = difference(row["cli_ttft"], row["rec_ttft"])
    if late is not None and late > NEAR_MS and attempts == 1:
        said.append(f"the client saw its first token {late:.0f} ms after the recorder: busy with itself")
    if row.get("srv_queue", 0) > 50 and attempts == 1:
        said.append(f"{row['srv_queue']:.0f} ms before a slot took it")
    if row["tasks"] > 1:
        said.append(f"{row['tasks']} tasks; the server's usage counts one of them")
    if seen["outcome"] == "aborted":
        said.append("the client left: the server logs no times")
    elif (
        row["rec_output"] != row["srv_output"]
        and row["tasks"] == 1
        and None not in (row["rec_output"], row["srv_output"])
    ):
        said.append("! output tokens")
    if (
        row["tasks"] == 1
        and None not in (row["rec_prompt"], row["srv_prompt"])
        and row["rec_prompt"] != row["srv_prompt"]
    ):
        said.append("! prompt tokens")
    ours = row["rec_decode"] if row["rec_decode"] is not None else row["cli_decode"]
    gap = difference(row["srv_decode"], ours)
    if gap is not None and abs(gap) > NEAR_MS and seen["stream"]:
        if gap > 0 and len(seen["token_ms"]) < (row["srv_output"] or 0):
            said.append("the first or last tokens brought no text: the server's span is longer")
        elif row["tasks"] == 1:
            said.append("the first event came late" if gap > 0 else "the last event came late")
    if (
        recorded
        and {"ok": "ok", "aborted": "client_abort", "error": "http_error"}.get(seen["outcome"]) != recorded["outcome"]
    ):
        said.append(f"! outcome {recorded['outcome']} for the client's {seen['outcome']}")
    return "; ".join(said)


COLUMNS = [  # head, width, the two or three values it shows
    ("ttft ms cli/rec", 16, ("cli_ttft", "rec_ttft")),
    ("prompt rec/log", 14, ("rec_prompt", "srv_prompt")),
    ("cached rec/log", 14, ("rec_cached", "srv_cached")),
    ("output rec/log", 14, ("rec_output", "srv_output")),
    ("prefill log", 11, ("srv_prefill",)),
    ("decode ms cli/rec/log", 24, ("cli_decode", "rec_decode", "srv_decode")),
]


def show(value):
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.1f}"


def print_table(rows):
    print(f"{'request':32} {'outcome':8} " + " ".join(f"{head:>{width}}" for head, width, _ in COLUMNS) + "  why")
    for name, seen, row, why in rows:
        cells = ("/".join(show(row[key]) for key in keys).rjust(width) for _, width, keys in COLUMNS)
        print(
            f"{name.removeprefix('real-'):32.32} {seen['outcome']:8} " + " ".join(cells) + ("  " + why if why else "")
        )


def print_spread(label, values):
    values = sorted(value for value in values if value is not None)
    if values:
        print(
            f"{label:66} n {len(values):3}  median {statistics.median(values):8.3f}  "
            f"min {values[0]:9.3f}  max {values[-1]:9.3f}"
        )


def print_summary(rows, tasks, free_count, metrics):
    streamed = [row for _, seen, row, _ in rows if seen["outcome"] == "ok" and seen["stream"] and row["tasks"] == 1]
    print(f"\n{len(rows)} requests, {len(tasks)} tasks in the server's log, {free_count} of them without a request")
    print_spread(
        "ttft: client's minus the recorder's, ms", [difference(r["cli_ttft"], r["rec_ttft"]) for r in streamed]
    )
    print_spread(
        "ttft: recorder's (else client's) minus logged prefill and queue, ms",
        [
            difference(
                r["rec_ttft"] if r["rec_ttft"] is not None else r["cli_ttft"],
                (r["srv_prefill"] or 0) + r.get("srv_queue", 0),
            )
            for r in streamed
        ],
    )
    print_spread(
        "decode: logged minus the recorder's, ms", [difference(r["srv_decode"], r["rec_decode"]) for r in streamed]
    )
    print_spread(
        "decode: logged minus the client's, ms", [difference(r["srv_decode"], r["cli_decode"]) for r in streamed]
    )
    one = [row for _, _, row, _ in rows if row["tasks"] == 1]
    for what in ("prompt", "cached", "output"):
        both = [
            (row[f"rec_{what}"], row[f"srv_{what}"])
            for row in one
            if None not in (row[f"rec_{what}"], row[f"srv_{what}"])
        ]
        if both:
            print(f"{what} tokens: {sum(a == b for a, b in both)} of {len(both)} requests equal")
    pairs = [
        ("processed", None, "prompt_tokens_total"),
        ("output", "rec_output", "tokens_predicted_total"),
        ("drafted", "rec_drafted", "spec_decode_num_draft_tokens_total"),
        ("accepted", "rec_accepted", "spec_decode_num_accepted_tokens_total"),
    ]
    for key, recorded, counter in pairs:
        ours = [row[recorded] for _, _, row, _ in rows if recorded and row[recorded] is not None]
        logged = sum(task.get(key, 0) for task in tasks.values())
        print(
            f"{key} tokens: recorder {show(sum(ours) if ours else None)}, log {logged}, "
            f"counter {show(int(metrics[counter]) if counter in metrics else None)}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests")
    parser.add_argument("--client", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--metrics")
    args = parser.parse_args()
    attempts = collections.Counter()
    recorded = {}
    for row in read_ndjson(args.requests) if args.requests else []:
        attempts[row["request_id"]] += 1
        recorded[row["request_id"]] = row  # rows are in order of arrival: the last attempt stays
    pairs = {seen["request_id"]: (recorded.get(seen["request_id"], {}), seen) for seen in read_ndjson(args.client)}
    tasks = read_server(args.server)
    joined, free = join_by_told(pairs, tasks)
    offset = join_by_span(pairs, joined, free)
    rows = []
    for name, (record, seen) in pairs.items():
        row = measure(record, seen, joined[name], offset)
        rows.append((name, seen, row, reasons(record, seen, row, max(1, attempts[name]))))
    print_table(rows)
    used = sum(len(some) for some in joined.values())
    print_summary(rows, tasks, len(tasks) - used, read_metrics(args.metrics) if args.metrics else {})
    if args.requests and len(recorded) < len(pairs):
        print(f"! {len(pairs) - len(recorded)} requests of the client are not in the recording")


if __name__ == "__main__":
    main()
