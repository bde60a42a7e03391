# SPDX-License-Identifier: Apache-2.0
"""Rows 4 to 6: HTTPS through the gateway, beside other proxies that end TLS and verify upstream. The
clients offer and the origin takes one cipher and one group (common.CRYPTO), every certificate is
ECDSA on P-256, and all sockets have one congestion control."""
import os
import re
import socket
import subprocess
import threading
import time

import connects
from common import (CRYPTO, HERE, RULES_HEAD, SECRET, Series, clean_env, have, log, ratio, rule)
from testlib import CLOCHE, Authority, descendants, free_port, status_kib

TICK = os.sysconf("SC_CLK_TCK")
HOST = "localhost"  # what the peers' upstream is called; the room asks for up.test
GIB = 1 << 30


SINK = r"""
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
def serve(conn):
    try:
        conn = context.wrap_socket(conn, server_side=True)
        buf, view = bytearray(1 << 17), None
        while True:
            head = b""
            while b"\r\n\r\n" not in head:
                data = conn.recv(65536)
                if not data:
                    return
                head += data
            head, rest = head.split(b"\r\n\r\n", 1)
            low = head.lower()
            if b"100-continue" in low:
                conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            left = int(low.split(b"content-length:")[1].split(b"\r\n")[0]) - len(rest)
            while left > 0:
                n = conn.recv_into(buf, min(left, len(buf)))
                if n == 0:
                    return
                left -= n
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (OSError, ssl.SSLError):
        pass
listener = socket.create_server((sys.argv[4], int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Stage:
    """Origin and peers, all on loopback, all with certificates of one CA. The peers are started when
    they are asked for."""

    def __init__(self, work):
        self.work = work
        self.authority = Authority(work, "Bench CA")
        self.cert, self.key = self.authority.issue("up", ["up.test", "sink.test", HOST])
        self.both = os.path.join(work, "both.pem")
        with open(self.both, "wb") as out:
            for f in (self.key, self.cert):
                with open(f, "rb") as part:
                    out.write(part.read())
        self.processes, self.ports = {}, {}
        self.origin, self.origin_h2, self.sink = free_port(), free_port(), free_port()
        self._files()
        self.conf = self.write("openssl.cnf", CRYPTO)
        self.https = os.path.join(work, "https")
        subprocess.run(["cc", "-O2", "-o", self.https, os.path.join(HERE, "https.c"), "-lssl",
                        "-lcrypto"], check=True, env=clean_env())
        self.start("origin", ["nginx", "-c", self._nginx_origin()], self.origin)
        self.start("sink", ["/usr/bin/python3", "-c", SINK, str(self.sink), self.cert, self.key, "127.0.0.1"],
                    self.sink)
        self.has_peers = False

    def peers(self):
        if self.has_peers:
            return
        self.has_peers = True
        if have("nginx"):
            self.start("nginx", ["nginx", "-c", self._nginx_proxy()], self.ports["nginx"])
        if have("haproxy"):
            self.start("haproxy", ["haproxy", "-db", "-f", self._haproxy()],
                        self.ports["haproxy"])
        if have("mitmdump"):
            self._mitmdump()
        connects.squid(self, HOST)
        connects.srt(self, HOST)

    def _files(self):
        www = os.path.join(self.work, "www")
        os.makedirs(www)
        with open(os.path.join(www, "1k"), "wb") as f:
            f.write(os.urandom(1024))
        with open(os.path.join(www, "1g"), "wb") as f:
            f.truncate(GIB)
        for folder in (self.work, www):
            os.chmod(folder, 0o755)

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def _nginx(self, name, server):
        w = self.work
        temp = "".join("%s_temp_path %s/t-%s-%s;" % (k, w, name, k) for k in
                       ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""
        return self.write(name + ".conf", """
daemon off; worker_processes 1; pid %s/%s.pid; error_log %s/%s.err; %s
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; sendfile on; tcp_nodelay on; %s
%s }
""" % (w, name, w, name, user, temp, server))

    def _nginx_origin(self):
        return self._nginx("origin", """
