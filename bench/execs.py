# SPDX-License-Identifier: Apache-2.0
"""Row 3: a command in a sandbox that runs already."""
import glob
import os
import subprocess

import engines
from common import (RULES_HEAD, Contest, Series, Worker, clean_env, have, log, rule,
                    runtime_folder)
from testlib import BIN, CLOCHE, ROOT

ROUNDS = 200
FILES = 100


def compile_programs(folder):
    """The program that uses the library, or None; and a true that needs no dynamic linker."""
    os.mkdir(folder, 0o755)
    plain = os.path.join(folder, "true")
    with open(os.path.join(folder, "true.c"), "w") as f:
        f.write("int main(void) { return 0; }\n")
    cc = "musl-gcc" if have("musl-gcc") else "cc"
    subprocess.run([cc, "-O2", "-static", "-o", plain, plain + ".c"], check=True, env=clean_env())
    return compile_with_library(folder, "exec-latency"), plain


def compile_with_library(folder, name):
    """A program of this folder that uses the library; None if that is not built."""
    for found in glob.glob(BIN + "/libcloche.so") + glob.glob(
            os.path.join(ROOT, "build", "meson", "**", "libcloche.so"), recursive=True):
        program = os.path.join(folder, name)
        where = os.path.dirname(found)
        subprocess.run(["cc", "-O2", "-I", os.path.join(ROOT, "include"), "-o", program,
                        os.path.join(ROOT, "bench", name + ".c"), "-L", where, "-lcloche",
                        "-Wl,-rpath," + where], check=True, env=clean_env())
        return program
    return None


def through_library(latency, identity, plain, env):
    """{program: (in the sandbox, on the host)} in seconds."""
    out = subprocess.run([latency, identity, str(ROUNDS), "/bin/true", "/bin/true", plain,
                          "/bench/true"], env=env, stdout=subprocess.PIPE, text=True, check=True)
    found = {}
    for line in out.stdout.splitlines():
        path, inside, outside = line.split()
        pair = found.setdefault(path, (Series(), Series()))
        pair[0].add(float(inside) / 1e6)
        pair[1].add(float(outside) / 1e6)
    return found


def add_engines(contest, work, started):
    for name, key, kind in (("podman exec", "podman run", engines.Podman),
                            ("docker exec", "docker run", engines.Docker)):
        try:
            e = started.get(key) or kind(work)
            started[key] = e
            e.keep_one()
        except engines.Absent as why:
            contest.leave_out(name, str(why))
            continue
        contest.add(name, e.worker, e.exec_true, 8)


def row(work, started):
    """started: engines by name, also those of the row before."""
    with runtime_folder(work) as runtime:
        return report(measure(work, started, runtime))


# Without and with a full record, of the true that a person has and of the static one.
RECORDED = {program: tuple("cloche exec, %s, %d files in its workspace%s" % (what, FILES, more)
                           for more in ("", ", a full record"))
            for program, what in (("/bin/true", "/bin/true"), ("/bench/true", "a static true"))}


def make_workspace(folder):
    os.makedirs(folder)
    for i in range(FILES):
        with open(os.path.join(folder, "file%d" % i), "w") as f:
            f.write("some text\n" * i)
    return folder


def measure(work, started, runtime):
    folder = os.path.join(work, "exec")
    latency, plain = compile_programs(folder)
    env = clean_env(CLOCHE_RUNTIME_DIR=runtime, CLOCHE_STATE_DIR=runtime)

    def create(*options):
        made = subprocess.run([CLOCHE, "create", "-m", folder + ":/bench:ro"] + list(options),
                              env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              check=True)
        return made.stdout.strip()

    identity = create("--no-workspace")
    files = make_workspace(os.path.join(work, "workspace"))
    others = [create("--workspace", files), create("--workspace", files, "--record", "full")]
    contest, library = Contest(), {}
    worker = Worker([], env)
    try:
        contest.add("cloche exec, a static true", worker, [CLOCHE, "exec", identity, "--",
                                                           "/bench/true"])
        contest.add("cloche exec, /bin/true", worker, [CLOCHE, "exec", identity, "--",
                                                       "/bin/true"])
        for program, names in RECORDED.items():
            for name, other in zip(names, others):
                contest.add(name, worker, [CLOCHE, "exec", other, "--", program])
        contest.add("/bin/true on the host", worker, ["/bin/true"])
        add_engines(contest, work, started)
        contest.run(ROUNDS)
        if latency:
            library = through_library(latency, identity, plain, env)
        else:
            log("bench: there is no libcloche.so; the library is left out")
    finally:
        worker.close()
        subprocess.run([CLOCHE, "rm", "-f", identity] + others, env=env,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    for path, (inside, outside) in library.items():
        what = "a static true" if path == "/bench/true" else "/bin/true"
        contest.times["libcloche, " + what] = inside
        contest.times["%s on the host, from the same program" % what] = outside
    return contest


def report(contest):
    lines = ["## Exec in a running sandbox (row 3)", "",
             "Milliseconds from the caller's start to the command's reaped end. \"cloche exec\" is "
             "the program, as a person calls it; \"libcloche\" a program that calls the library "
             "for each command. A dynamically linked true spends most of its time in the C "
             "library's start, which asks the processor for its caches (on a virtual machine "
             "each CPUID leaves it); the engines' true is static. The sandbox's directory is on a "
             "tmpfs. A full record looks at every file of the workspace when a command has ended, so "
             "what it costs grows with their number.", ""]
    lines += contest.table() + RULES_HEAD
    ours = contest.times.get("libcloche, a static true")
    rule(lines, "libcloche, a static true, ms",
         ours.median * 1e3 if ours and ours.values else None, 1.0, False)
    ours = contest.times.get("cloche exec, a static true")
    rule(lines, "cloche exec, a static true, ms",
         ours.median * 1e3 if ours and ours.values else None, 1.0, False)
    for without, recorded in RECORDED.values():
        rule(lines, "%s / without" % recorded, contest.ratio(recorded, without), 1.2, False)
    for peer in ("podman exec", "docker exec"):
        for name in ("cloche exec, a static true", "libcloche, a static true"):
            rule(lines, "%s / %s" % (peer, name), contest.ratio(peer, name), 50, True)
    return lines
