# SPDX-License-Identifier: Apache-2.0
"""Clients that run in a room whose network dies: each takes what never ends and says how it ended
all the same. /out/state is {name: [state, numbers that came]}; where state is "complete" a client
was made to believe that it has all."""
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

STATE = {}


class Numbers:
    """Bytes that must be one number after the other."""

    def __init__(self, name):
        self.name, self.rest, self.next = name, b"", 0

    def take(self, data):
        data = self.rest + data
        whole = len(data) // 4 * 4
        for i in range(0, whole, 4):
            if int.from_bytes(data[i:i + 4], "big") != self.next:
                raise ValueError("wrong at %d" % self.next)
            self.next = (self.next + 1) & 0xffffffff
        self.rest = data[whole:]
        STATE[self.name] = ["open", self.next]


class Lenient:
    """TLS for which the end of the connection is an end, with close_notify or without. (The sockets
    of Python's module take even a reset for one.)"""

    def __init__(self, sock, host, ca):
        self.sock, self.incoming, self.outgoing = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = ssl.create_default_context(cafile=ca).wrap_bio(
            self.incoming, self.outgoing, server_hostname=host)
        self._run(lambda: self.tls.do_handshake() or b"done")

    def _run(self, operation):
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                result = None
            if self.outgoing.pending:
                self.sock.sendall(self.outgoing.read())
            if result is not None:
                return result
            data = self.sock.recv(65536)
            if not data:
                return b""
            self.incoming.write(data)

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def sendall(self, data):
        self._run(lambda: self.tls.write(data))

    def recv(self, size):
        return self._run(lambda: self.tls.read(size))


def connect(host, port=443, ca=None, wait=600):
    sock = socket.create_connection((host, port), wait)
    return Lenient(sock, host, ca) if port == 443 else sock


def request(sock, host, path, version="1.1", more=""):
    sock.sendall(("GET %s HTTP/%s\r\nHost: %s\r\n%s\r\n" % (path, version, host, more)).encode())
    data = b""
    while b"\r\n\r\n" not in data:
        got = sock.recv(65536)
        if not got:
            raise EOFError("no answer")
        data += got
    head, rest = data.split(b"\r\n\r\n", 1)
    if not re.match(rb"HTTP/1.1 (200|101) ", head):
        raise EOFError(head.split(b"\r\n")[0].decode())
    return head.lower(), rest


def pieces(sock, data):
    while True:
        if data:
            yield data
        data = sock.recv(65536)
        if not data:
            return


def in_chunks(source):
    """The bytes of a chunked body; returns at its proper end alone."""
    data = b""
    for piece in source:
        data += piece
        while True:
            m = re.match(rb"([0-9a-f]+)\r\n", data)
            if not m or len(data) < m.end() + int(m.group(1), 16) + 2:
                break
            size = int(m.group(1), 16)
            if size == 0:
                return
            yield data[m.end():m.end() + size]
            data = data[m.end() + size + 2:]
    raise EOFError("no last chunk")


def in_frames(source):
    data = b""
    for piece in source:
        data += piece
        while len(data) >= 4 and data[0] == 0x82 and data[1] == 126:
            size = int.from_bytes(data[2:4], "big")
            if len(data) < 4 + size:
                break
            yield data[4:4 + size]
            data = data[4 + size:]
        if data[:1] == b"\x88" and len(data) >= 4:
            code = int.from_bytes(data[2:4], "big")
            if code != 1000:
                raise EOFError("close frame %d" % code)
            return
    raise EOFError("no close frame")


def read_http(name, host, path, port=443, version="1.1", ca=None, more=""):
    sock, numbers = connect(host, port, ca), Numbers(name)
    head, rest = request(sock, host, path, version, more)
    source = pieces(sock, rest)
    if b"upgrade: websocket" in head:
        source = in_frames(source)
    elif b"transfer-encoding: chunked" in head:
        source = in_chunks(source)
    for data in source:
        numbers.take(data)
    if b"content-length" in head:
        raise EOFError("shorter than was said")


def read_h2(name):
    numbers = Numbers(name)
    p = subprocess.Popen(["curl", "-sS", "--http2", "https://main.test/h2"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while data := p.stdout.read1(65536):
        numbers.take(data)
    if p.wait() != 0:
        raise EOFError("curl: " + p.stderr.read().decode().strip())


def read_grpc(name):
    p = subprocess.Popen(["node", "/t/grpc.js", "client", "grpc.test:443", "stay"],
                         env=dict(os.environ, NODE_PATH="/t/grpc"), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    for n, line in enumerate(p.stdout):
        if line.startswith("{"):
            if json.loads(line)["code"] != 0:
                raise EOFError(line.strip())
            return
        STATE[name] = ["open", n + 1]
    raise EOFError("grpc: " + p.stderr.read())


def write(name):
    sock = connect("main.test")
    sock.sendall(b"POST /up HTTP/1.1\r\nHost: main.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    sock.settimeout(0.01)
    at = 0
    while True:
        data = b"".join(i.to_bytes(4, "big") for i in range(at, at + 1024))
        at += 1024
        sock.settimeout(600)
        sock.sendall(b"1000\r\n" + data + b"\r\n")
        STATE[name] = ["open", at]
        sock.settimeout(0.01)
        try:
            answer = sock.recv(4096)
        except TimeoutError:
            continue
        if b" 200 " in answer:
            return
        raise EOFError("answer %r" % answer[:100])


def flood_up(name):
    sock, data = connect("main.test"), bytes(65536)
    sock.sendall(b"POST /sink HTTP/1.1\r\nHost: main.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    for n in range(1 << 30):
        sock.sendall(b"10000\r\n" + data + b"\r\n")
        STATE[name] = ["open", n * len(data)]


WEBSOCKET = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
CLIENTS = {
    "length": lambda n: read_http(n, "main.test", "/length"),
    "chunked": lambda n: read_http(n, "main.test", "/chunked"),
    "close": lambda n: read_http(n, "main.test", "/close"),
    "close-1.0": lambda n: read_http(n, "main.test", "/close", version="1.0"),
    "plain-1.0": lambda n: read_http(n, "plain.test", "/close", port=80, version="1.0"),
    "h2": read_h2,
    "grpc": read_grpc,
    "websocket": lambda n: read_http(n, "main.test", "/websocket", more=WEBSOCKET),
    "tunnel": lambda n: read_http(n, "pinned.test", "/close", ca="/t/ca.pem"),
    "up": write,
    "flood-1": lambda n: read_http(n, "main.test", "/flood"),
    "flood-2": lambda n: read_http(n, "pinned.test", "/flood", ca="/t/ca.pem"),
    "flood-up": flood_up,
}


def run(name):
    try:
        CLIENTS[name](name)
        text = "complete"
    except Exception as error:  # whatever a client may see
        text = "error: %s: %s" % (type(error).__name__, error)
    STATE[name] = [text, STATE[name][1]]


def again():
    """Whether a connection can still be had."""
    try:
        sock = connect("main.test", wait=5)
        return request(sock, "main.test", "/hello")[0].decode()
    except Exception as error:
        return "error: %s: %s" % (type(error).__name__, error)


def say():
    with open("/out/state.new", "w") as f:
        json.dump(STATE, f)
    os.rename("/out/state.new", "/out/state")


def main():
    for name in sys.argv[1:]:
        STATE[name] = ["begun", 0]
    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in sys.argv[1:]]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        say()
        time.sleep(0.02)
    STATE["again"] = [again(), 0]
    say()
    time.sleep(600)


main()