server { listen 127.0.0.1:%d ssl backlog=4096; listen 127.0.0.1:%d ssl http2 backlog=4096;
 ssl_certificate %s; ssl_certificate_key %s; ssl_protocols TLSv1.2 TLSv1.3;
 ssl_session_cache shared:S:4m; root %s/www; }""" %
                           (self.origin, self.origin_h2, self.cert, self.key, self.work))

    def _nginx_proxy(self):
        # TLS 1.3 as all the others speak it: older releases leave it off, and resume without a
        # key exchange then.
        self.ports["nginx"] = free_port()
        return self._nginx("nginx", """
upstream up { server 127.0.0.1:%d; keepalive 256; }
upstream sink { server 127.0.0.1:%d; keepalive 256; }
server { listen 127.0.0.1:%d ssl http2 backlog=4096; ssl_certificate %s; ssl_certificate_key %s;
 ssl_session_cache shared:P:4m; ssl_protocols TLSv1.2 TLSv1.3;
 client_max_body_size 0; proxy_request_buffering off;
 proxy_max_temp_file_size 0; proxy_http_version 1.1; proxy_set_header Connection "";
 proxy_set_header Host $host; proxy_ssl_verify on; proxy_ssl_trusted_certificate %s;
 proxy_ssl_name %s; proxy_ssl_server_name on; proxy_ssl_protocols TLSv1.2 TLSv1.3;
 location / { proxy_pass https://up; } location /put { proxy_pass https://sink; } }
""" % (self.origin, self.sink, self.ports["nginx"], self.cert, self.key, self.authority.cert, HOST))

    def _haproxy(self):
        self.ports["haproxy"] = free_port()
        return self.write("haproxy.cfg", """
global
 nbthread 1
 maxconn 4096
defaults
 mode http
 timeout connect 5s
 timeout client 60s
 timeout server 60s
 http-reuse always
frontend f
 bind 127.0.0.1:%d ssl crt %s alpn h2,http/1.1
 use_backend s if { path_beg /put }
 default_backend b
backend b
 server s 127.0.0.1:%d ssl verify required ca-file %s sni str(%s) verifyhost %s
backend s
 server s 127.0.0.1:%d ssl verify required ca-file %s sni str(%s) verifyhost %s
""" % (self.ports["haproxy"], self.both, self.origin, self.authority.cert, HOST, HOST, self.sink,
            self.authority.cert, HOST, HOST))

    def _mitmdump(self):
        self.ports["mitmdump"] = free_port()
        conf = os.path.join(self.work, "mitm")
        os.makedirs(conf)
        with open(os.path.join(conf, "mitmproxy-ca.pem"), "w") as out:
            for f in (self.authority.key, self.authority.cert):
                with open(f) as part:
                    out.write(part.read())
        self.start("mitmdump", ["mitmdump", "-q", "-s", os.path.join(HERE, "mitm_rules.py"),
                                 "--mode", "reverse:https://%s:%d" % (HOST, self.origin_h2),
                                 "--listen-host", "127.0.0.1",
                                 "--listen-port", str(self.ports["mitmdump"]), "--set",
                                 "confdir=" + conf, "--set", "ssl_verify_upstream_trusted_ca=" +
                                 self.authority.cert, "--set", "stream_large_bodies=1m"],
                    self.ports["mitmdump"], 30, BENCH_HOSTS=HOST, BENCH_SECRET=SECRET,
                    BENCH_SURROGATE="sk-surrogate-0123456789")

    def start(self, name, argv, port, seconds=10, **env):
        out = open(os.path.join(self.work, name + ".out"), "wb")
        self.processes[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                                stderr=out, env=clean_env(
                                                    HOME=self.work, OPENSSL_CONF=self.conf, **env))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        log("bench: %s does not start" % name)
        self.ports.pop(name, None)

    def stop(self):
        for p in self.processes.values():
            p.terminate()
        for p in self.processes.values():
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICK


class Measured:
    def __init__(self, out, wall, cpu, peak_kib):
        self.out, self.wall, self.cpu, self.peak_kib = out, wall, cpu, peak_kib


def watch_peak(pids, stop, into):
    while not stop.wait(0.05):
        into.append(sum(status_kib(p, "VmRSS") for p in pids))


def on_peer(stage, name, command):
    """Runs a shell command on the host with {url} pointing at the peer, or at the origin itself."""
    port = stage.ports.get(name, stage.origin)
    root = stage.processes[name].pid if name in stage.ports else None
    pids = [root] + list(descendants(root)) if root else []
    url, named = "https://localhost:%d" % port, ""
    if name == "squid":  # it goes by the Host of what it decrypts
        named = "%s:%d" % (HOST, stage.origin)
        url = "-H 'Host: %s' %s" % (named, url)
    command = command.replace("{url}", url).replace("{https}", stage.https).replace(
        "{to}", "localhost %d /1k %s" % (port, named))
    return timed(subprocess.Popen(["sh", "-c", "echo GO; " + command + "; echo END"],
                                  stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT,
                                  env=clean_env(OPENSSL_CONF=stage.conf)), lambda: pids)


def room_argv(stage, hosts, command):
    """Runs command in a room that reaches these hosts: {name: port here}."""
    argv = [CLOCHE, "run", "--no-workspace", "--timeout", "300s", "--upstream-ca",
            stage.authority.cert, "--secret", "TOKEN=BENCH_TOKEN@up.test", "--network-log",
            os.path.join(stage.work, "network.log"), "-e", "OPENSSL_CONF=/bench.cnf", "-m",
            stage.conf + ":/bench.cnf:ro", "-m", stage.https + ":/https:ro"]
    for name, port in hosts.items():
        argv += ["--allow", name, "--connect-to", "%s:443:127.0.0.1:%d" % (name, port)]
    return argv + ["--"] + command


def in_room(stage, command):
    """Runs the same command inside a room, through its gateway."""
    origin = stage.origin_h2 if command.startswith("h2load") else stage.origin
    argv = room_argv(stage, {"up.test": origin, "sink.test": stage.sink}, [
        "sh", "-c",
        # The first use of the network starts the gateway; the peers run already.
        "curl -s -o /dev/null https://up.test/1k; echo GO; " +
        command.replace("{url}/put", "https://sink.test/put").replace(
            "{url}", "https://up.test").replace("{https}", "/https").replace(
                "{to}", "up.test 443 /1k") + "; echo END; sleep 0.2"])
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         stdin=subprocess.DEVNULL, env=clean_env(BENCH_TOKEN=SECRET))

    def find():
        pids = [pid for pid, name in descendants(p.pid).items()
                if name in ("cloche-gateway", "cloche-broker")]
        if len(pids) != 2:
            p.kill()
            raise RuntimeError("gateway and broker are not there to be measured")
        return pids
    return timed(p, find)


def timed(p, find):
    """From the line GO to the line END: wall time and CPU of the contestant's processes."""
    out, start, before, pids, peak = [], None, 0.0, [], []
    stop = threading.Event()
    for line in p.stdout:
        if line == "GO\n":
            pids = find()
            threading.Thread(target=watch_peak, args=(pids, stop, peak), daemon=True).start()
            before, start = cpu_seconds(pids), time.monotonic()
        elif line == "END\n":
            wall, cpu = time.monotonic() - start, cpu_seconds(pids) - before
            stop.set()
        else:
            out.append(line)
    p.wait()
    stop.set()
    if start is None or p.returncode:
        raise RuntimeError("exit %s: %s" % (p.returncode, "".join(out)[-500:]))
    return Measured("".join(out), wall, cpu, max(peak or [0]))


def wrk(seconds):
    return "wrk -t1 -c16 -d%ds --latency {url}/1k" % seconds


def h2load(seconds):
    return "h2load -t1 -c8 -m16 -D%d {url}/1k" % seconds


def https(kind, at_once, nagle="nodelay"):
    """https.c, which makes whole handshakes where wrk resumes, and leaves Nagle's algorithm on."""
    return lambda seconds: "{https} %s %d %d %s {to}" % (kind, at_once, seconds, nagle)


class Load:
    """A report of a load generator: requests answered, and times of a request in ms if it tells.
    requests is 0 if some were not answered with 200."""

    def __init__(self, out):
        self.requests, self.median, self.p99 = 0, None, None
        h2 = re.search(r"requests: .* (\d+) succeeded, 0 failed, 0 errored", out)
        own = re.search(r"answered (\d+) failed 0 resumed (\d+) median (\S+) p99 (\S+) us", out)
        total = re.search(r"(\d+) requests in", out)
        if h2:
            self.requests = int(h2.group(1))
        elif own:
            self.requests = int(own.group(1))
            self.median, self.p99 = (float(own.group(n)) / 1e3 for n in (3, 4))
        elif total and "Non-2xx" not in out:
            self.requests = int(total.group(1))
            unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out)
            self.p99 = float(unit.group(1)) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit.group(2)]


