# SPDX-License-Identifier: Apache-2.0
"""A web site of several names on loopback TLS, for real clients in a room: files, and repositories behind
git's own smart HTTP program. Beside it bad.test, whose certificate nobody has signed."""
import base64
import http.server
import os
import re
import ssl
import subprocess
import threading

from origin import Origin
from testlib import Authority, clean_env, expect, run_cloche

NAMES = ["api.test", "git.test", "crates.test", "deb.test", "npm.test"]
BAD = "bad.test"
# Its rooms have the machine's paths.
IN_PLACE = clean_env().get("CLOCHE_PROVIDER") == "landlock"
H2 = "h2.test"
HELLO = "hello from the origin"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.answer()

    def do_HEAD(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        host = (self.headers.get("Host") or "").split(":")[0]
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self.read_chunked()
        with self.server.lock:
            self.server.seen.append((host, self.command, self.path, dict(self.headers)))
        path = self.path.split("?")[0]
        if (host, path) in self.server.files:
            return self.reply(200, self.server.files[(host, path)])
        if ".git/" in path:
            return self.git(host, body)
        return self.reply(404, b"no such file\n")

    def read_chunked(self):
        body = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return body

    def reply(self, status, data, headers=()):
        self.send_response(status)
        for name, value in headers or [("Content-Type", "text/plain")]:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def git(self, host, body):
        """Who is called git.test wants to see a token."""
        path, _, query = self.path.partition("?")
        wanted = "Basic " + base64.b64encode(b"me:" + self.server.token.encode()).decode()
        if host == "git.test" and self.headers.get("Authorization") != wanted:
            return self.reply(401, b"", [("WWW-Authenticate", 'Basic realm="git"')])
        env = clean_env(GIT_PROJECT_ROOT=self.server.repositories, GIT_HTTP_EXPORT_ALL="1",
                        PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=self.command,
                        CONTENT_TYPE=self.headers.get("Content-Type", ""), REMOTE_USER="me",
                        CONTENT_LENGTH=str(len(body)), REMOTE_ADDR="127.0.0.1",
                        HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
                        GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
                        GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory",
                        GIT_CONFIG_VALUE_0="*")
        p = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE,
                           check=False)
        head, _, data = p.stdout.partition(b"\r\n\r\n")
        headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
        status = next((int(v.split()[0]) for k, v in headers if k == "Status"), 200)
        return self.reply(status, data, [h for h in headers if h[0] != "Status"])


# Says by which protocol it was asked; git's repositories are files to it ("dumb" HTTP).
H2_SERVER = """
const fs = require('fs'), [cert, key, root] = process.argv.slice(2);
const server = require('http2').createSecureServer(
    {allowHTTP1: true, cert: fs.readFileSync(cert), key: fs.readFileSync(key)}, (req, res) => {
        req.resume();
        const path = root + new URL(req.url, 'https://h2.test').pathname;
        fs.readFile(path, (error, data) => {
            res.setHeader('content-type', 'text/plain');
            res.end(error ? 'hello from the origin by ' + req.httpVersion + '\\n' : data);
        });
    });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that went away is none of our failures."""


class Site:
    """The servers, the CA that their certificates come from, and a way to run something."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = authority = Authority(folder)
        self.ca, self.h2 = authority.cert, None
        cert, key = authority.issue("server", NAMES)
        server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
        server.lock, server.seen, server.files = threading.Lock(), [], {}
        server.token = "ghp_" + "realvalue" * 4
        server.repositories = os.path.join(folder, "repositories")
        os.mkdir(server.repositories)
        server.files[("api.test", "/hello")] = HELLO.encode() + b"\n"
        self.server = server
        threading.Thread(target=server.serve_forever, daemon=True).start()
        bad = Origin(BAD, 443, [authority.issue("bad", [BAD], own=True)])
        # What a client needs besides its command, read-only at /files inside.
        self.files = os.path.join(folder, "files")
        os.mkdir(self.files, 0o755)
        os.chmod(folder, 0o755)
        self.options = ["--no-workspace", "--upstream-ca", self.ca, "--timeout", "100s", "--limits",
                        "best-effort", "--allow", BAD, "--connect-to", bad.connect_to(),
                        "--mount", self.files + (":%s:ro" % self.files if IN_PLACE else ":/files:ro")]
        for n in NAMES:
            self.options += ["--allow", n, "--connect-to",
                             "%s:443:127.0.0.1:%d" % (n, server.server_address[1])]

    def start_h2(self):
        """h2.test speaks HTTP/2 and HTTP/1.1; what of it is run has to be ended with stop()."""
        if self.h2:
            return
        script = os.path.join(self.folder, "h2.js")
        with open(script, "w") as f:
            f.write(H2_SERVER)
        self.h2 = subprocess.Popen(["node", script, *self.authority.issue("h2", [H2]),
                                    self.server.repositories], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True, env=clean_env())
        self.options += ["--allow", H2, "--connect-to",
                         "%s:443:127.0.0.1:%d" % (H2, int(self.h2.stdout.readline()))]

    def stop(self):
        if self.h2:
            self.h2.kill()
            self.h2.wait()

    def run(self, command, *options, **kw):
        if IN_PLACE:
            command = command.replace("/tmp", "$TMPDIR").replace("/files", self.files)
        return run_cloche(["run"] + self.options + list(options) + ["--", "sh", "-c", command],
                          timeout=120, **kw)

    def fetches(self, command, want=HELLO, options=(), refused="502|upstream_certificate"):
        """The command, with URL in it, works; with the URL of the other server it shows that the
        gateway did not believe that one's certificate. Both in one room."""
        both = [command.replace("URL", "https://%s/hello" % h).replace("NAME", h)
                for h in ("api.test", BAD)]
        p = self.run("export HOME=/tmp; ( %s\n) 2>&1; printf '\\n=%%d\\n' $?; ( %s\n) 2>&1" %
                     tuple(both), *options)
        good, _, bad = p.stdout.partition("\n=0\n")
        expect(want in good, "no answer: exit %d" % p.returncode, p.stdout, p.stderr)
        expect(re.search(refused, bad) and want not in bad,
               "nothing says that the origin's certificate is bad", p.stdout, p.stderr)
        return p
