#!/usr/bin/env python3
"""How connections end: a FIN stays a FIN, a reset stays a reset, an answer that has left arrives whole."""
import contextlib, json, os, queue, random, socket, subprocess, threading, time
from proxylib import LIMIT_S, Tracerec, Upstream, main, read_end, read_exactly, read_head, request, reset, response, until

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def watched(serve):
    """An upstream whose serve(conn, tell) says with tell(x) what it saw; (upstream, queue of it)."""
    q = queue.Queue()
    return Upstream(lambda conn: serve(conn, q.put)), q


def streaming(conn, tell):
    """Streams chunks until the client is gone, tells when and how."""
    read_head(conn)
    conn.sendall(HEAD)
    conn.settimeout(0.01)
    while True:
        try:
            if not conn.recv(1000):
                return tell("fin")
        except TimeoutError:
            pass
        except ConnectionResetError:
            return tell("rst")
        try:
            conn.sendall(b"5\r\nhello\r\n")
        except OSError:
            return tell("rst")


def test_client_that_closes_in_mid_stream_is_seen_upstream():
    for how in ("close", "reset"):
        up, q = watched(streaming)
        with Tracerec(up.address) as t:
            c = t.connect()
            c.sendall(request())
            read_exactly(c, len(HEAD) + 10)
            begun = time.monotonic()
            c.close() if how == "close" else reset(c)
            saw = q.get(timeout=LIMIT_S)
            assert time.monotonic() - begun < 0.3
            assert how == "close" or saw == "rst", saw


def test_client_that_resets_before_an_answer_is_seen_upstream():
    def serve(conn, tell):
        read_head(conn)
        tell("asked")
        tell(read_end(conn)[1])
    up, q = watched(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        assert q.get(timeout=LIMIT_S) == "asked"
        reset(c)
        assert q.get(timeout=1) == "rst"


def flood(conn, tell):
    read_head(conn)
    tell("asked")
    try:
        while True:
            conn.sendall(bytes(1 << 16))
    except OSError:
        tell(time.monotonic())


def test_reset_while_reading_of_the_upstream_is_paused_stops_the_generation():
    for how in ("close", "reset"):
        up, q = watched(flood)
        with Tracerec(up.address) as t:
            c = t.connect(rcvbuf=32768)
            c.sendall(request())
            assert q.get(timeout=LIMIT_S) == "asked"
            time.sleep(0.4)
            begun = time.monotonic()
            c.close() if how == "close" else reset(c)  # with unread input a close is a reset
            assert q.get(timeout=1.5) - begun < 1.3


def test_reset_while_reading_of_the_client_is_paused_stops_the_generation():
    """The upstream does not read its request: the client's upload is stuck in three queues when it resets."""
    def serve(conn, tell):
        tell("here")
        time.sleep(0.8)
        until(lambda: gone.is_set(), "client gone")
        tell(read_end(conn)[1])
    gone = threading.Event()
    up, q = watched(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.settimeout(0.3)
        try:
            c.sendall(request(bytes(64 << 20)))
            raise AssertionError("the upload is not stuck")
        except TimeoutError:
            pass
        reset(c)
        begun = time.monotonic()
        gone.set()
        assert q.get(timeout=1) == "here"
        assert q.get(timeout=5) == "rst"
        assert time.monotonic() - begun < 3


def test_fin_then_reset_of_the_client_reaches_the_upstream():
    def serve(conn, tell):
        read_head(conn)
        while conn.recv(1000):
            pass
        tell("fin")
        try:
            until(lambda: conn.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "reset")
            tell("rst")
        except AssertionError as e:
            tell(str(e))
    up, q = watched(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        c.shutdown(socket.SHUT_WR)
        assert q.get(timeout=LIMIT_S) == "fin"
        reset(c)
        assert q.get(timeout=LIMIT_S) == "rst"


def test_reset_of_the_upstream_comes_after_all_it_sent():
    body = os.urandom(3_000_000)
    for n in (0, 10, len(body)):
        def serve(conn):
            read_head(conn)
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + body[:n])
            sent.wait(LIMIT_S)
            reset(conn)
        sent = threading.Event()
        up = Upstream(serve)
        with Tracerec(up.address) as t:
            c = t.connect()
            c.sendall(request())
            head, rest = read_head(c)
            got = rest + read_exactly(c, n - len(rest))
            sent.set()
            tail, end = read_end(c)
            assert (got + tail, end) == (body[:n], "rst"), (len(got), end)


def test_reset_before_any_byte_is_no_empty_answer():
    def serve(conn):
        read_head(conn)
        reset(conn)
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        assert read_end(c) == (b"", "rst")
        assert up.n == 1, "a request must not be sent twice"


def test_cut_chunked_body_gets_no_last_chunk():
    def serve(conn):
        read_head(conn)
        conn.sendall(HEAD + b"5\r\nhello\r\n")
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        assert read_end(c) == (HEAD + b"5\r\nhello\r\n", "fin")


def test_body_until_close_ends_with_the_close():
    up = Upstream(lambda conn: (read_head(conn), conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100000))))
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        got, end = read_end(c)
        assert end == "fin" and len(got) == 100019


