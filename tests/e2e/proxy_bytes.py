#!/usr/bin/env python3
"""Both ends receive exactly the bytes that the other end sent, whatever they are and however they come."""
import hashlib, os, random, socket, tempfile, threading, time
from proxylib import LIMIT_S, Tracerec, Upstream, main, read_end, read_exactly, read_head, request, response


def talk(client, serve_bytes, client_bytes, seen, cuts):
    """Sends client_bytes in random pieces while it reads to the end of input; returns what came."""
    def send():
        at = 0
        while at < len(client_bytes):
            n = cuts.choice([1, 3, 100, 4096, 65536, 300000])
            client.sendall(client_bytes[at:at + n])
            at += n
        client.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    got, end = read_end(client)
    sender.join(LIMIT_S)
    return got, end


def both_ways(tracerec_args, up_bytes, down_bytes, seed, **where):
    cuts, seen = random.Random(seed), {}

    def serve(conn):
        def send():
            at, mine = 0, random.Random(seed + 1)
            while at < len(down_bytes):
                n = mine.choice([1, 7, 500, 65536, 200000])
                conn.sendall(down_bytes[at:at + n])
                at += n
            conn.shutdown(socket.SHUT_WR)
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        seen["up"], seen["end"] = read_end(conn)
        sender.join(LIMIT_S)
        seen["done"] = True
    up = Upstream(serve, **where)
    with Tracerec(up.address, *tracerec_args) as t:
        client = t.connect()
        got, end = talk(client, None, up_bytes, seen, cuts)
        deadline = time.monotonic() + LIMIT_S
        while "done" not in seen and time.monotonic() < deadline:
            time.sleep(0.005)
        assert (end, seen.get("end")) == ("fin", "fin"), (end, seen.get("end"))
        assert got == down_bytes, f"client got {len(got)} of {len(down_bytes)} bytes"
        assert seen["up"] == up_bytes, f"upstream got {len(seen['up'])} of {len(up_bytes)} bytes"
    up.close()


def test_random_bytes_of_random_sizes_pass_both_ways():
    rnd = random.Random(7)
    for size in (0, 1, 65535, 65536, 65537, 3_000_000):
        both_ways([], rnd.randbytes(size), rnd.randbytes(rnd.randrange(2_000_000)), size)


def test_http_with_a_large_body_passes():
    body = os.urandom(8 << 20)
    both_ways([], request(body), response(os.urandom(5 << 20)), 3)


def test_a_small_queue_does_not_change_what_passes():
    both_ways(["--queue-size", "1.1MB"], request(os.urandom(8 << 20)), response(os.urandom(8 << 20)), 4)


def test_unix_upstream():
    with tempfile.TemporaryDirectory() as d:
        both_ways([], os.urandom(2_000_000), os.urandom(2_000_000), 5, family=socket.AF_UNIX, address=d + "/s")


def test_unix_listener_replaces_a_stale_socket_and_removes_its_own():
    up = Upstream(lambda c: c.sendall(response(c.recv(100))))
    with tempfile.TemporaryDirectory() as d:
        path = d + "/front"
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        with Tracerec(up.address, proxy=f"unix:{path}") as t:
            c = socket.socket(socket.AF_UNIX)
            c.settimeout(LIMIT_S)
            c.connect(path)
            c.sendall(request())
            assert read_head(c)[1] == request()
            second = Tracerec(up.address, proxy=f"unix:{path}", expect_ready=False)
            with second:
                assert second.wait() == 1, "a socket in use must not be taken over"
            assert os.path.exists(path)
        assert not os.path.exists(path)


def test_ipv6_and_the_loopback_of_both_families():
    up = Upstream(lambda c: c.sendall(response(c.recv(100))), family=socket.AF_INET6)
    with Tracerec(up.address, proxy="[::1]:0") as t:
        c = t.connect(host="::1")
        c.sendall(request())
        assert read_head(c)[1] == request()
    with Tracerec(f":{up.port}") as t:  # nobody on 127.0.0.1: ::1 is tried next
        for host in ("127.0.0.1", "::1"):
            c = t.connect(host=host)
            c.sendall(request())
            assert read_head(c)[1] == request()
    up.close()


