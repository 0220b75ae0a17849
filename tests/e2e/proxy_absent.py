#!/usr/bin/env python3
"""An upstream that is not there: 502 for HTTP, a reset for all else, and no trouble once it is."""
import json, os, signal, socket, tempfile, threading, time
from proxylib import LIMIT_S, Tracerec, Upstream, main, read_end, read_exactly, read_head, request, reset, response, until


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def check_502(got, where):
    head, body = got.split(b"\r\n\r\n", 1)
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 502 Bad Gateway", lines[0]
    assert b"Connection: close" in lines and b"Content-Length: %d" % len(body) in lines
    error = json.loads(body)["error"]
    assert (error["type"], error["code"]) == ("upstream_unreachable", 502)
    assert where in error["message"] and "refused" in error["message"], error


def test_request_gets_a_502_that_names_address_and_reason():
    port = free_port()
    with Tracerec(f":{port}") as t:
        for body in (b"", b"x" * 100, b"x" * 900_000):
            c = t.connect()
            c.sendall(request(body))
            got, end = read_end(c)
            assert end == "fin"
            check_502(got, f"127.0.0.1:{port}")
        until(lambda: t.says("refuses connections; clients get 502"), "a line about the upstream")
        assert sum("refuses connections" in l for l in t.lines) == 1, "one line for a change, not for each occurrence"


def test_head_in_pieces_and_before_its_body():
    with Tracerec(f":{free_port()}") as t:
        c = t.connect()
        for byte in b"POST / HTTP/1.1\r\nContent-Length: 9999\r\n\r":
            c.send(bytes([byte]))
            time.sleep(0.001)
        c.settimeout(0.1)
        assert read_end(c) == (b"", "open"), "answered before the head was whole"
        c.settimeout(LIMIT_S)
        c.send(b"\n")
        assert read_end(c)[0].startswith(b"HTTP/1.1 502 ")


def test_head_request_gets_no_body():
    with Tracerec(f":{free_port()}") as t:
        c = t.connect()
        c.sendall(b"HEAD / HTTP/1.1\r\n\r\n")
        assert read_end(c)[0].endswith(b"\r\n\r\n")


def test_502_arrives_although_the_client_still_sends():
    with Tracerec(f":{free_port()}") as t:
        c = t.connect()

        def upload():
            try:
                c.sendall(b"POST / HTTP/1.1\r\nContent-Length: 600000\r\n\r\n")
                for _ in range(60):
                    c.sendall(bytes(10000))
                    time.sleep(0.005)
            except OSError:
                pass
        th = threading.Thread(target=upload, daemon=True)
        th.start()
        time.sleep(0.2)
        got, end = read_end(c)
        th.join()
        assert got.startswith(b"HTTP/1.1 502 ") and end == "fin", (got[:20], end)