def contestants(stage, direct=False):
    stage.peers()
    found = {"cloche": lambda command: in_room(stage, command)}
    for name in (["direct"] if direct else []) + ["nginx", "haproxy", "mitmdump", "squid", "srt"]:
        if name in stage.ports or name == "direct":
            found[name] = lambda command, name=name: on_peer(stage, name, command)
    return found


class Row:
    """One load on all contestants in turn, so many rounds: series by contestant."""

    def __init__(self, stage, command, rounds=5, seconds=3, direct=False, without=()):
        self.rounds, self.seconds = rounds, seconds
        self.who = [n for n in contestants(stage, direct) if n not in without]
        self.rate, self.cpu, self.median, self.p99 = (
            {name: Series() for name in self.who} for _ in range(4))
        self.older = set()
        for _ in range(rounds):
            for name, run in contestants(stage, direct).items():
                if name in self.who:
                    self._round(name, run, command(seconds))

    def _round(self, name, run, command):
        try:
            m = run(command)
            found = Load(m.out)
            if not found.requests:
                raise RuntimeError(m.out[-300:])
        except RuntimeError as error:
            log("bench: %s: %s" % (name, error))
            self.rate[name].lost += 1
            return
        if "Falling back to HTTP/1.1" in m.out:
            self.older.add(name)
        self.rate[name].add(found.requests / self.seconds)
        self.cpu[name].add(m.cpu / found.requests * 1e6)
        if found.median is not None:
            self.median[name].add(found.median)
        if found.p99 is not None:
            self.p99[name].add(found.p99)

    def called(self, name):
        if name in self.older:
            return name + ", which fell back to HTTP/1.1"
        return name + {"squid": ", by CONNECT", "srt": ", by CONNECT, not decrypted"}.get(name, "")

    def table(self, title, how):
        shown = [("requests/s", self.rate, 0), ("CPU microseconds/request", self.cpu, 1),
                 ("median ms", self.median, 3), ("p99 ms", self.p99, 2)]
        shown = [s for s in shown if any(series.values for series in s[1].values())]
        lines = ["## " + title, "", "%s, 1 KiB bodies, %d rounds of %d s; medians (range)." %
                 (how, self.rounds, self.seconds), "",
                 "| proxy | %s | rounds |" % " | ".join(s[0] for s in shown),
                 "|---" * (len(shown) + 2) + "|"]
        for name in self.who:
            cells = ["" if name == "direct" and what is self.cpu else what[name].text(digits=digits)
                     for _, what, digits in shown]
            lines.append("| %s | %s | %s |" % (self.called(name), " | ".join(cells),
                                              self.rate[name].rounds()))
        return lines

    def rules(self, rules):
        lines, none = list(RULES_HEAD), Series()
        for kind, peer, bound in rules:
            table = self.cpu if kind == "cpu" else self.rate
            name = self.called(peer)
            rule(lines, "%s, cloche / %s" % ("CPU a request" if kind == "cpu" else "requests/s",
                                             name),
                 ratio(table["cloche"], table.get(peer, none)), bound, kind != "cpu")
        return lines