def early(close):
    answer = response(b"too large" * 1000, b"HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\n")

    def serve(conn):
        read_head(conn)
        conn.sendall(answer)
        close(conn)
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        for _ in range(5):
            c = t.connect()
            stop = threading.Event()

            def upload():
                try:
                    c.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
                    while not stop.is_set():
                        c.sendall(bytes(65536))
                        time.sleep(0.001)
                except OSError:
                    pass
            th = threading.Thread(target=upload, daemon=True)
            th.start()
            time.sleep(0.2)  # the answer has long left; a reset would have overtaken it
            got = read_exactly(c, len(answer))
            stop.set()
            th.join()
            assert got == answer
            c.close()


def test_early_answer_arrives_whole_although_the_client_still_sends():
    early(lambda conn: None)  # close with unread input: a reset behind the answer


def test_early_answer_of_a_server_that_lingers_arrives_whole():
    def close(conn):
        conn.shutdown(socket.SHUT_WR)
        time.sleep(0.05)
    early(close)


def test_idle_connection_closed_by_the_upstream_is_closed_to_the_client():
    def serve(conn):
        read_head(conn)
        conn.sendall(response(b"x"))
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        assert read_end(c) == (response(b"x"), "fin")
        c.close()
        c = t.connect()  # and the client may be slow to notice: a request then is reset, not lost in silence
        c.sendall(request())
        assert read_exactly(c, len(response(b"x"))) == response(b"x")
        time.sleep(0.1)
        try:
            c.sendall(request())
            time.sleep(0.1)
            c.sendall(request())
            assert read_end(c)[1] in ("rst", "fin")
        except (ConnectionResetError, BrokenPipeError):
            pass


def test_upstream_that_half_closes_first_still_reads():
    def serve(conn, tell):
        conn.sendall(b"hello")
        conn.shutdown(socket.SHUT_WR)
        tell(read_end(conn))
    up, q = watched(serve)
    with Tracerec(up.address) as t:
        c = t.connect()
        assert read_end(c) == (b"hello", "fin")
        c.sendall(b"x" * 500000)
        c.shutdown(socket.SHUT_WR)
        assert q.get(timeout=LIMIT_S) == (b"x" * 500000, "fin")


def test_unix_upstream_that_closes_is_a_fin_and_unix_client_that_leaves_is_seen():
    import tempfile
    with tempfile.TemporaryDirectory() as d:
        up, q = watched(streaming)
        closing = Upstream(lambda c: (read_head(c), c.sendall(response(b"y" * 300000))), family=socket.AF_UNIX, address=d + "/u")
        with Tracerec(None, pairs=[(f"unix:{d}/p", up.address), (":0", closing.address)]) as t:
            c = socket.socket(socket.AF_UNIX)
            c.connect(d + "/p")
            c.sendall(request())
            read_exactly(c, len(HEAD) + 10)
            c.close()
            assert q.get(timeout=1)
            c = t.connect()
            c.sendall(request())
            assert read_end(c) == (response(b"y" * 300000), "fin")


def test_reset_right_after_the_connect_is_a_reset_and_no_absence():
    """SO_ERROR then says ECONNRESET when the connect is looked at: it once counted as a failed connect, with a 502."""
    up = Upstream(reset)
    with Tracerec(f":{up.port}") as t:
        for _ in range(100):
            try:
                c = t.connect()
                c.sendall(request())
                got, end = read_end(c)
                assert (got, end) == (b"", "rst"), (got, end)
            except (ConnectionResetError, BrokenPipeError):
                pass
        assert not t.says("clients get 502"), t.lines


