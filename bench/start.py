# SPDX-License-Identifier: Apache-2.0
"""Rows 1 and 2: starting a room, running a command in it, taking it down."""
import os
import subprocess

import engines
from common import (HERE, RULES_HEAD, SECRET, Contest, Worker, clean_env, have, rule,
                    runtime_folder)
from testlib import CLOCHE

# The leanest that still is a sandbox, and what people rather write.
LEAN = "bwrap --unshare-all --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib " \
       "--symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp".split()
WHOLE = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp " \
        "--die-with-parent --new-session".split()
PLAIN = [CLOCHE, "run", "--no-workspace", "--"]
TRUE = ["/bin/true"]
USER = 64210

# What a wrapper around an engine and a proxy does: the proxy first, since the container needs it.
WITH_PROXY = """
mitmdump -q --listen-host 127.0.0.1 --listen-port 18080 --set confdir="$0/mitm" & proxy=$!
until (exec 3<>/dev/tcp/127.0.0.1/18080) 2>/dev/null; do sleep 0.01; done
"$@"; code=$?
kill $proxy; wait $proxy; exit $code
"""


def with_network(stage, command):
    """A room with gateway, policy, authority and a masked secret."""
    return [CLOCHE, "run", "--no-workspace", "--allow", "up.test", "--secret",
            "TOKEN=BENCH_TOKEN@up.test", "--upstream-ca", stage.authority.cert, "--connect-to",
            "up.test:443:127.0.0.1:%d" % stage.origin, "--"] + command


def request(stage):
    """The same client with as long a list of roots, in a room and in bwrap with the origin before it."""
    system, bundle = "/etc/ssl/certs/ca-certificates.crt", os.path.join(stage.work, "bundle.pem")
    with open(bundle, "w") as out:
        for path in (system, stage.authority.cert):
            with open(path) as f:
                out.write(f.read())
    curl = ["curl", "-sf", "--noproxy", "*", "-o", "/dev/null", "https://up.test/1k"]
    direct = ["--connect-to", "up.test:443:localhost:%d" % stage.origin]
    return LEAN + ["--share-net", "--ro-bind", bundle, system] + curl[:1] + direct + curl[1:], \
        with_network(stage, curl)


def add(contest, worker, stage, tail=""):
    """What is compared, by one user."""
    outside, inside = request(stage)
    if have("bwrap"):
        contest.add("bwrap" + tail, worker, LEAN + TRUE)
        contest.add("bwrap, one HTTPS request" + tail, worker, outside)
    else:
        contest.leave_out("bwrap" + tail, "is not installed")
    contest.add("cloche run" + tail, worker, PLAIN + TRUE)
    contest.add("cloche run, gateway and secret" + tail, worker, with_network(stage, TRUE))
    contest.add("cloche run, one HTTPS request" + tail, worker, inside)


def add_user(contest, work, stage, env, runtime):
    """The same as an ordinary user, where the benchmark itself is run by root."""
    home = os.path.join(work, "home")
    os.makedirs(home, exist_ok=True)
    os.chown(home, USER, USER)
    os.chown(runtime, USER, USER)
    os.chmod(work, 0o755)
    worker = Worker(["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--"],
                    dict(env, HOME=home, XDG_RUNTIME_DIR=runtime, TMPDIR=home))
    add(contest, worker, stage, ", as a user")
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


def row(work, started, stage, rounds=120):
    """started: engines by name; what is started here stays for the next row."""
    with runtime_folder(work) as own, runtime_folder(work) as users:
        return report(measure(work, started, stage, rounds, own, users))