def test_two_pairs_do_not_mix():
    a, b = Upstream(lambda c: c.sendall(response(b"a"))), Upstream(lambda c: c.sendall(response(b"b")))
    with Tracerec(None, pairs=[(":0", a.address), (":0", b.address)]) as t:
        for n, body in ((0, b"a"), (1, b"b"), (0, b"a")):
            c = t.connect(n)
            c.sendall(request())
            assert read_head(c)[1] == body


def test_pipelined_requests_are_answered_in_order():
    def serve(conn):
        have = b""
        for i in range(50):
            _, have = read_head(conn, have)
            conn.sendall(response(b"%d" % i))
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        have = b""
        for i in range(50):
            want = response(b"%d" % i)
            while len(have) < len(want):
                have += c.recv(65536)
            assert have.startswith(want)
            have = have[len(want):]
        assert have == b""


def test_bytes_glued_to_an_upgrade_and_a_connect_pass():
    for head, answer in ((b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
                         (b"CONNECT h:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")):
        up_bytes = head + os.urandom(100_000) + b"GET / HTTP/1.1\r\n\r\n"
        both_ways([], up_bytes, answer + os.urandom(100_000), 9)


def test_what_is_not_http_passes():
    both_ways([], b"\x16\x03\x01\x02\x00\x01\x00" + os.urandom(1000), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(1000), 10)
    both_ways([], b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + request(), response(b"x"), 11)
    both_ways([], b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12) + request(), response(b"x"), 12)


def test_half_closed_client_gets_the_whole_answer():
    def serve(conn):
        got, end = read_end(conn)
        assert end == "fin"
        for i in range(20):
            conn.sendall(got)
            time.sleep(0.01)
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        c.shutdown(socket.SHUT_WR)
        assert read_end(c) == (request() * 20, "fin")


def test_client_that_only_listens_and_half_closes_at_once_is_served():
    up = Upstream(lambda c: (c.sendall(b"hello"), c.shutdown(socket.SHUT_WR), c.recv(10)))
    with Tracerec(up.address) as t:
        for _ in range(50):
            c = t.connect()
            c.shutdown(socket.SHUT_WR)
            assert read_end(c) == (b"hello", "fin")
    assert not up.errors, up.errors


def test_slow_client_gets_everything_and_memory_stays_small():
    body = os.urandom(48 << 20)
    up = Upstream(lambda c: (read_head(c), c.sendall(response(body))))
    with Tracerec(up.address) as t:
        c = t.connect(rcvbuf=65536)
        c.sendall(request())
        time.sleep(0.5)
        with open(f"/proc/{t.proc.pid}/status") as f:
            anon = next(int(l.split()[1]) for l in f if l.startswith("RssAnon"))
        assert anon < 16 << 10, f"{anon} KiB for a connection that does not read"
        got, _ = read_end(c)
        assert hashlib.sha256(got[-len(body):]).digest() == hashlib.sha256(body).digest()


def test_small_writes_are_not_delayed():
    def serve(conn):
        read_head(conn)
        conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            conn.sendall(b"5\r\n")
            conn.sendall(b"abcd\n\r\n")
            time.sleep(0.02)
        conn.sendall(b"0\r\n\r\n")
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        begun, have = time.monotonic(), b""
        while not have.endswith(b"0\r\n\r\n"):
            have += c.recv(65536)
        assert time.monotonic() - begun < 1.0, "delayed acknowledgements wait for small writes"


def test_many_connections_at_once():
    def serve(conn):
        have = b""
        for _ in range(5):
            _, have = read_head(conn, have)
            conn.sendall(response(b"z" * 1000))
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        socks = [t.connect() for _ in range(200)]
        for _ in range(5):
            for c in socks:
                c.sendall(request())
            for c in socks:
                assert read_exactly(c, len(response(b"z" * 1000))) == response(b"z" * 1000)


if __name__ == "__main__":
    main(globals())
