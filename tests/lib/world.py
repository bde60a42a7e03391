# SPDX-License-Identifier: Apache-2.0
"""A corner of the machine in which only one test makes anything, and what is there: for tests that
show that nothing is left behind.

Every process that loses its parent becomes this test's child, so whatever is below it is its own
doing. Root also gets namespaces of its own for mounts and network, and control groups of its own, in
which nobody else puts anything."""
import ctypes
import glob
import http.server
import os
import random
import select
import shutil
import ssl
import subprocess
import tempfile
import threading
import time

from testlib import CLOCHE, Authority, clean_env, descendants, expect, wait_until

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
NAMESPACES = ("mnt", "net", "pid", "user", "uts", "ipc", "cgroup")
libc = ctypes.CDLL(None, use_errno=True)


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def comm(pid):
    return read("/proc/%d/comm" % pid).strip()


def children(pid):
    """Quicker than to look through all of /proc."""
    return [int(c) for c in read("/proc/%d/task/%d/children" % (pid, pid)).split()]


def tree(pid):
    """{pid: name} of a process and all below it, as of now."""
    found, todo = {}, [pid]
    while todo:
        p = todo.pop()
        name = comm(p)
        if name and p not in found:
            found[p] = name
            todo += children(p)
    return found


def running(pids):
    """Those of them that are no zombies."""
    left = []
    for pid in pids:
        stat = read("/proc/%d/stat" % pid)
        if stat and stat.rsplit(")", 1)[1].split()[0] not in "ZX":
            left.append(pid)
    return left


def namespaces(pids):
    """The namespaces that these processes are in."""
    found = set()
    for pid in pids:
        for name in NAMESPACES:
            try:
                found.add(os.readlink("/proc/%d/ns/%s" % (pid, name)))
            except OSError:
                pass
    return found


def descriptors(pid):
    """What the descriptors of a process are, without numbers, sorted."""
    found = []
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)).split(":[")[0])
            except OSError:
                pass
    except OSError:
        pass
    return sorted(found)


