# SPDX-License-Identifier: Apache-2.0
"""Row 7: how much later an event of a stream (text/event-stream) comes when it comes through."""
import statistics
import subprocess

from common import RULES_HEAD, Series, clean_env, log, rule
from proxies import room_argv
from testlib import free_port

EVENTS, ROUNDS, PAUSE = 300, 5, 0.004

# Sends events that say when they were sent; the clock is the machine's.
ORIGIN = r"""
import socket, ssl, sys, threading, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
def serve(conn):
    try:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn = context.wrap_socket(conn, server_side=True)
        while b"\r\n\r\n" not in conn.recv(65536):
            pass
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                     b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(int(sys.argv[4])):
            time.sleep(float(sys.argv[5]))
            event = b"data: %d\n\n" % time.monotonic_ns()
            conn.sendall(b"%x\r\n%s\r\n" % (len(event), event))
        conn.sendall(b"0\r\n\r\n")
        conn.unwrap()
    except (OSError, ssl.SSLError):
        pass
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

# Prints the median and the 99th percentile of the delays, microseconds.
CLIENT = r"""
import re, socket, ssl, sys, time
name, address, port = sys.argv[1:4]
context = ssl.create_default_context(cafile=sys.argv[4] if len(sys.argv) > 4 else None)
s = context.wrap_socket(socket.create_connection((address, int(port))), server_hostname=name)
s.sendall(b"GET /events HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n")
late = []
while True:
    data = s.recv(65536)
    now = time.monotonic_ns()
    late += [(now - int(t)) / 1e3 for t in re.findall(rb"data: (\d+)\n", data)]
    if not data or data.endswith(b"0\r\n\r\n"):
        break
late.sort()
print("LATE", len(late), late[len(late) // 2], late[len(late) * 99 // 100])
"""


def measure(argv):
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, env=clean_env(BENCH_TOKEN="x" * 40),
                       check=False)
    words = p.stdout.split()
    if p.returncode or len(words) != 4 or words[:2] != ["LATE", str(EVENTS)]:
        raise RuntimeError(p.stdout[-300:])
    return float(words[2]), float(words[3])


def row(stage):
    port = free_port()
    stage.start("events", ["/usr/bin/python3", "-c", ORIGIN, str(port), stage.cert, stage.key,
                           str(EVENTS), str(PAUSE)], port)
    client = ["/usr/bin/python3", "-c", CLIENT]
    who = {"direct": client + ["up.test", "127.0.0.1", str(port), stage.authority.cert],
           "cloche": room_argv(stage, {"up.test": port}, client + ["up.test", "up.test", "443"])}
    medians, tails = {n: Series() for n in who}, {n: Series() for n in who}
    added = Series()
    for _ in range(ROUNDS):
        try:
            found = {name: measure(argv) for name, argv in who.items()}
        except RuntimeError as why:
            log("bench: events: %s" % why)
            continue
        for name, (median, tail) in found.items():
            medians[name].add(median)
            tails[name].add(tail)
        added.add((found["cloche"][0] - found["direct"][0]) / 1e3)
    lines = ["## Events of a stream (row 7)", "",
             "From the origin's send to the client's receive, %d events one after the other, %d "
             "rounds; microseconds, medians (range)." % (EVENTS, ROUNDS), "",
             "| way | median | 99th percentile |", "|---|---|---|"]
    lines += ["| %s | %s | %s |" % (n, medians[n].text(digits=0), tails[n].text(digits=0))
              for n in who]
    lines += RULES_HEAD
    rule(lines, "an event comes later by, ms", statistics.median(added.values)
         if added.values else None, 0.2, False)
    return lines
