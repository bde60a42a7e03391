# SPDX-License-Identifier: Apache-2.0
"""Rooms in other places for the tests: behind the provider of the examples, whose place is a network namespace of this machine,
and behind a real sshd. A rig has the environment and the options that lead there, and knows what is left of rooms."""
import fcntl
import glob
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

from ssh_place import Relay, SshPlace
from testlib import BIN, CLOCHE, ROOT, Skip, TemporaryDir, clean_env, expect, need, processes_with_marker, run_cloche, wait_until

# In seconds: nothing is timed, this is for a machine that is busy.
PATIENCE = 120
ELSEWHERE = os.path.join(ROOT, "examples", "providers", "cloche-provider-elsewhere")
LINES = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); [ $((i % 40)) != 0 ] || sleep 0.05; done; read x; exit 9"
PRINTED = "".join("line %d\n" % i for i in range(2000)).encode()
HOLDER = re.compile(rb"[^\0]*/cloche-far/[0-9a-f]{64}\0(start|attach)\0")


def words(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""


class Rig:
    """One place. Used by `with`; cloche() and what is below run the program with the place's environment."""

    def cloche(self, *args, status=0, **how):
        """status: None: any"""
        how.setdefault("timeout", PATIENCE)
        p = run_cloche(list(args), env=dict(self.env, **how.pop("more", {})), **how)
        out = p.stdout[-1000:] if p.stdout else p.stdout
        expect(status is None or p.returncode == status, "cloche %s: exit %d" % (" ".join(args)[:300], p.returncode), out, p.stderr)
        return p

    def out(self, *args, **how):
        return self.cloche(*args, **how).stdout

    def run(self, *args, **how):
        return self.cloche("run", *self.options, *args, **how)

    def popen(self, *args, **how):
        for name in ("stdin", "stdout", "stderr"):
            how.setdefault(name, subprocess.DEVNULL if name == "stdin" else subprocess.PIPE)
        return subprocess.Popen([CLOCHE, *args], env=dict(self.env, **how.pop("more", {})), **how)

    def sandbox(self, *options):
        return Sandbox(self, options)

    def inspect(self, name):
        return json.loads(self.out("inspect", name))

    def rooms(self):
        """Directories in the other place."""
        return glob.glob(os.path.join(self.home, ".cache/cloche-far/rooms/sandbox-*"))

    def holders(self):
        """Programs of ours in the other place that stay with a room; its digest is their name."""
        return [pid for pid, _ in processes_with_marker((os.path.join(self.home, ".cache/cloche-far") + "/").encode()) if HOLDER.match(words(pid))]

    def here(self):
        """Sandboxes of this side and our programs, by the names that they give themselves."""
        left = [n for n in os.listdir(self.env["CLOCHE_RUNTIME_DIR"]) if n.startswith("sandbox-")]
        return left + [p for p in processes_with_marker(self.dir.encode()) if p[1].startswith("cloche-")]

    def relays(self):
        return [pid for pid, name in processes_with_marker(self.dir.encode()) if name == "cloche-far" and not HOLDER.match(words(pid))]

    @staticmethod
    def copying(sandbox):
        """Programs that copy files of this sandbox."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            argv = words(int(pid)).split(b"\0")
            if argv[0] == b"cloche-sync" and sandbox.encode() in argv:
                found.append(int(pid))
        return found

    def carriers(self):
        """Programs here that carry the stream of a room."""
        return [pid for pid, _ in processes_with_marker(self.dir.encode())
                if os.path.basename(words(pid).split(b"\0")[0]).startswith(b"cloche-provider-")]

    def kill_carriers(self):
        expect(wait_until(self.carriers), "nothing carries it")  # after a cut there may be none for a moment
        for pid in self.carriers():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut_while_it_prints(self):
        """All that a command prints arrives, and its status, though its carrier is killed and its line is cut twice."""
        p = self.popen("run", "-i", *self.options, "--", "sh", "-c", LINES, stdin=subprocess.PIPE)
        data, cuts = b"", [self.kill_carriers, self.relay.cut, self.relay.cut]
        try:
            for more in iter(lambda: os.read(p.stdout.fileno(), 65536), b""):
                data += more
                while cuts and len(data) > len(PRINTED) * (4 - len(cuts)) // 5:
                    cuts.pop()()
                # Only then may it end: what removes a sandbox is the same program as what carries its stream.
                if not cuts and not p.stdin.closed:
                    p.stdin.write(b"\n")
                    p.stdin.close()
            said = p.stderr.read().decode()
        except BaseException:
            p.kill()
            raise
        finally:
            p.stdout.close()
            p.stderr.close()
        expect((p.wait(PATIENCE), data == PRINTED, cuts) == (9, True, []), "after the cuts", p.returncode, len(data), len(PRINTED), cuts, said)

    def nothing_left(self):
        expect(wait_until(lambda: not self.rooms() and not self.holders() and not self.here()), "left", self.rooms(), self.holders(), self.here())


class Sandbox:
    """A kept sandbox of a rig, removed whatever happens."""

    def __init__(self, rig, options):
        self.rig, self.create = rig, options

    def __enter__(self):
        self.id = self.rig.out("create", *self.rig.options, *self.create).strip()
        return self

    def __exit__(self, *_):
        self.rig.cloche("rm", "-f", self.id, status=None)

    def exec(self, *command, options=(), **how):
        return self.rig.cloche("exec", self.id, *options, "--", *command, **how)

    def sh(self, text, *options, **how):
        return self.exec("sh", "-c", text, options=options, **how).stdout


class Elsewhere(Rig):
    """Another network namespace of this machine, by the provider of the examples."""
    name, remote = "elsewhere", False

    def __enter__(self):
        need("unshare")
        self.tmp = TemporaryDir()
        self.dir = self.home = self.tmp.__enter__()
        os.mkdir(os.path.join(self.dir, "run"), 0o700)
        self.env = clean_env(CLOCHE_RUNTIME_DIR=os.path.join(self.dir, "run"), CLOCHE_STATE_DIR=os.path.join(self.dir, "state"), HOME=self.dir)
        self.options = ["--provider", ELSEWHERE, "--place", "here",
                        "--no-workspace", "--limits", "best-effort"]
        return self

    def __exit__(self, *_):
        self.tmp.__exit__(None, None, None)


class Ssh(SshPlace, Rig):
    """A real sshd of another user; the name of the configuration that is used says by which way."""
    name, remote = "ssh", True

    def __init__(self, host="there"):
        super().__init__()
        self.host = host

    def start(self):
        if os.geteuid() != 0:
            self.account()
        super().start()
        self.home = self.path("home") if os.geteuid() == 0 else os.path.expanduser("~")
        self.options = ["--provider", "ssh", "--place", self.host, "--no-workspace", "--limits", "best-effort"]
        self.connected()

    def mend(self):
        """A relay in the place of one that was closed."""
        self.relay = Relay(self.port)
        with open(self.path("config")) as f:
            text = f.read()
        self.write("config", re.sub(r"(Host relayed\n\tPort )\d+", r"\g<1>%d" % self.relay.number, text))

    def connected(self):
        if not os.path.exists(os.path.join(BIN, "cloche-provider-ssh")):
            raise Skip("there is no provider ssh in this build")


class Terminal:
    """A command with a terminal of ours."""

    def __init__(self, rig, *args, size=(30, 100)):
        self.master, slave = pty.openpty()
        self.size(*size)
        self.p = subprocess.Popen([CLOCHE, *args], env=dict(rig.env, TERM="dumb"), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                  preexec_fn=own_terminal)
        os.close(slave)
        self.text = b""

    def size(self, rows, columns):
        subprocess.run(["stty", "rows", str(rows), "columns", str(columns)], stdin=self.master, check=True)

    def type(self, data):
        os.write(self.master, data)

    def wait_for(self, word, seconds=PATIENCE):
        """Until it was printed; what was printed up to it is dropped."""
        end = time.monotonic() + seconds
        while word not in self.text:
            expect(self.read(end), "the terminal does not show", word, self.text)
        self.text = self.text.partition(word)[2]

    def read(self, end):
        if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data
        return bool(data)

    def wait(self):
        """Its exit status, and what else it showed."""
        end = time.monotonic() + PATIENCE
        while self.read(end):
            pass
        return self.p.wait(PATIENCE), self.text

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        os.close(self.master)


def own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