class Origin:
    """An HTTPS server that answers with the path it was asked for."""

    def __init__(self, folder):
        self.authority = Authority(folder)
        cert, key = self.authority.issue("up", ["up.test"])

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.path.encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.options = ["--allow", "up.test", "--upstream-ca", self.authority.cert, "--connect-to",
                        "up.test:443:127.0.0.1:%d" % self.port]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    def __init__(self, network=True):
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.groups, self.own, self.bystander, self.origin, self.theirs = [], set(), None, None, set()
        self.folder = tempfile.mkdtemp(prefix="cloche-world-")
        if os.geteuid() == 0:
            self._own_namespaces()
        self._own_groups()
        folders = {}
        for name in ("runtime", "state", "tmp"):
            folders[name] = os.path.join(self.folder, name)
            os.mkdir(folders[name], 0o700)
        os.mkdir(os.path.join(folders["tmp"], "cloche"), 0o700)  # for what is kept for later rooms
        self.runtime, self.state = folders["runtime"], folders["state"]
        self.env = clean_env(CLOCHE_RUNTIME_DIR=self.runtime, CLOCHE_STATE_DIR=self.state,
                             TMPDIR=folders["tmp"], XDG_RUNTIME_DIR=folders["tmp"])
        if network:
            os.mkdir(os.path.join(self.folder, "ca"))
            self.origin = Origin(os.path.join(self.folder, "ca"))

    def _own_namespaces(self):
        expect(libc.unshare(CLONE_NEWNS | CLONE_NEWNET) == 0, "unshare",
               os.strerror(ctypes.get_errno()))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, env=clean_env())
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, env=clean_env())
        # A neighbour's, such as those of an engine of another test, go as soon as he removes their directories.
        self.theirs = {m for m in self.mounts() if m.split()[4].startswith(("/tmp/", "/dev/shm/"))}

    @staticmethod
    def mounts():
        return {m for m in read("/proc/self/mountinfo").split("\n") if m}

    def _own_groups(self):
        """Below the groups that we are in: our sandboxes' groups then are below those."""
        for line in read("/proc/self/cgroup").split("\n"):
            if not line:
                continue
            _, names, path = line.split(":", 2)
            top = "/sys/fs/cgroup/" + (names.replace("name=", "") or "unified")
            if not names and not os.path.isdir(top):
                top = "/sys/fs/cgroup"
            group = "%s%s/cloche-world-%d" % (top, path.rstrip("/"), os.getpid())
            try:
                os.mkdir(group)
                self.groups.append(group)
                with open(group + "/cgroup.procs", "w") as f:
                    f.write(str(os.getpid()))
            except OSError:
                continue

    def popen(self, args, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        p = subprocess.Popen([CLOCHE] + args, env=self.env, **kw)
        self.own.add(p.pid)
        return p

    def cloche(self, *args, timeout=60, cwd=None):
        return subprocess.run([CLOCHE] + list(args), env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=timeout, check=False, cwd=cwd)

    def reap(self):
        """Ends the zombies that came to us as their new parent."""
        for pid in children(os.getpid()):
            if pid not in self.own and not running([pid]):
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def forget(self, p):
        self.own.discard(p.pid)

    def group_folders(self):
        found = []
        for g in self.groups:
            for folder, dirs, _ in os.walk(g):
                found += [os.path.join(folder, d) for d in dirs]
        return found

    def processes(self):
        self.reap()
        found = descendants(os.getpid())
        return {pid: found[pid] for pid in running(found)}

    def sockets(self):
        """Those of the network namespace that have a name; in one of our own all are ours."""
        if os.geteuid() != 0:
            return []
        return sorted(line.split()[-1] for line in read("/proc/net/unix").split("\n")[1:]
                      if len(line.split()) > 7)

    def snapshot(self):
        """What there is, as lines that can be compared."""
        found, here = set(), self.processes()
        for pid, name in here.items():
            found.add("process %d %s" % (pid, name))
        found |= {"namespace " + n for n in namespaces(here)}
        if os.geteuid() == 0:  # another's mounts may come and go where we have no view of our own
            found |= {"mount " + m for m in self.mounts() - self.theirs}
        found |= {"group " + g for g in self.group_folders()}
        for top in (self.runtime, self.state, self.env["TMPDIR"]):
            for folder, dirs, files in os.walk(top):
                # The copy of /etc (docs/design/roots.md).
                dirs[:] = [d for d in dirs if not d.startswith(".etc-")]
                # The network logs of sandboxes stay for a while, each in one file (docs/design/state.md).
                if os.path.basename(folder) == "network-logs" and not dirs:
                    files = [f for f in files if not f.endswith(".jsonl")]
                # And how the last cleanup after a crash went, for "cloche status".
                found |= {"file " + os.path.join(folder, f) for f in dirs + files if f not in (".cleanup", "network-logs")}
        for number, name in enumerate(self.sockets()):
            found.add("socket %d of all" % number)
        if self.bystander:
            for pid, name in self.bystander.parts.items():
                fds = descriptors(pid)
                if name == "cloche-broker":  # it keeps connections to origins for a while
                    fds = [f for f in fds if f != "socket"]
                found |= {"descriptor %d %d %s" % (pid, i, f) for i, f in enumerate(fds)}
        return found

    def expect_unchanged(self, before, seconds=20.0):
        """Waits until the world looks as it did; tells the differences if it does not."""
        last = set()

        def same():
            nonlocal last
            last = self.snapshot()
            return last == before
        if not wait_until(same, seconds, 0.05):
            expect(False, "the world has changed",
                   *sorted(["left: " + x for x in last - before] +
                           ["gone: " + x for x in before - last]))

    def _end_processes(self):
        """Kills all there are; True if there were none. One of them may just have begun another."""
        found = self.processes()
        for pid in found:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        return not found

    def close(self):
        if self.bystander:
            self.bystander.stop()
        if self.origin:
            self.origin.stop()
        wait_until(self._end_processes)
        for g in self.groups:
            try:
                with open(os.path.dirname(g) + "/cgroup.procs", "w") as f:
                    f.write(str(os.getpid()))
            except OSError:
                pass
            for folder in sorted(glob.glob(g + "/**/", recursive=True), reverse=True):
                wait_until(lambda f=folder: try_rmdir(f), 2)
        shutil.rmtree(self.folder, ignore_errors=True)


def try_rmdir(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return not os.path.isdir(folder)
    return True


class Bystander:
    """Somebody else's sandbox: it has a running command and uses its network when asked to."""
    SCRIPT = "sleep 100000 & while read word; do curl -s -m 20 https://up.test/$word; echo; done"

    def __init__(self, world, options=()):
        self.world, self.asked = world, 0
        self.stale = self._leave_something()
        self.p = world.popen(["run", "-i", "--no-workspace"] + world.origin.options +
                             list(options) + ["--", "sh", "-c", self.SCRIPT],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.ask()
        wait_until(lambda: "cloche-gateway" in tree(self.p.pid).values())
        self.ask()
        self._wait_for_sweep()
        self.parts = {p: n for p, n in tree(self.p.pid).items() if n not in ("curl",)}
        world.bystander = self

    def _leave_something(self):
        """Its supervisor cleans up after others once, by a child, a second after its start: something for
        it to find."""
        stale = os.path.join(self.world.runtime, ".new-bystander")
        os.mkdir(stale, 0o700)
        with open(os.path.join(stale, "lock"), "w"):
            pass
        return stale

    def _wait_for_sweep(self):
        """Until that has been done and the child is gone."""
        expect(wait_until(lambda: not os.path.exists(self.stale), 60), "its supervisor does not sweep")
        supervisor = [p for p, name in tree(self.p.pid).items() if name == "cloche-supervis"][0]
        expect(wait_until(lambda: "cloche-supervis" not in map(comm, children(supervisor)), 60),
               "its supervisor sweeps for ever")

    def ask(self):
        """Has it make a request; raises if that does not work."""
        self.asked += 1
        word = "word%d" % self.asked
        self.p.stdin.write(word.encode() + b"\n")
        ready = select.select([self.p.stdout], [], [], 30)[0]
        line = self.p.stdout.readline() if ready else b"nothing"
        expect(line == b"/" + word.encode() + b"\n", "the bystander's network is dead", line)

    def expect_alive(self):
        expect(self.p.poll() is None, "the bystander has ended", self.p.returncode)
        gone = set(self.parts) - set(running(self.parts))
        expect(not gone, "parts of the bystander are gone", [self.parts[p] for p in gone])
        self.ask()

    def stop(self):
        self.p.kill()
        self.p.wait()
        self.world.forget(self.p)
        self.world.bystander = None


def dice(seed=None):
    """Random choices; the seed is printed, so that a failure can be had again."""
    seed = seed or int(os.environ.get("CLOCHE_TEST_SEED", "0")) or \
        int.from_bytes(os.urandom(4), "big")
    part = os.environ.get("CLOCHE_TEST_PART", "1")
    print("# CLOCHE_TEST_SEED=%d CLOCHE_TEST_PART=%s" % (seed, part), flush=True)
    return random.Random(seed)
