# SPDX-License-Identifier: Apache-2.0
"""Runs inside the room: plays the clients of one scenario, one after the other, and prints what each of
them got as one line of JSON. Reads /scenario/clients.json, which tests/scenarios/run wrote. Bytes are
strings of latin-1 characters in both directions."""
import base64
import ctypes
import json
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import time

import wsframe

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16,
         "AAAA": 28, "SRV": 33, "SVCB": 64, "HTTPS": 65, "ANY": 255}
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}
KEEP = 1 << 16  # bytes of a body that are reported
PATIENCE = 60  # seconds for what is due, on a machine that is busy


def fill_in(text, secrets):
    """{NAME}: the surrogate that this room holds; {basic USER NAME}: as Basic credentials."""
    for name in secrets:
        value = os.environ.get(name, "")
        text = text.replace("{%s}" % name, value)
        text = re.sub(r"\{basic (\S*) %s\}" % name, lambda m: base64.b64encode(
            (m.group(1) + ":" + value).encode("latin-1")).decode(), text)
    return text.encode("latin-1")


def net_set():
    """Ask whoever runs the scenario (run) for the next policy, and wait until it is in force."""
    asked = len([name for name in os.listdir("/net-set") if name.startswith("asked-")])
    open("/net-set/asked-%d" % asked, "w").close()
    done, deadline = "/net-set/done-%d" % asked, time.monotonic() + PATIENCE
    while not os.path.exists(done):
        if time.monotonic() > deadline:
            raise TimeoutError("the policy was not replaced")
        time.sleep(0.02)


class Closed(Exception):
    pass


class Openssl:
    """What Python's ssl does not offer: the objects below its own are found behind their heads."""
    ADD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint,
                           ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                           ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int),
                           ctypes.c_void_p)
    CLIENT_HELLO, SET_GROUPS, SET_NAME = 0x80, 92, 55
    HEAD = object.__basicsize__

    def __init__(self):
        self.lib = ctypes.CDLL("libssl.so.3")
        self.kept = []  # what OpenSSL points to

    def _object(self, at):
        return ctypes.c_void_p(ctypes.c_void_p.from_address(at).value)

    def add_extension(self, context, kind, data):
        """To every ClientHello of this context."""
        body = ctypes.create_string_buffer(data, len(data))

        def add(ssl, kind, where, out, size, x509, index, alert, arg):
            out[0], size[0] = ctypes.addressof(body), len(data)
            return 1
        add = self.ADD(add)
        self.kept += [body, add]
        if not self.lib.SSL_CTX_add_custom_ext(
                self._object(id(context) + self.HEAD), kind, self.CLIENT_HELLO, add, None, None,
                None, None):
            raise ValueError("extension %d" % kind)

    def set_groups(self, context, names):
        """The first is the one whose key share is sent."""
        if not self.lib.SSL_CTX_ctrl(self._object(id(context) + self.HEAD), self.SET_GROUPS,
                                     ctypes.c_long(0), names.encode()):
            raise ValueError(names)

    def rename(self, tls, name):
        """The name that the next ClientHello of this connection asks for."""
        if not self.lib.SSL_ctrl(self._object(id(tls._sslobj) + self.HEAD + 8), self.SET_NAME,
                                 ctypes.c_long(0), name.encode()):
            raise ValueError(name)


