# SPDX-License-Identifier: Apache-2.0
"""The process that keeps a cluster. Theory of operation:

It makes one control group in each hierarchy, starts the machines (machine.py), joins their networks by a bridge in the
network of the control plane, and passes connections to a port of the loopback on to the API server, so that a client in
the network that the cluster was started from needs nothing special. It ends all and removes all when it is asked to
(SIGTERM), when the process ends that it was told to go with, or when who starts it ends too early. If it is killed
itself, every machine is killed by the kernel; what is left then, empty control groups and the directory, is removed by
`tools/cluster down`.

DIR: keeper.pid (locked while it lives), group, requests (a fifo), kubeconfig, image, bin/kubectl, pki, images, log,
control and nodeN with a file PROGRAM.pid for each program."""
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from images import APPLETS, Image, Layer
from machine import CONTROL, PATIENCE, PAUSE, PORT, address, hierarchies, pods
from pki import Authority

IMAGE = "localhost/cloche/test:1"
GROUPS = "/sys/fs/cgroup"
PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
CONNECTIONS = 512
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what + ": " + os.strerror(ctypes.get_errno()))


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def read(path):
    with open(path) as f:
        return f.read().strip()


class Ended(Exception):
    """It was asked to end."""


class Asked:
    """What SIGTERM does: it raises Ended, once; but not while something is made that would not be known to be there."""
    held = pending = False

    @classmethod
    def signal(cls, *_):
        if cls.held:
            cls.pending = True
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Ended

    @classmethod
    @contextlib.contextmanager
    def later(cls):
        cls.held = True
        try:
            yield
        finally:
            cls.held = False
        if cls.pending:
            cls.signal()


# ---- control groups

def make_groups(name, machines):
    for hierarchy in hierarchies():
        for path in [name] + [os.path.join(name, m) for m in machines]:
            path = os.path.join(GROUPS, hierarchy, path)
            os.mkdir(path)
            for file in ("cpuset.cpus", "cpuset.mems"):  # without these nothing can enter
                if os.path.exists(os.path.join(path, file)):
                    with open(os.path.join(path, file), "w") as f:
                        f.write(read(os.path.join(os.path.dirname(path), file)))


def remove_groups(name):
    """Their processes are dead; the kernel may need a moment to know."""
    until = time.monotonic() + 10
    for hierarchy in hierarchies():
        for folder, _, _ in os.walk(os.path.join(GROUPS, hierarchy, name), topdown=False):
            while True:
                try:
                    os.rmdir(folder)
                except OSError as e:
                    if e.errno == errno.EBUSY and time.monotonic() < until:
                        time.sleep(.05)
                        continue
                break


def remove_directory(folder):
    """Again and again for a while: overlays of a node that has just died may hold on to something."""
    until = time.monotonic() + 10
    while os.path.exists(folder) and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.exists(folder):
            time.sleep(.1)


# ---- images

