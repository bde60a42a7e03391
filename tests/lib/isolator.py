# SPDX-License-Identifier: Apache-2.0
"""services/cloudflare-isolator as it is deployed, in the real workerd, with real `cloche-far serve` in its containers."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import container_engine
import npm
from containers import Docker
from images import Image, Layer
from testlib import BIN, ROOT, TemporaryDir, clean_env, expect, wait_until

SERVICE = os.path.join(ROOT, "services", "cloudflare-isolator")
FAR = os.path.join(BIN, "cloche-far")
WORKERD = "workerd@1.20261117.1"
TOKEN = "a-token-of-many-characters"
CONFIG = """using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["local"])),
    (name = "disk", disk = (path = "%(folder)s/disk", writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "index.mjs", esModule = embed "index.mjs")],
  compatibilityDate = %(date)s, compatibilityFlags = %(flags)s,
  bindings = [%(bindings)s],
  durableObjectNamespaces = [%(namespaces)s],
  durableObjectStorage = (localDisk = "disk"),
  containerEngine = (localDocker = (socketPath = "unix:%(socket)s", containerEgressInterceptorImage = "none"))
);
"""


def of_dockerfile(word):
    """The list of strings behind a word of the Dockerfile."""
    with open(os.path.join(SERVICE, "Dockerfile"), encoding="utf-8") as f:
        return json.loads(re.search(r"^%s (\[.*\])$" % word, f.read(), re.M).group(1))


def wrangler():
    """What it is deployed with."""
    with open(os.path.join(SERVICE, "wrangler.jsonc"), encoding="utf-8") as f:
        return json.loads(re.sub(r"^\s*//.*$", "", f.read(), flags=re.M))


def config(folder, values):
    w = wrangler()
    expect(w["main"] == "src/index.mjs", "its program", w)
    boxed = {c["class_name"] for c in w["containers"]}
    texts = dict(w["vars"], **values)
    bindings = ['(name = "%s", durableObjectNamespace = "%s")' % (b["name"], b["class_name"]) for b in w["durable_objects"]["bindings"]]
    bindings += ["(name = %s, text = %s)" % (json.dumps(n), json.dumps(v)) for n, v in texts.items() if v is not None]
    namespaces = ['(className = "%s", uniqueKey = "%s", enableSql = true%s)' % (c, c, ', container = (imageName = "room")' if c in boxed else "")
                  for c in w["migrations"][0]["new_sqlite_classes"]]
    shutil.copy(os.path.join(SERVICE, w["main"]), folder)
    os.mkdir(os.path.join(folder, "disk"))
    path = os.path.join(folder, "config.capnp")
    with open(path, "w", encoding="utf-8") as f:
        f.write(CONFIG % {"date": json.dumps(w["compatibility_date"]), "flags": json.dumps(w["compatibility_flags"]),
                          "bindings": ", ".join(bindings), "namespaces": ", ".join(namespaces), "socket": folder + "/engine", "folder": folder})
    return path


class Worker:
    """engine(path): what has the containers, at that socket. variables: what a container's image would set."""

    def __init__(self, token=TOKEN, begin=None, engine=None, variables=None, **values):
        self.token, self.begun, self.variables = token, [], variables or {}
        self.make = engine or (lambda path: container_engine.Engine(path, lambda env: self.begin(env)))
        self.values = dict(ISOLATOR_TOKEN=token, **values)
        self.begin = begin or self.serve
        self.stack = contextlib.ExitStack()

    def serve(self, env):
        """A container's process, as the Dockerfile has it."""
        argv = ["127.0.0.1:0" if a == "0.0.0.0:8080" else a for a in of_dockerfile("ENTRYPOINT")[1:]]
        p = subprocess.Popen([FAR, *argv], env=clean_env(**self.variables, **env), stderr=subprocess.PIPE, text=True)
        said = ""
        for line in p.stderr:
            said += line
            if "serves http" in line:
                break
        self.begun.append((p, env))
        p.stderr.close()
        return p, {8080: int(re.search(r":(\d+)\n$", said).group(1))}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(TemporaryDir())
            self.engine = stack.enter_context(self.make(os.path.join(folder, "engine")))
            modules = npm.packages([WORKERD])
            program = os.path.join(modules, "@cloudflare", "workerd-linux-64", "bin", "workerd")
            read, write = os.pipe()
            self.log = stack.enter_context(open(os.path.join(folder, "log"), "w+", encoding="utf-8"))
            self.p = subprocess.Popen([program, "serve", "--experimental", "--control-fd", str(write), config(folder, self.values)],
                                      pass_fds=[write], env=clean_env(), stdout=self.log, stderr=subprocess.STDOUT)
            stack.callback(self.end)
            os.close(write)
            with os.fdopen(read) as f:
                line = f.readline()
            self.log.seek(0)
            expect(line, "workerd starts", self.log.read())
            self.port = json.loads(line)["port"]
            self.stack = stack.pop_all()
        return self

    def end(self):
        self.p.terminate()
        try:
            self.p.wait(2)
        except subprocess.TimeoutExpired:  # a connection is open
            self.p.kill()
            self.p.wait()

    def __exit__(self, *how):
        processes = [p for p, _ in self.begun]
        self.stack.__exit__(*how)
        expect(not [p for p in processes if p.poll() is None], "no container stays")

    def ask(self, method, path, body=None, **fields):
        r = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), method=method, data=body, headers=fields)
        if self.token and "Authorization" not in fields:
            r.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(r, timeout=60) as a:
                return a.status, a.read()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.read()

    def run(self, code, mode="execute", runtime="node", session=None, want=200, **more):
        path = "/execute" + ("?session=" + session if session else "")
        status, text = self.ask("POST", path, json.dumps(dict(code=code, mode=mode, runtime=runtime, **more)).encode())
        expect(status == want, "status of %r" % code, status, text)
        return json.loads(text)