class Connection:
    """TCP, or TLS over buffers of our own so that the first flight can be cut up and altered."""

    def __init__(self, client):
        self.client = client
        address = client["to"] or client["host"]
        family, kind, proto, _, where = socket.getaddrinfo(
            address, client["port"], type=socket.SOCK_STREAM)[0]
        self.sock = socket.socket(family, kind, proto)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(where)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = None
        self.first_flight = True
        if client["tls"]:
            self._start_tls()

    def _start_tls(self):
        c = self.client
        # A client that pins its server trusts nobody else. (The whole bundle takes 35 ms to read.)
        context = ssl.create_default_context(
            cafile="/scenario/origin-ca.pem" if c["ca"] == "origin" else os.environ["NODE_EXTRA_CA_CERTS"])
        if c["sni"] != c["host"] or c["patch_sni"]:
            context.check_hostname = False
        if c["verify"] == "no":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if c["max_tls"]:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = getattr(ssl.TLSVersion, c["max_tls"])
        if c["alpn"]:
            context.set_alpn_protocols(c["alpn"])
        openssl = Openssl()
        if c["ech"] == "yes":  # of the outer kind, and nothing that anybody could decrypt
            openssl.add_extension(context, 0xfe0d, b"\0\0\1\0\1\7\0\x20" + b"e" * 32 +
                                  b"\0\x90" + b"p" * 144)
        if c["groups"]:
            openssl.set_groups(context, c["groups"])
        if c["pad"]:
            openssl.add_extension(context, 0xfafa, b"p" * c["pad"])
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=c["sni"] or None)
        while True:
            try:
                self.tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                self._flush()
                self._fill(time.monotonic() + PATIENCE)
                if c["then_sni"]:
                    openssl.rename(self.tls, c["then_sni"])

    def _flush(self):
        data = self.outgoing.read()
        if not data:
            return
        if self.first_flight:
            self.first_flight = False
            c = self.client
            if c["patch_sni"]:
                data = data.replace(c["sni"].encode(), c["patch_sni"].encode("latin-1"))
            if c["sni_body"]:
                data = self._add_extension(data, b"\0\0", c["sni_body"].encode("latin-1"))
            if c["records"]:
                data = self._split_records(data, c["records"])
            data += (c["behind"] or "").encode("latin-1")
            if c["chop"]:
                for i in range(0, len(data), c["chop"]):
                    self.sock.sendall(data[i:i + c["chop"]])
                    time.sleep(0.002)
                return
        self.sock.sendall(data)

    @staticmethod
    def _add_extension(hello, kind, body):
        """Behind the others of a ClientHello in one record; its lengths grow with it."""
        extension = kind + struct.pack("!H", len(body)) + body
        at = 5 + 4 + 34
        at += 1 + hello[at]
        at += 2 + int.from_bytes(hello[at:at + 2], "big")
        at += 1 + hello[at]
        out = bytearray(hello + extension)
        for where, width in ((3, 2), (6, 3), (at, 2)):
            size = int.from_bytes(out[where:where + width], "big") + len(extension)
            out[where:where + width] = size.to_bytes(width, "big")
        return bytes(out)

    @staticmethod
    def _split_records(data, size):
        """The same handshake message in many small TLS records (RFC 8446 section 5.1)."""
        kind_and_version, body = data[:3], data[5:]
        return b"".join(kind_and_version + struct.pack("!H", len(body[i:i + size])) +
                        body[i:i + size] for i in range(0, len(body), size))

    def _fill(self, deadline):
        left = max(0.0, deadline - time.monotonic())
        if not select.select([self.sock], [], [], left)[0]:
            raise TimeoutError
        data = self.sock.recv(65536)
        if not data:
            self.incoming.write_eof()
            raise Closed("end of file")
        self.incoming.write(data)

    def send(self, data):
        if not self.tls:
            self.sock.sendall(data)
            return
        for i in range(0, len(data), 65536):
            self.tls.write(data[i:i + 65536])
            self._flush()

    def receive(self, deadline):
        """Some bytes; b"" at the end of the stream; TimeoutError."""
        if not self.tls:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError
            return self.sock.recv(65536)
        while True:
            try:
                return self.tls.read(65536)
            except ssl.SSLWantReadError:
                self._flush()
                try:
                    self._fill(deadline)
                except Closed:
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""


