# SPDX-License-Identifier: Apache-2.0
"""Another machine for the tests of ssh: Debian's own sshd, as an ordinary user, with keys of its own, on loopback; the
configuration of ssh that leads there; and what becomes a stream to it."""
import glob
import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from testlib import BIN, Skip, TemporaryDir, clean_env, expect, free_port, need, processes_with_marker, wait_until

USER, NUMBER = "place", 45678
SSHD = """Port %(port)d
ListenAddress 127.0.0.1
HostKey %(dir)s/there/host_key
AuthorizedKeysFile %(dir)s/there/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
Banner %(dir)s/there/banner
MaxStartups 100
LogLevel VERBOSE
"""
# Each name shows one thing. The first value of an option counts.
CONFIG = """Host relayed
	Port %(relay)d
Host behind
	ProxyJump there
Host unknown
	UserKnownHostsFile /dev/null
Host changed
	UserKnownHostsFile %(dir)s/known-otherwise
Host stranger
	IdentityFile %(dir)s/other-key
Host down
	Port %(closed)d
Host silent
	Port %(silent)d
Host nameless
	HostName no..name
Host *
	HostName 127.0.0.1
	Port %(port)d
	User %(user)s
	IdentitiesOnly yes
	UserKnownHostsFile %(dir)s/known
	GlobalKnownHostsFile /dev/null
	LocalForward 127.0.0.1:1 127.0.0.1:1
	PermitLocalCommand yes
	LocalCommand echo a local command
Host * !stranger
	IdentityFile %(dir)s/key
"""


class Relay:
    """A line between two ports: it may be slow, it may be cut, it may stall."""

    def __init__(self, port):
        self.port, self.delay, self.stalled = port, 0.0, threading.Event()
        self.sockets, self.lock = [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.number = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.port))
            except OSError:  # nobody is there now
                near.close()
                continue
            for s in (near, far):  # a line keeps no byte back until another one has been acknowledged
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stalled = threading.Event()
            with self.lock:
                self.sockets.append((near, far, stalled))
            for a, b in ((near, far), (far, near)):
                line = queue.Queue(maxsize=1024)
                threading.Thread(target=self.read, args=(a, line, stalled), daemon=True).start()
                threading.Thread(target=self.write, args=(b, line), daemon=True).start()

    def read(self, a, line, stalled):
        data = b"x"
        while data:
            try:
                data = a.recv(65536)
            except OSError:
                data = b""
            if not stalled.is_set():
                line.put((time.monotonic() + self.delay, data))

    @staticmethod
    def write(b, line):
        while True:
            due, data = line.get()
            time.sleep(max(0, due - time.monotonic()))
            try:
                if not data:
                    b.shutdown(socket.SHUT_WR)
                    return
                b.sendall(data)
            except OSError:
                return

    def stall(self):
        """Connections that there are now say nothing any more, and do not end."""
        with self.lock:
            for _, _, stalled in self.sockets:
                stalled.set()

    def cut(self):
        with self.lock:
            for near, far, _ in self.sockets:
                for s in (near, far):
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            self.sockets = []

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # close() alone would let a last one through
        self.listener.close()
        self.cut()


