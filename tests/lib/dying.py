# SPDX-License-Identifier: Apache-2.0
"""Rooms with streams of every kind that never end, to and from an origin that counts: what is left
of them when a part of the network dies."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import npm
from testlib import CLOCHE, ROOT, Authority, clean_env, descendants, expect, need, wait_until

LIB = os.path.join(ROOT, "tests", "lib")
GRPC = ("@grpc/grpc-js", "1.14.1")
ALL = ("length", "chunked", "close", "close-1.0", "plain-1.0", "h2", "grpc", "websocket", "tunnel",
       "up")
FLOODS = ("flood-1", "flood-2", "flood-up")
PATIENCE = 20
TCP_TIME_WAIT, TCP_LISTEN = "06", "0A"
POLICY = """
url_prefixes:
  - host: main.test
  - host: grpc.test
  - host: plain.test
    schemes: [http]
  - host: pinned.test
    tunnel: true
"""


def alive(pids):
    left = []
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid) as f:
                if f.read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    left.append(pid)
        except OSError:
            pass
    return left


class Origin:
    """The servers of death.js and grpc.js, and what the first says of its connections."""

    def __init__(self):
        need("node", "curl")
        self.modules = npm.package(*GRPC)
        self.folder = tempfile.mkdtemp(prefix="cloche-dying-")
        os.chmod(self.folder, 0o755)
        self.authority = Authority(self.folder)
        pair = self.authority.issue("up", ["main.test", "pinned.test", "grpc.test"])
        self.lines, self.processes = [], []
        first = self._start("death.js", *pair)
        tls, plain = first.stdout.readline().split()
        grpc = self._start("grpc.js", "server", *pair, NODE_PATH=self.modules).stdout.readline()
        threading.Thread(target=self._read, args=(first,), daemon=True).start()
        self.ports = {int(port) for port in (tls, plain, grpc)}
        self.options = ["--upstream-ca", self.authority.cert]
        for host, at, port in (("main.test", 443, tls), ("pinned.test", 443, tls),
                               ("plain.test", 80, plain), ("grpc.test", 443, grpc.strip())):
            self.options += ["--connect-to", "%s:%d:127.0.0.1:%s" % (host, at, port)]
        policy = os.path.join(self.folder, "policy.yaml")
        with open(policy, "w") as f:
            f.write(POLICY)
        self.options += ["--allowlist", policy]
        self._expect_honest(tls)

    def _expect_honest(self, port):
        """What is complete is said to be."""
        for version in ("--http1.1", "--http2"):
            subprocess.run(["curl", "-sS", version, "--cacert", self.authority.cert, "--resolve",
                            "main.test:%s:127.0.0.1" % port, "-d", "", "-o", "/dev/null",
                            "https://main.test:%s/up" % port], env=clean_env(), check=True)
            expect(wait_until(lambda: "complete /up" in self.lines) and self.becomes_quiet(),
                   "the origin does not know a complete request", self.lines)
            self.lines.clear()

    def _start(self, script, *args, **env):
        p = subprocess.Popen(["node", os.path.join(LIB, script)] + list(args), text=True,
                             env=clean_env(**env), stdout=subprocess.PIPE)
        self.processes.append(p)
        return p

    def _read(self, process):
        for line in process.stdout:
            self.lines.append(line.strip())

    def came(self):
        return self.lines.count("+")

    def is_quiet(self):
        """Whether every connection that came has gone: the kernel knows, and node leaves out the
        end of one whose handshake was cut."""
        with open("/proc/net/tcp") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        return not any(int(row[1].split(":")[1], 16) in self.ports and
                       row[3] not in (TCP_TIME_WAIT, TCP_LISTEN) for row in rows)

    def becomes_quiet(self):
        """Whether it is, some time soon. The table is slow to read where a machine has many connections."""
        return wait_until(self.is_quiet, 30, 0.2)

    def expect_untouched(self):
        for line in self.lines:
            expect(not line.startswith(("complete", "wrong")), "the origin: " + line)

    def stop(self):
        for p in self.processes:
            p.kill()
            p.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Room:
    """One with streams in it, in a runtime directory of its own."""

    def __init__(self, origin, names=ALL, options=(), verb="run", log=False):
        self.origin, self.names = origin, names
        self.folder = tempfile.mkdtemp(prefix="cloche-dying-")
        self.out, self.runtime = (os.path.join(self.folder, n) for n in ("out", "runtime"))
        os.mkdir(self.out)
        os.mkdir(self.runtime, 0o700)
        self.env = clean_env(CLOCHE_RUNTIME_DIR=self.runtime, HOST_TOKEN="a-real-token-0123456789",
                             CLOCHE_STATE_DIR=os.path.join(self.folder, "state"))
        self.argv = ["--no-workspace", "--limits", "best-effort", "--mount", self.out + ":/out",
                     "--secret", "TOKEN=HOST_TOKEN@main.test"] + origin.options + list(options)
        for source, target in ((os.path.join(LIB, "death.py"), "/t/death.py"),
                               (os.path.join(LIB, "grpc.js"), "/t/grpc.js"),
                               (origin.authority.cert, "/t/ca.pem"), (origin.modules, "/t/grpc")):
            self.argv += ["--mount", "%s:%s:ro" % (source, target)]
        self.log = os.path.join(self.folder, "log")
        self.argv += ["--network-log", self.log] if log else []
        self.command = ["python3", "/t/death.py"] + list(names)
        self.p = self.parts = None
        if verb == "run":
            self.start(["run"] + self.argv + ["--"] + self.command)

    def start(self, argv):
        self.p = subprocess.Popen([CLOCHE] + argv, env=self.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def cloche(self, *args):
        return subprocess.run([CLOCHE] + list(args), env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, check=False)

    def network_log(self):
        with open(self.log) as f:
            return f.read()

    def state(self):
        try:
            with open(os.path.join(self.out, "state")) as f:
                return json.load(f)
        except (OSError, ValueError):
            return {}

    def wait_open(self, enough=1):
        """Until so much came in every stream."""
        expect(wait_until(lambda: all(self.state().get(n, ["", 0])[1] >= enough
                                      for n in self.names), PATIENCE),
               "not all streams go on", self.state())
        expect(all(s[0] == "open" for s in self.state().values()), "streams end", self.state())
        if self.p:
            self.find_parts(self.p.pid)

    def find_parts(self, pid):
        self.parts = descendants(pid)

    def pid(self, name):
        found = [pid for pid, n in self.parts.items() if n == name]
        expect(len(found) == 1, "no " + name, self.parts)
        return found[0]

    def signal(self, name, number):
        os.kill(self.pid(name), number)

    def expect_cut(self):
        """No client was made to believe that it has all."""
        for name, (text, _) in self.state().items():
            expect(text != "complete", name + " seems complete", self.state())

    def wait_end(self, seconds=PATIENCE):
        """(exit status, what cloche said); nothing may be left of it."""
        try:
            err = self.p.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            expect(False, "cloche does not end", self.state(), descendants(self.p.pid))
        self.expect_gone()
        return self.p.returncode, err

    def expect_gone(self):
        expect(wait_until(lambda: not alive(self.parts), PATIENCE), "left running",
               {p: self.parts[p] for p in alive(self.parts)})
        expect(self.origin.becomes_quiet(), "connections are left", self.origin.lines[-20:])
        self.expect_cut()
        self.origin.expect_untouched()

    def expect_nothing_kept(self):
        left = [os.path.join(f, x) for f, dirs, files in os.walk(self.runtime)
                for x in dirs + files if f != self.runtime]
        expect(not left, "left in the runtime directory", left)
        with open("/proc/self/mountinfo") as f:
            expect(self.folder not in f.read(), "a mount is left")

    def close(self):
        """For the end of a test, however it went."""
        if self.p and self.p.poll() is None:
            for pid in alive(self.parts or {}):
                try:
                    os.kill(pid, signal.SIGCONT)
                except OSError:
                    pass
            self.p.terminate()
            try:
                self.p.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.p.kill()
                self.p.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