class Reader:
    """Cuts what arrives into responses. Bodies are counted, and kept up to a bound."""

    def __init__(self):
        self.data = b""
        self.responses, self.interim = [], []
        self.heads = []  # for each request sent: was it HEAD?
        self.current = None
        self.total = 0
        self.frames = None  # of a WebSocket, after 101: [[opcode, fin, payload]...]

    def waits(self):
        return True

    def is_due(self):
        """Whether a request has not been answered."""
        return self.frames is None and len(self.responses) < len(self.heads)

    def feed(self, data):
        self.data += data
        self.total += len(data)
        while self._step():
            pass

    def _frame(self):
        found = wsframe.parse_frame(self.data)
        if not found:
            return False
        self.frames.append(found[:2] + found[3:4])
        self.data = found[4]
        return True

    def show_frames(self):
        """<opcode payload>..., of a close frame its code; "+" if the message goes on."""
        return "".join("<%d%s %s>" % (
            op, "" if fin else "+", struct.unpack("!H", data[:2])[0] if op == 8 and data
            else data[:KEEP].decode("latin-1")) for op, fin, data in self.frames or [])

    def _step(self):
        if self.frames is not None:
            return self._frame()
        if self.current is None:
            return self._head()
        r = self.current
        if r["_mode"] == "length":
            take = min(len(self.data), r["_left"])
            self._body(self.data[:take])
            self.data = self.data[take:]
            r["_left"] -= take
            if r["_left"] == 0:
                self._finish()
                return True
            return False
        if r["_mode"] == "chunked":
            return self._chunk()
        self._body(self.data)
        self.data = b""
        return False

    def _head(self):
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return False
        lines = self.data[:end].decode("latin-1").split("\r\n")
        self.data = self.data[end + 4:]
        m = re.match(r"HTTP/1\.[01] (\d\d\d)", lines[0])
        status = int(m.group(1)) if m else 0
        headers = [tuple(x.strip() for x in line.split(":", 1)) for line in lines[1:]
                   if ":" in line]
        if 100 <= status < 200:
            self.interim.append(status)
            if status == 101:
                self.frames = []
                self.switched = headers
            return True
        names = {k.lower(): v for k, v in headers}
        r = {"status": status, "headers": headers, "body": "", "length": 0, "complete": False}
        head_only = self.heads[len(self.responses)] if len(self.responses) < len(self.heads) \
            else False
        self.current = r
        if head_only or status in (204, 304):
            r["_mode"], r["_left"] = "length", 0
        elif names.get("transfer-encoding", "").lower() == "chunked":
            r["_mode"] = "chunked"
        elif "content-length" in names:
            r["_mode"], r["_left"] = "length", int(names["content-length"])
        else:
            r["_mode"] = "close"
        return True

    def _chunk(self):
        r = self.current
        m = re.match(rb"([0-9a-fA-F]+)[^\r\n]*\r\n", self.data)
        if not m:
            return False
        size = int(m.group(1), 16)
        if size == 0:
            end = re.match(rb"0[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n", self.data)
            if not end:
                return False
            r["trailers"] = end.group(1).decode("latin-1")
            self.data = self.data[end.end():]
            self._finish()
            return True
        if len(self.data) < m.end() + size + 2:
            return False
        self._body(self.data[m.end():m.end() + size])
        self.data = self.data[m.end() + size + 2:]
        return True

    def _body(self, data):
        r = self.current
        r["length"] += len(data)
        if len(r["body"]) < KEEP:
            r["body"] += data[:KEEP - len(r["body"])].decode("latin-1")

    def _finish(self):
        self.current["complete"] = True
        self.responses.append(self.current)
        self.current = None

    def end(self):
        if self.current is not None:
            self.current["complete"] = self.current["_mode"] == "close"
            self.responses.append(self.current)
            self.current = None