def measure(work, started, stage, rounds, own, users):
    contest = Contest()
    env = clean_env(BENCH_TOKEN=SECRET, TMPDIR=work)  # srt leaves sockets there
    disk = os.path.join(work, "runtime")
    workers = [Worker([], dict(env, CLOCHE_RUNTIME_DIR=own)),
               Worker([], dict(env, CLOCHE_RUNTIME_DIR=disk))]
    os.mkdir(disk, 0o700)
    contest.add("/bin/true alone", workers[0], TRUE)
    add(contest, workers[0], stage)
    contest.add("cloche run, its directory on a disk", workers[1], PLAIN + TRUE)
    if have("bwrap"):
        contest.add("bwrap, the whole root read-only", workers[0], WHOLE + TRUE)
    if os.geteuid() == 0:
        workers.append(add_user(contest, work, stage, env, users))
    add_engines(contest, work, started)
    try:
        contest.add("srt", workers[0], engines.srt(work), 15)
    except engines.Absent as why:
        contest.leave_out("srt", str(why))
    contest.run(rounds)
    for w in workers:
        w.close()
    return contest


def file_system(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], stdout=subprocess.PIPE, text=True,
                          env=clean_env(), check=True).stdout.strip()


def compare(lines, contest, held=True):
    for tail in ("", ", as a user"):
        if "cloche run" + tail not in contest.times:
            continue
        rule(lines, "cloche run / bwrap" + tail, contest.ratio("cloche run" + tail, "bwrap" + tail),
             1.0 if held else None)
        rule(lines, "with gateway and secret, unused / bwrap" + tail, contest.ratio(
            "cloche run, gateway and secret" + tail, "bwrap" + tail))
        rule(lines, "one HTTPS request: cloche later than bwrap by, ms" + tail, contest.later_ms(
            "cloche run, one HTTPS request" + tail, "bwrap, one HTTPS request" + tail),
            10 if held else None)
    return lines


def report(contest):
    lines = ["## Start, run a command, tear down (rows 1 and 2)", "",
             "Milliseconds of wall time, all in turn; what is slow takes part in some rounds only. "
             "The command is /bin/true, or curl: one HTTPS request to the origin on this machine, "
             "with a list of roots of the same length, in bwrap past it directly (--share-net). "
             "The gateway process starts at the room's first use of its network, which /bin/true "
             "makes none of; broker, capture, policy, authority and trust are there then, too. "
             "bwrap: `%s`. Engines run a statically linked true from an image of one file, without "
             "a network; the others run the host's. The sandbox's directory is on a tmpfs; the disk "
             "is %s." % (" ".join(LEAN), file_system(HERE)), ""]
    lines += compare(contest.table() + RULES_HEAD, contest)
    rule(lines, "podman run and mitmdump, without a request / cloche run, one HTTPS request", contest.ratio(
        "podman run beside a mitmdump of its own", "cloche run, one HTTPS request"), 14, True)
    rule(lines, "directory on a disk / on a tmpfs", contest.ratio(
        "cloche run, its directory on a disk", "cloche run"))
    lines += ["", "| peer | times cloche run |", "|---|---|"]
    for peer in ("bwrap", "bwrap, the whole root read-only", "crun run", "podman run", "docker run",
                 "srt"):
        r = contest.ratio(peer, "cloche run")
        lines.append("| %s | %s |" % (peer, r.text(digits=1) if r else "not measured"))
    return lines


def busy(work, stage, rounds=40):
    """What must be quick on a machine that has something else to do."""
    contest, loops = Contest(), os.cpu_count()
    env = clean_env(BENCH_TOKEN=SECRET)
    with runtime_folder(work) as own, runtime_folder(work) as users:
        workers = [Worker([], dict(env, CLOCHE_RUNTIME_DIR=own))]
        add(contest, workers[0], stage)
        if os.geteuid() == 0:
            workers.append(add_user(contest, work, stage, env, users))
        others = [subprocess.Popen(["sh", "-c", "while :; do :; done"], env=env)
                  for _ in range(loops)]
        try:
            contest.run(rounds)
        finally:
            for p in others:
                p.kill()
                p.wait()
        for w in workers:
            w.close()
    lines = ["## The same on a BUSY machine", "",
             "Rows 1 and 2 beside %d endless loops, one for each processor. Nothing is held to "
             "here." % loops, ""]
    return lines + compare(contest.table() + RULES_HEAD, contest, False)
