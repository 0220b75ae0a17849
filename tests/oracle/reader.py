#!/usr/bin/env python3
"""A second reading of a response, made from the documents and from nothing that the recorder is made of.

    reader.py --samples DIR      holds the reading of every sample body in DIR against its expected.json

read(ask, answer) says what is right: counts, places of tokens, ends, outcome. Where the documents leave something open, the
name of that figure stands in `doubts` and nobody compares it.
"""
import argparse, json, os, sys
from dataclasses import dataclass, field

import framing
from dialects import LENGTH_REASONS, READERS, Take, api_of, by_path
from framing import json_of


@dataclass
class Answer:
    status: int
    headers: dict                   # names in lower case
    body: bytes                     # transfer framing taken off
    whole: bool = True              # it ended as its framing said
    marks: list = None              # bytes of the body known after each read
    reset: bool = False             # cut by a reset


@dataclass
class Reading:
    facts: dict
    series: dict                    # choice: [(event, read, tokens)] in order, tokens > 0
    token_events: list              # [[event, tokens]] before stop tokens, hidden ones left out
    doubts: set
    take: Take = None
    extra: dict = field(default_factory=dict)


def frames(answer, body, path):
    kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "text/event-stream": return "sse", framing.sse(body)
    if kind == "application/x-ndjson": return "ndjson", framing.ndjson(body, answer.whole)
    if kind == "application/vnd.amazon.eventstream": return "aws", framing.aws(body)
    if path.partition("?")[0].endswith(":streamGenerateContent"):
        f = framing.json_array(body)
        if f: return "array", f
    return "json", framing.Framed()


def tell(take, reader, event):
    if event.data.strip() == b"[DONE]": take.done = True; return
    root = json_of(event.data)
    if event.name == "error" or event.exception: take.error = True
    if root is None: take.bad += 1; return
    if isinstance(root, dict) and root.get("error"): take.error = True
    if isinstance(root, (dict, list)) and not event.exception: reader(take, event.name, root)


def read(ask, answer):
    """ask: (path, body object)."""
    path, question = ask
    body, known = framing.decode(answer.body, answer.headers.get("content-encoding"), answer.marks or [len(answer.body)])
    how, f = frames(answer, body, path)
    streamed = how != "json"
    take = Take(question or {}, streamed)
    roots = [json_of(e.data) for e in f.events + ([f.pending] if f.pending else [])] if streamed else [json_of(body) if answer.whole else None]
    if not streamed and json_of(body) is not None and not answer.whole: take.doubts.add("outcome")      # all its text, but not all of its framing
    shaped = (api_of(path, question, r, how) for r in roots if isinstance(r, (dict, list)))
    if how == "sse" and by_path(path, question) == "lmstudio-chat" or any(e.name.startswith(("chat.", "model_load.")) for e in f.events): api = "lmstudio-chat"
    else: api = next((a for a in shaped if a != "other"), by_path(path, question))
    reader = READERS.get(api, lambda *_: None)
    for n, event in enumerate(f.events):
        take.event = n
        tell(take, reader, event)
    pending(take, reader, f)
    if not streamed and isinstance(roots[0], (dict, list)):
        if isinstance(roots[0], dict) and roots[0].get("error"): take.error = True
        if answer.status < 300: reader(take, "", roots[0])
    if not streamed: tgi_headers(take, answer.headers)
    return conclude(ask, answer, api, how, f, take, known)


def pending(take, reader, f):
    """An event that the end of the body left open: kept when what is there is whole, else only flagged."""
    take.event, take.cut = len(f.events), False
    if not f.pending: return
    text = f.pending.data.strip()
    if text == b"[DONE]" or json_of(text) is not None: tell(take, reader, f.pending); return
    take.cut = True


def tgi_headers(take, h):
    for name, fact in (("x-prompt-tokens", "prompt_tokens"), ("x-generated-tokens", None)):
        if h.get(name, "").isdigit():
            take.keep(fact, int(h[name])) if fact else take.total(int(h[name]))


