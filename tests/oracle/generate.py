#!/usr/bin/env python3
"""One random exchange for a seed: what is asked, the very bytes an engine answers, and in which writes they go out.

    generate.py SEED      prints the exchange that this seed makes, and the oracle's reading of it
"""
import json, random, re, struct, sys, zlib
from dataclasses import dataclass

import speak_native as sn
import speak_openai as so
import speak_whole as sw
from reader import Answer, read

SPEAKERS = {"openai-chat": [lambda r: so.chat_like(r)] * 5, "openai-completions": [lambda r: so.chat_like(r, False), so.completions_zero], "openai-responses": [so.responses], "anthropic-messages": [sn.anthropic] * 2,
            "gemini-generate": [sn.gemini], "bedrock-converse": [sn.bedrock], "sglang-generate": [sn.meta_generate], "tgi-generate": [sn.tgi], "triton-generate": [sn.triton],
            "ollama-chat": [sn.ollama], "llamacpp-completion": [sn.llamacpp], "lmstudio-chat": [sn.lmstudio]}
WEIGHTS = {"openai-chat": 12, "openai-completions": 3}


@dataclass
class Exchange:
    seed: int
    request: bytes
    path: str
    question: dict
    answer: Answer
    writes: list            # bytes of each write
    close: str              # "", fin or rst: how the upstream ends the connection after the last write
    paced: bool             # each write is to be a read of its own
    about: str


def shuffled(r, obj):
    """The same value with its members in another order."""
    if isinstance(obj, list): return [shuffled(r, x) for x in obj]
    return {k: shuffled(r, v) for k, v in r.sample(list(obj.items()), len(obj))} if isinstance(obj, dict) else obj


def dump(r, obj):
    """JSON as differing servers write it."""
    spaced = r.random() < 0.3
    ascii_only = r.random() < 0.4 or "\\ud8" in json.dumps(obj)
    if r.random() < 0.03: obj = shuffled(r, obj)
    text = json.dumps(obj, ensure_ascii=ascii_only, separators=(", ", ": ") if spaced else (",", ":"))
    if r.random() < 0.02: text = re.sub(r'(?<![\\0-9a-zA-Z])[a-z](?=[a-z])', lambda m: f"\\u{ord(m[0]):04x}" if r.random() < 0.2 and inside(text, m.start()) else m[0], text)
    return (text.replace("</", "<\\/") if r.random() < 0.1 else text).encode()


def inside(text, at):
    """Whether a place lies inside a JSON string and behind no backslash: an escape may stand for its letter there."""
    before = re.sub(r"\\.", "", text[:at])
    return before.count('"') % 2 == 1 and not before.endswith("\\")


class Sse:
    def __init__(self, r):
        self.r, self.plain = r, r.random() < 0.5
        self.nl = b"\n" if self.plain else r.choice([b"\n", b"\n", b"\r\n", b"\r\n", b"\r", None])
        self.space = b" " if self.plain or r.random() < 0.8 else r.choice([b"", b"  "])
        self.comments = 0 if self.plain else r.choice([0, 0, 0.1, 0.4])
        self.fields = not self.plain and r.random() < 0.2
        self.split = not self.plain and r.random() < 0.15
        self.odd = not self.plain and r.random() < 0.1

    def eol(self): return self.nl or self.r.choice([b"\n", b"\r\n", b"\r"])

    def comment(self):
        return self.r.choice([b":", b": keep-alive", b": OPENROUTER PROCESSING", b": ping - 2026-01-01 00:00:00", b":data: {\"x\":1}", b":" + b"x" * 300])

    def event(self, name, obj):
        e, r = self.eol, self.r
        out = b""
        while r.random() < self.comments: out += self.comment() + e() + (e() if r.random() < 0.7 else b"")
        if self.fields and r.random() < 0.5: out += r.choice([b"id: 7", b"retry: 1500", b"foo: bar", b"id", b"retry"]) + e() + (e() if r.random() < 0.3 else b"")
        if self.odd and r.random() < 0.3: out += r.choice([b"event: ping" + e() + e(), e(), b"data: not json" + e() + e(), b"data:" + e() + e(), b"data" + e() + e()])
        if name: out += b"event:" + self.space + name.encode() + e()
        if isinstance(obj, bytes): lines = [obj]
        elif self.split and r.random() < 0.5: lines = json.dumps(obj, indent=1).encode().split(b"\n")
        else: lines = [dump(r, obj)]
        tail = b" " if not self.plain and r.random() < 0.1 else b""
        for line in lines: out += b"data:" + self.space + line + tail + e()
        return out + e()


