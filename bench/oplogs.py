# SPDX-License-Identifier: Apache-2.0
"""Row 11: recorded operations. SandboX's own log is not measured beside: its packages are gone. What was
read of it when they were there: 5,000 operations in a row were out of order on the disk, 100 and an exit
left no file, 20,000 at once a damaged one (shared/facts/sandboxx-agentgate.md, W10 and W11)."""
import json
import os
import subprocess
import time

from common import clean_env, runtime_folder
from execs import compile_with_library
from testlib import CLOCHE

SIZES = (1000, 10000, 100000, 1000000)
REPLAYED = 100000


def operation(kind, i):
    if kind == "storage":
        return {"op": "storage.set", "args": {"key": "k%d" % (i % 1000), "value": "value %d" % i}}
    return {"op": "fs.write", "args": {"path": "/tmp/t/%d/%d" % (i % 100, i % 1000), "data": "line %d\n" % i}}


def replayed(work, env, kind):
    """Operations a second, into a sandbox that runs."""
    log = os.path.join(work, kind + ".jsonl")
    with open(log, "w") as f:
        f.writelines(json.dumps(operation(kind, i)) + "\n" for i in range(REPLAYED))
    made = subprocess.run([CLOCHE, "create", "--no-workspace"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        start = time.perf_counter()
        subprocess.run([CLOCHE, "replay", log, made], env=env, check=True)
        return REPLAYED / (time.perf_counter() - start)
    finally:
        subprocess.run([CLOCHE, "rm", "-f", made], env=env, stdout=subprocess.DEVNULL, check=False)


def row(work):
    with runtime_folder(work) as runtime:
        env = clean_env(CLOCHE_RUNTIME_DIR=runtime, CLOCHE_STATE_DIR=os.path.join(work, "state"))
        program = compile_with_library(work, "oplog")
        made = subprocess.run([CLOCHE, "create", "--no-workspace", "--record", "ops"], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        identity = made.stdout.strip()
        try:
            out = subprocess.run([program, identity] + [str(n) for n in SIZES], env=env,
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        finally:
            subprocess.run([CLOCHE, "rm", "-f", identity], env=env, stdout=subprocess.DEVNULL, check=False)
        rates = [replayed(work, env, kind) for kind in ("storage", "file")]
    found = [[float(word) for word in line.split()] for line in out.splitlines()]
    lines = ["## Recorded operations (row 11)", "",
             "Microseconds through the library: `storage.set` among 1000 keys, on a log of so many operations, "
             "synced at most a second later; a handle that is opened and asks for a key; an operation when all "
             "of the log is read.", "",
             "| operations in the log | append | open and get | read |", "|---|---|---|---|"]
    lines += ["| %d | %.1f | %.0f | %.2f |" % tuple(one) for one in found]
    by_size = {int(one[0]): one[1:] for one in found}
    rate = 1e6 / by_size[100000][2]
    return lines + ["", "| ratio | measured | hold |", "|---|---|---|",
                    "| append: 1,000,000 / 1,000 | %.2f | at most 2: %s |" % flat(by_size, 0),
                    "| open and get: 1,000,000 / 10,000 | %.2f | at most 2: %s |" % flat(by_size, 1, 10000),
                    "| read of 100,000, operations a second | %d | at least 100000: %s |" %
                    (rate, "yes" if rate >= 1e5 else "NO"),
                    "| `cloche replay` of 100,000 keys set, a second | %d | at least 100000: %s |" %
                    (rates[0], "yes" if rates[0] >= 1e5 else "NO"),
                    "| `cloche replay` of 100,000 files written, a second (each is a request to the room's "
                    "file worker) | %d | at least 100000: %s |" % (rates[1], "yes" if rates[1] >= 1e5 else "NO")]


def flat(by_size, column, small=1000):
    ratio = by_size[1000000][column] / by_size[small][column]
    return ratio, "yes" if ratio <= 2 else "NO"