# -- which tokens came with which event (metrics.md 2)

def running_name(take):
    """The cumulative field that is a running count here: carried by every bearing event, above 0 on the first or second."""
    bearing = [t for t in take.toks if t.bearing and not t.summary]
    for name in ("usage", "meta", "count", "timings"):
        if not bearing or not all(name in t.running for t in bearing): continue
        starts = {c: any(t.running[name] > 0 for t in [t for t in bearing if t.choice == c][:2]) for c in {t.choice for t in bearing}}
        whole = any(t.running[name] > 0 for t in bearing[:2])
        if whole != all(starts.values()): take.doubts |= {"token_source", "series", "grade", "token_events", "tokens_seen", "output_tokens"}    # "the first or second of them": of each choice, or of all?
        if whole: return name
    return None


def told_total(take, running):
    """The server's total: later values replace earlier ones; a zero is no total where text came or a greater one stood."""
    totals = take.totals
    if running and len(take.choices) > 1:       # a choice's count is no total of the request; all of them together are
        totals = [x for x in totals if x[2]]
        if not totals: return sum({t.choice: t.running[running] for t in take.toks if running in t.running}.values())
    values = [v for _, v, _ in totals]
    if not values: return None
    if not running and len({c for c in (told_by(take, e) for e, _, alone in totals if not alone)}) > 1 and not totals[-1][2]:
        take.doubts |= {"output_tokens", "series", "grade", "token_events", "tokens_seen"}      # counts of several choices, no total apart
    if values[-1] == 0 and any(values): take.doubts.add("output_tokens"); return next(v for v in reversed(values) if v)
    if values[-1] == 0 and not take.finishes: take.doubts.add("output_tokens")      # a count of 0 before anything came
    if values[-1] == 0 and any(t.bearing for t in take.toks): take.doubts |= {"output_tokens", "token_source", "series", "grade"}; return None
    return values[-1]


def told_by(take, event):
    """The choice that an event spoke of."""
    return next((t.choice for t in take.toks if t.event == event), None)


def rises(take, name):
    last, out = {}, []
    for t in take.toks:
        k = t.running.get(name, 0) - last.get(t.choice, 0)
        if k > 0: out.append((t, k)); last[t.choice] = t.running[name]
    return out


