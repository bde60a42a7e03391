# SPDX-License-Identifier: Apache-2.0
"""A stand-in for docker, for workerd's containers: the few calls of docker's API that workerd makes, over a unix socket.
A container is a real process, which `begin` starts; what stands beside it and carries its connections is here."""
import contextlib
import http.server
import json
import os
import re
import socket
import socketserver
import threading
import urllib.parse

SIDE = "-proxy"  # the end of the name of what stands beside a container


def copy(a, b):
    with contextlib.suppress(OSError):
        while True:
            piece = a.recv(65536)
            if not piece:
                break
            b.sendall(piece)
    for s in (a, b):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


class Side(http.server.BaseHTTPRequestHandler):
    """It leads to the container's ports."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def empty(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = empty

    def do_CONNECT(self):
        self.close_connection = True
        box = self.server.engine.boxes.get(self.server.leads_to)
        try:
            there = socket.create_connection(("127.0.0.1", box.ports[int(self.path.rsplit(":", 1)[1])]), timeout=60)
        except (OSError, KeyError, AttributeError):
            self.send_error(502)
            return
        with there:
            there.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            self.wfile.flush()
            back = threading.Thread(target=copy, args=(there, self.connection), daemon=True)
            back.start()
            # What came with the request's head lies in the buffer.
            copy(Buffered(self.rfile, self.connection), there)
            back.join()


class Buffered:
    def __init__(self, file, connection):
        self.recv, self.shutdown = file.read1, connection.shutdown


class Box:
    """One container: its process, or what stands beside it."""

    def __init__(self, name, asked):
        self.name, self.asked, self.process, self.ports, self.side, self.over = name, asked, None, {}, None, threading.Event()

    def start(self, engine):
        if self.name.endswith(SIDE):
            self.side = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Side)
            self.side.daemon_threads = True
            self.side.engine, self.side.leads_to = engine, self.name[:-len(SIDE)]
            threading.Thread(target=self.side.serve_forever, args=(0.05,), daemon=True).start()
            return
        self.process, self.ports = engine.begin(dict(e.split("=", 1) for e in self.asked.get("Env") or []))
        threading.Thread(target=self.wait, daemon=True).start()

    def wait(self):
        self.process.wait()
        self.over.set()

    def running(self):
        return self.side is not None or (self.process is not None and self.process.poll() is None)

    def end(self):
        if self.side:
            self.side.shutdown()
            self.side.server_close()
            self.side = None
        if self.process:
            self.process.kill()
            self.process.wait()
        self.over.set()


class Calls(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"

    def say(self, status, what=None):
        text = b"" if what is None else json.dumps(what).encode()
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while n := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(n))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def call(self):
        engine = self.server.engine
        url = urllib.parse.urlsplit(self.path)
        body = self.body()
        path = re.sub(r"^/v1\.\d+", "", url.path)
        if path == "/networks/bridge":
            self.say(200, {"IPAM": {"Config": [{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}]}})
            return
        found = re.fullmatch(r"/containers/([\w.-]+)(?:/(\w+))?", path)
        if not found:
            self.say(404, {"message": "no such call"})
            return
        with engine.lock:
            status, what, box = engine.act(self.command, found.group(1), found.group(2), url.query, body)
        if found.group(2) == "wait" and box:
            box.over.wait()
            what = {"StatusCode": box.process.returncode if box.process and box.process.returncode is not None else 0}
        with contextlib.suppress(ConnectionError):  # it does not wait for all answers
            self.say(status, what)

    do_GET = do_POST = do_DELETE = do_PUT = call


class Engine:
    """begin(env): starts a container's process; returns it and {its port inside: where it listens on loopback}."""

    def __init__(self, path, begin):
        self.path, self.begin, self.boxes, self.lock = path, begin, {}, threading.Lock()

    def __enter__(self):
        self.server = socketserver.ThreadingUnixStreamServer(self.path, Calls)
        self.server.daemon_threads = True
        self.server.engine = self
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for box in self.boxes.values():
                box.end()
        os.unlink(self.path)

    def running(self):
        """Processes of containers."""
        with self.lock:
            return [b.process for b in self.boxes.values() if b.process and b.process.poll() is None]

    def act(self, method, name, verb, query, body):
        if (method, name) == ("POST", "create"):
            name = urllib.parse.parse_qs(query)["name"][0]
            self.boxes[name] = Box(name, json.loads(body or b"{}"))
            return 201, {"Id": name, "Warnings": []}, None
        box = self.boxes.get(name)
        if not box:
            return 404, {"message": "No such container: " + name}, None
        if method == "DELETE":
            box.end()
            del self.boxes[name]
            return 204, None, None
        if verb == "start":
            box.start(self)
        elif verb in ("kill", "stop"):
            box.end()
        elif verb == "json":
            port = [{"HostIp": "127.0.0.1", "HostPort": str(box.side.server_address[1])}] if box.side else []
            return 200, {"Id": name, "State": {"Running": box.running(), "Status": "running" if box.running() else "exited"},
                         "NetworkSettings": {"Ports": {"39001/tcp": port} if port else {}}}, None
        elif verb == "wait":
            return 200, {"StatusCode": 0}, box
        else:
            return 404, {"message": "no such call"}, None
        return 204, None, None
