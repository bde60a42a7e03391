# SPDX-License-Identifier: Apache-2.0
"""What small pieces cost on their way: a server, and a client with one function for each way of sending
them. Whoever leaves Nagle's algorithm on (TCP_NODELAY off) sends the second piece when the first is
acknowledged, so somebody who acknowledges late makes him wait.

usage, inside the room: pieces.py WAY HOST [CA]  prints two medians in ms: with TCP_NODELAY, without
                        pieces.py serve          a plain server; prints its port
"""
import socket
import ssl
import statistics
import struct
import sys
import threading
import time

from wsframe import frame, parse_frame, websocket_accept

ROUNDS = 11
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"


class Server:
    """Plain and TLS on loopback. Reads a request and its body, and answers in one piece, or if the
    path says so in three, with Nagle's algorithm or without. /ws answers every second frame."""

    def __init__(self, cert=None, key=None):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if cert:
            self.context.load_cert_chain(cert, key)
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=64) for _ in range(2)]
        self.plain, self.tls = (l.getsockname()[1] for l in self.listeners)
        for listener, context in zip(self.listeners, (None, self.context)):
            threading.Thread(target=self._accept, args=(listener, context), daemon=True).start()

    def stop(self):
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener, context):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn, context), daemon=True).start()

    def _serve(self, conn, context):
        conn.settimeout(30)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if context:
                conn = context.wrap_socket(conn, server_side=True)
            data = b""
            while True:
                head, data = read_until(conn, data, b"\r\n\r\n")
                size = 6 if b"Content-Length: 6" in head else 0
                while len(data) < size:
                    data += receive(conn)
                data = data[size:]
                self._answer(conn, head)
        except (OSError, EOFError):
            conn.close()

    @staticmethod
    def _answer(conn, head):
        path = head.split()[1]
        if path == b"/ws":
            websocket(conn, head)
        elif path.startswith(b"/pieces"):
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, path == b"/pieces/1")
            for piece in (ANSWER[:-6], ANSWER[-6:-3], ANSWER[-3:]):
                conn.sendall(piece)
        else:
            conn.sendall(ANSWER)


def websocket(conn, head):
    conn.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + websocket_accept(head).encode() + b"\r\n\r\n")
    data, number = b"", 0
    while True:
        found = parse_frame(data)
        if not found:
            data += receive(conn)
            continue
        data, number = found[4], number + 1
        if number % 2 == 0:
            conn.sendall(frame(1, b"answer"))


def receive(conn):
    data = conn.recv(65536)
    if not data:
        raise EOFError("the connection ended")
    return data


def read_until(conn, data, end):
    """(what is before the end and with it, what is behind)"""
    while end not in data:
        data += receive(conn)
    at = data.index(end) + len(end)
    return data[:at], data[at:]


class Client:
    def __init__(self, host, ca=None, ports=(80, 443)):
        self.host, self.ports = host, ports
        self.context = ssl.create_default_context(cafile=ca)
        self.context.check_hostname = host != "127.0.0.1"

    def connect(self, nodelay, tls, port=None):
        s = socket.create_connection((self.host, port or self.ports[tls]), 30)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
        return self.context.wrap_socket(s, server_hostname=self.host) if tls else s

    def head(self, path="/", more=""):
        return ("POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, self.host, more)).encode()

    @staticmethod
    def exchange(s, *pieces):
        for piece in pieces:
            s.sendall(piece)
        read_until(s, b"", b"answer")

    # The ways. Each is called ROUNDS times with a new connection, and does its own rounds on it.

    def first(self, nodelay):
        """the first request of a TLS connection, behind the end of the handshake"""
        with self.connect(nodelay, True) as s:
            self.exchange(s, self.head())

    def body(self, nodelay, tls=True):
        """a head, and a body in two pieces"""
        with self.connect(nodelay, tls) as s:
            for _ in range(3):
                self.exchange(s, self.head(more="Content-Length: 6\r\n"), b"abc", b"def")

    def body_plain(self, nodelay):
        """the same without TLS"""
        self.body(nodelay, False)

    def request_line(self, nodelay, tls=True):
        """a head in pieces"""
        with self.connect(nodelay, tls) as s:
            for _ in range(3):
                self.exchange(s, self.head()[:20], self.head()[20:-2], b"\r\n")

    def request_line_plain(self, nodelay):
        """the same without TLS"""
        self.request_line(nodelay, False)

    def frames(self, nodelay):
        """two messages of a WebSocket, the second of which is answered"""
        asked = self.head("/ws", "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\n"
                          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n").replace(b"POST", b"GET")
        with self.connect(nodelay, True) as s:
            s.sendall(asked)
            read_until(s, b"", b"\r\n\r\n")
            for _ in range(3):
                message = frame(1, b"message", mask=b"mask")
                self.exchange(s, message, message)

    def h2(self, nodelay):
        """a head and a body of HTTP/2, each in its frame"""
        self.context.set_alpn_protocols(["h2"])
        fields = ((b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/"),
                  (b":authority", self.host.encode()), (b"content-length", b"6"))
        block = b"".join(b"\0" + bytes([len(n)]) + n + bytes([len(v)]) + v for n, v in fields)

        def h2_frame(kind, flags, stream, payload):
            return struct.pack("!IBBI", len(payload), kind, flags, stream)[1:] + payload
        with self.connect(nodelay, True) as s:
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2_frame(4, 0, 0, b""))
            for stream in (1, 3, 5):
                self.exchange(s, h2_frame(1, 4, stream, block), h2_frame(0, 0, stream, b"abc"),
                              h2_frame(0, 1, stream, b"def"))

    def dns(self, nodelay):
        """a question over TCP behind its length"""
        question = struct.pack("!6H", 1, 0x100, 1, 0, 0, 0) + b"\2up\4test\0" + \
            struct.pack("!2H", 1, 1)
        with self.connect(nodelay, False, 53) as s:
            for _ in range(3):
                s.sendall(struct.pack("!H", len(question)))
                s.sendall(question)
                data = b""
                while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
                    data += receive(s)

    def answer(self, nodelay, tls=True):
        """an answer in three pieces of an origin that sets TCP_NODELAY, or does not"""
        with self.connect(True, tls) as s:
            for _ in range(3):
                self.exchange(s, self.head("/pieces/%d" % nodelay))

    def answer_plain(self, nodelay):
        """the same without TLS"""
        self.answer(nodelay, False)


WAYS = [name for name, what in vars(Client).items() if callable(what) and what.__doc__]


def medians(way):
    """Milliseconds with TCP_NODELAY and without, taken in turn."""
    found = {True: [], False: []}
    for i in range(ROUNDS + 1):
        for nodelay in (True, False):
            start = time.perf_counter()
            way(nodelay)
            if i > 0:
                found[nodelay].append((time.perf_counter() - start) * 1e3)
    return statistics.median(found[True]), statistics.median(found[False])


def main():
    if sys.argv[1] == "serve":
        print(Server().plain, flush=True)
        threading.Event().wait()
    client = Client(sys.argv[2], *sys.argv[3:])
    print("%.3f %.3f" % medians(getattr(client, sys.argv[1])))


if __name__ == "__main__":
    main()
