# SPDX-License-Identifier: Apache-2.0
"""Row 11: recorded operations. SandboX's own log is not measured beside, as its packages are gone: what was
read of it when they were there stands in its column (shared/facts/sandboxx-agentgate.md, W10, W11 and W15)."""
import glob
import io
import json
import os
import statistics
import subprocess
import tarfile
import time

from common import clean_env, runtime_folder
from execs import compile_with_library
from testlib import CLOCHE

SIZES = (1000, 10000, 100000, 1000000)
REPLAYED = 100000


def file_of(kind, i):
    """The path below /tmp, and the contents."""
    return ("t/%d/%d" % (i // 1000, i) if kind == "distinct" else "t/%d/%d" % (i % 100, i % 1000)), "line %d\n" % i


def operation(kind, i):
    if kind == "storage":
        return {"op": "storage.set", "args": {"key": "k%d" % (i % 1000), "value": "value %d" % i}}
    path, data = file_of(kind, i)
    return {"op": "fs.write", "args": {"path": "/tmp/" + path, "data": data}}


def a_second(env, made, command):
    """How many a second, by a command that does all REPLAYED in a sandbox, which is removed."""
    try:
        start = time.perf_counter()
        subprocess.run([CLOCHE] + command, env=env, stdin=subprocess.DEVNULL, check=True)
        return REPLAYED / (time.perf_counter() - start)
    finally:
        remove(env, made)


def replayed(work, env, kind, record="none"):
    """Operations a second, into a sandbox that runs: the median of three."""
    log = os.path.join(work, kind + ".jsonl")
    with open(log, "w") as f:
        f.writelines(json.dumps(operation(kind, i)) + "\n" for i in range(REPLAYED))
    rates = []
    for _ in range(3):
        made = created(env, record)
        rates.append(a_second(env, made, ["replay", log, made]))
    return statistics.median(rates)


def unpacked(work, env):
    """Files a second that tar writes in a room, of the same files as in the log: the median of three."""
    archive = os.path.join(work, "distinct.tar")
    with tarfile.open(archive, "w") as tar:
        for i in range(REPLAYED):
            path, data = file_of("distinct", i)
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data.encode()))
    rates = []
    for _ in range(3):
        made = created(env, "none")
        subprocess.run([CLOCHE, "cp", archive, made + ":/tmp/archive"], env=env, check=True)
        rates.append(a_second(env, made, ["exec", made, "--", "tar", "-C", "/tmp", "-xf", "/tmp/archive"]))
    return statistics.median(rates)


def created(env, record="ops"):
    return subprocess.run([CLOCHE, "create", "--no-workspace", "--record", record], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def remove(env, identity):
    subprocess.run([CLOCHE, "rm", "-f", identity], env=env, stdout=subprocess.DEVNULL, check=False)


def burst(program, work, env, n):
    """What is on record of so many changes of one key by a process that exits at once."""
    identity = created(env)
    try:
        subprocess.run([program, identity, "--burst", str(n)], env=env, check=True)
        with open(os.path.join(work, "state", "state-logs", identity + ".jsonl")) as f:
            entries = [json.loads(line) for line in f]
    finally:
        remove(env, identity)
    # Between them are checkpoints.
    found = [e["args"]["value"] for e in entries if e["op"] == "storage.set"]
    return "%d of them, %s" % (len(found), "in order" if found == ["value %d" % i for i in range(n)] else "NOT IN ORDER")


def rewritten(work, env):
    """What a file of 100 KB takes in logs and blobs when it was written 20 times: so, and compacted."""
    identity, sizes = created(env), []
    try:
        for _ in range(20):
            subprocess.run([CLOCHE, "fs", identity, "write", "/tmp/file"], env=env, input=os.urandom(50000).hex().encode(),
                           check=True)
        for command in (["log", identity], ["log", identity, "compact"]):
            subprocess.run([CLOCHE] + command, env=env, stdout=subprocess.DEVNULL, check=True)
            kept = glob.glob(work + "/state/blobs/*") + glob.glob(work + "/state/state-logs/" + identity + "*")
            sizes.append(sum(os.path.getsize(f) for f in kept))
    finally:
        remove(env, identity)
    return "%.2f MB, compacted %.2f MB" % tuple(n / 1e6 for n in sizes)


def beside_sandboxx(program, work, env):
    return ["", "| what | SandboX | cloche |", "|---|---|---|",
            "| one key set 5,000 times, then the process exits: on record | out of order, the last is 4,321 or 0 | %s |" %
            burst(program, work, env, 5000),
            "| ... 100 times | no file | %s |" % burst(program, work, env, 100),
            "| ... 20,000 times | 1, or a damaged file | %s |" % burst(program, work, env, 20000),
            "| a file of 100 KB written 20 times: on the disk | 2 MB | %s |" % rewritten(work, env)]


def row(work):
    with runtime_folder(work) as runtime:
        env = clean_env(CLOCHE_RUNTIME_DIR=runtime, CLOCHE_STATE_DIR=os.path.join(work, "state"))
        program = compile_with_library(work, "oplog")
        beside = beside_sandboxx(program, work, env)
        identity = created(env)
        try:
            out = subprocess.run([program, identity] + [str(n) for n in SIZES], env=env,
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        finally:
            remove(env, identity)
        rates = [("of 100,000 keys set", replayed(work, env, "storage")),
                 ("of 100,000 files written, each under one of 1000 names", replayed(work, env, "file")),
                 ("of 100,000 files written, each under a name of its own", replayed(work, env, "distinct")),
                 ("... into a sandbox that is recorded", replayed(work, env, "distinct", "ops"))]
        tar = unpacked(work, env)
    found = [[float(word) for word in line.split()] for line in out.splitlines()]
    lines = ["## Recorded operations (row 11)", "",
             "Microseconds through the library: `storage.set` among 1000 keys, on a log of so many operations, "
             "synced at most a second later; a handle that is opened and asks for a key; an operation when all "
             "of the log is read.", "",
             "| operations in the log | append | open and get | read |", "|---|---|---|---|"]
    lines += ["| %d | %.1f | %.0f | %.2f |" % tuple(one) for one in found]
    by_size = {int(one[0]): one[1:] for one in found}
    rate = 1e6 / by_size[100000][2]
    lines += ["", "| ratio | measured | hold |", "|---|---|---|",
              "| append: 1,000,000 / 1,000 | %.2f | at most 2: %s |" % flat(by_size, 0),
              "| open and get: 1,000,000 / 10,000 | %.2f | at most 2: %s |" % flat(by_size, 1, 10000),
              "| read of 100,000, operations a second | %d | at least 100000: %s |" % (rate, enough(rate))]
    lines += ["| `cloche replay` %s, a second | %d | at least 100000: %s |" % (what, n, enough(n)) for what, n in rates]
    return lines + ["| the same files by `tar -x` in a sandbox, a second | %d | what the file system can do |" % tar] + beside


def enough(rate):
    return "yes" if rate >= 1e5 else "NO"


def flat(by_size, column, small=1000):
    ratio = by_size[1000000][column] / by_size[small][column]
    return ratio, "yes" if ratio <= 2 else "NO"
