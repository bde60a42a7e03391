# SPDX-License-Identifier: Apache-2.0
"""Rooms of engines: what cloche costs beside the engine's own commands, for the same container."""
import os
import subprocess

from common import RULES_HEAD, Contest, Series, Worker, clean_env, log, rule, runtime_folder
from containers import Docker, Podman
from execs import compile_programs
from testlib import CLOCHE, Skip

ROUNDS, EXECS = 15, 40
# Writes down what the engine is asked for, which is then the peer's own command.
NOTE = '#!/bin/sh\n[ "$1" = run ] && printf "%%s\\0" "$@" >%s\nexec %s "$@"\n'


def arguments(work, engine, env, options):
    """What the provider says to the engine for such a sandbox."""
    noted, bin_dir = os.path.join(work, "noted"), os.path.join(work, "bin")
    os.makedirs(bin_dir)
    path = os.path.join(bin_dir, engine.name)
    with open(path, "w") as f:
        f.write(NOTE % (noted, subprocess.check_output(["which", engine.name], text=True).strip()))
    os.chmod(path, 0o755)
    made = subprocess.run([CLOCHE, "create"] + options, env=dict(env, PATH=bin_dir + ":" + env["PATH"]), check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout.strip()
    subprocess.run([CLOCHE, "rm", "-f", made], env=env, check=True, stdout=subprocess.DEVNULL)
    with open(noted) as f:
        return f.read().split("\0")[:-1]


def as_peer(argv, plain):
    """The same container, whose process 1 is a static program that waits, without the socket to a supervisor."""
    out, skip = [], False
    for i, arg in enumerate(argv):
        if skip:
            skip = False
            continue
        if arg == "--name" or (arg == "--mount" and argv[i + 1].endswith("target=/run/cloche/control")):
            skip = True
            continue
        if arg.endswith(",target=/run/cloche/init,readonly"):
            arg = "type=bind,source=%s,target=/run/cloche/init,readonly" % plain
        if arg.startswith(("nofile=0", "file-size=")) or arg in ("room", "staying"):
            continue
        out.append(arg)
    return out


def measure(work, engine, contest, creates):
    """Adds what this engine's contestants took."""
    with runtime_folder(work) as runtime:
        env = clean_env(CLOCHE_RUNTIME_DIR=runtime, CLOCHE_STATE_DIR=runtime, CLOCHE_PROVIDER=engine.name, **engine.env)
        folder = os.path.join(work, "rooms-of-" + engine.name)
        os.makedirs(folder)
        _, plain = compile_programs(os.path.join(folder, "programs"))
        waits = plain + "-waits"
        with open(waits + ".c", "w") as f:
            f.write("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        subprocess.run(["musl-gcc", "-O2", "-static", "-o", waits, waits + ".c"], check=True, env=env)
        options = ["--no-workspace", "-m", os.path.dirname(plain) + ":/bench:ro"]
        peer = [engine.name] + as_peer(arguments(folder, engine, env, options), waits)
        worker = Worker([], env)
        ours, theirs = creates[engine.name] = (Series(), Series())
        try:
            for i in range(ROUNDS + 2):
                for series, argv in (((ours, [CLOCHE, "create", "--name", "bench"] + options),
                                      (theirs, peer[:2] + ["--name", "bench"] + peer[2:])))[::1 if i % 2 else -1]:
                    seconds, code = worker.time(argv)
                    if code:
                        raise Skip("%s does not run here" % argv[0])
                    if i > 1:
                        series.add(seconds)
                    # Its process 1 hears of no signal.
                    at_once = ["--time", "0"] if engine.name == "podman" else []
                    subprocess.run([CLOCHE, "rm", "-f", "bench"] if series is ours else [engine.name, "rm", "-f", *at_once, "bench"],
                                   env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            box = subprocess.run([CLOCHE, "create"] + options, env=env, check=True, stdout=subprocess.PIPE,
                                 text=True).stdout.strip()
            contest.entries.clear()
            contest.add("cloche exec, in a room of " + engine.name, worker, [CLOCHE, "exec", box, "--", "/bench/true"])
            contest.add("%s exec, in the same" % engine.name, worker, [engine.name, "exec", "agentgate-" + box, "/bench/true"], 4)
            contest.run(EXECS)
            subprocess.run([CLOCHE, "rm", "-f", box], env=env, check=True, stdout=subprocess.DEVNULL)
        finally:
            worker.close()


def row(work):
    contest, creates = Contest(), {}
    for kind in (Podman, Docker):
        try:
            with kind() as engine:
                measure(work, engine, contest, creates)
        except Skip as why:
            log("bench: %s: %s; left out" % (kind.name, why))
            contest.absent[kind.name] = str(why)
    lines = ["## Rooms of engines", "",
             "Milliseconds of wall time, in turn. The engine's own command makes the same container as cloche has it make: "
             "the same empty image and storage, mounts, tmpfs, capabilities and options, but for the socket to the supervisor; "
             "its process 1 is a static program that waits. Its removal is not counted. exec: a static true, in the same container.", ""]
    for name, (ours, theirs) in creates.items():
        contest.times["cloche create, by " + name] = ours
        contest.times["%s run --detach, the same container" % name] = theirs
    lines += contest.table() + RULES_HEAD
    for name in creates:
        rule(lines, "cloche create / %s run --detach" % name,
             contest.ratio("cloche create, by " + name, "%s run --detach, the same container" % name), 1.1)
        rule(lines, "%s exec / cloche exec" % name,
             contest.ratio("%s exec, in the same" % name, "cloche exec, in a room of " + name), 50, True)
    return lines
