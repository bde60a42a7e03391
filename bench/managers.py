# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes by several programs at once: each makes one, runs a command in it and removes it, some at a time."""
import os
import subprocess

import engines
from common import RULES_HEAD, Contest, Worker, clean_env, have, log, rule, runtime_folder
from start import LEAN
from testlib import BIN, ROOT

PROGRAMS, EACH, AT_ONCE, ROUNDS = 4, 25, 8, 8
# Waits for all of them, and fails if one did.
TOGETHER = 'p=; for i in $(seq %d); do "$@" & p="$p $!"; done; for q in $p; do wait $q || exit 1; done' % PROGRAMS


def together(*argv):
    return ["sh", "-c", TOGETHER, "sh", *argv]


def one_by_one(*argv):
    """What a program does that has a sandboxing command and no library."""
    return together("sh", "-c", 'seq %d | xargs -P %d -I{} "$@"' % (EACH, AT_ONCE), "sh", *argv)


def compile_manager(work):
    library = os.path.join(ROOT, "build", "meson", "src", "api")
    program = os.path.join(work, "manager")
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-I", os.path.join(ROOT, "include"), "-o", program, os.path.join(ROOT, "examples", "manager.c"),
                    "-L", library, "-Wl,-rpath," + library, "-lcloche", "-lpthread"], check=True, env=clean_env())
    return program


def row(work, started):
    contest = Contest()
    with runtime_folder(work) as runtime:
        # Memory is no limit for the others either.
        env = clean_env(CLOCHE_RUNTIME_DIR=runtime, CLOCHE_STATE_DIR=runtime, CLOCHE_LIBEXEC=BIN, AGENTGATE_SANDBOX_MEMORY_MB="256",
                        AGENTGATE_MAX_CONCURRENT_RUNS=str(AT_ONCE))
        worker = Worker([], env)
        contest.add("cloche, by managers", worker, together(compile_manager(work), str(EACH), "bench", "/bin/true"))
        contest.add("cloche run", worker, one_by_one(os.path.join(BIN, "cloche"), "run", "--no-workspace", "--", "/bin/true"))
        if have("bwrap"):
            contest.add("bwrap", worker, one_by_one(*LEAN, "/bin/true"))
        else:
            contest.leave_out("bwrap", "is not installed")
        try:
            e = started["podman run"] if "podman run" in started else engines.Podman(work)
            started["podman run"] = e
            contest.add("podman run", e.worker, one_by_one(*e.run_true), 4)
        except engines.Absent as why:
            log("bench: podman: %s; left out" % why)
            contest.absent["podman run"] = str(why)
        contest.run(ROUNDS, 1)
        worker.close()
    lines = ["## A hundred sandboxes by four programs", "",
             "Milliseconds of wall time until all of them are done. Four programs at once have %d sandboxes each, %d at a time; in each "
             "true runs, and the sandbox is removed. Managers are programs with the library, and have limits for memory "
             "and CPU on each sandbox, which the others have not; those run a command for each, by xargs." % (EACH, AT_ONCE), ""]
    lines += contest.table() + RULES_HEAD
    rule(lines, "managers / cloche run", contest.ratio("cloche, by managers", "cloche run"))
    rule(lines, "managers / bwrap", contest.ratio("cloche, by managers", "bwrap"))
    rule(lines, "podman run / managers", contest.ratio("podman run", "cloche, by managers"))
    return lines