class Bridged(Docker):
    """Docker whose containers have a network, which is this test's own."""

    def run(self):
        self.daemon = subprocess.Popen(
            ["dockerd", "--data-root", self.dir + "/data", "--exec-root", self.dir + "/exec", "-p", self.dir + "/pid",
             "-H", self.env["DOCKER_HOST"], "--shutdown-timeout", "2", "--iptables=false", "--ip-forward=false", "--bip", "198.18.0.1/24"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        expect(wait_until(lambda: "Server" in self.command("version", check=False), 60, 0.2), "dockerd")


def changed(name, asked):
    """The programs of this machine instead of those that an image would bring; and here is what stands beside a container."""
    host = asked.setdefault("HostConfig", {})
    host["Binds"] = [d + ":" + d + ":ro" for d in ("/usr", "/etc")]
    if name.endswith(container_engine.SIDE):
        host["Binds"].append(os.path.realpath(os.path.dirname(container_engine.__file__)) + ":/lib-of-tests:ro")
        asked["Image"], asked["User"] = "room:latest", "0"
        asked["Entrypoint"] = ["/usr/bin/python3", "/lib-of-tests/container_engine.py"]
    return asked


@contextlib.contextmanager
def docker_worker(**values):
    """A real docker, and a Worker whose containers are its own, by default, with the programs of this machine."""
    layer = Layer().dir("tmp", mode=0o1777).dir("home").dir("home/node", uid=1000, gid=1000)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink("/" + name):
            layer.link(name, os.readlink("/" + name))
    with open(FAR, "rb") as f:
        layer.file("cloche-far", f.read(), mode=0o755)
    room = Image([layer], "room:latest", Env=["PATH=/:/usr/local/bin:/usr/bin:/bin", "HOME=/home/node"],
                 Entrypoint=of_dockerfile("ENTRYPOINT"), User="1000:1000")
    with Bridged() as docker:
        room.write_saved(docker.dir + "/image.tar")
        docker.command("load", "-i", docker.dir + "/image.tar")
        with Worker(engine=lambda path: container_engine.Relay(path, docker.dir + "/socket", changed), **values) as w:
            yield docker, w
