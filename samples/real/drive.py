#!/usr/bin/env python3
"""Drives a llama.cpp server with the `openai` package and keeps what the client saw.

Every prompt is written here, so two runs ask the same. One line of JSON per request goes to the log: times on
CLOCK_MONOTONIC (the recorder's clock too, when both run on one machine), counts, usage, errors; never text.
The first request is sent before the server is ready: the package's own retries are what a cold start looks like
to a client.

Usage: drive.py --base-url http://127.0.0.1:8001 --log client.ndjson [--model NAME] [--only PHASE,...]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import threading
import time

import openai

SYSTEM = "You are the harbour master of a small port. You answer in short, plain sentences. " + " ".join(
    f"Rule {n}: a vessel of class {n} may lie at berth {n} for {n + 2} hours, pays {n * 7} coins a day, "
    f"and must report its cargo before tide {n % 6 + 1}."
    for n in range(1, 10)
)
QUESTIONS = [
    "Which ships may enter the port at night?",
    "Write three sentences about the lighthouse.",
    "What should a captain do when fog comes in?",
    "Describe a busy morning at the fish market.",
    "List five things a sailor packs for a long trip.",
    "Explain to a child why the tide rises and falls.",
    "Write a short letter from a sailor to his sister.",
    "What is the difference between a boat and a ship?",
]
ROLL = "\n".join(
    f"Berth {n}: the {name}, {n * 12} tons of grain, leaves on the morning tide."
    for n, name in enumerate(["Heron", "Swallow", "Kestrel", "Plover", "Curlew", "Dunlin"], 1)
)
TOOL = {
    "type": "function",
    "function": {
        "name": "tide_time",
        "description": "The time of the next high tide at a port.",
        "parameters": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "day": {"type": "string", "enum": ["today", "tomorrow"]}},
            "required": ["port", "day"],
        },
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "ship",
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "tons": {"type": "integer"}},
            "required": ["name", "tons"],
        },
    },
}
USAGE = {"stream_options": {"include_usage": True}}
TIMED = {"timings_per_token": True}


@dataclasses.dataclass
class Ask:
    """One request: `api` is chat, completions, responses, or a bare path that the package is made to post to."""

    name: str
    api: str
    body: dict
    extra: dict = dataclasses.field(default_factory=dict)
    abort_after: int = 0  # bearing events, then the client leaves; 0: it stays
    due_s: float = -1.0  # when it is meant to go out, from the start of its phase; below 0: whenever a worker is free


def user(text, system=None):
    head = [{"role": "system", "content": system}] if system else []
    return head + [{"role": "user", "content": text}]


def chat(name, text, stream=True, system=None, extra=None, tokens=48, abort_after=0, due_s=-1.0, **more):
    body = {"messages": user(text, system), "stream": stream, "max_tokens": tokens, "temperature": 0, "seed": 7, **more}
    return Ask(name, "chat", body, extra or {}, abort_after, due_s)


def text(name, prompt, stream=True, extra=None, tokens=40, **more):
    body = {"prompt": prompt, "stream": stream, "max_tokens": tokens, "temperature": 0, "seed": 7, **more}
    return Ask(name, "completions", body, extra or {})


def singles():
    """One at a time: each way the server has of telling its counts and times."""
    native = {"prompt": "The old pilot said:", "n_predict": 32, "temperature": 0, "stream": True}
    anthropic = {"messages": user(QUESTIONS[4]), "max_tokens": 32, "temperature": 0, "stream": True}
    return [
        chat("chat-plain", QUESTIONS[0]),
        chat("chat-usage", QUESTIONS[1], **USAGE),
        chat("chat-timings", QUESTIONS[2], extra=TIMED),
        chat("chat-timings-usage", QUESTIONS[3], extra=TIMED, **USAGE),
        chat("chat-whole", QUESTIONS[4], stream=False),
        chat("chat-logprobs", QUESTIONS[5], tokens=24, logprobs=True, top_logprobs=2, **USAGE),
        chat("chat-n2", QUESTIONS[6], tokens=24, n=2, **USAGE),
        chat("chat-progress", QUESTIONS[7], system=SYSTEM[:900], extra={"return_progress": True}, **USAGE),
        chat("chat-stop", QUESTIONS[4], tokens=64, stop=[":"], **USAGE),
        chat("chat-one-token", QUESTIONS[0], tokens=1, **USAGE),
        chat("chat-emoji", "Answer with emoji only: 🚢 ⚓ 🌊 🐟 🦀", tokens=32, extra=TIMED, **USAGE),
        text("text-plain", "The ship left the harbour and"),
        text("text-usage", "The storm came from the west, so", **USAGE),
        text("text-timings", "In the spring the fishermen", extra=TIMED),
        text("text-whole", "The lighthouse keeper wrote:", stream=False),
        text("text-two-prompts", ["The north wind", "The south wind"], tokens=24, **USAGE),
        Ask(
            "responses", "responses", {"input": QUESTIONS[1], "max_output_tokens": 40, "temperature": 0, "stream": True}
        ),
        Ask("messages", "/v1/messages", anthropic),
        Ask("native", "/completion", native),
        Ask("native-timings", "/completion", {**native, **TIMED}),
    ]


def prefix(at_once):
    """The same long beginning under different questions: what is left to compute is the question."""
    tag = "prefix-many" if at_once else "prefix"
    return [
        chat(f"{tag}-{i}", q, system=SYSTEM, tokens=32, extra=TIMED if i % 2 else {}, **USAGE)
        for i, q in enumerate(QUESTIONS[4:] if at_once else QUESTIONS[:4])
    ]


def ladder(width):
    """`width` at once, two rounds. The server has fewer slots than the last step has clients: the rest queue."""
    return [
        chat(
            f"ladder-{width}-{i}",
            f"{QUESTIONS[i % 8]} Think of pier {width * 10 + i}.",
            tokens=56,
            extra=TIMED if i % 2 else {},
            **(USAGE if i % 4 != 3 else {}),
        )
        for i in range(2 * width)
    ]


def repeats():
    """The answer copies the prompt: where a draft from n-grams of the text pays."""
    return [
        chat(
            f"repeat-{i}",
            f"Repeat this list word for word, {i + 1} time(s):\n{ROLL}",
            tokens=120,
            extra=TIMED if i % 2 else {},
            **USAGE,
        )
        for i in range(4)
    ]


def queued():
    """Sent on a schedule by too few workers: a request waits in the client, and says so in X-Request-Start."""
    return [chat(f"queued-{i}", QUESTIONS[i % 8], tokens=32, due_s=0.25 * i, **USAGE) for i in range(10)]


def odd():
    """What goes wrong, or ends some other way."""
    return [
        chat("abort-early", QUESTIONS[1], tokens=200, abort_after=5, extra=TIMED),
        chat("abort-late", QUESTIONS[6], tokens=200, abort_after=25),
        chat("too-long", "Count the waves. " * 3000, **USAGE),
        chat("fills-context", "Count the waves. " * 220, tokens=2000, extra={"ignore_eos": True}, **USAGE),
        chat("bad-type", QUESTIONS[0], extra={"temperature": "hot"}),
        Ask("no-such-path", "/v1/harbour", {"prompt": "hello"}),
        Ask("no-embeddings", "/v1/embeddings", {"input": "hello", "model": "any"}),
        chat(
            "tools", "When is high tide in Falmouth tomorrow?", tokens=80, tools=[TOOL], tool_choice="required", **USAGE
        ),
        chat(
            "tools-whole",
            "When is high tide in Leith today?",
            stream=False,
            tokens=80,
            tools=[TOOL],
            tool_choice="required",
        ),
        chat("schema", "Describe the ship Heron of 40 tons.", tokens=64, response_format=SCHEMA, **USAGE),
        chat("stops-at-once", QUESTIONS[1], tokens=8, stop=["e", "a", "o", "i"], **USAGE),
    ]


def phases():
    """(name, requests, how many at once). Names stand in X-Request-Id."""
    return [
        ("cold", [chat("cold", QUESTIONS[0], **USAGE)], 1),
        ("single", singles(), 1),
        ("prefix", prefix(False), 1),
        ("prefix4", prefix(True), 4),
        ("ladder1", ladder(1), 1),
        ("ladder2", ladder(2), 2),
        ("ladder4", ladder(4), 4),
        ("ladder8", ladder(8), 8),
        ("repeat", repeats(), 1),
        ("queued", queued(), 3),
        ("odd", odd(), 1),
    ]


def bearing(event):
    """Does the event bring something to read? By the shape of the event, as the five APIs write it."""
    kind = event.get("type", "")
    if kind.endswith(".delta") or kind == "content_block_delta":
        return bool(event.get("delta"))
    if "content" in event:
        return bool(event["content"])
    for choice in event.get("choices") or []:
        delta = choice.get("delta") or {}
        if choice.get("text") or any(delta.get(k) for k in ("content", "reasoning_content", "tool_calls", "refusal")):
            return True
    return False


def absorb(row, event):
    """Keep of an event what the server says about the request, in the server's words."""
    inner = event.get("response") or event.get("message") or {}
    for key in ("usage", "timings"):
        value = event.get(key) or (inner.get(key) if isinstance(inner, dict) else None)
        if value:
            row[key] = value
            row[key + "_events"] = row.get(key + "_events", 0) + 1
    row["response_id"] = (
        row.get("response_id") or event.get("id") or (inner.get("id") if isinstance(inner, dict) else None)
    )
    for choice in event.get("choices") or []:
        if choice.get("finish_reason"):
            row["finish_reason"] = choice["finish_reason"]
    if event.get("stop_type"):
        row["finish_reason"] = event["stop_type"]
    for key in ("tokens_predicted", "tokens_evaluated"):
        if key in event:
            row[key] = event[key]


