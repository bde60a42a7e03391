# SPDX-License-Identifier: Apache-2.0
"""Scripted origin servers on loopback: they record what arrives byte for byte and answer as told."""
import re
import socket
import ssl
import threading
import time

import codings
from wsframe import frame, parse_frame, websocket_accept


class Reply:
    """What to answer to one request."""

    def __init__(self):
        self.status, self.headers, self.body = 200, [], b"ok\n"
        self.raw = None       # bytes to send instead of a composed answer
        self.size = None      # so many bytes of body, made on the fly
        self.echo = False     # the request's own bytes as body
        self.close = False    # close the connection after it
        self.drip = None      # (pieces, seconds between them) of the body
        self.delay = 0.0
        self.websocket = False  # answers 101 and plays a WebSocket
        self.accept = None      # its Sec-WebSocket-Accept, where it is not to be right
        self.frames = b""       # bytes that follow the 101
        self.deaf = False       # reads no frames, and ends
        self.encode = []      # content codings of the body, in order
        self.write_as = None  # another writing of it, see codings.py
        self.zeros = 0        # so many as gzip, in place of the body
        self.early = False    # answers the head; a body is read as the next request

    def compose(self, request):
        if self.raw is not None:
            return self.raw
        body = request if self.echo else self.body
        if self.write_as:
            body = codings.write_as(body, self.write_as)
        body = codings.encode(body, self.encode)
        if self.zeros:
            body = codings.zeros(self.zeros)
        lines = ["HTTP/1.1 %d Scripted" % self.status]
        lines += ["%s: %s" % h for h in self.headers]
        names = [h[0].lower() for h in self.headers]
        if "content-length" not in names and "transfer-encoding" not in names and \
           self.status not in (204, 304):
            lines.append("Content-Length: %d" % (len(body) if self.size is None else self.size))
        if self.close:
            lines.append("Connection: close")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        return head if self.size is not None or request.startswith(b"HEAD ") else head + body


class Body:
    """Finds the end of a request's body as it arrives; keeps the beginning of it."""
    KEEP = 1 << 20

    def __init__(self, head):
        length = re.search(rb"(?im)^content-length: *(\d+)", head)
        self.chunked = bool(re.search(rb"(?im)^transfer-encoding: *chunked", head))
        self.left = int(length.group(1)) if length else 0
        self.complete = not self.chunked and self.left == 0
        self.kept = b""

    def _keep(self, data):
        if len(self.kept) < self.KEEP:
            self.kept += data[:self.KEEP]

    def take(self, data):
        """Returns what was not used: an unfinished chunk line, or what follows the body."""
        while data and not self.complete:
            if self.left:
                piece, data = data[:self.left], data[self.left:]
                self._keep(piece)
                self.left -= len(piece)
                self.complete = not self.chunked and self.left == 0
                continue
            # The line end of the chunk before, if any, then the size; or the trailers.
            m = re.match(rb"(?:\r\n)?([0-9a-fA-F]+)\r\n", data)
            if not m:
                return data
            size = int(m.group(1), 16)
            if size == 0:
                end = re.compile(rb"(?:[^\r\n]+\r\n)*\r\n").match(data, m.end())
                if not end:
                    return data
                self._keep(data[:end.end()])
                self.complete = True
                return data[end.end():]
            self._keep(m.group(0))
            self.left, data = size, data[m.end():]
        return data


