# SPDX-License-Identifier: Apache-2.0
"""Runs a program that speaks TAP, and reads what it said."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import orphans

UNDER_WAY = set()  # process groups
STARTING = threading.Lock()
ENDING = threading.Event()
LINE = re.compile(r"^(not )?ok\b\s*(\d*)\s*(?:- )?(.*?)(?:\s*#\s*(SKIP|TODO)\b\s*(.*))?$", re.I)
# What a program that tries things by chance says once, at its start or in one test.
SEED = re.compile(r"^# (CLOCHE_TEST_SEED=|seed )\d")
# So many seconds what a program has left has to end by itself: on a busy machine a sandbox takes some to end.
PATIENCE = 60


class Result:
    """What one program said."""

    def __init__(self):
        self.passed, self.failures, self.skips = 0, [], []
        self.names = []  # of those that passed
        self.plan = None
        self.seconds = self.cpu = 0.0


def broken(why, output=""):
    r = Result()
    r.failures.append((why, output.splitlines()))
    return r


def parse(output, code):
    r = Result()
    notes = []
    for line in output.splitlines():
        if line.startswith("Bail out!"):
            r.failures.append((line, notes))
            return r
        plan = re.match(r"^1\.\.(\d+)(?:\s*#\s*SKIP\S*\s*(.*))?$", line, re.I)
        if plan:
            r.plan = int(plan.group(1))
            if r.plan == 0:
                r.skips.append(("whole program", plan.group(2) or "no reason given"))
            continue
        m = LINE.match(line)
        if not m:
            notes.append(line)
            continue
        bad, _, name, directive, reason = m.groups()
        if directive and directive.upper() == "SKIP":
            r.skips.append((name, reason or "no reason given"))
        elif bad:
            r.failures.append((name, notes))
        else:
            r.passed += 1
            r.names.append(name)
        notes = []
    ran = r.passed + len(r.failures) + len(r.skips)
    if r.plan is None:
        r.failures.append(("ended without a plan (exit status %s)" % code, notes))
    elif r.plan not in (0, ran):
        r.failures.append(("planned %d tests, ran %d (exit status %s)" % (r.plan, ran, code),
                           notes))
    elif code != 0 and not r.failures:
        r.failures.append(("all passed, yet the exit status is %s" % code, notes))
    return r


def read(output, code, hung_after=None):
    """hung_after: so many seconds it was given, if it did not end by itself. Whatever failed, its notes
    end with the seeds: there nobody cuts them off."""
    r = parse(output, code)
    if hung_after is not None:
        r.failures = [("did not end within %d seconds" % hung_after, output.splitlines()[-20:])]
    r.failures += [(line[2:], []) for line in output.splitlines() if line.startswith(orphans.LEFT)]
    seeds = [line for line in output.splitlines() if SEED.match(line)]
    r.failures = [(what, [n for n in notes if n not in seeds] + seeds) for what, notes in r.failures]
    return r


def end_group(pid, number=signal.SIGKILL):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


def end_all(patience=20):
    """Who is interrupted takes down what it has made; who does not end is killed. From here on nothing is begun, and
    another Ctrl-C changes nothing. Only the main thread may call this, while others are in run_tap()."""
    with STARTING:
        ENDING.set()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for number, seconds in ((signal.SIGINT, patience), (signal.SIGKILL, 5)):
        for pid in list(UNDER_WAY):
            end_group(pid, number)
        until = time.monotonic() + seconds
        while UNDER_WAY and time.monotonic() < until:
            time.sleep(.1)


def end_when_interrupted():
    """For a test that runs programs itself: their process groups do not notice that it is interrupted."""
    def interrupted(number, frame):
        end_all(10)
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, interrupted)


def run_tap(argv, timeout, env, cwd, patience=PATIENCE):
    """Runs one program in a process group of its own. One that takes too long is interrupted first, so that it can end
    what it has in other groups; then its group is killed. What it leaves running fails it (orphans.py), but with None
    as patience."""
    start = time.monotonic()
    hung, ended = threading.Event(), threading.Event()
    if patience is not None:
        argv = [sys.executable, "-S", "-E", orphans.__file__, str(patience), *argv]
    with tempfile.TemporaryFile() as out:
        with STARTING:
            if ENDING.is_set():
                sys.exit()
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                 env=env, cwd=cwd, start_new_session=True)
            UNDER_WAY.add(p.pid)

        def end():
            hung.set()
            end_group(p.pid, signal.SIGINT)
            if not ended.wait(20):
                end_group(p.pid)
        watch = threading.Timer(timeout, end)
        watch.daemon = True
        watch.start()
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        if hung.is_set() or ENDING.is_set():
            end_group(p.pid)
        # Instead of wait(): with what it and those that it waited for have used.
        _, status, usage = os.wait4(p.pid, 0)
        watch.cancel()
        ended.set()
        UNDER_WAY.discard(p.pid)
        if ENDING.is_set():
            sys.exit()
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    r = read(text, p.returncode, timeout if hung.is_set() else None)
    r.seconds = time.monotonic() - start
    r.cpu = usage.ru_utime + usage.ru_stime
    return r
