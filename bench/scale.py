# SPDX-License-Identifier: Apache-2.0
"""Row 8, the other half: many sandboxes one after the other and at once, and what is left of them."""
import json
import os
import statistics
import subprocess
import sys

from common import HERE, RULES_HEAD, Series, clean_env, log, rule

CYCLES, AT_ONCE, COMMANDS = 1000, 500, 2000
SELF = os.path.join(HERE, "scale.py")


def per_second(n):
    def progress(i):
        if i % n == n - 1:
            log("bench: scale: %d" % (i + 1))
    return progress


def measure():
    """In a process of its own: it takes namespaces, and becomes everybody's parent."""
    import many
    from world import World
    world = World()
    try:
        many.cycles(world, 20, [])  # caches of the file system fill up once
        found = {"objects_before": many.kernel_objects(), "memory_before": many.memory_kib()}
        found["cycles"] = many.cycles(world, CYCLES, [], per_second(250))
        found["memory_after"] = many.memory_kib()
        found["objects_after"] = many.kernel_objects()
        found["commands"] = many.many_commands(world, COMMANDS)
        standing = many.Standing(world, AT_ONCE, world.origin.options, per_second(100))
        standing.settle(True)
        found["at_once"] = standing.measure()
        found["start"] = standing.start_times
        found["start_seconds"] = standing.seconds
        found["use"] = standing.use_each()
        found["ps"] = standing.ps()
        found["remove_seconds"] = standing.remove()
    finally:
        world.close()
    return found


def milliseconds(values):
    s = sorted(values)
    return "%.1f | %.1f | %.1f" % (statistics.median(s) * 1e3, s[int(len(s) * 0.95)] * 1e3,
                                   s[-1] * 1e3)


def row():
    out = subprocess.run([sys.executable, "-B", SELF], stdout=subprocess.PIPE, text=True,
                         env=clean_env(**{k: v for k, v in os.environ.items()
                                          if k.startswith("CLOCHE_TEST")}), check=False)
    if out.returncode:
        return ["## Many sandboxes", "", "Not measured: exit status %d." % out.returncode]
    return report(json.loads(out.stdout.splitlines()[-1]))


def report(f):
    m, before, after = f["at_once"], f["memory_before"], f["memory_after"]
    lines = ["## Many sandboxes (row 8)", "",
             "%d times create, exec, rm; then %d sandboxes at once, each with gateway and broker, "
             "made by four callers at a time. After each part processes, namespaces, mounts, "
             "control groups, files and sockets were compared with those before: nothing was left."
             % (CYCLES, AT_ONCE), "", "| step | median ms | p95 | max |", "|---|---|---|---|"]
    for name in ("create", "exec", "rm"):
        lines.append("| %s, one after the other | %s |" % (name, milliseconds(f["cycles"][name])))
    lines.append("| create with a network, until there were %d | %s |" %
                 (AT_ONCE, milliseconds(f["start"])))
    lines.append("| exec in each of the %d | %s |" % (AT_ONCE, milliseconds(f["use"])))
    each = m["pss"] / AT_ONCE
    lines += ["", "| what | measured |", "|---|---|",
              "| to make all %d, s | %.1f |" % (AT_ONCE, f["start_seconds"]),
              "| to remove all, s | %.1f |" % f["remove_seconds"],
              "| `cloche ps` with all there, ms | %.0f |" % (f["ps"] * 1e3),
              "| processes | %d |" % m["processes"],
              "| descriptors, each | %.1f |" % (m["descriptors"] / AT_ONCE),
              "| proportional memory, each, MiB (supervisor, init, gateway, broker) | %.2f (%s) |" %
              (each / 1024, ", ".join("%.2f" % (m["parts"][p] / AT_ONCE / 1024) for p in (
                  "cloche-supervis", "init", "cloche-gateway", "cloche-broker"))),
              "| memory that the machine had less, each, MiB | %.2f |" %
              (m["available"] / AT_ONCE / 1024),
              "| of it the kernel's (slab, page tables, per processor), each, MiB | %.2f |" %
              (m["kernel"] / AT_ONCE / 1024),
              "| all idle: share of one processor, %% | %.1f |" % m["cpu"],
              "| available memory after the %d cycles less than before, MiB | %.0f |" %
              (CYCLES, (before["MemAvailable"] - after["MemAvailable"]) / 1024),
              "| the kernel's slab memory after the %d cycles more than before, MiB | %.0f |" %
              (CYCLES, (after["Slab"] - before["Slab"]) / 1024),
              "| a supervisor's descriptors after %d and %d commands | %d, %d |" %
              ((COMMANDS // 2, COMMANDS) + tuple(f["commands"]["descriptors"])),
              "| a supervisor's memory after them, KiB | %d, %d |" %
              tuple(f["commands"]["memory"])]
    lines += ["| the machine's %s before and after the %d cycles | %d, %d |" %
              (kind.replace("_", " ").replace("mnt cache", "mounts") +
               ("" if kind == "mnt_cache" else "s"), CYCLES, n, f["objects_after"][kind])
              for kind, n in sorted(f["objects_before"].items())]
    lines += RULES_HEAD
    memory = Series()
    memory.add(each / 1024)
    rule(lines, "proportional memory of each of %d, MiB" % AT_ONCE, memory.median, 6, False)
    return lines


if __name__ == "__main__":
    print(json.dumps(measure()))