def plain(event):
    """An event as a dict, with every field that was on the wire. llama.cpp also sends a bare `data: null`."""
    return event if isinstance(event, dict) else event.to_dict() if event is not None else {}


def send(client, model, ask, headers):
    """Let the package send it. Bare paths go through the package's own `post`, so that all share its connections."""
    known = {"chat": client.chat.completions, "completions": client.completions, "responses": client.responses}
    if ask.api in known:
        return known[ask.api].create(model=model, **ask.body, extra_body=ask.extra or None, extra_headers=headers)
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    return client.post(
        root + ask.api,
        cast_to=object,
        body={"model": model, **ask.body, **ask.extra},
        options={"headers": headers},
        stream=ask.body.get("stream", False),
        stream_cls=openai.Stream[object],
    )


def read_stream(row, stream, ask):
    """Take the events one by one; leave after `abort_after` bearing ones."""
    for event in stream:
        now = time.monotonic_ns()
        event = plain(event)
        row["events"] += 1
        row["t_first_event_ns"] = row["t_first_event_ns"] or now
        absorb(row, event)
        if not bearing(event):
            continue
        row["t_first_token_ns"] = row["t_first_token_ns"] or now
        row["t_last_token_ns"] = now
        row["token_ms"].append(round((now - row["t_send_ns"]) / 1e6, 3))
        if ask.abort_after and len(row["token_ms"]) >= ask.abort_after:
            stream.close()
            row["outcome"] = "aborted"
            return
    row["outcome"] = "ok"


