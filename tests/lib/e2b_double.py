# SPDX-License-Identifier: Apache-2.0
"""A double of a service that speaks E2B's protocol, as the cloud cannot be reached from a test: the API that makes sandboxes, and the
service in each of them that starts processes (Connect's protocol in JSON, over HTTP/1.1 and TLS). A sandbox of it is no machine of
its own: its processes are real ones of this machine, an ordinary user's, with a home directory of the sandbox's own."""
import base64
import http.server
import json
import os
import shutil
import ssl
import struct
import subprocess
import threading
import urllib.parse

from containers import end_those_of
from testlib import clean_env

KEY, USER, NUMBER = "e2b_0123456789abcdef", "user", 45678
TEMPLATES = ("base", "team/mine:v1")
CONNECT = "application/connect+json"


def frame(message, flags=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


class Sandbox:
    def __init__(self, service, wish):
        self.wish, self.processes = wish, {}
        self.id = "i%dx%s" % (len(service.made), os.urandom(4).hex())
        self.token = "ea_" + os.urandom(8).hex()
        self.home = os.path.join(service.home, self.id)
        os.mkdir(self.home)
        os.chmod(self.home, 0o777)

    def described(self):
        return {"templateID": self.wish["templateID"], "sandboxID": self.id, "clientID": "c", "envdVersion": "0.6.4",
                "envdAccessToken": self.token, "domain": None}

    def start(self, service, wish):
        p = subprocess.Popen([*service.as_user, wish["process"]["cmd"], *wish["process"]["args"]], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.home, bufsize=0, start_new_session=True,
                             env={"PATH": clean_env()["PATH"], "HOME": self.home, "LANG": "C.UTF-8"})
        self.processes[p.pid] = p
        return p


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def log_message(self, *args):
        pass

    def answer(self):
        service = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlsplit(self.path)
        service.seen.append((self.command, self.path, dict(self.headers)))
        if service.twist and service.twist(self, url.path):
            return
        if url.path.startswith("/process.Process/"):
            self.in_sandbox(url.path.rpartition("/")[2], body)
        elif self.headers.get("X-API-Key") != KEY:
            self.say(401, {"code": 401, "message": "Invalid API key"})
        else:
            self.api(url, json.loads(body) if body else None)

    do_GET = do_POST = do_DELETE = answer

    def say(self, status, document=None, headers=()):
        data = json.dumps(document).encode() if document is not None else b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def api(self, url, wish):
        service, parts = self.server, url.path.strip("/").split("/")
        if (self.command, url.path) == ("GET", "/v2/sandboxes"):
            query = urllib.parse.parse_qs(url.query)
            wanted = urllib.parse.parse_qsl(query.get("metadata", [""])[0])
            # One of somebody else's, as an older service lists them whatever was asked for.
            found = [{"sandboxID": "another", "metadata": {"cloche.sandbox": "sandbox-of-others"}}] if wanted else []
            found += [dict(s.described(), metadata=s.wish["metadata"]) for s in service.boxes.values()
                      if all(s.wish["metadata"].get(k) == v for k, v in wanted)]
            self.say(200, found)
        elif (self.command, url.path) == ("POST", "/sandboxes"):
            if wish["templateID"] not in TEMPLATES:
                self.say(404, {"code": 404, "message": "template '%s' not found" % wish["templateID"]})
                return
            box = Sandbox(service, wish)
            service.boxes[box.id] = box
            service.made.append(wish)
            self.say(201, box.described())
        elif len(parts) < 2 or parts[0] != "sandboxes" or parts[1] not in service.boxes:
            self.say(404, {"code": 404, "message": "not found"})
        elif self.command == "DELETE":
            end_those_of(service.boxes[parts[1]].home)
            shutil.rmtree(service.boxes.pop(parts[1]).home, ignore_errors=True)
            self.say(204)
        elif parts[2:] == ["connect"]:
            self.say(200, service.boxes[parts[1]].described())
        elif parts[2:] == ["timeout"]:
            service.prolonged.append(wish["timeout"])
            self.say(204)
        else:
            self.say(404, {"code": 404, "message": "not found"})

    # --- the service in a sandbox ---

    def in_sandbox(self, what, body):
        host = self.headers["Host"].partition(".")[0]
        name = host[len("49983-"):] if host.startswith("49983-") else self.headers.get("E2b-Sandbox-Id")
        box = self.server.boxes.get(name)
        if not box or self.headers.get("E2b-Sandbox-Port", "49983") != "49983":
            self.say(502, {"message": "The sandbox was not found", "code": 502})
        elif self.headers.get("X-Access-Token") != box.token or "X-API-Key" in self.headers:
            self.say(401, {"code": "unauthenticated", "message": "no access"})
        elif what == "Start":
            self.start(box, json.loads(body[5:]))
        else:
            self.input(box, what, json.loads(body))

    def input(self, box, what, wish):
        p = box.processes.get(wish["process"]["pid"])
        try:
            if what == "CloseStdin":
                p.stdin.close()
            else:
                data = base64.b64decode(wish["input"]["stdin"], validate=True)
                while data:
                    data = data[p.stdin.write(data):]
        except (OSError, ValueError, AttributeError):
            self.say(404, {"code": "not_found", "message": "no such process"})
            return
        self.say(200, {})

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", CONNECT)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, event, flags=0):
        """What nobody takes any more is dropped; the process goes on."""
        self.raw(frame({"event": event} if not flags else event, flags))

    def raw(self, data):
        try:
            with self.lock:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        except OSError:
            pass

    lock = threading.Lock()

    def start(self, box, wish):
        assert self.headers["Content-Type"] == CONNECT and wish["stdin"], wish
        self.lock = threading.Lock()
        p = box.start(self.server, wish)
        self.begin_events()
        self.event({"start": {"pid": p.pid}})
        readers = [threading.Thread(target=self.read, args=(name, stream), daemon=True)
                   for name, stream in (("stdout", p.stdout), ("stderr", p.stderr))]
        for r in readers:
            r.start()
        code = p.wait()
        for r in readers:
            r.join()
        self.event({"end": {"exitCode": code, "exited": code >= 0, "status": "exit status %d" % code}})
        self.event({}, flags=2)
        self.raw(b"")
        self.close_connection = True

    def read(self, name, stream):
        while True:
            data = stream.read(32768)
            if not data:
                stream.close()
                return
            self.event({"data": {name: base64.b64encode(data).decode()}})


class Service(http.server.ThreadingHTTPServer):
    """home: a directory for the homes of sandboxes; certificate: (certificate file, key file), or None for plain HTTP."""
    daemon_threads = True

    def __init__(self, home, certificate=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.home, self.port = home, self.server_address[1]
        self.boxes, self.made, self.seen, self.prolonged, self.twist = {}, [], [], [], None
        self.as_user = self.ordinary_user() if os.geteuid() == 0 else []
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that went away is none of our failures."""

    def ordinary_user(self):
        accounts = os.path.join(self.home, "passwd")
        shutil.copy("/etc/passwd", accounts)
        with open(accounts, "a") as f:
            f.write("%s:x:%d:%d::/:/bin/sh\n" % (USER, NUMBER, NUMBER))
        script = 'mount --bind "$1" /etc/passwd && shift && exec setpriv --reuid %d --regid %d --clear-groups --bounding-set=-all "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script % (NUMBER, NUMBER), "sh", accounts]

    def close(self):
        for box in self.boxes.values():
            end_those_of(box.home)
        self.shutdown()
        self.server_close()
