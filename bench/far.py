# SPDX-License-Identifier: Apache-2.0
"""Large bodies to and from an origin that is far away: by bench/line.c, over which the kernel's TCP runs
as over a real line. Windows decide here, not processors, so the line has a rate."""
import os
import subprocess

from common import HERE, RULES_HEAD, SECRET, Series, clean_env, log, ratio, rule
from proxies import SINK, timed
from testlib import CLOCHE, descendants

BYTES = 256 << 20
ROUND_TRIPS = 20, 100, 200  # milliseconds
MEGABITS = 1000
ROUNDS = 3
HERE_ADDRESS, THERE = "10.9.0.1", "10.9.0.2"
DOWN, SINK_PORT, UP = 4431, 4433, 4434  # 4432: DOWN over HTTP/2
MEMORY = 64 << 20  # of a socket, as a server on a long fast line has it


class Line:
    def __init__(self, stage, round_trip):
        self.stage, self.path = stage, os.path.join(stage.work, "line")
        if not os.path.exists(self.path):
            subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", self.path, os.path.join(HERE, "line.c")],
                           check=True, env=clean_env())
            self._servers()
        self.p = subprocess.Popen([self.path, str(round_trip), str(MEGABITS)], stdout=subprocess.PIPE,
                                  text=True, env=clean_env())
        if self.p.stdout.readline() != "ready\n":
            raise RuntimeError("no line: it needs root and /dev/net/tun")

    def _servers(self):
        for name in "tcp_rmem", "tcp_wmem":
            with open("/proc/sys/net/ipv4/" + name, "w") as f:
                f.write("4096 65536 %d" % MEMORY)
        with open("/proc/sys/net/ipv4/tcp_no_metrics_save", "w") as f:
            f.write("1")
        s = self.stage
        with open(os.path.join(s.work, "www", "256m"), "wb") as f:
            f.truncate(BYTES)
        s.start("far", ["nginx", "-c", s._nginx("far", """
server { listen %d ssl; listen %d ssl http2; ssl_certificate %s; ssl_certificate_key %s;
 ssl_protocols TLSv1.3; root %s/www; }""" % (DOWN, DOWN + 1, s.cert, s.key, s.work))], DOWN)
        s.start("far sink", ["/usr/bin/python3", "-c", SINK, str(SINK_PORT), s.cert, s.key, "0.0.0.0"],
                SINK_PORT)
        s.start("far up", ["nghttpd", "-w", "25", "-W", "25", "-d", os.path.join(s.work, "www"), str(UP),
                           s.key, s.cert], UP)

    def close(self):
        self.p.kill()
        self.p.wait()


def port_of(version, up):
    if version == "2":
        return UP if up else DOWN + 1
    return SINK_PORT if up else DOWN


def command_of(version, up):
    say = "curl -sS -k %s -o /dev/null -w '%%{http_code} %%{http_version} %%{size_%s}\\n' {url}" % (
        "--http2" if version == "2" else "--http1.1", "upload" if up else "download")
    if not up:
        return say + "/256m"
    length = "" if version == "2" else "-H 'Content-Length: %d' -H 'Transfer-Encoding:' " % BYTES
    return "head -c %d /dev/zero | %s/1k -H 'Expect:' %s-T -" % (BYTES, say, length)


def direct(stage, command, port):
    command = command.replace("{url}", "--resolve up.test:%d:%s https://up.test:%d" % (port, THERE, port))
    return timed(subprocess.Popen(["sh", "-c", "echo GO; " + command + "; echo END"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=clean_env(OPENSSL_CONF=stage.conf)), lambda: [])


def in_room(stage, command, port):
    argv = [CLOCHE, "run", "--no-workspace", "--timeout", "300s", "--upstream-ca", stage.authority.cert,
            "--secret", "TOKEN=BENCH_TOKEN@up.test", "-e", "OPENSSL_CONF=/bench.cnf",
            "-m", stage.conf + ":/bench.cnf:ro", "--allow", "up.test", "--allow", "sink.test",
            "--connect-to", "up.test:443:%s:%d" % (THERE, port),
            "--connect-to", "sink.test:443:127.0.0.1:%d" % stage.origin, "--",
            # The gateway runs when the clock starts; the origin has not been met.
            "sh", "-c", "curl -s -o /dev/null https://sink.test/1k; echo GO; " +
            command.replace("{url}", "https://up.test") + "; echo END; sleep 0.2"]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         stdin=subprocess.DEVNULL, env=clean_env(BENCH_TOKEN=SECRET))
    return timed(p, lambda: [pid for pid, name in descendants(p.pid).items()
                             if name in ("cloche-gateway", "cloche-broker")])


class Way:
    """One direction, protocol and distance."""

    def __init__(self, version, up):
        self.version, self.up = version, up
        self.direct, self.cloche, self.peak = Series(), Series(), Series()

    @property
    def name(self):
        return "HTTP/%s, %s" % (self.version, "up" if self.up else "down")

    def measure(self, stage):
        command, port = command_of(self.version, self.up), port_of(self.version, self.up)
        try:
            both = direct(stage, command, port), in_room(stage, command, port)
            for m in both:
                if m.out.strip() != "200 %s %d" % (self.version, BYTES):
                    raise RuntimeError(m.out)
        except RuntimeError as error:
            log("bench: far, %s: %s" % (self.name, error))
            self.cloche.lost += 1
            return
        self.direct.add(BYTES / both[0].wall / 1e6)
        self.cloche.add(BYTES / both[1].wall / 1e6)
        self.peak.add(both[1].peak_kib / 1024)


def row(stage):
    lines = ["## Large bodies from far away", "",
             "256 MiB, one curl, %d rounds in pairs; the line has %d Mbit/s each way, and a queue without "
             "end. Memory is the peak resident size of both processes." % (ROUNDS, MEGABITS), "",
             "| round trip | what | direct MB/s | cloche MB/s | peak MiB | rounds |", "|---|---|---|---|---|---|"]
    rules, peaks = list(RULES_HEAD), []
    for round_trip in ROUND_TRIPS:
        try:
            line = Line(stage, round_trip)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as why:
            log("bench: far: %s" % why)
            return lines[:2] + ["Not measured: %s." % why]
        ways = [Way(version, up) for version in ("1.1", "2") for up in (False, True)]
        try:
            for _ in range(ROUNDS):
                for way in ways:
                    way.measure(stage)
        finally:
            line.close()
        for way in ways:
            lines.append("| %d ms | %s | %s | %s | %s | %s |" % (
                round_trip, way.name, way.direct.text(digits=0), way.cloche.text(digits=0),
                way.peak.text(digits=1), way.cloche.rounds()))
            rule(rules, "%d ms, %s, cloche / direct" % (round_trip, way.name),
                 ratio(way.cloche, way.direct), 0.85, True)
            peaks += way.peak.values
    rule(rules, "peak memory of both processes, MiB", max(peaks) if peaks else None, 16)
    return lines + rules
