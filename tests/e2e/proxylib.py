"""What the proxy_*.py tests share: a tracerec with verbs, an upstream that plays a function, sockets that can reset.

Everything listens on loopback at ports chosen by the kernel. A test is a function named test_*; main() runs those of
the calling script and prints `N passed, N failed`. Nothing waits without a deadline.
"""
import argparse, contextlib, os, re, resource, select, signal, socket, struct, subprocess, sys, tempfile, threading, time, traceback

LIMIT_S = 10


def linger0(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset(sock):
    """Closes with a reset."""
    linger0(sock)
    sock.close()


def until(true, what, limit=LIMIT_S):
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.005)


def read_exactly(sock, n):
    got = bytearray()
    while len(got) < n:
        data = sock.recv(min(1 << 20, n - len(got)))
        if not data:
            raise AssertionError(f"end after {len(got)} of {n} bytes")
        got += data
    return bytes(got)


def read_end(sock):
    """Reads to the end: (bytes, 'fin' | 'rst' | 'open' after the socket's timeout)."""
    got = bytearray()
    while True:
        try:
            data = sock.recv(1 << 20)
        except (ConnectionResetError, BrokenPipeError):
            return bytes(got), "rst"
        except (TimeoutError, socket.timeout):
            return bytes(got), "open"
        if not data:
            return bytes(got), "fin"
        got += data


def read_head(sock, have=b""):
    """(head with its blank line, what came after it)."""
    while b"\r\n\r\n" not in have:
        data = sock.recv(1 << 16)
        if not data:
            raise AssertionError(f"end inside a head: {have!r}")
        have += data
    at = have.index(b"\r\n\r\n") + 4
    return have[:at], have[at:]


def response(body, head=b"HTTP/1.1 200 OK\r\n"):
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def request(body=b"", target=b"/v1/chat/completions", more=b""):
    return b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n" % (target, more, len(body)) + body


class Upstream:
    """Calls serve(conn) in a thread for each connection; keeps what went wrong."""

    def __init__(self, serve, family=socket.AF_INET, address=None, port=0):
        if family == socket.AF_UNIX:
            self.sock = socket.socket(family)
            self.sock.bind(address)
            self.sock.listen(64)
            self.address = f"unix:{address}"
        else:
            self.sock = socket.create_server((address or ("::1" if family == socket.AF_INET6 else "127.0.0.1"), port), family=family, backlog=256)
            host, port = self.sock.getsockname()[:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            self.port = port
        self.serve, self.errors, self.n = serve, [], 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            self.n += 1
            conn.settimeout(LIMIT_S)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        try:
            with conn:
                self.serve(conn)
        except (OSError, AssertionError) as e:
            self.errors.append(e)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class Tracerec:
    """A running tracerec; a context manager that ends it. pairs: [(proxy, upstream), ...]."""
    path = None

    def __init__(self, upstream, *args, proxy=":0", pairs=None, fds=None, expect_ready=True, output=None):
        self.dir = tempfile.TemporaryDirectory(prefix="proxy-")
        self.trace = output or os.path.join(self.dir.name, "t.trc")
        cmd = [self.path]
        for p, u in pairs or [(proxy, upstream)]:
            cmd += ["--proxy", p, "--upstream", u]
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (fds, fds))) if fds else None
        self.proc = subprocess.Popen(cmd + ["-o", self.trace, *args], stderr=subprocess.PIPE, preexec_fn=limit)
        self.lines, self.ready = [], threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if expect_ready and not self.ready.wait(LIMIT_S):
            self.proc.kill()
            raise AssertionError(f"not ready: {self.lines}")

    def _read(self):
        for line in self.proc.stderr:
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
            if " listening on " in self.lines[-1]:
                self.ready.set()

    @property
    def ports(self):
        line = next(l for l in self.lines if " listening on " in l)
        return [int(p) for p in re.findall(r":(\d+)(?= and |$)", line.split(", forwarding")[0])]

    @property
    def recorder(self):
        """Process id of the recorder."""
        with open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children") as f:
            pids = f.read().split()
        return int(pids[0]) if pids else None

    def connect(self, n=0, rcvbuf=None, host="127.0.0.1"):
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if rcvbuf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        sock.settimeout(LIMIT_S)
        sock.connect((host, self.ports[n]))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def signal(self, number):
        self.proc.send_signal(number)

    def wait(self, limit=LIMIT_S):
        status = self.proc.wait(limit)
        self.reader.join(limit)
        return status

    def stop(self):
        """Ends it in order; its exit status."""
        if self.proc.poll() is None:
            self.signal(signal.SIGINT)
            time.sleep(0.02)
            self.signal(signal.SIGINT)
        return self.wait()

    def says(self, part):
        return any(part in l for l in self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.proc.poll() is None:
                self.stop()
            assert not self.says("Sanitizer") and not self.says("runtime error"), self.lines
        finally:
            if self.proc.poll() is None:
                self.proc.kill()
                self.proc.wait()
            self.dir.cleanup()


def main(names):
    ap = argparse.ArgumentParser()
    ap.add_argument("--tracerec", help="the program")
    ap.add_argument("--bin", help="the folder that it is in")
    ap.add_argument("tests", nargs="*")
    o = ap.parse_args()
    if not (o.tracerec or o.bin):
        ap.error("give --tracerec or --bin")
    Tracerec.path = os.path.abspath(o.tracerec or os.path.join(o.bin, "tracerec"))
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="proxy-state-")
    passed = failed = 0
    for name, test in list(names.items()):
        if not name.startswith("test_") or (o.tests and name not in o.tests):
            continue
        try:
            test()
            passed += 1
        except Exception:
            failed += 1
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
