# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of all groups of tests beside each other. Theory of operation:

Most tests wait for most of their time. So there are always JOBS programs under way, and one more if none
of them is of the group whose turn it is; and if the processors have nothing to do, more. Those that take
long begin first, so that none is left alone at the end. On a busy machine there are thus no more at once
than JOBS and one. Of one lane (programs that must not meet each other) there is never more than one under
way. What is alone runs after all the others, and with nothing beside it.

What is printed is in the order of the groups: what a later group says waits until it is its turn."""
import os
import threading
import time
import traceback

from tapread import broken

JOBS = max(2, os.cpu_count() or 2)
JOBS_MAX = 5 * JOBS
IDLE_ENOUGH = 0.2  # of all processors
LOOK_AFTER = 0.1   # seconds: what was started last is then felt


class Job:
    """run() returns a Result, or None if there is nothing to be told. expected: about how many seconds it
    waits for, if that matters. beside: does not count, as it gives way to all others."""

    def __init__(self, group, name, run, expected=0, lane=None, alone=False, beside=False):
        self.group, self.name, self.run, self.expected = group, name, run, expected
        self.lane, self.alone, self.beside = lane, alone, beside


class Processors:
    """How idle they are. What runs at a low priority gives way: that is idle too."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.at, self.last = time.monotonic(), self._read()

    @staticmethod
    def _read():
        with open("/proc/stat") as f:
            ticks = [int(n) for n in f.readline().split()[1:9]]
        return ticks[1] + ticks[3] + ticks[4], sum(ticks)  # nice, idle, waiting for a disk

    def are_idle(self):
        """Whether they were, for as long as a look takes."""
        if time.monotonic() - self.at < LOOK_AFTER:
            return False
        before = self.last
        self.reset()
        total = self.last[1] - before[1]
        return total > 0 and (self.last[0] - before[0]) / total > IDLE_ENOUGH


class Schedule:
    def __init__(self, groups, report):
        """report(group, name, result) is called by one thread at a time, group by group; with
        no name where a group begins."""
        self.groups, self.report = groups, report
        self.waiting, self.running = [], []
        self.told = {g: [] for g in groups}
        self.turn = -1
        self.changed = threading.Condition()
        self.processors = Processors()

    def add(self, jobs):
        with self.changed:
            self.waiting += jobs
            self.changed.notify_all()

    def run(self):
        with self.changed:
            while True:
                self._tell()
                if not self.waiting and not self.running:
                    return
                job = self._choose()
                if job:
                    self._start(job)
                else:
                    self.changed.wait(LOOK_AFTER)

    def _choose(self):
        lanes = {j.lane for j in self.running if j.lane}
        can = [j for j in self.waiting if not j.alone and j.lane not in lanes]
        if not can:
            alone = [j for j in self.waiting if j.alone]
            return alone[0] if alone and not self.running and len(alone) == len(self.waiting) else None
        for j in can:
            if j.beside:
                return j
        now = sum(not j.beside for j in self.running)
        turn = self.groups[self.turn]
        its_turn = [j for j in can if j.group == turn]
        if its_turn and now <= JOBS and not any(j.group == turn and not j.beside for j in self.running):
            return max(its_turn, key=lambda j: j.expected)
        if now < JOBS or now < JOBS_MAX and self.processors.are_idle():
            return max(can, key=lambda j: j.expected)
        return None

    def _start(self, job):
        self.waiting.remove(job)
        self.running.append(job)
        self.processors.reset()
        threading.Thread(target=self._perform, args=(job,), daemon=True).start()

    def _perform(self, job):
        try:
            result = job.run()
        except Exception:  # else the group would never end
            result = broken("cannot be run", traceback.format_exc())
        with self.changed:
            if result:
                self.told[job.group].append((job.name, result))
            self.running.remove(job)
            self.changed.notify_all()

    def _tell(self):
        """What may be said now; called with the lock held."""
        while True:
            if self.turn >= 0:
                group = self.groups[self.turn]
                while self.told[group]:
                    self.report(group, *self.told[group].pop(0))
                if any(j.group == group for j in self.waiting + self.running):
                    return
            if self.turn + 1 == len(self.groups):
                return
            self.turn += 1
            self.report(self.groups[self.turn], None, None)
