# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frame by frame, so that a scenario can send what no client would. Runs inside the room.
Fields are sent as literals without compression; what comes back is decoded by python3-hpack."""
import struct

TYPES = {"DATA": 0, "HEADERS": 1, "PRIORITY": 2, "RST_STREAM": 3, "SETTINGS": 4, "PUSH_PROMISE": 5,
         "PING": 6, "GOAWAY": 7, "WINDOW_UPDATE": 8, "CONTINUATION": 9}
CODES = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
         "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
         "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
KEEP = 1 << 16  # bytes of a body that are reported
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def number(value, bits):
    """RFC 7541 5.1, with the upper bits zero."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out, value = [most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def block(fields):
    """Literals that are not indexed."""
    return b"".join(b"\0" + number(len(n), 7) + n + number(len(v), 7) + v for n, v in fields)


class H2:
    """The client's end: frames out through send(), and what came in, as responses."""

    def __init__(self, client, send):
        self.client, self.raw_send = client, send
        self.data = b""
        self.responses, self.interim = [], []
        self.streams = {}  # number: the response that is being collected
        self.resets, self.goaway = {}, None
        self.total, self.next = 0, 1
        self.windows, self.initial = {0: 65535}, 65535
        import hpack
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.heads = []
        quiet = client.get("window", -1)
        settings = struct.pack("!HI", 2, 0)
        if quiet >= 0:
            settings += struct.pack("!HI", 4, quiet)
        self.quiet = quiet >= 0  # no window is given but the first
        self.send(PREFACE + frame(4, 0, 0, settings))
        if not self.quiet:
            self.send(frame(8, 0, 0, struct.pack("!I", 1 << 28)))

    def send(self, data):
        self.raw_send(data)

    # What the generic player of a connection looks at.
    def waits(self):
        return bool(self.streams) and not self.goaway

    def is_due(self):
        return False  # current says so

    @property
    def current(self):
        return self.streams if self.waits() else None

    def pseudo(self, method, target, headers):
        """A line ":name: value" replaces what would be sent, the value "-" leaves it out; "+" in front
        adds the field as it is."""
        host = self.client["host"]
        if self.client["port"] != 443:
            host += ":%d" % self.client["port"]
        first = {":method": method, ":scheme": "https", ":authority": host, ":path": target}
        rest = []
        for line in headers:
            add, line = line[0] == "+", line.lstrip("+")
            at = line.index(":", 1)
            name, value = line[:at], line[at + 1:].strip(" ")
            if name in first and not add:
                first[name] = value
            else:
                rest.append((name, value))
        fields = [(n, v) for n, v in first.items() if v != "-"] + rest
        return [(n.encode("latin-1"), v.encode("latin-1")) for n, v in fields]

    def request(self, method, target, headers, body, end=True):
        stream, self.next = self.next, self.next + 2
        self.streams[stream] = {"status": 0, "headers": [], "body": "", "length": 0,
                                "complete": False, "stream": stream}
        self.windows[stream] = self.initial
        flags = END_HEADERS | (END_STREAM if end and not body else 0)
        self.send(frame(1, flags, stream, block(self.pseudo(method, target, headers))))
        for at in range(0, len(body), 16384):
            piece = body[at:at + 16384]
            last = end and at + len(piece) == len(body)
            self.send(frame(0, END_STREAM if last else 0, stream, piece))
        return stream

    def step(self, step):
        """["open", method, target, headers, body, end], ["frames", [[type, flags, stream, payload]],
        times]: stream "new" is the next one, "last" the one before."""
        if step[0] == "open":
            self.request(step[1], step[2], step[3], step[4], step[5])
            return
        for _ in range(step[2]):
            out = b""
            for kind, flags, stream, payload in step[1]:
                if stream == "new":
                    self.streams.pop(self.next, None)
                    stream, self.next = self.next, self.next + 2
                elif stream == "last":
                    stream = self.next - 2
                if isinstance(payload, list):
                    payload = block(self.pseudo("GET", "/", payload))
                else:
                    payload = payload.encode("latin-1")
                out += frame(kind, flags, int(stream), payload)
            self.send(out)

    def feed(self, data):
        self.data += data
        self.total += len(data)
        while len(self.data) >= 9:
            n = struct.unpack("!I", b"\0" + self.data[:3])[0]
            if len(self.data) < 9 + n:
                return
            kind, flags, stream = struct.unpack("!BBI", self.data[3:9])
            payload, self.data = self.data[9:9 + n], self.data[9 + n:]
            self._frame(kind, flags, stream & 0x7fffffff, payload)

    def _frame(self, kind, flags, stream, payload):
        if kind == 1:
            self._headers(flags, stream, payload)
        elif kind == 0:
            self._data(flags, stream, payload)
        elif kind == 3:
            self.resets[stream] = CODES[struct.unpack("!I", payload)[0]]
            self._finish(stream, False)
        elif kind == 4 and not flags & ACK:
            self.send(frame(4, ACK, 0))
        elif kind == 6 and not flags & ACK:
            self.send(frame(6, ACK, 0, payload))
        elif kind == 7:
            self.goaway = CODES[struct.unpack("!I", payload[4:8])[0]]

    def _headers(self, flags, stream, payload):
        if not flags & END_HEADERS:
            raise ValueError("CONTINUATION is not understood here")
        fields = [(n, v) for n, v in self.decoder.decode(payload, raw=False)]
        r = self.streams.get(stream)
        if r is None:
            return
        status = int(dict(fields).get(":status", 0))
        if 100 <= status < 200:
            self.interim.append(status)
            return
        if r["status"]:
            r["trailers"] = "".join("%s: %s\n" % f for f in fields)
        else:
            r["status"], r["headers"] = status, [f for f in fields if f[0][0] != ":"]
        if flags & END_STREAM:
            self._finish(stream, True)

    def _data(self, flags, stream, payload):
        r = self.streams.get(stream)
        if r is not None:
            r["length"] += len(payload)
            r["body"] += payload[:max(0, KEEP - len(r["body"]))].decode("latin-1")
        if payload and not self.quiet:
            update = struct.pack("!I", len(payload))
            self.send(frame(8, 0, 0, update) + frame(8, 0, stream, update))
        if flags & END_STREAM:
            self._finish(stream, True)

    def _finish(self, stream, complete):
        r = self.streams.pop(stream, None)
        if r is not None and r["status"]:
            r["complete"] = complete
            self.responses.append(r)

    def end(self):
        for stream in sorted(self.streams):
            if self.streams[stream]["status"]:
                self.responses.append(self.streams[stream])
        self.streams = {}