def talk(client, secrets):
    got = {"handshake": False, "closed": False, "error": ""}
    reader = Reader()
    try:
        connection = Connection(client)
        got["handshake"] = True
    except ssl.SSLError as error:
        got["error"] = "handshake: %s" % error
        return got
    except Closed:
        got["error"] = "handshake: connection closed"
        return got
    except (OSError, TimeoutError) as error:
        got["error"] = "%s: %s" % (type(error).__name__, error)
        return got
    if connection.tls:
        cert = connection.tls.getpeercert() or {}
        got["san"] = [v for _, v in cert.get("subjectAltName", ())]
        got["alpn"] = connection.tls.selected_alpn_protocol()
        got["tls"] = connection.tls.version()

    def read_some(deadline):
        """False at the end of the stream."""
        data = connection.receive(deadline)
        if not data:
            got["closed"] = True
            return False
        reader.feed(data)
        return True

    try:
        if client["h2"]:
            from h2frames import H2
            reader = H2(client, connection.send)
        for step in client["steps"]:
            play(step, connection, reader, read_some, got, secrets)
        linger(client, reader, read_some, got)
    except TimeoutError:
        pass
    except (ConnectionError, ssl.SSLError, BrokenPipeError) as error:
        got["closed"], got["error"] = True, "%s: %s" % (type(error).__name__, error)
    reader.end()
    if getattr(reader, "frames", None) is not None:
        got["frames"] = reader.show_frames()
    for r in reader.responses:
        r.pop("_mode", None), r.pop("_left", None)
    if client["h2"]:
        got.update(resets=list(reader.resets.values()), goaway=reader.goaway)
    got.update(responses=reader.responses, interim=reader.interim, received=reader.total,
               rest=reader.data[:2000].decode("latin-1"))
    return got


def talk_each(client, secrets):
    """With each=yes every request has a connection of its own; the answers are put together."""
    if not client["each"]:
        return talk(client, secrets)
    whole = None
    for at in range(0, len(client["steps"]), 2):
        got = talk(dict(client, steps=client["steps"][at:at + 2]), secrets)
        if whole is None:
            whole = got
            whole.setdefault("responses", [])
            continue
        whole["responses"] += got.get("responses", [])
        whole["error"] = whole["error"] or got["error"]
        for key in ("closed", "handshake"):
            whole[key] = whole[key] and got[key]
    return whole


def play(step, connection, reader, read_some, got, secrets):
    kind = step[0]
    if kind == "send":
        reader.heads += step[2:]
        connection.send(fill_in(step[1], secrets))
    elif kind in ("open", "frames"):
        if kind == "open":
            step = step[:3] + [[fill_in(h, secrets).decode("latin-1") for h in step[3]],
                               fill_in(step[4], secrets), step[5]]
        reader.step(step)
    elif kind == "slow":
        for byte in fill_in(step[2], secrets):
            connection.send(bytes([byte]))
            time.sleep(step[1])
    elif kind == "wait":
        time.sleep(step[1])
    elif kind == "net-set":
        net_set()
    elif kind == "receive":
        deadline, have = time.monotonic() + PATIENCE, len(reader.responses)
        while len(reader.responses) == have and reader.waits() and read_some(deadline):
            pass
    elif kind == "receive-bytes":
        deadline = time.monotonic() + PATIENCE
        while reader.total < step[1] and read_some(deadline):
            pass
    elif kind == "frame":
        options = step[3]
        connection.send(wsframe.frame(
            step[1], fill_in(step[2], secrets), options.get("fin") != "no",
            b"" if options.get("mask") == "no" else b"mask", int(options.get("rsv", 0))))
    elif kind == "receive-frames":
        deadline = time.monotonic() + PATIENCE
        while len(reader.frames or []) < step[1] and read_some(deadline):
            pass
    elif kind == "receive-interim":
        deadline = time.monotonic() + PATIENCE
        while not reader.interim and not reader.responses and read_some(deadline):
            pass
    elif kind == "half-close":
        connection.sock.shutdown(socket.SHUT_WR)
    else:
        raise ValueError(kind)


