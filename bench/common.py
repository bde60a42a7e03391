# SPDX-License-Identifier: Apache-2.0
"""What all rows of the benchmark share: statistics of rounds, a process that times commands, tables."""
import json
import os
import random
import shutil
import statistics
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


class Series:
    """The values of one contestant, one a round."""

    def __init__(self):
        self.values = []

    def add(self, v):
        self.values.append(v)

    @property
    def median(self):
        return statistics.median(self.values)

    def text(self, scale=1.0, digits=2):
        if not self.values:
            return "not measured"
        return "%.*f (%.*f to %.*f)" % (digits, self.median * scale, digits, min(self.values) *
                                        scale, digits, max(self.values) * scale)


def runtime_folder(work):
    """A new one in memory, as /run is on most systems; here that may be on a disk that others keep
    busy."""
    return tempfile.TemporaryDirectory(
        prefix="cloche-bench-", ignore_cleanup_errors=True,
        dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else work)


def ratio(ours, theirs):
    """Of the medians of rounds taken together, so that a slow moment hits both sides."""
    if not ours or not theirs or not ours.values or not theirs.values:
        return None
    if len(ours.values) != len(theirs.values):
        return ours.median / theirs.median
    return statistics.median(a / b for a, b in zip(ours.values, theirs.values))


def rule(lines, text, value, bound, at_least):
    """A line of a table "ratio | measured | hold"."""
    if value is None:
        lines.append("| %s | not measured | |" % text)
        return
    ok = value >= bound if at_least else value <= bound
    lines.append("| %s | %.2f | %s %g: %s |" % (text, value, "at least" if at_least else "at most",
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
