"""Processes of the benchmark: the source, what stands between it and the sink, and how much CPU all of it used.

A target is started afresh for each run, is ready when one of its own processes listens on its port (another program's
listener is not taken for it), and is stopped by the ids of its own processes. CPU is the scheduler's count in nanoseconds
of every thread of every process of the target, children included.
"""
import os, signal, socket, subprocess, time

READY_S, STOP_S = 10, 45


class BenchError(Exception):
    """Something could not be measured; the text says what and why, in one line."""


def until(what, seconds, condition):
    """Waits for a condition with a deadline; returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got: return got
        if time.monotonic() > end: raise BenchError(f"{what}: not within {seconds} s")
        time.sleep(.005)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_taken(port):
    """Whether another program has the port."""
    with socket.socket() as s:
        try: s.bind(("127.0.0.1", port))
        except OSError: return True
    return False


def stat_of(pid):
    """(parent, start time) of a process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f: after = f.read().rpartition(")")[2].split()
    except OSError: return None
    return int(after[1]), int(after[19])


def tree_of(root):
    """{pid: start time} of a process and all below it."""
    stats = {int(p): stat_of(p) for p in os.listdir("/proc") if p.isdigit()}
    tree, grown = {root}, True
    while grown:
        more = {p for p, s in stats.items() if s and s[0] in tree} - tree
        tree, grown = tree | more, bool(more)
    return {p: stats[p][1] for p in tree if stats.get(p)}


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/schedstat") as f: total += int(f.read().split()[0])
        except OSError: pass          # a thread that ended in between: what it used is missing, and small
    return total


def listens(pids, port):
    """Whether one of the processes itself listens on the port."""
    inodes = set()
    with open("/proc/net/tcp") as f:
        for row in f.read().splitlines()[1:]:
            col = row.split()
            if col[3] == "0A" and int(col[1].rpartition(":")[2], 16) == port: inodes.add(f"socket:[{col[9]}]")
    for pid in pids if inodes else ():
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") in inodes: return True
        except OSError: pass
    return False


class Process:
    """One program with its children, its output in a file."""

    def __init__(self, name, argv, folder):
        self.name, self.tree = name, {}
        self.output = os.path.join(folder, f"{name}.stderr")
        try:
            with open(self.output, "wb") as f:
                self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=f,
                                              cwd=folder, start_new_session=True)
        except OSError as e: raise BenchError(f"{name}: {argv[0]} does not start: {e.strerror}")

    def said(self):
        with open(self.output, errors="replace") as f: return f.read()

    def last_words(self): return " | ".join(self.said().strip().splitlines()[-2:]) or "it said nothing"

    def must_live(self):
        code = self.popen.poll()
        if code is not None: raise BenchError(f"{self.name}: ended with {code}: {self.last_words()}")

    def pids(self):
        self.tree.update(tree_of(self.popen.pid))
        return list(self.tree)

    def stop(self):
        """SIGTERM, then SIGKILL for what does not end; returns the exit status."""
        self.pids()
        if self.popen.poll() is None: self.popen.send_signal(signal.SIGTERM)
        try: self.popen.wait(STOP_S)
        except subprocess.TimeoutExpired: pass
        late = self.popen.poll() is None
        if late:
            self.popen.kill()
            self.popen.wait()
        self.popen.stdout.close()
        for pid, start in self.tree.items():          # children that outlived it; never a stranger with the same id
            now = stat_of(pid)
            if now and now[1] == start: os.kill(pid, signal.SIGKILL)
        if late: raise BenchError(f"{self.name}: still there {STOP_S} s after SIGTERM: {self.last_words()}")
        return self.popen.returncode