class SshPlace:
    """shell: the login shell there, for root, who can give that person an account of the test's own."""

    def __init__(self, shell="/bin/sh"):
        self.shell, self.sshd = shell, None

    def __enter__(self):
        need("ssh", "sshd", "ssh-keygen", "setpriv", "unshare")
        self.tmp = TemporaryDir()
        self.dir = self.tmp.__enter__()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        with open(self.path(name + ".pub")) as f:
            return " ".join(f.read().split()[:2])

    def start(self):
        user = USER if os.geteuid() == 0 else self.account()
        os.chmod(self.dir, 0o755)
        for name, mode in (("there", 0o755), ("home", 0o777), ("bin", 0o755), ("run", 0o700)):
            os.mkdir(self.path(name))
            os.chmod(self.path(name), mode)
        self.port, self.relay = free_port(), None
        self.relay = Relay(self.port)
        self.silent = socket.create_server(("127.0.0.1", 0))  # it takes connections, and says nothing
        host, mine, other = self.key("there/host_key"), self.key("key"), self.key("other-key")
        self.write("there/authorized", mine + "\n")
        self.write("there/banner", "a banner\n")
        self.write("known", "* " + host + "\n")
        self.write("known-otherwise", "* " + other + "\n")
        words = {"dir": self.dir, "port": self.port, "relay": self.relay.number, "closed": free_port(), "user": user,
                 "silent": self.silent.getsockname()[1]}
        self.write("there/sshd_config", SSHD % words)
        self.write("config", CONFIG % words)
        # ssh finds the account's configuration, whatever HOME is.
        self.write("bin/ssh", '#!/bin/sh\nexec %s -F %s/config "$@"\n' % (shutil.which("ssh", path=clean_env()["PATH"]), self.dir), 0o755)
        self.env = clean_env(CLOCHE_RUNTIME_DIR=self.path("run"), CLOCHE_STATE_DIR=self.path("state"), HOME=self.path("home"))
        self.env["PATH"] = self.path("bin") + ":" + self.env["PATH"]
        argv = [shutil.which("sshd", path=clean_env()["PATH"]), "-D", "-f", self.path("there/sshd_config"), "-E", self.path("home/log")]
        if os.geteuid() == 0:
            argv = self.as_ordinary_user(argv)
        self.sshd = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=clean_env(), start_new_session=True)
        expect(wait_until(self.listens), "sshd does not listen", self.log())

    @staticmethod
    def account():
        name = subprocess.run(["id", "-un"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout.strip()
        line = subprocess.run(["getent", "passwd", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout.strip()
        if line.rpartition(":")[2] not in ("/bin/sh", "/bin/bash", "/bin/dash"):
            raise Skip("this user has no account with a usual shell")
        return name

    def as_ordinary_user(self, argv):
        os.chown(self.path("there/host_key"), NUMBER, NUMBER)
        # Over all of /etc: a mount on /etc/passwd alone is gone as soon as somebody replaces that file.
        os.mkdir(self.path("there/etc"))
        with open("/etc/passwd") as f:
            accounts = f.read() + "%s:x:%d:%d::%s:%s\n" % (USER, NUMBER, NUMBER, self.path("home"), self.shell)
        self.write("there/etc/passwd", accounts)
        script = ('mount -t overlay -o lowerdir="$1:/etc" etc /etc && shift && '
                  'exec setpriv --reuid %d --regid %d --clear-groups --bounding-set=-all "$@"')
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script % (NUMBER, NUMBER), "sh", self.path("there/etc"), *argv]

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def log(self):
        try:
            with open(self.path("home/log")) as f:
                return f.read()
        except OSError:
            return ""

    def connections(self):
        """How many there were so far."""
        return self.log().count("Accepted publickey")

    def masters(self):
        return [p for p in glob.glob(self.path("run/ssh/*")) if len(os.path.basename(p)) == 40]

    def end_masters(self):
        for path in self.masters():
            subprocess.run(["ssh", "-F", "none", "-o", "ControlPath=" + path, "-O", "exit", "any"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def processes(self):
        """Those that have this place's directory in their words or variables."""
        return processes_with_marker(self.dir.encode())

    def __exit__(self, *_):
        if getattr(self, "relay", None):
            self.relay.close()
        if getattr(self, "silent", None):
            self.silent.close()
        self.end_masters()
        if self.sshd:
            self.sshd.kill()
            self.sshd.wait()
        wait_until(lambda: not self.end_left(), seconds=10)
        self.tmp.__exit__(None, None, None)

    def end_left(self):
        found = self.processes()
        for pid, _ in found:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        return found


def word(text):
    """As a word of a request."""
    quoted = "".join(chr(c) if 0x20 < c < 0x7f and c != 0x5c else "\\0%03o" % c for c in text.encode())
    return quoted or "\\0000"


def request(place=None, script=None, identity="sandbox-test"):
    lines = ["cloche-provider 1", "id " + identity]
    if place is not None:
        lines.append("place " + word(place))
    if script is not None:
        lines.append("far " + word(script))
    return ("\n".join(lines + ["end"]) + "\n").encode()


def ask(env, program, verb, **what):
    """The whole answer of a program that does not become a stream: (exit status, {key: text})."""
    p = subprocess.run([program, verb], input=request(**what), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=60, check=False)
    answer = dict((line.split(" ", 1) + [""])[:2] for line in p.stdout.decode().splitlines())
    return p.returncode, answer, p.stderr.decode()


class Stream:
    """What a program becomes. As the supervisor: a socket for its input, a pipe for its output, a group of its own."""

    def __init__(self, env, program, place, script, verb="create", behind=b""):
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()
        self.p = subprocess.Popen([program, verb], stdin=theirs, stdout=subprocess.PIPE, stderr=self.errors, env=env,
                                  bufsize=0, start_new_session=True)
        theirs.close()
        self.to, self.out = ours, self.p.stdout
        self.to.sendall(request(place, script) + behind)
        self.answer = b""
        while not self.answer.endswith(b"far\n"):
            one = self.out.read(1)
            if not one:
                raise AssertionError("no stream: %r %r" % (self.answer, self.said()))
            self.answer += one

    def said(self):
        """What came to its standard error so far."""
        self.errors.seek(0)
        return self.errors.read()

    def read(self, n):
        """n bytes, or all to the end."""
        data = bytearray()
        while len(data) < n:
            more = self.out.read(min(n - len(data), 65536))
            if not more:
                break
            data += more
        return bytes(data)

    def end_input(self):
        self.to.shutdown(socket.SHUT_WR)

    def wait(self, seconds=60):
        """Its exit status, what was left to read, and what it said to standard error."""
        self.to.close()
        rest = self.read(1 << 30)
        self.out.close()
        status = self.p.wait(seconds)
        said = self.said()
        self.errors.close()
        return status, rest, said

    def kill(self):
        self.p.kill()
        self.p.wait()
        self.to.close()
        self.out.close()
        self.errors.close()


PROGRAM = os.path.join(BIN, "cloche-provider-ssh")
