#!/usr/bin/env python3
"""The process: how it ends, what the death of its recorder does to traffic (nothing), what it refuses."""
import os, re, signal, socket, stat, subprocess, tempfile, threading, time
from proxy_ends import asked
from proxylib import LIMIT_S, Tracerec, Upstream, main, read_end, read_exactly, read_head, request, reset, response, until


def slow(seconds, n=10):
    """Answers each request with n chunks over some seconds."""
    def serve(conn):
        have = b""
        while True:
            _, have = read_head(conn, have)
            conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i in range(n):
                time.sleep(seconds / n)
                conn.sendall(b"1\r\n%d\r\n" % (i % 10))
            conn.sendall(b"0\r\n\r\n")
    return serve


def whole(sock, n=10):
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        data = sock.recv(65536)
        assert data, got
        got += data
    assert got.count(b"1\r\n") >= n


def refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return False
    except ConnectionRefusedError:
        return True


def test_sigint_lets_running_requests_end_and_closes_idle_connections():
    up = Upstream(slow(1.0))
    with Tracerec(up.address) as t:
        idle, running = t.connect(), t.connect()
        idle.sendall(request())
        whole(idle)
        running.sendall(request())
        time.sleep(0.2)
        port = t.ports[0]
        t.signal(signal.SIGINT)
        assert read_end(idle) == (b"", "fin")
        until(lambda: refused(port), "listener closed")
        assert t.proc.poll() is None
        whole(running)
        assert read_end(running) == (b"", "fin")
        assert t.wait() == 0
        assert t.says("waiting up to 25 s for 1 running request (again to stop at once)"), t.lines
        assert any(l.startswith("tracerec: sealed ") for l in t.lines), t.lines


def test_drain_limit_cuts_with_a_reset():
    up = Upstream(slow(30))
    with Tracerec(up.address, "--drain", "0.3") as t:
        c = t.connect()
        c.sendall(request())
        time.sleep(0.1)
        begun = time.monotonic()
        t.signal(signal.SIGINT)
        assert read_end(c)[1] == "rst"
        assert 0.2 < time.monotonic() - begun < 1
        assert t.wait() == 0


def test_second_signal_stops_at_once():
    up = Upstream(slow(30))
    for first in (signal.SIGINT, signal.SIGTERM):
        with Tracerec(up.address) as t:
            c = t.connect()
            c.sendall(request())
            time.sleep(0.1)
            t.signal(first)
            until(lambda: t.says("waiting up to"), "the line")
            t.signal(signal.SIGINT)
            assert t.wait(2) == 0
            assert any(l.startswith("tracerec: sealed ") for l in t.lines), t.lines


def test_sigterm_goes_on_accepting_until_all_is_quiet():
    up = Upstream(slow(0.5))
    with Tracerec(up.address) as t:
        a, idle = t.connect(), t.connect()
        a.sendall(request())
        time.sleep(0.1)
        t.signal(signal.SIGTERM)
        time.sleep(0.1)
        late = t.connect()
        late.sendall(request())
        whole(a)
        whole(late)
        quiet = time.monotonic()
        assert t.wait() == 0
        assert 0.7 < time.monotonic() - quiet < 2.5, "idle for a second"


def test_sigterm_without_clients_ends_at_once():
    up = Upstream(slow(1))
    with Tracerec(up.address) as t:
        t.signal(signal.SIGTERM)
        assert t.wait(2) == 0


def test_request_in_the_backlog_when_sigint_comes_is_served():
    up = Upstream(slow(0.1))
    with Tracerec(up.address) as t:
        t.signal(signal.SIGSTOP)
        c = t.connect()
        c.sendall(request())
        t.signal(signal.SIGINT)
        t.signal(signal.SIGCONT)
        whole(c)
        assert read_end(c) == (b"", "fin")
        assert t.wait() == 0


def test_killed_recorder_is_not_noticed_by_streams():
    up = Upstream(slow(3.0, 300))
    with Tracerec(up.address) as t:
        socks = [t.connect() for _ in range(4)]
        for c in socks:
            c.sendall(request())
        seen = set()
        for _ in range(2):
            until(lambda: t.recorder and t.recorder not in seen, "a recorder", 5)
            seen.add(t.recorder)
            os.kill(t.recorder, signal.SIGKILL)
        for c in socks:
            whole(c, 300)
        until(lambda: t.recorder and t.recorder not in seen, "a new recorder", 5)
        new = t.connect()
        new.sendall(request())
        reset(new)
        t.stop()
        assert t.says("recorder died"), t.lines