def sse_body(r, said):
    s = Sse(r)
    out = [b"\xef\xbb\xbf"] if not s.plain and r.random() < 0.1 else [b""]
    out += [s.event(name, obj) for name, obj in said.items]
    if said.done: out.append(s.event("", b"[DONE]"))
    if s.comments and r.random() < 0.3: out.append(s.comment() + s.eol() + s.eol())
    elif not s.plain and r.random() < 0.05: out[-1] = out[-1][:-1] if not out[-1].endswith(b"\r\n") else out[-1][:-2]
    return out


def ndjson_body(r, said):
    nl = r.choice([b"\n", b"\n", b"\r\n"])
    out = [(nl if r.random() < 0.03 else b"") + dump(r, obj) + nl for _, obj in said.items]
    if r.random() < 0.05 and out: out[-1] = out[-1].rstrip()
    return out


def array_body(r, said):
    gap = r.choice([b"\n,\r\n", b",\n", b","])
    out = [(b"[" if i == 0 else gap) + (json.dumps(obj, indent=2).encode() if r.random() < 0.5 else dump(r, obj)) for i, (_, obj) in enumerate(said.items)]
    return out + [b"\n]" if r.random() < 0.5 else b"]"]


def frame(heads, payload):
    h = b"".join(bytes([len(k)]) + k.encode() + b"\x07" + struct.pack(">H", len(v)) + v.encode() for k, v in heads)
    start = struct.pack(">II", 16 + len(h) + len(payload), len(h))
    body = start + struct.pack(">I", zlib.crc32(start)) + h + payload
    return body + struct.pack(">I", zlib.crc32(body))


def aws_body(r, said):
    out = []
    for name, obj in said.items:
        kind, key = ("exception", ":exception-type") if name.startswith("!") else ("event", ":event-type")
        heads = [(key, name.lstrip("!")), (":content-type", "application/json"), (":message-type", kind)]
        if r.random() < 0.2: r.shuffle(heads)
        out.append(frame(heads, dump(r, obj)))
    return out


def body_of(r, said):
    if said.kind == "text/event-stream": return sse_body(r, said)
    if said.kind == "application/x-ndjson": return ndjson_body(r, said)
    if said.kind == "application/vnd.amazon.eventstream": return aws_body(r, said)
    if said.kind == "application/json" and ":stream" in said.path: return array_body(r, said)
    text = json.dumps(said.items[0][1], indent=2).encode() if r.random() < 0.3 else dump(r, said.items[0][1])
    return [(b"\n" * r.randint(1, 9) if r.random() < 0.1 else b"") + text + (b"\n" if r.random() < 0.2 else b"")]


def encode(r, pieces):
    """(coded pieces, Content-Encoding)"""
    coding = r.choice(["", "", "", "", "", "", "gzip", "deflate"])
    if not coding: return pieces, ""
    c = zlib.compressobj(6, zlib.DEFLATED, {"gzip": 31, "deflate": r.choice([15, -15])}[coding])
    flush = r.random() < 0.7
    out = [c.compress(p) + (c.flush(zlib.Z_SYNC_FLUSH) if flush else b"") for p in pieces]
    if coding == "gzip" and r.random() < 0.1: coding = r.choice(["x-gzip", "GZIP"])
    return out + [c.flush()], coding


def chunked(r, pieces, whole):
    """[(wire bytes, is body)]: transfer chunks that may or may not follow the events."""
    mode, body, out = r.choice(["events", "events", "random", "tiny"]), b"".join(pieces), []
    if mode == "events": parts = [p for p in pieces if p]
    else:
        parts, at = [], 0
        while at < len(body):
            n = r.randint(1, 40 if mode == "tiny" else 3000)
            parts.append(body[at:at + n]); at += n
    for p in parts:
        size = (b"%x" if r.random() < 0.8 else b"%X") % len(p)
        ext = b";ext=1" if mode == "random" and r.random() < 0.05 else b""
        out += [(size + ext + b"\r\n", False), (p, True), (b"\r\n", False)]
    if whole: out.append((b"0\r\n" + (b"X-Trailer: 1\r\n" if r.random() < 0.05 else b"") + b"\r\n", False))
    return out


def split(r, wire, paced, no_split_after_cr):
    limit = 16 if paced else 60
    how = r.choice(["one", "few", "many", "many"])
    if how == "one" and not paced: return [wire]
    n = min(limit, len(wire) - 1, {"one": 2, "few": r.randint(1, 4), "many": r.randint(4, limit)}[how])
    cuts = sorted(r.sample(range(1, len(wire)), max(0, n)))
    if no_split_after_cr: cuts = [c for c in cuts if wire[c - 1:c] != b"\r"]
    return [wire[a:b] for a, b in zip([0] + cuts, cuts + [len(wire)])]


