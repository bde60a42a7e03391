# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes, one after the other and at once: what they take, and what is left of them. For
the test of scale and, with larger numbers, for the benchmark."""
import concurrent.futures
import os
import time

from testlib import expect, wait_until
from world import descriptors, read, tree

JOBS = 4
PARTS = ("cloche-supervis", "init", "cloche-gateway", "cloche-broker")


def memory_of(pids, kind):
    """So many KiB are theirs. Kind "Pss": what is shared counts for each by its share. "Anonymous": what is no file's, which does not
    change with who else has the files."""
    total = 0
    for pid in pids:
        for line in read("/proc/%d/smaps_rollup" % pid).split("\n"):
            if line.startswith(kind + ":"):
                total += int(line.split()[1])
    return total


def memory_kib():
    """{name: KiB} of what the kernel says about the whole machine."""
    found = {}
    for line in read("/proc/meminfo").split("\n"):
        name, _, rest = line.partition(":")
        if name in ("MemAvailable", "Slab", "PageTables", "Percpu"):
            found[name] = int(rest.split()[0])
    return found


def kernel_objects():
    """{kind: number} of what rooms are made of, of the whole machine; root alone is told."""
    found = {}
    for line in read("/proc/slabinfo").split("\n"):
        fields = line.split()
        if fields and fields[0] in ("net_namespace", "pid_namespace", "user_namespace", "mnt_cache"):
            found[fields[0]] = int(fields[1])
    return found


def timed(world, *args):
    """(seconds, output) of a command that must succeed."""
    start = time.monotonic()
    p = world.cloche(*args)
    took = time.monotonic() - start
    expect(p.returncode == 0, "cloche %s fails" % " ".join(args), p.returncode, p.stderr)
    return took, p.stdout


def create(world, options):
    took, text = timed(world, "create", "--no-workspace", *options)
    return took, text.strip()


def supervisors(world):
    """Those of kept sandboxes: started by the test, and its children since their starters ended."""
    return [pid for pid, name in world.processes().items()
            if name == "cloche-supervis" and pid not in ours(world)]


def ours(world):
    return world.bystander.parts if world.bystander else {}


def cycles(world, count, options, progress=lambda n: None):
    """create, exec, rm, again and again. {step: [seconds]}; raises if anything is left."""
    steps = {"create": [], "exec": [], "rm": []}
    before = world.snapshot()
    for i in range(count):
        took, identity = create(world, options)
        steps["create"].append(took)
        took, text = timed(world, "exec", identity, "--", "echo", "round %d" % i)
        expect(text == "round %d\n" % i, "exec says", text)
        steps["exec"].append(took)
        steps["rm"].append(timed(world, "rm", "-f", identity)[0])
        progress(i)
    world.expect_unchanged(before, 30)
    return steps


class Standing:
    """Many sandboxes at once."""

    def __init__(self, world, count, options, progress=lambda n: None):
        self.world, self.count = world, count
        self.before, self.memory_before = world.snapshot(), memory_kib()
        self.start_times = []
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            made = []
            for n, result in enumerate(pool.map(lambda _: create(world, options), range(count))):
                made.append(result)
                progress(n)
        self.seconds = time.monotonic() - start
        self.start_times = [t for t, _ in made]
        self.ids = [i for _, i in made]
        self.supervisors = supervisors(world)
        expect(len(self.supervisors) == count, "not all are there", len(self.supervisors))

    def settle(self, gateway):
        """Waits until every gateway runs and what only the starts needed is given back."""
        if gateway:
            expect(wait_until(lambda: sum("cloche-gateway" in tree(s).values()
                                          for s in self.supervisors) == self.count, 60, 0.5),
                   "gateways are missing")
        time.sleep(2)

    def measure(self, seconds=10):
        """What they take all together; while that long nothing happens."""
        found = {"processes": 0, "descriptors": 0, "pss": 0}
        parts = {name: 0 for name in PARTS}
        for s in self.supervisors:
            for pid, name in tree(s).items():
                kib = memory_of([pid], "Pss")
                found["processes"] += 1
                found["descriptors"] += len(descriptors(pid))
                found["pss"] += kib
                parts[name] = parts.get(name, 0) + kib
        now = memory_kib()
        found["parts"] = parts
        found["available"] = self.memory_before["MemAvailable"] - now["MemAvailable"]
        found["kernel"] = sum(now[k] - self.memory_before[k] for k in
                              ("Slab", "PageTables", "Percpu") if k in now)
        found["cpu"] = self.idle_cpu(seconds)
        return found

    def cpu_ticks(self):
        total = 0
        for s in self.supervisors:
            for pid in tree(s):
                fields = read("/proc/%d/stat" % pid).rsplit(")", 1)[-1].split()
                total += int(fields[11]) + int(fields[12]) if fields else 0
        return total

    def idle_cpu(self, seconds):
        """The share of one processor that all of them use while nothing happens, in per cent."""
        start = self.cpu_ticks()
        begun = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun
        return (self.cpu_ticks() - start) / os.sysconf("SC_CLK_TCK") / took * 100

    def use_each(self):
        """Runs something in each; returns the seconds."""
        def one(identity):
            took, text = timed(self.world, "exec", identity, "--", "echo", identity)
            expect(text == identity + "\n", "exec says", text)
            return took
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return list(pool.map(one, self.ids))

    def ps(self):
        took, text = timed(self.world, "ps")
        for identity in self.ids:
            expect(identity in text, "ps does not list it", identity)
        return took

    def remove(self):
        """Returns the seconds that it took; raises if anything is left."""
        start = time.monotonic()
        ids = list(self.ids)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(lambda i: timed(self.world, "rm", "-f", i), ids))
        took = time.monotonic() - start
        self.world.expect_unchanged(self.before, 30)
        return took


def many_commands(world, count):
    """Many commands in one sandbox. {what: (before, after)} of its supervisor."""
    identity = create(world, [])[1]
    pid = supervisors(world)[0]

    def use(n):
        for i in range(n):
            timed(world, "exec", identity, "--", "echo", "line %d" % i)

    def now():
        time.sleep(0.5)
        return len(descriptors(pid)), memory_of([pid], "Anonymous")
    # What it keeps of past commands is bounded: first that is filled.
    use(count // 2)
    first = now()
    use(count - count // 2)
    last = now()
    expect(timed(world, "rm", "-f", identity), "rm")
    return {"descriptors": (first[0], last[0]), "memory": (first[1], last[1])}