def largest_remainder(rest, sizes):
    total = sum(sizes)
    k = [rest * b // total for b in sizes]
    order = sorted(range(len(sizes)), key=lambda i: (-(rest * sizes[i] % total), i))
    for i in order[:rest - sum(k)]: k[i] += 1
    return k


def stop_events(take):
    """[(event, choice)] of the choices that stopped for another reason than length, in an event without text.

    Rule 5 knows a typed end as finish event, but not whether an end without a reason (LM Studio) is one other than length:
    where that decides, the figures are in doubt.
    """
    spots = {c: (r, e) for c, (r, e) in take.finishes.items()}
    if take.typed_end:
        for c in take.choices: spots.setdefault(c, (None, take.typed_end_event))
    text = {(t.event, t.choice) for t in take.toks if t.bearing}
    return [(e, c) for c, (r, e) in sorted(spots.items()) if r not in LENGTH_REASONS and (e, c) not in text]


def prorate(take, bearing, total):
    """Rule 5: ([(tok, k)], stop tokens, grade)."""
    sizes, n = [t.nbytes for t in bearing], len(bearing)
    stops = stop_events(take)
    if total == n: return [(t, 1) for t in bearing], [], "exact"
    if total == n + len(stops) and any(c not in take.finishes for _, c in stops): take.doubts |= {"grade", "series", "tokens_seen"}
    if total == n + len(stops): return [(t, 1) for t in bearing], stops, "exact"
    if "tool_bytes" in take.doubts: take.doubts |= {"series", "token_events"}
    if total > n: return [(t, 1 + k) for t, k in zip(bearing, largest_remainder(total - n, sizes))], [], "prorated"
    if total <= 0: take.doubts |= {"series", "grade", "token_source", "token_events", "tokens_seen"}; return [], [], "prorated"
    whole, at, before, out = sum(sizes), 0, 0, []
    for t, b in zip(bearing, sizes):
        at += b
        upto = -(-total * at // whole)
        out.append((t, upto - before)); before = upto
    return out, [], "prorated"


def attribute(take):
    """(source, grade, [(tok, k)], stop tokens, total, hidden)"""
    bearing = [t for t in take.toks if t.bearing and not t.summary]
    running = running_name(take) if take.streamed else None
    total, hidden = told_total(take, running), hidden_tokens(take)
    if not take.streamed: return None, None, [], [], total, hidden
    if any(t.ids for t in take.toks) and all(t.ids is not None for t in bearing):    # ids alone bear, too (wire-formats 1.2)
        return "token_ids", "exact", [(t, t.ids) for t in take.toks if t.ids], [], total, hidden
    if running: return "running_usage", "exact", rises(take, running), [], total, hidden
    if any(t.contract for t in take.toks) and all(t.contract for t in bearing):
        return "engine_event", "exact", [(t, 1) for t in take.toks if t.contract], [], total, hidden
    if bearing and all(t.logprobs for t in bearing): return "logprobs", "exact", [(t, t.logprobs) for t in bearing], [], total, hidden
    if not bearing: return None, None, [], [], total, hidden
    if total is not None:
        shares, stops, grade = prorate(take, bearing, total - (hidden or 0))
        return "prorated", grade, shares, stops, total, hidden
    return "events", "events", [(t, 1) for t in bearing], [], total, hidden


def hidden_tokens(take):
    shown = take.reasoning_text > 0
    n = 0 if shown else take.facts.get("reasoning_tokens") or 0
    if take.ask.get("prediction"): n += take.facts.get("predicted_rejected") or 0
    return n


# -- ends and outcome (metrics.md 7)

NO_END_SIGN = ("gemini-generate", "triton-generate")


def outcome(answer, api, streamed, take, parsed):
    if answer.status >= 300: return "http_error"
    if take.error: return "stream_error"
    finished = take.finishes and set(take.finishes) >= take.choices
    if take.finishes and not finished: take.doubts.add("outcome")       # one choice ended, another did not: open
    sign = finished or take.done or take.typed_end
    if not streamed: sign = sign or answer.whole and parsed
    if streamed and api in NO_END_SIGN and answer.whole: sign = True
    if sign: return "ok"
    if not streamed and answer.whole: take.doubts.add("outcome")        # a whole body that is no JSON
    return "upstream_reset" if answer.reset or not answer.whole and answer.status == 0 else "truncated"


def speculation(take):
    """The same two fields are predicted outputs or speculation, by what stands beside them (metrics.md 5)."""
    acc, rej = take.facts.pop("predicted_accepted", None), take.facts.pop("predicted_rejected", None)
    if take.ask.get("prediction"):
        if acc is not None: take.facts["predicted_accepted"] = acc
        if rej is not None: take.facts["predicted_rejected"] = rej
    elif take.seen.get("matched_stop") and acc is not None and rej is not None:
        take.facts.setdefault("accepted_tokens", acc); take.facts.setdefault("draft_tokens", acc + rej)


def native_text(take):
    """text_bytes of /generate: whole texts or pieces; ids tell, else whether every text continues the one before."""
    for key in [k for k in take.seen if isinstance(k, tuple) and k[0] == "texts"]:
        rows = take.seen[key]
        shown = [r[1] for r in rows if r[1]]            # an abort shows no text in any mode
        chain = all(b.startswith(a) for a, b in zip(shown, shown[1:]))
        later = rows[1:]
        cumulative = bool(later) and all(i is not None and i == n for _, _, i, n in later) and chain
        if not cumulative and chain and len(shown) > 1: take.doubts.add("text_bytes")
        take.text += framing.utf8_len(shown[-1] if shown else "") if cumulative else sum(framing.utf8_len(r[1]) for r in rows)


def conclude(ask, answer, api, how, f, take, known):
    streamed = how != "json"
    native_text(take)
    source, grade, shares, stops, total, hidden = attribute(take)
    speculation(take)
    parsed = streamed or json_of(answer_text(answer)) is not None
    facts = dict(take.facts, api=api, status=answer.status, token_source=source, grade=grade, hidden_tokens=hidden)
    facts["output_tokens"] = total if total is not None else sum(k for _, k in shares) if shares else None
    facts["token_events"] = sum(1 for _, k in shares if k > 0)
    facts["tokens_seen"] = sum(k for _, k in shares) + len(stops)
    if streamed: facts["events"], facts["comments"] = len(f.events), f.comments
    facts["event_cut"] = True if take.cut else None if f.torn or f.pending else False
    facts["done_marker"], facts["stream_error"] = take.done, take.error
    facts["typed_end"] = take.typed_end or streamed and api in NO_END_SIGN and answer.whole
    facts["finish_reason"] = ",".join(take.finishes[c][0] for c in sorted(take.finishes)) or None
    facts["text_bytes"], facts["reasoning_bytes"] = take.text, take.reasoning_text
    facts["tool_calls"] = len(take.tools)
    facts["tool_args_valid"] = all(c["whole"] or json_of(c["args"].encode("utf-8", "surrogatepass")) is not None for c in take.tools.values()) if take.tools else None
    if not streamed: take.doubts.add("typed_end")               # facts.def speaks of streams
    if take.ask.get("prediction") and by_path(*ask) == "other": take.doubts |= {"hidden_tokens", "predicted_accepted", "predicted_rejected", "series", "grade", "tokens_seen", "token_events"}   # of an unknown path the question's own facts may not be read
    if answer.status >= 300: take.doubts.add("stream_error")    # whether an HTTP error's body counts as an error inside a body is open
    facts["outcome"] = outcome(answer, api, streamed, take, parsed)
    facts["bad_events"] = take.bad
    facts.update(streamed=streamed, response_body_bytes=len(answer.body), body_whole=answer.whole, finished_choices=len(take.finishes), choices=len(take.choices))
    facts["response_id"] = take.seen.get("response_id")
    if any(not c["whole"] and not c["args"] for c in take.tools.values()): take.doubts.add("tool_args_valid")    # no arguments at all: valid or not?
    if facts["outcome"] != "ok": take.doubts.add("tool_args_valid")     # of a call that may be unfinished nothing can be said
    if api == "llamacpp-completion" and set(take.finishes) < take.choices: take.doubts |= {"draft_tokens", "accepted_tokens"}   # of choices cut off: told so far, or not at all?
    if any(not e.data.strip() for e in f.events): take.doubts.add("bad_events")     # whether no data is bad data is open
    if api == "other": take.doubts |= set(facts) - {"status", "response_body_bytes", "body_whole"} | {"series"}     # neither path nor answer tells the API
    series = {}
    places = sorted([(t.event, t.choice, k) for t, k in shares if k > 0] + [(e, c, 1) for e, c in stops])
    for e, c, k in places:
        read = framing.read_of(f.events[e].end, known) if e < len(f.events) else len(known)     # what the body's end completes comes with the end
        series.setdefault(c, []).append((e, read, k))
    return Reading(facts, series, [[t.event, k] for t, k in shares if k > 0], take.doubts, take, firsts(take, f, known, shares))


def firsts(take, f, known, shares):
    """The reads that brought the first token and the first of an answer, where every event with text bears a token."""
    if not shares or any(k == 0 for _, k in shares): return {}
    if any(t.summary for t in take.toks): return {}      # no arrival shows whether its read was taken with a later one
    told = [t.event for t, _ in shares]
    answer = [t.event for t, _ in shares if t.answer]
    if not answer or max(told + answer) >= len(f.events): return {}
    return {"token": framing.read_of(f.events[min(told)].end, known), "answer": framing.read_of(f.events[min(answer)].end, known)}


def answer_text(answer): return framing.decode(answer.body, answer.headers.get("content-encoding"), [len(answer.body)])[0]


# -- the samples

SOURCES = {"usage_cumulative": "running_usage", "meta_cumulative": "running_usage", "count_cumulative": "running_usage",
           "timings_cumulative": "running_usage", "one_per_event": "engine_event", "usage_total": "prorated", "event_count": "events"}
KINDS = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "json": "application/json", "aws-eventstream": "application/vnd.amazon.eventstream"}
RULE_5 = {"anthropic-messages.sse": [7, 4, 2, 5, 1], "azure-chat.sse": [5, 4], "openai-chat-tools-stream.sse": [5, 2, 2, 2, 3, 1],
          "sglang-chat-stream.sse": [2, 2, 3, 1], "openrouter-chat.sse": [2, 1, 2], "sse-framing-torture.sse": [1, 3, 2, 3], "vllm-stream-interval.sse": [2, 4, 4, 2]}


def check_sample(folder, asks, e):
    """What this reader says otherwise than expected.json."""
    ask = asks.get(e["api"], {"path": "/v1/chat/completions", "body": {}})
    headers = {"content-type": KINDS[e["framing"]], **{k.lower(): v for k, v in e.get("response_headers", {}).items()}}
    if e.get("content_encoding"): headers["content-encoding"] = e["content_encoding"]
    with open(os.path.join(folder, e["file"]), "rb") as file: body = file.read()
    question = json.loads(ask["body"]) if isinstance(ask["body"], str) else ask["body"]
    r = read((ask["path"], question), Answer(e.get("http_status", 200), headers, body, whole=not e.get("truncated")))
    right, seen = {}, {}
    for name in ("prompt_tokens", "cached_tokens", "cache_write_tokens", "draft_tokens", "accepted_tokens", "reasoning_tokens"):
        if name in e: right[name], seen[name] = e[name], r.facts.get(name)
    right["api"], seen["api"] = e["api"], r.facts["api"]
    for name, mine in (("n_events", "events"), ("comments", "comments"), ("done_marker", "done_marker")):
        if name in e: right[name], seen[name] = e[name], r.facts[mine]
    if e["api"] != "lmstudio-chat":
        right["finish"] = ",".join(e["finish_reason"]) if isinstance(e["finish_reason"], list) else e["finish_reason"]; seen["finish"] = r.facts["finish_reason"]
    right["error"], seen["error"] = bool(e.get("error")), r.facts["stream_error"]
    right["truncated"], seen["truncated"] = bool(e.get("truncated")), bool(r.facts["event_cut"])
    sum_right = sum(k for _, k in e["token_events"])
    right["output"], seen["output"] = e["output_tokens"] if e["output_tokens"] is not None else sum_right or None, r.facts["output_tokens"]
    if e["token_events"]:
        right["source"], seen["source"] = SOURCES.get(e["tokens_source"], e["tokens_source"]), r.facts["token_source"]
        right["events"], seen["events"] = [x[0] for x in e["token_events"]], [x[0] for x in r.token_events]
        if e["exact"]: right["tokens"], seen["tokens"] = e["token_events"], r.token_events
    if e["file"] in RULE_5: right["rule 5"], seen["rule 5"] = RULE_5[e["file"]], [k for s in r.series.values() for _, _, k in s]
    return {n: (right[n], seen[n]) for n in right if right[n] != seen[n]}


def samples(folder):
    with open(os.path.join(folder, "expected.json")) as file: expected = json.load(file)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wire/asks.json")) as file: asks = json.load(file)
    failed = 0
    for e in expected:
        bad = check_sample(folder, asks, e)
        failed += bool(bad)
        for name, (right, seen) in bad.items(): print(f"{e['file']}: {name}: {seen!r}, right is {right!r}")
    print(f"{len(expected) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--samples", required=True, metavar="DIR")
    sys.exit(samples(ap.parse_args().samples))