def write_images(folder):
    """What is on every node, made of this machine's busybox."""
    applets = [a for a in subprocess.run(["/bin/busybox", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split() if a != "busybox"]
    layer = Layer().busybox()
    for name in applets:
        if name not in APPLETS:
            layer.link("bin/" + name, "busybox")
    layer.dir("tmp", mode=0o1777).dir("etc").dir("root", mode=0o700).dir("home").dir("home/user", uid=1000, gid=1000)
    layer.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n")
    layer.file("etc/group", "root:x:0:\nuser:x:1000:\n")
    data = layer.bytes()
    for name, command in ((PAUSE, ["/bin/busybox", "sleep", "2147483647"]), (IMAGE, ["/bin/sh"])):
        image = Image([data], name, Cmd=command, Env=["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])
        image.write_saved(os.path.join(folder, name.split("/")[-1].replace(":", "-") + ".tar"))


# ---- machines

class Enter:
    """In a new process, before it becomes a machine's: it dies with the keeper, and is in the machine's groups."""

    def __init__(self, groups):
        self.groups, self.keeper = groups, os.getpid()

    def __call__(self):
        checked(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        if os.getppid() != self.keeper:
            os._exit(1)
        for group in self.groups:
            with open(group + "/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))


def children(parent):
    """{pid in its innermost namespace: pid here} of its children"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/status" % pid) as f:
                fields = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        if int(fields["PPid"]) == parent:
            found[int(fields["NSpid"].split()[-1])] = int(pid)
    return found


class Place:
    """A machine, as the keeper sees it."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.folder = os.path.join(cluster.dir, name)
        self.p = self.init = None  # the process here, and the number of its process 1

    def start(self):
        groups = [os.path.join(GROUPS, h, self.cluster.group, self.name) for h in hierarchies()]
        argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private", "--net", "--uts", "--ipc", "--cgroup",
                sys.executable, sys.argv[0], "machine", self.name, self.cluster.dir, self.cluster.programs]
        with open(os.path.join(self.cluster.dir, "log", self.name + ".log"), "ab") as log, Asked.later():
            self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=Enter(groups))
        found = {}
        until = time.monotonic() + PATIENCE
        while not self.has_own_network(found.get(1)):
            found = children(self.p.pid)
            if self.p.poll() is not None or time.monotonic() > until:
                raise RuntimeError("%s cannot have namespaces of its own" % self.name)
            time.sleep(.01)
        self.init = found[1]
        write(os.path.join(self.folder, "init.pid"), "%d\n" % self.init)

    @staticmethod
    def has_own_network(pid):
        try:
            return pid and os.readlink("/proc/%d/ns/net" % pid) != os.readlink("/proc/self/ns/net")
        except OSError:
            return False

    def net(self, *argv):
        p = subprocess.run(["nsenter", "--target", str(self.init), "--net", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
        if p.returncode:
            raise RuntimeError("%s: %s: %s" % (self.name, " ".join(argv), p.stdout.strip()))

    def go(self):
        """It has its network."""
        self.p.stdin.write("go\n")
        self.p.stdin.close()

    def ready(self):
        """Waits until it is, and tells the process ids of what it has started. The machine bounds its own waits."""
        for line in self.p.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                return
            if word == "error":
                raise RuntimeError("%s: %s" % (self.name, rest))
            write(os.path.join(self.folder, word + ".pid"), "%d\n" % children(self.init)[int(rest)])
        raise RuntimeError("%s has ended; see its log" % self.name)

    def end(self):
        """With its process 1 all others die; who waits for that one sees it when they are gone."""
        if self.p and self.p.poll() is None:
            try:
                os.kill(self.init or self.p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.p.wait()
        self.p = self.init = None


# ---- the API server's port

class Relay:
    """Connections to a port of the loopback here go on to the API server in the network of the control plane."""

    def __init__(self, control):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.room = threading.BoundedSemaphore(CONNECTIONS)
        self.network = os.open("/proc/%d/ns/net" % control, os.O_RDONLY)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        checked(LIBC.setns(self.network, CLONE_NEWNET), "setns")  # this thread alone
        while True:
            self.room.acquire()
            try:
                near, _ = self.listener.accept()
            except OSError:
                time.sleep(.1)
                self.room.release()
                continue
            try:
                far = socket.create_connection((CONTROL, PORT), timeout=5)
            except OSError:
                near.close()
                self.room.release()
                continue
            far.settimeout(None)
            threading.Thread(target=self.both, args=(near, far), daemon=True).start()

    def both(self, near, far):
        for s in (near, far):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        up = threading.Thread(target=self.copy, args=(near, far), daemon=True)
        up.start()
        self.copy(far, near)
        up.join()
        near.close()
        far.close()
        self.room.release()

    @staticmethod
    def copy(source, to):
        buffer = memoryview(bytearray(256 << 10))
        try:
            while True:
                n = source.recv_into(buffer)
                if not n:
                    to.shutdown(socket.SHUT_WR)
                    return
                to.sendall(buffer[:n])
        except OSError:
            for s in (source, to):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


# ---- the whole

class Keeper:
    def __init__(self, folder, programs, nodes):
        self.dir, self.programs, self.nodes = folder, programs, nodes
        self.group = "cloche-cluster-%d" % os.getpid()
        self.places = {}

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def prepare(self):
        names = ["control"] + ["node%d" % n for n in range(1, self.nodes + 1)]
        for name in ("log", "images", "bin", *names):
            os.mkdir(self.path(name))
        os.mkfifo(self.path("requests"), 0o600)
        os.symlink(os.path.join(self.programs, "bin/kubectl"), self.path("bin/kubectl"))
        self.certify()
        write_images(self.path("images"))
        write(self.path("image"), IMAGE + "\n")
        write(self.path("group"), self.group + "\n")
        make_groups(self.group, names)
        self.places = {name: Place(self, name) for name in names}

    def certify(self):
        ca, server = Authority(self.path("pki")), "https://%s:%d" % (CONTROL, PORT)
        ca.account_key()
        ca.issue("apiserver", "kube-apiserver", names=("IP:127.0.0.1", "IP:" + CONTROL, "IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes",
                                                       "DNS:kubernetes.default", "DNS:kubernetes.default.svc"))
        ca.issue("to-kubelet", "apiserver", "system:masters")
        for name, user, group in (("admin", "admin", "system:masters"), ("controllers", "system:kube-controller-manager", None),
                                  ("scheduler", "system:kube-scheduler", None)):
            ca.issue(name, user, group)
            ca.kubeconfig(name, server, self.path("pki", name + ".conf"))
        for n in range(1, self.nodes + 1):
            name = "node%d" % n
            ca.issue(name, "system:node:" + name, "system:nodes", ("IP:" + address(n), "DNS:" + name))
            os.mkdir(self.path(name, "pki"))
            os.mkdir(self.path(name, "var"))
            ca.kubeconfig(name, server, self.path(name, "pki/kubelet.conf"))
            for source, to in (("ca.crt", "ca.crt"), (name + ".crt", "kubelet.crt"), (name + ".key", "kubelet.key")):
                shutil.copy(self.path("pki", source), self.path(name, "pki", to))
        self.authority = ca

    def start(self):
        control = self.places["control"]
        control.start()
        control.net("ip", "link", "set", "lo", "up")
        control.net("ip", "link", "add", "nodes", "type", "bridge")
        control.net("ip", "address", "add", CONTROL + "/24", "dev", "nodes")
        control.net("ip", "link", "set", "nodes", "up")
        control.go()
        nodes = range(1, self.nodes + 1)
        for n in nodes:
            self.boot(n)
        control.ready()
        relay = Relay(control.init)
        self.authority.kubeconfig("admin", "https://127.0.0.1:%d" % relay.port, self.path("pki/outside.conf"))
        for n in nodes:
            self.places["node%d" % n].ready()
        self.wait_until_ready()

    def boot(self, n):
        """A node begins, with its network. It is not waited for."""
        node, control = self.places["node%d" % n], self.places["control"]
        node.start()
        # Of a node that has just died the kernel may not have removed it yet.
        control.net("sh", "-c", "ip link delete node%d 2>/dev/null || true" % n)
        control.net("ip", "link", "add", "node%d" % n, "type", "veth", "peer", "name", "eth0", "netns", str(node.init))
        control.net("ip", "link", "set", "node%d" % n, "master", "nodes", "up")
        node.net("ip", "link", "set", "lo", "up")
        node.net("ip", "address", "add", address(n) + "/24", "dev", "eth0")
        node.net("ip", "link", "set", "eth0", "up")
        node.net("ip", "route", "add", "default", "via", CONTROL)
        node.net("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for other in range(1, self.nodes + 1):
            if other != n:
                node.net("ip", "route", "add", pods(other), "via", address(other))
        node.go()

    def kubectl(self, *argv):
        p = subprocess.run([self.path("bin/kubectl"), "--kubeconfig", self.path("pki/outside.conf"), "--request-timeout=20s", *argv],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return p.stdout if p.returncode == 0 else ""

    def ready_nodes(self):
        items = json.loads(self.kubectl("get", "nodes", "-o", "json") or '{"items": []}')["items"]
        return {i["metadata"]["name"] for i in items
                if any(c["type"] == "Ready" and c["status"] == "True" for c in i["status"].get("conditions", []))}

    def wait_until_ready(self):
        until = time.monotonic() + PATIENCE
        while len(self.ready_nodes()) < self.nodes or not self.kubectl("get", "serviceaccount", "default"):
            if time.monotonic() > until:
                raise RuntimeError("the nodes are not ready after %d seconds" % PATIENCE)
            time.sleep(.5)
        os.rename(self.path("pki/outside.conf"), self.path("kubeconfig"))

    def end(self):
        for place in self.places.values():
            place.end()
        remove_groups(self.group)

    def request(self, line):
        """`start nodeN`: a node that has been killed comes back. The answer is a file."""
        verb, _, name = line.strip().partition(" ")
        place = self.places.get(name)
        if verb != "start" or not place or name == "control":
            return
        place.end()
        try:
            self.boot(int(name[len("node"):]))
            place.ready()
            answer = "started"
        except (RuntimeError, OSError) as e:
            answer = "error " + " ".join(str(e).split())
        write(os.path.join(place.folder, "answer"), answer + "\n")

    def serve(self):
        """Does what it is asked to, until it is asked to end."""
        requests = os.open(self.path("requests"), os.O_RDWR)  # also for writing: so it never ends
        while True:
            for line in os.read(requests, 4096).decode(errors="replace").splitlines():
                self.request(line)


def end_after(wait):
    """Asks this process to end when wait() says so."""
    def watch():
        if wait():
            os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=watch, daemon=True).start()


def starter_is_lost():
    """Until it has been told that all is ready, who starts it has to live: its standard input is a pipe of that one."""
    return os.read(0, 1) == b""


def last_lines(folder):
    """What the logs say, for who sees a start fail."""
    text = ""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), errors="replace") as f:
            lines = f.readlines()[-5:]
        if lines:
            text += "--- %s\n%s" % (name, "".join(lines))
    return text


def main(folder, programs, nodes, companion):
    """Writes one line to its standard output when the cluster is there, or why it is not."""
    lock = open(os.path.join(folder, "keeper.pid"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.write("%d\n" % os.getpid())
    lock.flush()
    said = os.fdopen(os.dup(1), "w")
    log = os.open(os.path.join(folder, "keeper.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd in (1, 2):
        os.dup2(log, fd)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536) if most > 0 else 65536, most))
    keeper = Keeper(folder, programs, nodes)
    signal.signal(signal.SIGTERM, Asked.signal)
    try:
        end_after(starter_is_lost)
        if companion:
            pidfd = os.pidfd_open(companion)
            end_after(lambda: select.select([pidfd], [], []))
        keeper.prepare()
        keeper.start()
        said.write("ready\n")
        said.close()
        keeper.serve()
    except Ended:
        pass
    except (RuntimeError, OSError, subprocess.SubprocessError) as e:
        said.write("error %s\n%s" % (" ".join(str(e).split()), last_lines(os.path.join(folder, "log"))))
        said.close()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        keeper.end()
        remove_directory(folder)
    return 0