class Target:
    """What the sink talks to. Subclasses give the command line; `port` is where it listens."""
    name = process = None

    def __init__(self, folder, upstream, tools): self.folder, self.upstream, self.tools = folder, upstream, tools

    def command(self): raise NotImplementedError

    def is_ready(self): return listens(self.process.pids(), self.port)

    def start(self):
        for attempt in range(5):                      # a port may be taken between the kernel's answer and its use
            self.port = free_port()
            self.process = Process(self.name, self.command(), self.folder)
            try:
                return until(f"{self.name}: ready", READY_S, lambda: self.process.must_live() or self.is_ready())
            except BenchError:
                self.abandon()
                if attempt == 4 or not is_taken(self.port): raise

    def pids(self): return self.process.pids()

    def stop(self): self.process.stop()

    def abandon(self):
        """Ends it whatever its state; for runs that failed."""
        try:
            if self.process: self.process.stop()
        except BenchError: pass


class Direct(Target):
    name = "direct"

    def start(self): self.port = self.upstream

    def pids(self): return []

    def stop(self): pass


class Haproxy(Target):
    name = "haproxy"
    CONFIG = """global
    nbthread 1
    maxconn 4096
defaults
    mode http
    option http-no-delay
    no log
    retries 0
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout http-keep-alive 1h
frontend f
    bind 127.0.0.1:{port}
    default_backend b
backend b
    server s 127.0.0.1:{upstream}
"""

    def command(self):
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as f: f.write(self.CONFIG.format(port=self.port, upstream=self.upstream))
        return [self.tools.haproxy, "-db", "-f", path]


class Nginx(Target):
    name = "nginx"
    CONFIG = """{user}daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/nginx-body; proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-f; uwsgi_temp_path {folder}/nginx-u; scgi_temp_path {folder}/nginx-s;
    tcp_nodelay on;
    keepalive_requests 1000000;
    keepalive_timeout 1h;
    upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://up;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_next_upstream off;
            proxy_read_timeout 1h; proxy_send_timeout 1h; send_timeout 1h;
        }}
    }}
}}
"""

    def is_ready(self): return len(self.process.pids()) > 1 and super().is_ready()     # the worker comes last

    def command(self):
        path = os.path.join(self.folder, "nginx.conf")
        user = "user root;\n" if os.geteuid() == 0 else ""     # the worker must get into the temporary folder
        with open(path, "w") as f:
            f.write(self.CONFIG.format(user=user, folder=self.folder, port=self.port, upstream=self.upstream))
        return [self.tools.nginx, "-p", self.folder, "-c", path, "-e", "stderr"]


class Tracerec(Target):
    name = "tracerec"

    def command(self):
        self.trace = os.path.join(self.folder, f"{self.port}.trc")
        return [self.tools.tracerec, "--proxy", f"127.0.0.1:{self.port}", "--upstream", f"127.0.0.1:{self.upstream}",
                "-o", self.trace]

    def is_ready(self): return "tracerec: listening on" in self.process.said() and super().is_ready()

    def stop(self):
        code = self.process.stop()
        if code: raise BenchError(f"tracerec: ended with {code} after SIGTERM: {self.process.last_words()}")


class Source:
    """The upstream of one run. Its log of (request id, ordinal, sent ns) is whole once it has stopped."""

    def __init__(self, folder, tools, log):
        self.log = os.path.join(folder, "sent.log") if log else None
        self.process = Process("bench_source", [tools.source] + (["--log", self.log] if log else []), folder)
        line = self.process.popen.stdout.readline().split()
        if len(line) != 2: raise BenchError(f"bench_source: no port: {self.process.last_words()}")
        self.port = int(line[1])

    def stop(self):
        code = self.process.stop()
        if code: raise BenchError(f"bench_source: ended with {code}: {self.process.last_words()}")


class Busy:
    """Processes that do nothing but compute, for as long as the block lasts."""

    def __init__(self, n): self.n, self.running = n, []

    def __enter__(self):
        for _ in range(self.n):
            self.running.append(subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True))

    def __exit__(self, *_):
        for p in self.running:
            p.kill()
            p.wait()


TARGETS = {c.name: c for c in (Direct, Haproxy, Nginx, Tracerec)}