WRK = "wrk, 1 thread, 16 connections"


def row_requests(stage):
    bounds = [("rate", "nginx", 0.9), ("cpu", "nginx", 1.2), ("rate", "mitmdump", 25)]
    row = Row(stage, wrk)
    lines = row.table("HTTPS through the gateway, keep-alive, HTTP/1.1 (row 4)", WRK)
    lines += row.rules(bounds) + [""]
    row = Row(stage, https("kept", 1), rounds=3, seconds=2, direct=True)
    lines += row.table("The same, one request at a time", "bench/https.c, 1 connection")
    lines += row.rules([("rate", "nginx", None), ("cpu", "nginx", None)]) + [""]
    row = Row(stage, h2load, rounds=3, without=("squid", "srt"))  # CONNECT is HTTP/1.1
    lines += row.table("HTTPS through the gateway, HTTP/2 (row 4)",
                       "h2load, 1 thread, 8 connections with 16 streams each (cloche speaks HTTP/2 "
                       "to the origin, too, the others HTTP/1.1)")
    return lines + row.rules(bounds)


def row_connections(stage):
    bounds = [("rate", "nginx", 1.0), ("rate", "mitmdump", 12), ("cpu", "nginx", None)]
    lines = []
    for kind, title, how in (
            ("full", "A new TLS connection for each request, full handshakes (row 5)",
             "no session is offered"),
            ("resumed", "The same with resumption",
             "each offers the session of the one before, where it got one")):
        row = Row(stage, https(kind, 16))
        lines += row.table(title, "bench/https.c, 16 connections; " + how) + row.rules(bounds)
        lines.append("")
    return lines[:-1]


