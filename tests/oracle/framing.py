"""Bodies to events: content codings, server-sent events, NDJSON, streamed JSON arrays, AWS event-stream frames.

Everything is read from the whole body at once, not piece by piece as a recorder must: an event keeps the offset of the byte
that completes it, and a table of how many decoded bytes each read had brought says in which read that byte came.
"""
import bisect, json, re, struct, zlib
from dataclasses import dataclass, field


@dataclass
class Event:
    name: str           # the SSE event's name, the frame's :event-type or :exception-type, else ""
    data: bytes         # what it carries, JSON as a rule
    end: int            # offset behind the byte that completes it, in decoded bytes
    exception: bool = False


@dataclass
class Framed:
    events: list = field(default_factory=list)
    comments: int | None = 0
    pending: Event | None = None    # the body ended before this one was complete
    torn: bool = False              # the body ended somewhere that is no boundary


def decode(coded, coding, marks):
    """The decoded body, and for each mark (number of coded bytes read so far) the number of decoded bytes known then."""
    if not coding: return coded, list(marks)
    if coding.lower() in ("gzip", "x-gzip"): inflate = zlib.decompressobj(31)
    else: inflate = zlib.decompressobj(15 if len(coded) > 1 and coded[0] & 15 == 8 and (coded[0] * 256 + coded[1]) % 31 == 0 else -15)
    out, known, at = b"", [], 0
    for m in marks:
        out += inflate.decompress(coded[at:m]); at = m
        known.append(len(out))
    return out, known


def read_of(end, known):
    """The read that brought the byte before `end`."""
    return bisect.bisect_left(known, end)


def lines_of(body):
    """(line, offset behind its end, ended) by the rules of server-sent events: LF, CRLF, CR. A CR ends a line at once."""
    at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    for m in re.finditer(rb"\r\n|\n|\r", body):
        yield body[at:m.start()], m.start() + 1, True
        at = m.end()
    if at < len(body): yield body[at:], len(body), False


def sse(body):
    f, data, name = Framed(), None, ""
    for line, end, ended in lines_of(body):
        if not ended: f.torn = True
        if not line and ended:
            if data is not None: f.events.append(Event(name, b"\n".join(data), end))
            data, name = None, ""
        elif line.startswith(b":"):
            f.comments = f.comments + 1 if ended and f.comments is not None else None
        else:
            key, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if key == b"data": data = (data or []) + [value]
            elif key == b"event": name = value.decode("utf-8", "replace")
    if data is not None: f.pending = Event(name, b"\n".join(data), len(body))
    return f


def ndjson(body, whole):
    f, at = Framed(), 0
    while at < len(body):
        nl = body.find(b"\n", at)
        end = nl + 1 if nl >= 0 else len(body)
        if body[at:end].strip():
            event = Event("", body[at:end].strip(), end)
            if nl >= 0 or whole: f.events.append(event)
            else: f.pending, f.torn = event, True
        at = end
    return f


def json_array(text):
    """Elements of a streamed top-level array; None when the body is no array. `text` is the body's bytes."""
    if not text.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"["): return None
    f, depth, start, quoted, i = Framed(), 0, None, False, 0
    while i < len(text):
        c = text[i:i + 1]
        if quoted:
            if c == b"\\": i += 1
            elif c == b'"': quoted = False
        elif c == b'"': quoted = True
        elif c in b"{[":
            depth += 1
            if depth == 2: start = i
        elif c in b"}]":
            depth -= 1
            if depth == 1: f.events.append(Event("", text[start:i + 1], i + 1)); start = None
        i += 1
    f.torn = depth > 0
    if start is not None: f.pending = Event("", text[start:], len(text))
    return f


def aws(body):
    f, at = Framed(), 0
    while at + 16 <= len(body):
        total, head_len, crc = struct.unpack(">III", body[at:at + 12])
        if at + total > len(body): break
        frame = body[at:at + total]
        if zlib.crc32(frame[:8]) != crc or zlib.crc32(frame[:-4]) != struct.unpack(">I", frame[-4:])[0]:
            raise ValueError("frame with a wrong checksum")
        heads, h = {}, frame[12:12 + head_len]
        while h:
            n = h[0]; size = struct.unpack(">H", h[n + 2:n + 4])[0]
            assert h[n + 1] == 7
            heads[h[1:n + 1].decode()] = h[n + 4:n + 4 + size].decode(); h = h[n + 4 + size:]
        kind = heads.get(":message-type", "event")
        name = heads.get(":event-type") or heads.get(":exception-type") or heads.get(":error-code") or ""
        f.events.append(Event(name, frame[12 + head_len:-4], at + total, kind != "event"))
        at += total
    f.torn = at < len(body)
    return f


def json_of(data):
    """The JSON value, or None where it is none. NaN and Infinity read as null, as a repairing reader has them."""
    try: return json.loads(data.decode("utf-8-sig").strip(" \t\r\n"), parse_constant=lambda _: None)
    except (ValueError, RecursionError): return None


def utf8_len(text):
    """UTF-8 bytes of a text; a lone surrogate counts as U+FFFD, which is as long as the surrogate would be."""
    return len(text.encode("utf-8", "surrogatepass"))
