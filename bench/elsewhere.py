# SPDX-License-Identifier: Apache-2.0
"""Rooms on other machines, each beside the bare carrier: a real sshd on loopback, as an ordinary user there, and where it is
built (make cluster) a real Kubernetes of two nodes in namespaces."""
import os
import random
import shutil
import subprocess
import time

import start
from cluster import Cluster, why_not
from common import RULES_HEAD, SECRET, Contest, Series, Worker, ratio, rule
from far_place import Ssh
from images import toolbox
from memory import pss_kib
from testlib import CLOCHE, Skip, processes_with_marker

EXECS, CREATES, REQUESTS, COPIES, PODS, IDLE = 200, 20, 9, 7, 15, 100
FILES, EACH = 1024, 1 << 20
ROUND_TRIP = 0.1  # seconds, of a relay before the sshd
IMAGE = "localhost/cloche/toolbox:1"


class Made:
    """Kept sandboxes of one environment, removed at the end."""

    def __init__(self, env):
        self.env, self.names = env, []

    def create(self, *options):
        p = subprocess.run([CLOCHE, "create", *options], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        self.names.append(p.stdout.strip())
        return self.names[-1]

    def remove(self):
        while self.names:
            some, self.names = self.names[:20], self.names[20:]
            subprocess.run([CLOCHE, "rm", "-f", *some], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)


def timed(argv, env):
    begin = time.perf_counter()
    subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def multiplexed(place):
    """A connection that `ssh` shares from now on, as cloche's provider does; returns the command's beginning."""
    path = place.path("peer-master")
    subprocess.run(["ssh", "-MNf", "-o", "ClearAllForwardings=yes", "-o", "ControlPath=" + path, "there"], env=place.env, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["ssh", "-o", "ControlPath=" + path, "there"]


def execs(place, made, shared):
    contest, worker = Contest(), Worker([], place.env)
    contest.add("ssh there true, over a connection that is there", worker, [*shared, "/bin/true"])
    contest.add("cloche exec, in a room there", worker, [CLOCHE, "exec", made.create(*place.options), "--", "/bin/true"])
    contest.run(EXECS)
    worker.close()
    made.remove()
    return contest


def creates(place, made):
    """A new connection for the one; the other reuses its own, but makes a room."""
    contest, worker = Contest(), Worker([], place.env)
    contest.add("ssh there true, a new connection", worker, ["ssh", "there", "/bin/true"])
    for first in (True, False):
        what = "cloche create, " + ("the first at this place" if first else "a connection is there")
        times = contest.times[what] = Series()
        for _ in range(CREATES):
            contest.times["ssh there true, a new connection"].add(worker.time(["ssh", "there", "/bin/true"])[0])
            if first:
                place.end_masters()
            begin = time.perf_counter()
            made.create(*place.options)
            times.add(time.perf_counter() - begin)
            made.remove()
    worker.close()
    return contest


def requests(place, made, stage):
    """Seconds of a request in a room, from name to last byte: natively, and behind a line of ROUND_TRIP."""
    network = start.with_network(stage, [])[3:-1]
    place.relay.delay = ROUND_TRIP / 2
    rooms = [made.create("--no-workspace", *network), made.create(*place.options, "--place", "relayed", *network)]
    found = [Series(), Series()]
    curl = ["curl", "-sf", "-o", "/dev/null", "-w", "%{time_total}", "https://up.test/1k"]
    for _ in range(REQUESTS):
        for room, series in zip(rooms, found):
            p = subprocess.run([CLOCHE, "exec", room, "--", *curl], env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               check=True)
            series.add(float(p.stdout))
    place.relay.delay = 0
    made.remove()
    return found


def copies(place, made, shared, work):
    """Seconds for a GiB of files to be there: (ours, tar's)."""
    tree, ours, tars = os.path.join(work, "gib"), Series(), Series()
    os.mkdir(tree)
    for i in range(FILES):
        with open(os.path.join(tree, "file%d" % i), "wb") as f:
            f.write(os.urandom(EACH))
    options = [o for o in place.options if o != "--no-workspace"]
    pipe = 'tar -C "$0" -c . | "$@"'
    there = "rm -rf copy && mkdir copy && tar -C copy -x"
    for _ in range(COPIES):
        tars.add(timed(["sh", "-c", pipe, tree, *shared, there], place.env))
        begin = time.perf_counter()
        made.create(*options, "--workspace", tree)
        ours.add(time.perf_counter() - begin)
        made.remove()
    shutil.rmtree(tree)
    return ours, tars


def idle(place, made):
    """KiB that each of IDLE rooms there takes here, all processes of ours and of ssh's client together."""
    for _ in range(IDLE):
        made.create(*place.options)
    time.sleep(2)  # an idle room gives back what only its start needed
    here = [pid for pid, _ in processes_with_marker(place.env["CLOCHE_RUNTIME_DIR"].encode()) if os.stat("/proc/%d" % pid).st_uid == os.geteuid()]
    kib = pss_kib(here) / IDLE
    made.remove()
    return kib


def ssh_rows(work, stage):
    lines = []
    with Ssh() as place:
        place.env.update(BENCH_TOKEN=SECRET)
        made = Made(place.env)
        shared = multiplexed(place)
        try:
            timed([CLOCHE, "run", *place.options, "--", "/bin/true"], place.env)  # brings cloche-far there
            exec_times, create_times = execs(place, made, shared), creates(place, made)
            native, far = requests(place, made, stage)
            ours, tars = copies(place, made, shared, work)
            kib = idle(place, made) if os.geteuid() == 0 else None
        finally:
            made.remove()
            subprocess.run([*shared[:-1], "-O", "exit", "there"], env=place.env, check=False, stderr=subprocess.DEVNULL)
    lines += exec_times.table() + create_times.table()[2:]
    for what, series in (("a request in a room here", native), ("a request in a room there, %d ms away" % (ROUND_TRIP * 1e3), far),
                         ("tar through ssh, 1 GiB in %d files" % FILES, tars), ("cloche create with these as the workspace", ours)):
        lines.append("| %s | %.2f | %.2f | %.2f | %d |" % (what, series.median * 1e3, min(series.values) * 1e3, max(series.values) * 1e3,
                                                          len(series.values)))
    lines += RULES_HEAD
    rule(lines, "cloche exec later than a shared ssh, ms", exec_times.later_ms("cloche exec, in a room there",
                                                                              "ssh there true, over a connection that is there"), 2, False)
    bare = create_times.times["ssh there true, a new connection"].median
    for name, series in list(create_times.times.items())[1:]:
        rule(lines, name + ", later than a new ssh, ms", (series.median - bare) * 1e3, 150, False)
    rule(lines, "round trips that a request there takes more than one here", ratio(far, native, lambda a, b: (a - b) / ROUND_TRIP), 2, False)
    rule(lines, "tar and ssh / cloche create, 1 GiB of workspace", ratio(tars, ours), 0.8, True)
    rule(lines, "memory here of one of %d idle rooms there, MiB" % IDLE, kib and kib / 1024, 3, False)
    return lines


def at_some_moment():
    """A node looks at its containers once in a second. Whoever begins when the last pod is ready always begins at the same
    moment of that second, and so waits for as long each time as nobody else does."""
    time.sleep(random.random())


def bare_pod(cluster, name):
    """Seconds until a pod runs that kubectl makes of the same image. It looks as often as kubectl does."""
    at_some_moment()
    begin = time.perf_counter()
    cluster.kubectl("run", name, "--image", IMAGE, "--restart", "Never", "--command", "--", "sleep", "3600")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/" + name, "--timeout=120s")
    return time.perf_counter() - begin


def pods(cluster, made, options):
    contest = Contest()
    bare, ours = (contest.times.setdefault(what, Series()) for what in ("kubectl run and wait", "cloche create, a pod"))
    for i in range(PODS):
        bare.add(bare_pod(cluster, "bare%d" % i))
        at_some_moment()
        begin = time.perf_counter()
        made.create(*options)
        ours.add(time.perf_counter() - begin)
        cluster.kubectl("delete", "pod", "bare%d" % i, "--now")
        made.remove()
    bare_pod(cluster, "bare")
    worker = Worker([], made.env)
    contest.add("kubectl exec", worker, ["kubectl", "exec", "bare", "--", "true"])
    contest.add("cloche exec, in a pod", worker, [CLOCHE, "exec", made.create(*options), "--", "true"])
    contest.run(20)
    worker.close()
    return contest


def cluster_rows(work):
    run = os.path.join(work, "cluster-run")
    os.mkdir(run, 0o700)
    with Cluster() as cluster:
        made = Made(cluster.env(CLOCHE_RUNTIME_DIR=run, CLOCHE_STATE_DIR=os.path.join(work, "cluster-state"), HOME=work))
        try:
            cluster.import_image(toolbox(IMAGE).write_saved(os.path.join(work, "toolbox.tar")))
            place = cluster.kubectl("config", "current-context").strip() + "/" + cluster.namespace
            contest = pods(cluster, made, ["--provider", "kubernetes", "--place", place, "--root", "image:" + IMAGE, "--no-workspace"])
        finally:
            made.remove()
    lines = contest.table() + RULES_HEAD
    rule(lines, "cloche create / kubectl run and wait", contest.ratio("cloche create, a pod", "kubectl run and wait"), 1.1, False)
    rule(lines, "kubectl exec / cloche exec", contest.ratio("kubectl exec", "cloche exec, in a pod"))
    return lines


def row(work, stage):
    lines = ["## Rooms on other machines", "",
             "Milliseconds of wall time, beside the bare carrier. The other machine is this one, reached by Debian's sshd on loopback "
             "as an ordinary user, so both sides share the processors. The peer of exec is ssh over a connection that is shared, as ours "
             "is; it has a process started by the sshd for each command, where the room's own stream carries ours. A request goes from a room there to an origin here, through a relay that holds each "
             "byte for half of %d ms and no longer (no algorithm of Nagle's in it); the native room is on this side of it. Memory is the proportional set size of all processes here, "
             "ssh's client among them." % (ROUND_TRIP * 1e3), ""]
    try:
        lines += ssh_rows(work, stage)
    except Skip as why:
        lines.append("No ssh: %s." % why)
    lines += ["", "### In a cluster", "", "Kubernetes 1.20, two nodes in namespaces of this machine. `kubectl run` makes a "
              "bare pod; ours is restricted, has directories of its own and a policy, and in it the room has been made. Each begins at "
              "a random moment: a node looks at its containers once in a second, so `kubectl wait` hears up to a second late that one "
              "runs, where ours hears the event of its start.", ""]
    reason = why_not()
    return lines + (["Not measured: %s." % reason] if reason else cluster_rows(work))