def marks_of(segments, writes):
    """Bytes of the body known after each write."""
    known, out, i, into = 0, [], 0, 0
    for w in writes:
        ends = len(w)
        while ends and i < len(segments):
            take = min(ends, len(segments[i][0]) - into)
            known += take if segments[i][1] else 0
            ends -= take; into += take
            if into == len(segments[i][0]): i, into = i + 1, 0
        out.append(known)
    return out


def pick(r):
    if r.random() < 0.12: return None, r.choice(sw.WHOLE)(r)
    api = r.choices(list(SPEAKERS), [WEIGHTS.get(a, 2) for a in SPEAKERS])[0]
    return api, r.choice(SPEAKERS[api])(r)


def spoil(r, api, said):
    """What goes wrong in the answer itself: (status, note)."""
    roll = r.random()
    if roll < 0.04:
        status, obj = sw.refused(r)
        said.items, said.kind, said.done, said.headers = [("", obj)], "application/json", False, {}
        if ":stream" in said.path: said.path = said.path.replace(":streamGenerateContent", ":generateContent")
        return status, "http error"
    if api and roll < 0.10: sw.broken(r, said, api); return 200, "error in stream"
    if api and roll < 0.13 and len(said.items) > 1: del said.items[-r.randint(1, min(3, len(said.items) - 1)):]; said.done = False; return 200, "no end"
    if api and roll < 0.17: said.done = False; return 200, "no [DONE]"
    return 200, ""


def exchange(seed):
    r = random.Random(seed)
    api, said = pick(r)
    status, note = spoil(r, api, said)
    if said.kind != "application/vnd.amazon.eventstream" and ":stream" not in said.path and r.random() < 0.03: said.path = "/gateway/run?key=k"
    paced = r.random() < 0.3
    pieces, coding = encode(r, body_of(r, said))
    kind = said.kind + (r.choice(["; charset=utf-8", ";charset=UTF-8"]) if said.kind != "application/vnd.amazon.eventstream" and r.random() < 0.4 else "")
    headers = {"Content-Type": kind.title() if r.random() < 0.05 and "charset" not in kind else kind, **said.headers}
    if coding: headers["Content-Encoding"] = coding
    body, cut = b"".join(pieces), r.random() < 0.06
    framing = r.choice(["chunked", "chunked", "chunked", "length", "close"])
    close_knows = framing != "close" or said.kind == "text/event-stream" and api not in ("gemini-generate", "triton-generate") and not coding
    cut = cut and close_knows and len(body) > 1
    if cut: note += " cut"; at = r.randint(0, len(body) - 1); pieces, full = cut_at(pieces, at), body; body = b"".join(pieces)
    segments = chunked(r, pieces, not cut) if framing == "chunked" else [(p, True) for p in pieces if p]
    if framing == "chunked": headers["Transfer-Encoding"] = "chunked"
    if framing == "length": headers["Content-Length"] = str(len(full) if cut else len(body))
    if framing == "close": headers["Connection"] = "close"
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{k.lower() if r.random() < 0.3 else k}: {v}\r\n" for k, v in r.sample(list(headers.items()), len(headers))) + "\r\n"
    if r.random() < 0.03: head = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head
    segments.insert(0, (head.encode(), False))
    writes = split(r, b"".join(s for s, _ in segments), paced, True)
    rst = cut and r.random() < 0.2
    answer = Answer(status, {k.lower(): v for k, v in headers.items()}, body, not cut or framing == "close" and not rst, marks_of(segments, writes), rst)
    about = f"{api or 'whole'} {said.kind} {framing} {coding} {note}{' paced' if paced else ''}"
    return Exchange(seed, request_of(r, seed, said), said.path, said.question, answer, writes, "rst" if rst else "fin" if cut or framing == "close" else "", paced, about)


def cut_at(pieces, at):
    out = []
    for p in pieces:
        if at <= 0: break
        out.append(p[:at]); at -= len(p)
    return out


def request_of(r, seed, said):
    body = json.dumps(said.question).encode()
    head = f"POST {said.path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nX-Request-Id: s{seed}\r\n"
    if r.random() < 0.2: return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def both(seed):
    """The exchange and its right reading."""
    x = exchange(seed)
    return x, read((x.path, x.question), x.answer)


if __name__ == "__main__":
    x, reading = both(int(sys.argv[1]))
    sys.stdout.buffer.write(x.request + b"\n\n" + b"".join(x.writes) + b"\n")
    print(f"-- {x.about}; {len(x.writes)} writes, {x.close or 'kept alive'}")
    for name, value in sorted(reading.facts.items(), key=lambda i: i[0]): print(f"{name}: {value!r}")
    print("doubts:", sorted(reading.doubts)); print("choice: [(event, read, tokens)]:", reading.series)
