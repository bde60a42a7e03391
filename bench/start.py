# SPDX-License-Identifier: Apache-2.0
"""Rows 1 and 2: starting a room, running /bin/true in it, taking it down."""
import os

import engines
from common import (RULES_HEAD, SECRET, Contest, Worker, clean_env, have, rule,
                    runtime_folder)
from testlib import CLOCHE

BWRAP = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp " \
        "--die-with-parent --new-session /bin/true".split()
PLAIN = [CLOCHE, "run", "--no-workspace", "--", "/bin/true"]
GATEWAY = [CLOCHE, "run", "--no-workspace", "--allow", "api.test", "--secret",
           "TOKEN=BENCH_TOKEN@api.test", "--", "/bin/true"]
USER = 64210

# What a wrapper around an engine and a proxy does: the proxy first, since the container needs it.
WITH_PROXY = """
mitmdump -q --listen-host 127.0.0.1 --listen-port 18080 --set confdir="$0/mitm" & proxy=$!
until (exec 3<>/dev/tcp/127.0.0.1/18080) 2>/dev/null; do sleep 0.01; done
"$@"; code=$?
kill $proxy; wait $proxy; exit $code
"""


def add_user(contest, work, env, runtime):
    """The same as an ordinary user, where the benchmark itself is run by root."""
    home = os.path.join(work, "home")
    os.mkdir(home)
    os.chown(home, USER, USER)
    os.chown(runtime, USER, USER)
    os.chmod(work, 0o755)
    worker = Worker(["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--"],
                    dict(env, HOME=home, XDG_RUNTIME_DIR=runtime, TMPDIR=home))
    if have("bwrap"):
        contest.add("bwrap --unshare-all, as a user", worker, BWRAP)
    contest.add("cloche run, as a user", worker, PLAIN)
    contest.add("cloche run, gateway and secret, as a user", worker, GATEWAY)
    return worker


def add_engines(contest, work, started):
    for name, kind, every in (("crun run", engines.Crun, 1), ("podman run", engines.Podman, 8),
                              ("docker run", engines.Docker, 8)):
        try:
            e = kind(work)
        except engines.Absent as why:
            contest.leave_out(name, str(why))
            continue
        started[name] = e
        contest.add(name, e.worker, e.run_true, every)
    podman = started.get("podman run")
    if podman and have("mitmdump"):
        contest.add("podman run beside a mitmdump of its own", podman.worker,
                    ["bash", "-c", WITH_PROXY, podman.folder] + podman.run_true, 25)


def row(work, started, rounds=160):
    """started: engines by name; what is started here stays for the next row."""
    with runtime_folder(work) as own, runtime_folder(work) as users:
        return report(measure(work, started, rounds, own, users))


def measure(work, started, rounds, own, users):
    contest = Contest()
    env = clean_env(BENCH_TOKEN=SECRET)
    workers = [Worker([], dict(env, CLOCHE_RUNTIME_DIR=own))]
    contest.add("/bin/true alone", workers[0], ["/bin/true"])
    contest.add("cloche run", workers[0], PLAIN)
    contest.add("cloche run, gateway and secret", workers[0], GATEWAY)
    if have("bwrap"):
        contest.add("bwrap --unshare-all", workers[0], BWRAP)
    else:
        contest.leave_out("bwrap --unshare-all", "is not installed")
    if os.geteuid() == 0:
        workers.append(add_user(contest, work, env, users))
    add_engines(contest, work, started)
    try:
        contest.add("srt", workers[0], engines.srt(work), 15)
    except engines.Absent as why:
        contest.leave_out("srt", str(why))
    contest.run(rounds)
    for w in workers:
        w.close()
    return contest


def report(contest):
    lines = ["## Start, run /bin/true, tear down (rows 1 and 2)", "",
             "Milliseconds of wall time, all in turn; what is slow takes part in some rounds only. "
             "The gateway process starts at the room's first use of its network, which /bin/true "
             "makes none of; broker, capture, policy, authority and trust are there. Engines run "
             "a statically linked true from an image of one file, without a network; the others "
             "run the host's. The sandbox's directory is on a tmpfs.", ""]
    lines += contest.table() + RULES_HEAD
    for tail in ("", ", as a user"):
        for ours, hold in (("cloche run", 1.0), ("cloche run, gateway and secret", 2.0)):
            if ours + tail in contest.times:
                rule(lines, "%s / bwrap%s" % (ours, tail), contest.ratio(
                    ours + tail, "bwrap --unshare-all" + tail), hold, False)
    rule(lines, "podman run and mitmdump / cloche run, gateway and secret", contest.ratio(
        "podman run beside a mitmdump of its own", "cloche run, gateway and secret"), 50, True)
    lines += ["", "| peer | times cloche run |", "|---|---|"]
    for peer in ("bwrap --unshare-all", "crun run", "podman run", "docker run", "srt"):
        r = contest.ratio(peer, "cloche run")
        lines.append("| %s | %s |" % (peer, "%.1f" % r if r else "not measured"))
    return lines