def asked(trace, query):
    """Rows of a query of the trace; None, and said so, when there is no traceanalyze beside tracerec."""
    tool = os.path.join(os.path.dirname(Tracerec.path), "traceanalyze")
    if not os.path.exists(tool):
        print(f"skipped: no {tool}")
        return None
    out = subprocess.run([tool, "sql", trace, query, "--format", "ndjson"], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    return [json.loads(line) for line in out.stdout.splitlines()]


def test_delivery_of_a_whole_answer_is_told_although_the_upstream_resets_behind_it():
    """It was asked for each 10 ms, and the reset ended the relay before the next time: no t_delivered."""
    def serve(conn):
        read_head(conn)
        conn.sendall(response(b"x" * 100000))
        time.sleep(0.05)  # all of it was taken and waits in the kernel for the client
        reset(conn)
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        for _ in range(5):
            c = t.connect(rcvbuf=8192)
            c.sendall(request())
            _, some = read_head(c)
            time.sleep(0.15)
            got, end = read_end(c)
            assert (len(some + got), end) == (100000, "rst"), (len(some + got), end)
            c.close()
        assert t.stop() == 0
        rows = asked(t.trace, "select count(*) n, count(t_delivered_ns) told from requests")
        assert rows in (None, [{"n": 5, "told": 5}]), rows


def random_end(sock, rnd):
    """Plays one side of a connection at random, ends it one way or another."""
    sock.settimeout(rnd.choice([0.01, 0.05, 0.3]))
    try:
        for _ in range(rnd.randrange(6)):
            what = rnd.randrange(7)
            if what == 0:
                sock.sendall(rnd.choice([request(b"x" * rnd.randrange(300000)), response(b"y" * rnd.randrange(300000)), b"\x16\x03\x01\xff", HEAD + b"3\r\nabc\r\n"]))
            elif what < 3:
                sock.recv(rnd.choice([1, 1000, 1 << 20]))
            elif what == 3:
                sock.shutdown(socket.SHUT_WR)
            elif what == 4:
                time.sleep(rnd.random() * 0.05)
            else:
                sock.sendall(request(b"hello") if what == 5 else response(b"hello"))
    except OSError:
        pass
    reset(sock) if rnd.random() < 0.4 else sock.close()


def test_random_ends_leave_no_descriptor_behind_and_no_work():
    rnds = iter(random.Random(i) for i in range(1 << 20))
    up = Upstream(lambda conn: random_end(conn, next(rnds)))
    with Tracerec(up.address, "--drain", "5") as t:
        fds = lambda: len(os.listdir(f"/proc/{t.proc.pid}/fd"))
        base = fds()

        def many(seed):
            rnd = random.Random(seed)
            for _ in range(60):
                with contextlib.suppress(ConnectionResetError):  # passed on from the upstream before connect returned
                    random_end(t.connect(), rnd)
        threads = [threading.Thread(target=many, args=(-i,), daemon=True) for i in range(1, 13)]
        for th in threads:
            th.start()
        for th in threads:
            th.join(40)
        assert t.proc.poll() is None, t.lines
        until(lambda: fds() <= base, f"{fds()} descriptors, {base} at first")
        assert t.stop() == 0


def test_the_loop_does_not_spin_on_connections_that_wait():
    def serve(conn):
        read_head(conn)
        conn.sendall(response(b"x"))
        time.sleep(1.5)
    up = Upstream(serve)
    with Tracerec(up.address) as t:
        socks = [t.connect() for _ in range(10)]
        for i, c in enumerate(socks):
            c.sendall(request())
            if i % 2:
                c.shutdown(socket.SHUT_WR)
            read_exactly(c, len(response(b"x")))
        stuck = t.connect(rcvbuf=32768)
        stuck.sendall(request())
        time.sleep(0.1)
        ticks = lambda: sum(map(int, open(f"/proc/{t.proc.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
        before = ticks()
        time.sleep(1)
        assert ticks() - before < 20, "hundredths of a second of CPU in a second of idleness"


if __name__ == "__main__":
    main(globals())