def test_endless_upload_is_cut():
    with Tracerec(f":{free_port()}") as t:
        c = t.connect()
        c.sendall(b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
        try:
            for _ in range(2000):
                c.sendall(bytes(65536))
            raise AssertionError("131 MB were taken")
        except OSError:
            pass


def test_what_is_not_http_is_reset():
    with Tracerec(f":{free_port()}") as t:
        c = t.connect()
        c.sendall(b"\x16\x03\x01\x02\x00\x01\x00garbage garbage\r\n\r\n")
        assert read_end(c) == (b"", "rst")


def test_unreachable_reset_resets_at_once():
    with Tracerec(f":{free_port()}", "--unreachable", "reset") as t:
        c = t.connect()
        assert read_end(c) == (b"", "rst")


def test_client_that_connected_before_the_upstream_was_there_is_served():
    port = free_port()
    with Tracerec(f":{port}") as t:
        early, other = t.connect(), t.connect()
        time.sleep(0.2)
        other.sendall(request())
        assert read_end(other)[0].startswith(b"HTTP/1.1 502 ")
        up = Upstream(lambda c: c.sendall(response(read_head(c)[0])), port=port)
        early.sendall(request())
        assert read_head(early)[1] == request()
        until(lambda: t.says("answers again"), "a line about the upstream")
        assert t.says("1 requests got 502") and t.proc.poll() is None
    up.close()


def test_client_that_leaves_without_a_word_is_no_trouble():
    with Tracerec(f":{free_port()}") as t:
        for _ in range(50):
            t.connect().close()
            reset(t.connect())
        c = t.connect()
        c.shutdown(socket.SHUT_WR)
        assert read_end(c)[1] in ("fin", "rst")
        assert t.proc.poll() is None


def test_absent_unix_upstream_and_one_with_a_full_backlog():
    with tempfile.TemporaryDirectory() as d:
        with Tracerec(f"unix:{d}/none") as t:
            c = t.connect()
            c.sendall(request())
            assert b"No such file" in read_end(c)[0]
        busy = socket.socket(socket.AF_UNIX)
        busy.bind(d + "/busy")
        busy.listen(0)
        with Tracerec(f"unix:{d}/busy") as t:
            clients = [t.connect() for _ in range(4)]
            for c in clients:
                c.sendall(request())
            time.sleep(0.1)
            for _ in clients:
                conn, _ = busy.accept()
                conn.sendall(response(read_head(conn)[0]))
            for c in clients:
                assert read_head(c)[1] == request()


def test_a_client_that_was_gone_before_its_502_is_not_counted():
    """The line about the upstream counted whoever was to get a 502, also when the write to it had failed."""
    with tempfile.TemporaryDirectory() as d:
        busy = socket.socket(socket.AF_UNIX)
        busy.bind(d + "/up")
        busy.listen(0)
        fill = socket.socket(socket.AF_UNIX)
        fill.connect(d + "/up")
        with Tracerec(f"unix:{d}/up") as t:  # its connects are tried again each 10 ms while the backlog is full
            stays, leaves = t.connect(), t.connect()
            for c in (stays, leaves):
                c.sendall(request())
            time.sleep(0.2)
            t.signal(signal.SIGSTOP)
            reset(leaves)
            busy.close()
            os.unlink(d + "/up")
            t.signal(signal.SIGCONT)
            assert read_end(stays)[0].startswith(b"HTTP/1.1 502 ")
            up = Upstream(lambda c: c.sendall(response(read_head(c)[0])), family=socket.AF_UNIX, address=d + "/up")
            c = t.connect()
            c.sendall(request())
            assert read_head(c)[1] == request()
            until(lambda: t.says("answers again"), "a line about the upstream")
            assert t.says("1 requests got 502"), t.lines
            up.close()
            fill.close()


def test_what_is_reset_is_not_counted_as_a_502():
    port = free_port()
    with Tracerec(f":{port}") as t:
        c = t.connect()
        c.sendall(b"\x16\x03\x01\x02\x00\x01\x00garbage garbage\r\n\r\n")
        assert read_end(c) == (b"", "rst")
        up = Upstream(lambda c: c.sendall(response(read_head(c)[0])), port=port)
        c = t.connect()
        c.sendall(request())
        assert read_head(c)[1] == request()
        until(lambda: t.says("answers again"), "a line about the upstream")
        assert t.says("0 requests got 502"), t.lines
    up.close()


def test_name_that_does_not_resolve_is_said():
    with Tracerec("no-such-host.invalid:80") as t:
        c = t.connect()
        c.sendall(request())
        assert b"does not resolve" in read_end(c)[0]


def test_hint_when_the_upstream_is_not_there_at_the_start():
    with Tracerec(f":{free_port()}") as t:
        until(lambda: t.says("does not answer yet"), "the hint")
    up = Upstream(lambda c: None)
    with Tracerec(up.address) as t:
        t.connect().close()
        t.stop()
        assert not t.says("does not answer yet")
        assert up.n <= 1, "a connection that no client made"


if __name__ == "__main__":
    main(globals())
