# SPDX-License-Identifier: Apache-2.0
"""What workerd's containers need of docker's API, over a unix socket: Engine has it itself, and a container is a real
process, which `begin` starts; Relay hands it on to a real docker. What stands beside a container and carries its
connections is here for both, as the image that does this elsewhere cannot be had. Run as a program, it is that."""
import contextlib
import http.client
import http.server
import json
import os
import re
import socket
import socketserver
import threading
import time
import urllib.parse

SIDE = "-proxy"  # the end of the name of what stands beside a container
SIDE_PORT = 39001


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
        try:
            there = socket.create_connection(("127.0.0.1", self.server.find(int(self.path.rsplit(":", 1)[1]))), timeout=60)
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
            self.side.find = lambda port: engine.boxes.get(self.name[:-len(SIDE)]).ports[port]
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
            # What of it is this machine's (a container would take its control groups along) it removes itself.
            self.process.terminate()
            self.process.wait(60)
        self.over.set()


class Calls(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"

    def say(self, status, what):
        text = b"" if what is None else what if isinstance(what, bytes) else json.dumps(what).encode()
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
        status, what = self.server.engine.answer(self.command, self.path, self.body())
        with contextlib.suppress(ConnectionError):  # it does not wait for all answers
            self.say(status, what)

    do_GET = do_POST = do_DELETE = do_PUT = call


class Socket:
    """A server at a path, which asks answer(method, path, body)."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.server = socketserver.ThreadingUnixStreamServer(self.path, Calls)
        self.server.daemon_threads = True
        self.server.engine = self
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.path)


class Relay(Socket):
    """change(name, asked): what a container is made with instead."""

    def __init__(self, path, docker, change):
        super().__init__(path)
        self.docker, self.change = docker, change

    def answer(self, method, path, body):
        if method == "POST" and "/containers/create" in path:
            name = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["name"][0]
            body = json.dumps(self.change(name, json.loads(body))).encode()
        there = http.client.HTTPConnection("docker")
        there.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(there):
            there.sock.connect(self.docker)
            there.request(method, path, body or None, {"Content-Type": "application/json"})
            answer = there.getresponse()
            return answer.status, answer.read()


class Engine(Socket):
    """begin(env): starts a container's process; returns it and {its port inside: where it listens on loopback}."""

    def __init__(self, path, begin):
        super().__init__(path)
        self.begin, self.boxes, self.lock = begin, {}, threading.Lock()
        self.late = 0  # seconds after which a container's end is told

    def __exit__(self, *how):
        super().__exit__(*how)
        with self.lock:
            for box in self.boxes.values():
                box.end()

    def running(self):
        """Processes of containers."""
        with self.lock:
            return [b.process for b in self.boxes.values() if b.process and b.process.poll() is None]

    def answer(self, method, path, body):
        url = urllib.parse.urlsplit(path)
        path = re.sub(r"^/v1\.\d+", "", url.path)
        if path == "/networks/bridge":
            return 200, {"IPAM": {"Config": [{"Subnet": "127.0.0.0/8", "Gateway": "127.0.0.1"}]}}
        found = re.fullmatch(r"/containers/([\w.-]+)(?:/(\w+))?", path)
        if not found:
            return 404, {"message": "no such call"}
        with self.lock:
            status, what, box = self.act(method, found.group(1), found.group(2), url.query, body)
        if found.group(2) == "wait" and box:
            box.over.wait()
            time.sleep(self.late)
            what = {"StatusCode": box.process.returncode if box.process and box.process.returncode is not None else 0}
        return status, what

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
                         "NetworkSettings": {"Ports": {"%d/tcp" % SIDE_PORT: port} if port else {}}}, None
        elif verb == "wait":
            return 200, {"StatusCode": 0}, box
        else:
            return 404, {"message": "no such call"}, None
        return 204, None, None


def main():
    side = http.server.ThreadingHTTPServer(("0.0.0.0", SIDE_PORT), Side)
    side.find = lambda port: port
    side.serve_forever()


if __name__ == "__main__":
    main()
