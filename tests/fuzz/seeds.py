#!/usr/bin/env python3
"""Seeds for the fuzzers: seeds.py SEEDS TRACE...  writes SEEDS/<target>/.

fuzz_trr      of each trace the file as it is (first byte 0) and to be given checksums (2), its head with each block alone
              (2), each block's body, inflated (1). Traces are read as schema/tracefile.h describes them
fuzz_dialect  every sample of tests/wire: streams as they are, whole answers behind a B, requests behind an R
fuzz_http1    that request, and the answer with a length, in chunks with extensions and trailers, after a 100, and a tunnel
fuzz_dissect  a request and each sample as its answer, in pieces as fuzz_dissect.c reads them
fuzz_awsstream, fuzz_jsonarray  frames, and samples as an array's elements, behind their four bytes of cuts
others        every sample as it is
"""
import ctypes
import ctypes.util
import json
import pathlib
import struct
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
WHOLE_MAX = 64 << 10  # a longer input makes a run too slow to be worth it


def inflate(body, raw_bytes):
    out = ctypes.create_string_buffer(raw_bytes)
    n = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(raw_bytes), body, ctypes.c_size_t(len(body)))
    assert n == raw_bytes, "a block that does not inflate"
    return out.raw


def of_trace(trace):
    at = struct.unpack_from("<I", trace, 12)[0]
    head = trace[:at]
    if len(trace) <= WHOLE_MAX:
        yield b"\0" + trace
        yield b"\2" + trace
    while at + 48 <= len(trace):
        raw_bytes, body_bytes = struct.unpack_from("<II", trace, at + 16)
        block = trace[at : at + 48 + body_bytes]
        if raw_bytes:
            yield b"\2" + head + block
            yield b"\1" + inflate(block[48:], raw_bytes)
        at += len(block)


def aws_frames(body):
    """The frames of an AWS event stream as lines of an event stream."""
    at, lines = 0, []
    while at < len(body):
        total, headers = struct.unpack_from(">II", body, at)
        p, end, name = at + 12, at + 12 + headers, ""
        while p < end:
            n = body[p]
            key = body[p + 1 : p + 1 + n]
            size = struct.unpack_from(">H", body, p + 2 + n)[0]
            value = body[p + 4 + n : p + 4 + n + size]
            name = value.decode() if key == b":event-type" else name
            p += 4 + n + size
        lines.append(b"event: %s\ndata: %s\n" % (name.encode(), body[end : at + total - 4]))
        at += total
    return b"\n".join(lines)


def of_dialect(sample, body):
    if sample["framing"] == "json":
        return b"B" + body
    return aws_frames(body) if sample["framing"] == "aws-eventstream" else b"?" + body


def pieces(direction, message):
    """Data pieces of at most 1000 bytes: direction, size / 4, size % 4, two hints."""
    for at in range(0, len(message), 1000):
        part = message[at : at + 1000]
        yield bytes([direction, len(part) >> 2, len(part) & 3, 0, 0]) + part


def messages(ask, sample, body):
    """A request and its answer."""
    types = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "json": "application/json",
             "aws-eventstream": "application/vnd.amazon.eventstream"}
    question = ask["body"].encode()
    up = b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (ask["path"].encode(), len(question), question)
    down = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        types[sample["framing"]].encode(), len(body), body)
    return up, down


def of_http1(up, down):
    head, body = down.split(b"\r\n\r\n", 1)
    lines = [l for l in head.split(b"\r\n") if not l.startswith(b"Content-Length")]
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(body[i : i + 99]), body[i : i + 99]) for i in range(0, len(body), 99))
    coded = b"\r\n".join(lines + [b"Transfer-Encoding: chunked"]) + b"\r\n\r\n" + chunks + b"0\r\nX-Sum: 1\r\n\r\n"
    yield b"\0\3" + up + up
    yield b"\1\3" + down + coded
    yield b"\1\7" + b"HTTP/1.1 100 Continue\r\n\r\n" + coded + down
    yield b"\3\2" + b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n" + body[:200]


def write(folder, seeds):
    folder.mkdir(parents=True, exist_ok=True)
    for n, seed in enumerate(seeds):
        (folder / f"seed-{n}").write_bytes(seed)


def main():
    out = pathlib.Path(sys.argv[1])
    write(out / "fuzz_trr", [s for name in sys.argv[2:] for s in of_trace(pathlib.Path(name).read_bytes())])
    samples = json.loads((TESTS / "wire/expected.json").read_text())
    asks = json.loads((TESTS / "wire/asks.json").read_text())
    bodies = [(s, (TESTS / "wire" / s["file"]).read_bytes()) for s in samples]
    requests = [b"R" + a["body"].encode() for a in asks.values()]
    write(out / "fuzz_dialect", [of_dialect(s, b) for s, b in bodies] + requests)
    pairs = [messages(asks[s["api"]], s, b) for s, b in bodies]
    write(out / "fuzz_dissect", [b"".join(pieces(0, up)) + b"".join(pieces(1, down)) for up, down in pairs])
    write(out / "fuzz_http1", [m for up, down in pairs for m in of_http1(up, down)])
    write(out / "fuzz_awsstream", [b"\7\3\5\1" + b for s, b in bodies if s["framing"] == "aws-eventstream"])
    lines = [l[5:].strip() for _, b in bodies for l in b.splitlines() if l.startswith(b"data:")]
    arrays = [b"[" + b",\r\n".join(lines[i : i + 4]) + b"]" for i in range(0, len(lines), 4)]
    write(out / "fuzz_jsonarray", [b"\7\3\5\1" + a for a in arrays])
    write(out / "fuzz_json", lines + [b for s, b in bodies if s["framing"] == "json"])
    write(out / "others", [b for _, b in bodies])


if __name__ == "__main__":
    main()