def run(client, model, ask, request_id, intended_ns):
    """One request, from before the send to the end of what came. Never raises: an error is a result."""
    headers = {"X-Request-Id": request_id}
    row = {
        "name": ask.name,
        "request_id": request_id,
        "api": ask.api,
        "stream": bool(ask.body.get("stream")),
        "max_tokens": ask.body.get("max_tokens"),
        "events": 0,
        "token_ms": [],
        "t_first_event_ns": None,
        "t_first_token_ns": None,
        "t_last_token_ns": None,
    }
    if intended_ns is not None:
        wall_s = (time.time_ns() - (time.monotonic_ns() - intended_ns)) / 1e9
        headers["X-Request-Start"] = f"t={wall_s:.6f}"
        row["t_intended_ns"] = intended_ns
    row["t_send_ns"] = time.monotonic_ns()
    try:
        answer = send(client, model, ask, headers)
        row["t_headers_ns"] = time.monotonic_ns()
        if row["stream"]:
            read_stream(row, answer, ask)
        else:
            absorb(row, plain(answer))
            row["outcome"] = "ok"
    except openai.APIStatusError as err:
        body = err.body if isinstance(err.body, dict) else {}
        row.update(outcome="error", status=err.status_code, error_type=body.get("type"), error_code=body.get("code"))
    except openai.APIError as err:
        row.update(outcome="error", status=None, error_type=type(err).__name__)
    row["t_end_ns"] = time.monotonic_ns()
    return row


def play(client, model, name, asks, width, write):
    """Run one phase with `width` workers; a request with a due time waits for it, and maybe for a worker."""
    start = time.monotonic_ns()

    def work(item):
        number, ask = item
        intended = start + int(ask.due_s * 1e9) if ask.due_s >= 0 else None
        if intended:
            time.sleep(max(0.0, (intended - time.monotonic_ns()) / 1e9))
        patient = client.with_options(max_retries=20 if name == "cold" else 0)
        row = run(patient, model, ask, f"real-{name}-{number:02d}-{ask.name}", intended)
        write({"phase": name, "at_once": width, **row})

    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        list(pool.map(work, enumerate(asks)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--model", default="sample")
    parser.add_argument("--only", help="phases, separated by commas")
    args = parser.parse_args()
    wanted = set(args.only.split(",")) if args.only else None
    lock = threading.Lock()
    client = openai.OpenAI(base_url=args.base_url.rstrip("/") + "/v1", api_key="no-key-needed", timeout=120)
    with open(args.log, "x", encoding="utf-8") as log:

        def write(row):
            with lock:
                log.write(json.dumps(row) + "\n")
                log.flush()

        for name, asks, width in phases():
            if wanted is None or name in wanted:
                play(client, args.model, name, asks, width, write)


if __name__ == "__main__":
    main()