def linger(client, reader, read_some, got):
    """Collects what still comes: to the end if one is expected, else for a short while."""
    deadline = time.monotonic() + client["linger"]
    while not got["closed"] and time.monotonic() < deadline:
        if client["wait_closed"] or reader.current is not None or reader.data or reader.is_due() or \
                len(reader.responses) < client.get("due", 0):
            wait = deadline
        else:
            wait = min(deadline, time.monotonic() + 0.3)
        if not read_some(wait):
            return


def encode_name(name):
    out = b""
    for label in name.split("."):
        if label:
            raw = label.encode("latin-1")
            out += bytes([min(len(raw), 63)]) + raw[:63]
    return out + b"\0"


def read_name(packet, at):
    while packet[at]:
        if packet[at] & 0xc0:
            return at + 2
        at += packet[at] + 1
    return at + 1


def read_answer(packet):
    if len(packet) < 12:
        return {"rcode": "SHORT", "answers": []}
    _, flags, questions, answers = struct.unpack("!HHHH", packet[:8])
    at = 12
    for _ in range(questions):
        at = read_name(packet, at) + 4
    found = []
    for _ in range(answers):
        at = read_name(packet, at)
        kind, _, ttl, size = struct.unpack("!HHIH", packet[at:at + 10])
        data = packet[at + 10:at + 10 + size]
        at += 10 + size
        if kind == 1:
            found.append(socket.inet_ntop(socket.AF_INET, data))
        elif kind == 28:
            found.append(socket.inet_ntop(socket.AF_INET6, data))
        else:
            found.append("TYPE%d %s" % (kind, data.hex()))
    return {"rcode": RCODES.get(flags & 15, str(flags & 15)), "answers": found,
            "truncated": bool(flags & 0x200), "edns": struct.unpack("!H", packet[10:12])[0]}


def ask(client, secrets):
    """Each step is one query: ["query", name, type] or ["raw", bytes]."""
    got = {"answers": [], "error": ""}
    where = (client["to"] or "192.0.2.53", client["port"])
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    for number, step in enumerate(client["steps"]):
        if step[0] == "query":
            packet = struct.pack("!HHHHHH", 4000 + number, 0x0100, 1, 0, 0, 0) + \
                encode_name(step[1]) + struct.pack("!HH", TYPES.get(step[2]) or
                                                   int(step[2][4:]), 1)
        else:
            packet = step[1].encode("latin-1")
        start = time.monotonic()
        try:
            if client["tcp"]:
                s = socket.create_connection(where, client["patience"])
                s.sendall(struct.pack("!H", len(packet)) + packet)
                data = s.recv(65536)
                while len(data) >= 2 and len(data) - 2 < struct.unpack("!H", data[:2])[0]:
                    data += s.recv(65536)
                reply = data[2:]
            else:
                s = socket.socket(family, socket.SOCK_DGRAM)
                s.settimeout(client["patience"])
                s.connect(where)
                s.send(packet)
                reply = s.recv(65536)
            answer = read_answer(reply)
        except socket.timeout:
            answer = {"rcode": "TIMEOUT", "answers": []}
        except OSError as error:
            answer = {"rcode": type(error).__name__, "answers": []}
        answer["seconds"] = time.monotonic() - start
        got["answers"].append(answer)
        s.close()
    return got


def run_command(client, secrets):
    p = subprocess.run(client["argv"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=2 * PATIENCE, check=False)
    return {"exit": p.returncode, "stdout": p.stdout.decode("latin-1")}


def main():
    with open("/scenario/clients.json") as f:
        scenario = json.load(f)
    play_one = {"connection": talk_each, "dns": ask, "command": run_command}
    results = []
    for client in scenario["clients"]:
        start = time.monotonic()
        try:
            got = play_one[client["kind"]](client, scenario["secrets"])
        except Exception as error:  # reported, and the expectations judge it
            got = {"error": "driver: %s: %s" % (type(error).__name__, error)}
        got["seconds"] = time.monotonic() - start
        results.append(got)
    held = {name: os.environ.get(name) for name in scenario["secrets"]}
    print("SCENARIO-RESULT " + json.dumps({"clients": results, "surrogates": held}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