def test_stopped_recorder_does_not_slow_streams():
    """The queue fills up and pieces are lost; the traffic is whole and as fast as before."""
    body = os.urandom(40 << 20)
    up = Upstream(lambda c: (read_head(c), c.sendall(response(body))))
    with Tracerec(up.address, "--queue-size", "2MB") as t:
        recorder = t.recorder
        os.kill(recorder, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            for _ in range(3):
                c = t.connect()
                c.sendall(request())
                head, rest = read_head(c)
                assert rest + read_exactly(c, len(body) - len(rest)) == body
            assert time.monotonic() - begun < 8
        finally:
            os.kill(recorder, signal.SIGCONT)
        assert t.stop() == 0


def test_restart_says_from_when_to_when_something_may_be_missing():
    """The span was the moment of the death: what ended right before it, and died unwritten, counted as whole."""
    up = Upstream(lambda conn: (read_head(conn), conn.sendall(response(b"x"))))
    with Tracerec(up.address) as t:
        old, killed = t.recorder, time.monotonic_ns()
        os.kill(old, signal.SIGKILL)
        until(lambda: t.recorder and t.recorder != old, "a new recorder", 5)
        restarted = time.monotonic_ns()
        c = t.connect()
        c.sendall(request())
        assert read_end(c)[1] == "fin"
        time.sleep(1.1)
        assert t.stop() == 0
        assert t.says("  LOST       1 time, recorder_restarted: the recorder process died"), t.lines
        assert not t.says("so far"), "said once, when it died"
        rows = asked(t.trace, "select from_ns, to_ns, count from losses where loss = 'recorder_restarted'")
        if rows is None:
            return
        assert len(rows) == 1 and rows[0]["count"] == 1, rows
        assert killed - 100_000_000 <= rows[0]["from_ns"] <= killed, (rows, killed)
        assert killed <= rows[0]["to_ns"] <= restarted, (rows, killed, restarted)


def test_overload_counts_each_byte_once_and_tells_every_end():
    """Pieces first shed, then dropped, counted twice: more was lost than was forwarded. And connections whose close
    found the queue full stayed open to the end of the recording."""
    answer = response(b"x" * 300_000)

    def serve(conn):
        conn.sendall(answer if b"/big" in read_head(conn)[0] else response(b"x"))
    up = Upstream(serve)
    with Tracerec(up.address, "--queue-size", "2MB") as t:
        def ask(target):
            c = t.connect()
            c.sendall(request(target=target))
            read_end(c)
            c.close()
        os.kill(t.recorder, signal.SIGSTOP)
        try:
            for _ in range(20):
                ask(b"/big")
            for _ in range(1000):
                ask(b"/small")
        finally:
            os.kill(t.recorder, signal.SIGCONT)
        still_open = "select count(*) n from connections where not ended"
        until(lambda: asked(t.trace, still_open) in (None, [{"n": 0}]), "all ends told")
        assert t.stop() == 0
        lost = asked(t.trace, "select sum(bytes) n from losses where loss in ('queue_full', 'pieces_dropped')")
        assert lost is None or 3_000_000 < lost[0]["n"] < 20 * len(answer), lost
        assert sum(bool(re.match(r"  LOST +[\d,]+ pieces \(", l)) for l in t.lines) == 2, t.lines


def test_forwarder_killed_leaves_a_recorder_that_ends():
    up = Upstream(slow(1))
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        time.sleep(0.1)
        recorder = t.recorder
        t.signal(signal.SIGKILL)
        t.proc.wait(LIMIT_S)

        def gone():
            try:
                with open(f"/proc/{recorder}/stat") as f:
                    return f.read().rsplit(")", 1)[1].split()[0] == "Z"
            except FileNotFoundError:
                return True
        until(gone, "the recorder to end")
        assert read_end(c)[1] in ("rst", "fin"), "the kernel closes what the killed process had"


def test_recorder_holds_no_socket_of_the_forwarder():
    up = Upstream(slow(5))
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        time.sleep(0.1)
        os.kill(t.recorder, signal.SIGKILL)
        old = t.recorder
        until(lambda: t.recorder and t.recorder != old, "a new recorder", 5)
        time.sleep(0.2)
        for fd in os.listdir(f"/proc/{t.recorder}/fd"):
            if int(fd) > 2:
                assert "socket:" not in os.readlink(f"/proc/{t.recorder}/fd/{fd}")
        with open(f"/proc/{t.recorder}/oom_score_adj") as f:
            assert int(f.read()) > 0


def test_few_descriptors_pause_accepting_and_no_more():
    up = Upstream(slow(0.2))
    with Tracerec(up.address, fds=64) as t:
        socks = [t.connect() for _ in range(60)]  # the kernel's backlog takes them all
        for c in socks:
            c.settimeout(LIMIT_S)
            c.sendall(request())
        whole(socks[0])
        assert len(os.listdir(f"/proc/{t.proc.pid}/fd")) <= 64 - 14
        for c in socks:  # each that ends makes room for the next
            if c is not socks[0]:
                whole(c)
            c.close()
        assert t.proc.poll() is None


def run(*args, **more):
    p = subprocess.run([Tracerec.path, *args], capture_output=True, text=True, timeout=LIMIT_S, **more)
    return p.returncode, p.stderr.strip()


def test_wrong_usage_is_one_line_and_status_2():
    for args, part in (([], "--proxy is missing"),
                       (["--proxi", ":1"], "did you mean --proxy?"),
                       (["--proxy", "8001", "--upstream", "http://localhost:11434/v1"],
                        "tracerec: --upstream .../v1: paths are passed on as they come; leave /v1 to the client's base URL"),
                       (["--proxy", ":0", "--upstream", "https://x:1"], "https"),
                       (["--proxy", ":0", "--upstream", ":0"], "port 0"),
                       (["--proxy", ":99999", "--upstream", ":1"], "--proxy :99999"),
                       (["--proxy", "::1:80", "--upstream", ":1"], "brackets"),
                       (["--proxy", ":0"], "--upstream is missing"),
                       (["--proxy", ":0", "--proxy", ":0", "--upstream", ":1"], "pairs"),
                       (["--proxy", ":0", "--upstream", ":1", "--queue-size", "16XB"], "--queue-size 16XB: not a size"),
                       (["--proxy", ":0", "--upstream", ":1", "--drain"], "value is missing"),
                       (["--proxy", ":0", "--upstream", ":1", "--note", "x"], "KEY=VALUE"),
                       (["here"], "no such argument")):
        status, said = run(*args)
        assert status == 2 and part in said and "\n" not in said and said.startswith("tracerec: "), (args, status, said)
    assert run("--help")[0] == 0 and run("--version")[0] == 0


def test_taken_port_is_status_1_and_leaves_no_trace():
    with tempfile.TemporaryDirectory() as d, socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        status, said = run("--proxy", f":{port}", "--upstream", ":1", "-o", d + "/t.trc")
        assert status == 1 and f"port {port} is taken" in said and "\n" not in said, said
        assert not os.path.exists(d + "/t.trc")


def test_outputs():
    up = Upstream(slow(1))
    with tempfile.TemporaryDirectory() as d:
        path = d + "/there.trc"
        open(path, "w").write("mine")
        for name in (path, d + "/link.trc"):
            if name != path:
                os.symlink(d + "/elsewhere", name)
            status, said = run("--proxy", ":0", "--upstream", up.address, "-o", name)
            assert status == 2 and "never overwritten" in said, said
        assert open(path).read() == "mine" and not os.path.exists(d + "/elsewhere")
        status, said = run("--proxy", ":0", "--upstream", up.address, "-o", d + "/no/t.trc")
        assert status == 1 and "folder does not exist" in said
        with Tracerec(up.address, output=d + "/") as t:
            names = [n for n in os.listdir(d) if n.startswith("trace-")]
            assert len(names) == 1 and re.fullmatch(r"trace-.+-\d{8}T\d{6}Z-\d+\.trc", names[0])
            assert stat.S_IMODE(os.stat(d + "/" + names[0]).st_mode) == 0o600
        with Tracerec(up.address, "--proxy", ":0", "--upstream", up.address, output=d + "/two.trc") as t:
            assert len(t.ports) == 2


def test_marks_rotation_and_signals_do_not_end_it():
    up = Upstream(slow(0.3))
    with Tracerec(up.address) as t:
        c = t.connect()
        c.sendall(request())
        for s in (signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ):
            t.signal(s)
            time.sleep(0.02)
        whole(c)
        assert t.proc.poll() is None


def test_quiet_says_nothing_but_the_first_line():
    up = Upstream(slow(0.1))
    with Tracerec(up.address, "--quiet") as t:
        c = t.connect()
        c.sendall(request())
        whole(c)
        assert t.stop() == 0
        assert len([l for l in t.lines if "LOST" not in l]) == 1, t.lines


if __name__ == "__main__":
    main(globals())
