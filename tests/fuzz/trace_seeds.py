#!/usr/bin/env python3
"""Seeds for fuzz_trr: trace_seeds.py FOLDER TRACE...
Of each trace the whole file as it is (first byte 0) and to be given checksums (2), its head with each block alone (2),
and each block's body, inflated (1). The trace is read as schema/tracefile.h describes it."""
import ctypes
import ctypes.util
import pathlib
import struct
import sys

ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
WHOLE_MAX = 64 << 10  # a longer input makes a run too slow to be worth it


def inflate(body, raw_bytes):
    out = ctypes.create_string_buffer(raw_bytes)
    n = ZSTD.ZSTD_decompress(out, ctypes.c_size_t(raw_bytes), body, ctypes.c_size_t(len(body)))
    assert n == raw_bytes, "a block that does not inflate"
    return out.raw


def seeds(trace):
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


def main():
    folder = pathlib.Path(sys.argv[1])
    n = 0
    for name in sys.argv[2:]:
        for seed in seeds(pathlib.Path(name).read_bytes()):
            (folder / f"trace-{n}").write_bytes(seed)
            n += 1
    print(n, "seeds")


if __name__ == "__main__":
    main()
