# SPDX-License-Identifier: Apache-2.0
"""Row 8: what an idle sandbox with gateway and broker takes, and an idle TLS connection."""
import subprocess
import sys
import time

from common import RULES_HEAD, SECRET, clean_env, log, rule
from testlib import CLOCHE, descendants

CONNECTIONS, ROOMS = 500, 20
PARTS = ("cloche-supervis", "init", "cloche-gateway", "cloche-broker")

# Opens many connections with one request on each, and keeps them. First one that closes, so that
# what a first connection sets up is not counted for the others.
HOLDER = r"""
import socket, ssl, sys, time
name, port, address, count, ca = sys.argv[1:]
context = ssl.create_default_context(cafile=ca or None)
def one():
    s = context.wrap_socket(socket.create_connection((address, int(port))), server_hostname=name)
    s.sendall(b"GET /1k HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n")
    data = b""
    while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < 1024:
        more = s.recv(65536)
        if not more:
            sys.exit("the connection ended early")
        data += more
    if not data.startswith(b"HTTP/1.1 200"):
        sys.exit(data[:100].decode())
    return s
one().close()
time.sleep(0.3)
print("READY", flush=True)
sys.stdin.readline()
held = [one() for i in range(int(count))]
print("HELD", flush=True)
sys.stdin.readline()
"""


def pss_kib(pids):
    """Proportional memory: what is shared counts for each by its share."""
    total = 0
    for pid in pids:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            total += next(int(l.split()[1]) for l in f if l.startswith("Pss:"))
    return total


def parts_of(pid):
    return {p: n for p, n in descendants(pid).items() if n in PARTS}


def room(command, *options):
    return subprocess.Popen([CLOCHE, "run", "-i", "--no-workspace", "--timeout", "300s", "--secret",
                             "TOKEN=BENCH_TOKEN@up.test", "--allow", "up.test"] + list(options) +
                            ["--"] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env=clean_env(BENCH_TOKEN=SECRET))


def expect_line(p, want):
    line = p.stdout.readline()
    if line.strip() != want:
        raise RuntimeError("wanted %s, read %r" % (want, line))


def idle_rooms(count):
    """Mean KiB of a room among count idle ones, and of its parts."""
    rooms = [room(["sh", "-c", "echo READY; read x"]) for _ in range(count)]
    try:
        for p in rooms:
            expect_line(p, "READY")
        time.sleep(2)  # an idle room gives back what only its start needed
        found = [parts_of(p.pid) for p in rooms]
        if any(len(f) != len(PARTS) for f in found):
            raise RuntimeError("a part is missing: %s" % found)
        return {name: sum(pss_kib([pid]) for f in found for pid, n in f.items() if n == name) /
                count for name in PARTS}
    finally:
        for p in rooms:
            p.communicate("\n")


def held(p, pids):
    """KiB before and with CONNECTIONS idle connections."""
    try:
        expect_line(p, "READY")
        found = pids()
        before = pss_kib(found)
        p.stdin.write("\n")
        p.stdin.flush()
        expect_line(p, "HELD")
        time.sleep(2)  # an idle room gives back what only its start needed
        return before, pss_kib(found)
    finally:
        p.communicate("\n")


def connections_of_room(stage):
    # More descriptors than most systems give a process at first.
    argv = ["sh", "-c", "ulimit -n 4096; exec \"$@\"", "sh", "/usr/bin/python3", "-c", HOLDER,
            "up.test", "443", "up.test", str(CONNECTIONS), ""]
    p = room(argv, "--upstream-ca", stage.authority.cert, "--connect-to",
             "up.test:443:127.0.0.1:%d" % stage.origin)
    return held(p, lambda: parts_of(p.pid))


def connections_of_peer(stage, name):
    p = subprocess.Popen([sys.executable, "-c", HOLDER, "localhost", str(stage.ports[name]),
                          "127.0.0.1", str(CONNECTIONS), stage.authority.cert],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_env())
    root = stage.processes[name].pid
    return held(p, lambda: [root] + list(descendants(root)))


def row(stage):
    stage.peers()
    lines = ["## Memory (row 8)", "",
             "Proportional set size (what is shared counts by its share), KiB: of the four "
             "processes of an idle room with gateway, broker, policy, authority and a secret, "
             "alone and as one of %d; and what one of %d idle TLS connections with keep-alive adds."
             % (ROOMS, CONNECTIONS), "",
             "| what | supervisor | init | gateway | broker | together |", "|---|---|---|---|---|---|"]
    alone = None
    for count in (1, ROOMS):
        kib = idle_rooms(count)
        total = sum(kib.values())
        alone = alone or total
        lines.append("| %s | %s | %.0f |" % (
            "a room alone" if count == 1 else "one of %d rooms" % count,
            " | ".join("%.0f" % kib[name] for name in PARTS), total))
    lines += ["", "| proxy | before the connections | an idle TLS connection |", "|---|---|---|"]
    each = None
    for name in ["cloche"] + [n for n in ("nginx", "haproxy", "mitmdump") if n in stage.ports]:
        try:
            before, after = connections_of_room(stage) if name == "cloche" else \
                connections_of_peer(stage, name)
        except (RuntimeError, OSError) as why:
            log("bench: %s: %s" % (name, why))
            lines.append("| %s | not measured | |" % name)
            continue
        if name == "cloche":
            each = (after - before) / CONNECTIONS
        lines.append("| %s | %d | %.1f |" % (name, before, (after - before) / CONNECTIONS))
    lines += RULES_HEAD
    rule(lines, "an idle room alone, MiB", alone / 1024, 6, False)
    rule(lines, "an idle TLS connection, KiB", each, 50, False)
    return lines