class Origin:
    """One host name and port. tls: None, or one or more (certificate, key[, maximum version]) for
    the first, second, ... connection (the last repeats)."""

    def __init__(self, name, port, tls=None, replies=None, address="127.0.0.1", h2=False, patience=0):
        self.name, self.port = name, port
        self.replies = replies or [Reply()]
        self.requests, self.connections, self.sent = [], 0, 0
        self.handshakes, self.handshake_errors = 0, []
        self.patience = patience  # seconds before a handshake
        self.lock = threading.Lock()
        self.contexts = [self._context(*t) for t in tls or []]
        self.h2 = h2  # answers every connection's first request with a reply's bytes
        for context in self.contexts if h2 else []:
            context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server((address, 0), backlog=256)
        self.address = self.listener.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def _context(cert, key, maximum=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        if maximum:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = maximum
        return context

    def connect_to(self):
        return "%s:%d:%s:%d" % ((self.name, self.port) + self.address)

    def stop(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
            context = self.contexts[min(number, len(self.contexts)) - 1] if self.contexts else None
            threading.Thread(target=self._serve, args=(conn, context), daemon=True).start()

    def _serve(self, conn, context):
        conn.settimeout(30)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if context:
                time.sleep(self.patience)
                conn = context.wrap_socket(conn, server_side=True)
                with self.lock:
                    self.handshakes += 1
        except (OSError, ssl.SSLError) as error:
            with self.lock:
                self.handshake_errors.append(str(error))
            conn.close()
            return
        pending = b""
        try:
            if self.h2:
                self._serve_h2(conn)
                return
            while True:
                request, pending = self._read_request(conn, pending)
                if request is None:
                    return
                reply = self._next_reply()
                with self.lock:
                    self.requests.append(request)
                if reply.websocket:
                    self._websocket(conn, reply, request, pending)
                    return
                head = request.partition(b"\r\n\r\n")[0]
                if not self._answer(conn, reply, request) or \
                   re.search(rb"(?im)^connection:.*\bclose\b", head):
                    return
        except (OSError, ssl.SSLError):
            pass
        finally:
            self._close(conn)

    def _serve_h2(self, conn):
        """A first request, the reply's bytes to it, and whatever else comes, as it came."""
        data, at = b"", 24  # behind the preface
        while True:
            more = conn.recv(65536)
            if not more:
                return
            data += more
            while len(data) >= at + 9:
                kind = data[at + 3]
                at += 9 + int.from_bytes(data[at:at + 3], "big")
                if kind == 1:
                    break
            else:
                continue
            break
        reply = self._next_reply()
        with self.lock:
            self.requests.append(data)
        conn.sendall(reply.raw)
        while not reply.close:
            more = conn.recv(65536)
            if not more:
                return
            with self.lock:
                self.requests[-1] += more[:4096]

    def _next_reply(self):
        with self.lock:
            return self.replies[min(len(self.requests), len(self.replies) - 1)]

    def _websocket(self, conn, reply, request, data):
        """Sends every data frame back, answers pings and the close frame; what came is recorded
        behind the request as <OPCODE PAYLOAD>."""
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        if reply.accept != "":
            lines.append("Sec-WebSocket-Accept: " + (reply.accept or websocket_accept(request)))
        lines += ["%s: %s" % h for h in reply.headers]
        conn.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        if reply.frames:  # in a TLS record of their own, and most likely in the same segment
            conn.sendall(reply.frames)
        while not reply.deaf:
            found = parse_frame(data)
            if not found:
                more = self._receive(conn)
                if not more:
                    return
                data += more
                continue
            opcode, fin, mask, payload, data = found
            with self.lock:
                self.requests[-1] += b"<%d%s %s>" % (opcode, b"" if mask else b" unmasked",
                                                     payload[:1000])
            if opcode == 8:
                conn.sendall(frame(8, payload))
                return
            if opcode != 10:
                conn.sendall(frame(10 if opcode == 9 else opcode, payload, fin))

    def _read_request(self, conn, data):
        """One request, as it came, and what was read beyond it. (None, ...) at the end. One that
        breaks off is recorded too: it must be seen that something arrived."""
        while b"\r\n\r\n" not in data:
            more = self._receive(conn)
            if not more:
                if data:
                    with self.lock:
                        self.requests.append(data + b"<cut off>")
                return None, b""
            data += more
        head, rest = data.split(b"\r\n\r\n", 1)
        head += b"\r\n\r\n"
        if self._next_reply().early:
            return head, rest
        if re.search(rb"(?im)^expect: *100-continue", head):
            conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = Body(head)
        rest = body.take(rest)
        while not body.complete:
            more = self._receive(conn)
            if not more:
                with self.lock:
                    self.requests.append(head + body.kept + b"<cut off>")
                return None, b""
            rest = body.take(rest + more)
        return head + body.kept, rest

    @staticmethod
    def _close(conn):
        """With TLS's own end of stream, as a server that means it."""
        try:
            if isinstance(conn, ssl.SSLSocket):
                conn.settimeout(0.1)
                conn.unwrap()
        except (OSError, ValueError):
            pass
        try:
            conn.close()
        except OSError:
            pass

    @staticmethod
    def _receive(conn):
        try:
            return conn.recv(1 << 16)
        except (OSError, ssl.SSLError):
            return b""

    def _answer(self, conn, reply, request):
        import time
        if reply.delay:
            time.sleep(reply.delay)
        conn.sendall(reply.compose(request))
        if reply.size is not None and not request.startswith(b"HEAD "):
            block, left = bytes(range(256)) * 256, reply.size
            while left:
                piece = block[:min(left, len(block))]
                conn.sendall(piece)
                left -= len(piece)
                with self.lock:
                    self.sent += len(piece)
        if reply.drip:
            for piece in reply.drip[0]:
                conn.sendall(piece)
                time.sleep(reply.drip[1])
        return not reply.close