def row_first(stage):
    """The first request of a connection, as a client feels it."""
    lines = []
    for nagle, title in (("nodelay", "with TCP_NODELAY"), ("nagle", "with Nagle's algorithm")):
        row = Row(stage, https("full", 1, nagle), rounds=3, seconds=2, direct=True,
                  without=("squid", "srt"))
        lines += row.table("The first request of a connection, " + title,
                           "bench/https.c, one after the other, from connect() to the answer's "
                           "end, full handshakes") + RULES_HEAD
        rule(lines, "cloche later than direct by, ms", ratio(
            row.median["cloche"], row.median["direct"], lambda a, b: a - b), 1)
        lines.append("")
    return lines[:-1]


def row_bodies(stage, rounds=3):
    with open(os.path.join(stage.work, "www", "1g"), "rb") as f:
        while f.read(1 << 20):  # else the first contestant would wait for the page cache
            pass
    down, up, memory = {}, {}, {}
    who = contestants(stage)
    for name in who:
        down[name], up[name], memory[name] = Series(), Series(), Series()
    get = "curl -sS --http1.1 -k -o /dev/null -w '%{http_code} %{size_download}\\n' {url}/1g"
    put = "head -c 536870912 /dev/zero | curl -sS --http1.1 -k -H 'Expect:' " \
          "-H 'Content-Length: 536870912' -H 'Transfer-Encoding:' -T - -o /dev/null " \
          "-w '%{http_code}\\n' {url}/put"
    for _ in range(rounds):
        for name, run in who.items():
            try:
                m = run(get)
                if m.out.strip() != "200 %d" % GIB:
                    raise RuntimeError(m.out)
                down[name].add(GIB / m.wall / 1e6)
                memory[name].add(m.peak_kib / 1024)
                if name in ("mitmdump", "squid", "srt"):  # they have one upstream here
                    continue
                m = run(put)
                if m.out.strip() != "200":
                    raise RuntimeError(m.out)
                up[name].add(GIB / 2 / m.wall / 1e6)
                memory[name].add(m.peak_kib / 1024)
            except RuntimeError as error:
                log("bench: %s: %s" % (name, error))
                down[name].lost += 1
    lines = ["## Large bodies (row 6)", "",
             "1 GiB down, 512 MiB up, one curl, %d rounds; memory is the peak resident size of all "
             "processes of the proxy while it streams." % rounds, "",
             "| proxy | down MB/s | up MB/s | peak MiB | rounds |", "|---|---|---|---|---|"]
    for name in who:
        lines.append("| %s | %s | %s | %s | %s |" % (
            name, down[name].text(digits=0), up[name].text(digits=0),
            memory[name].text(digits=1), down[name].rounds()))
    lines += RULES_HEAD
    none = Series()
    rule(lines, "down, cloche / nginx", ratio(down["cloche"], down.get("nginx", none)), 0.75, True)
    rule(lines, "up, cloche / nginx", ratio(up["cloche"], up.get("nginx", none)), 0.75, True)
    peak = max(memory["cloche"].values) if memory["cloche"].values else None
    rule(lines, "peak memory of both processes, MiB", peak, 16, False)
    return lines
