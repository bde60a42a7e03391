# SPDX-License-Identifier: Apache-2.0
"""What all rows of the benchmark share: statistics of rounds, a process that times commands, tables, and
what makes contestants alike."""
import ctypes
import fcntl
import json
import os
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from testlib import clean_env  # noqa: E402

SLOW = 0.05  # seconds
SECRET = "sk-bench-0123456789abcdef0123456789abcdef"


def log(*words):
    print(*words, file=sys.stderr, flush=True)


def have(program):
    return shutil.which(program, path=clean_env()["PATH"]) is not None


def own_network():
    """The whole run happens in a network namespace of its own: loopback alone, and for everybody the
    congestion control that a room has. The host's settings stay as they are. Returns what is in
    force, in words."""
    sysctl, v6 = "/proc/sys/net/ipv4/tcp_congestion_control", "/proc/sys/net/ipv6/conf/lo/disable_ipv6"
    before = os.readlink("/proc/self/ns/net")
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.unshare(0x40000000) == 0 and \
       os.readlink("/proc/self/ns/net") != before:
        if os.path.exists(v6):  # the servers here listen on 127.0.0.1 alone
            with open(v6, "w") as f:
                f.write("1")
        with socket.socket() as s:
            fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
        with open(sysctl, "w") as f:
            f.write("reno")
    with open(sysctl) as f:
        return f.read().strip()


CRYPTO = """openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
Ciphersuites = TLS_AES_128_GCM_SHA256
MinProtocol = TLSv1.3
Groups = X25519:P-256
"""


class Series:
    """The values of one contestant, one a round. lost: rounds that failed."""

    def __init__(self, values=()):
        self.values, self.lost = list(values), 0

    def add(self, v):
        self.values.append(v)

    @property
    def median(self):
        return statistics.median(self.values)

    def text(self, scale=1.0, digits=2):
        if not self.values:
            return "not measured"
        low, high = self.spread()
        return "%.*f (%.*f to %.*f)" % (digits, self.median * scale, digits, low * scale, digits,
                                        high * scale)

    def spread(self):
        """The range of a few values, the middle half of many."""
        v = sorted(self.values)
        cut = len(v) // 4 if len(v) >= 20 else 0
        return v[cut], v[len(v) - 1 - cut]

    def rounds(self):
        return "%d" % len(self.values) + (", %d FAILED" % self.lost if self.lost else "")


def runtime_folder(work):
    """A new one in memory, as /run is on most systems; here that may be on a disk that others keep
    busy."""
    return tempfile.TemporaryDirectory(
        prefix="cloche-bench-", ignore_cleanup_errors=True,
        dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else work)


def ratio(ours, theirs, how=lambda a, b: a / b):
    """Of rounds taken together, so that a slow moment hits both sides: a Series, or None."""
    if not ours or not theirs or not ours.values or not theirs.values:
        return None
    if len(ours.values) != len(theirs.values):
        return Series([how(ours.median, theirs.median)])
    return Series(how(a, b) for a, b in zip(ours.values, theirs.values))


def rule(lines, text, value, bound=None, at_least=False):
    """A line of a table "ratio | measured | hold"; value: a Series, a number, or None."""
    if value is None or (isinstance(value, Series) and not value.values):
        lines.append("| %s | not measured | |" % text)
        return
    if not isinstance(value, Series):
        value = Series([value])
    # Three digits if two would show the bound that it misses.
    digits = 3 if bound is not None and "%.2f" % value.median == "%.2f" % bound else 2
    shown = value.text(digits=digits) if len(value.values) > 1 else "%.*f" % (digits, value.median)
    if bound is None:
        lines.append("| %s | %s | |" % (text, shown))
        return
    ok = value.median >= bound if at_least else value.median <= bound
    lines.append("| %s | %s | %s %g: %s |" % (text, shown, "at least" if at_least else "at most",
                                             bound, "yes" if ok else "NO"))


RULES_HEAD = ["", "| ratio | measured | hold |", "|---|---|---|"]

WORKER = r"""
import json, os, sys, time
for line in sys.stdin:
    argv = json.loads(line)
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=null)
    status = os.waitpid(pid, 0)[1]
    print(time.perf_counter() - start, os.waitstatus_to_exitcode(status), flush=True)
"""


class Worker:
    """A process that runs commands and times them: by posix_spawn, with no other work between."""

    def __init__(self, prefix, env, cwd=None):
        self.p = subprocess.Popen(prefix + ["/usr/bin/python3", "-c", WORKER], env=env, cwd=cwd,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def time(self, argv):
        self.p.stdin.write(json.dumps(argv) + "\n")
        self.p.stdin.flush()
        seconds, code = self.p.stdout.readline().split()
        return float(seconds), int(code)

    def close(self):
        self.p.stdin.close()
        self.p.wait()


class Contest:
    """Commands that are timed in turn, in each round in another order: what one leaves behind (a
    namespace that the kernel still takes down, an engine's clean-up) hits all others alike."""

    def __init__(self):
        self.entries = {}  # name: (worker, argv, every)
        self.times, self.absent = {}, {}

    def add(self, name, worker, argv, every=1):
        """every: takes part in each n-th round only, for what is slow."""
        self.entries[name] = (worker, argv, every)
        self.times[name] = Series()

    def leave_out(self, name, why):
        log("bench: %s: %s; left out" % (name, why))
        self.entries.pop(name, None)
        self.times.pop(name, None)
        self.absent[name] = why

    def run(self, rounds, warm=3):
        shuffle = random.Random(1).shuffle
        for i in range(rounds + warm):
            turn = list(self.entries.items())
            shuffle(turn)
            for name, (worker, argv, every) in turn:
                if i >= warm and i % every:
                    continue
                seconds, code = worker.time(argv)
                if code != 0:
                    self.leave_out(name, "does not run here (exit status %d)" % code)
                elif i >= warm:
                    self.times[name].add(seconds)
                if seconds > SLOW:
                    time.sleep(0.1)  # what it still takes down is not the next one's load

    def ratio(self, ours, theirs):
        return ratio(self.times.get(ours), self.times.get(theirs))

    def later_ms(self, ours, theirs):
        return ratio(self.times.get(ours), self.times.get(theirs), lambda a, b: (a - b) * 1e3)

    def table(self):
        lines = ["| what | median | min | p95 | rounds |", "|---|---|---|---|---|"]
        for name, s in self.times.items():
            v = sorted(s.values)
            if v:
                lines.append("| %s | %.2f | %.2f | %.2f | %d |" % (
                    name, s.median * 1e3, v[0] * 1e3, v[max(0, int(len(v) * 0.95) - 1)] * 1e3,
                    len(v)))
        lines += ["| %s | %s | | | |" % (name, why) for name, why in self.absent.items()]
        return lines
