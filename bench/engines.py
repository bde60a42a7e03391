# SPDX-License-Identifier: Apache-2.0
"""The container engines and srt, set up so that nothing of the machine is used or changed: storage,
sockets and daemon in a folder of ours, network and mounts in namespaces of ours, cgroups below one
of ours. What cannot be had here is named with the reason.

Each engine runs the smallest image there is, busybox alone, linked statically: that favours it."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time

from common import HERE, Worker, clean_env, have, log

# The host's network is out of reach, and a cgroup2 mount beside version 1 is hidden: crun refuses
# to work on such a mixture. What is mounted in here goes away with its last process.
OWN_NAMESPACES = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c",
                  "ip link set lo up; umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"", "sh"]

# No capability to raise limits is needed, nothing is logged, and no shared memory is left behind.
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
lock_type = "file"
network_cmd_options = []
"""


class Absent(Exception):
    """An engine that cannot be had; the text says why."""


def run(argv, env, **kw):
    p = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False, **kw)
    if p.returncode:
        raise Absent("%s: %s" % (" ".join(argv[:4]), " ".join(p.stdout.split())[-200:]))
    return p.stdout


def image(work):
    """A tar file with busybox in it."""
    path = os.path.join(work, "image.tar")
    if os.path.exists(path):
        return path
    busybox = shutil.which("busybox", path=clean_env()["PATH"])
    if not busybox:
        raise Absent("busybox is not installed")
    with tarfile.open(path, "w") as tar:
        folder = tarfile.TarInfo("bin")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
        tar.add(busybox, "bin/busybox")
        for name in ("true", "sleep", "sh"):
            link = tarfile.TarInfo("bin/" + name)
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return path


def crun_bundle(folder):
    """A bundle that runs /bin/true on a read-only view of the host, all namespaces, no network."""
    os.makedirs(folder)
    subprocess.run(["crun", "spec"], cwd=folder, check=True, env=clean_env())
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        spec = json.load(f)
    spec["process"]["args"] = ["/bin/true"]
    spec["process"]["terminal"] = False
    spec["process"]["rlimits"] = []
    spec["root"] = {"path": os.path.join(folder, "rootfs"), "readonly": True}
    os.makedirs(os.path.join(folder, "rootfs"))
    for d in ("usr", "bin", "lib", "lib64"):
        if os.path.exists("/" + d):
            os.makedirs(os.path.join(folder, "rootfs", d))
            spec["mounts"].append({"destination": "/" + d, "source": os.path.realpath("/" + d),
                                   "type": "bind", "options": ["rbind", "ro"]})
    spec["mounts"] = [m for m in spec["mounts"] if m["destination"] != "/sys/fs/cgroup"]
    with open(path, "w") as f:
        json.dump(spec, f)
    return folder


class Engine:
    """Has a worker, in namespaces of its own, and a name for its cgroups that is nobody else's."""
    running = 0

    def __init__(self, kind, work):
        Engine.running += 1
        if os.geteuid() != 0:
            raise Absent("is measured as root only")
        self.group = "cloche-bench-%d-%d" % (os.getpid(), Engine.running)
        self.folder = os.path.join(work, kind)
        self.env, self.worker = clean_env(), None
        os.mkdir(self.folder)

    def start(self):
        self.worker = Worker(OWN_NAMESPACES, self.env, self.folder)

    def inside(self, argv):
        """Runs a command where the worker is."""
        pid = str(self.worker.p.pid)
        # The worker's shell is still on its way there at first.
        self.worker.time(["true"])
        return run(["nsenter", "--mount=/proc/%s/ns/mnt" % pid, "--net=/proc/%s/ns/net" % pid] +
                   argv, self.env)

    def stop(self):
        if self.worker:
            self.worker.close()
        for top in glob.glob("/sys/fs/cgroup/*/" + self.group) + \
                glob.glob("/sys/fs/cgroup/" + self.group):
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError as error:
                    log("bench: left behind: %s: %s" % (folder, error.strerror))
        shutil.rmtree(self.folder, ignore_errors=True)


class Crun(Engine):
    def __init__(self, work):
        super().__init__("crun", work)
        if not have("crun"):
            raise Absent("is not installed")
        bundle = crun_bundle(os.path.join(self.folder, "bundle"))
        self.run_true = ["crun", "--root", os.path.join(self.folder, "state"), "run", "--bundle",
                         bundle, self.group]
        self.start()


class Podman(Engine):
    def __init__(self, work):
        super().__init__("podman", work)
        if not have("podman"):
            raise Absent("is not installed")
        conf = os.path.join(self.folder, "containers.conf")
        with open(conf, "w") as f:
            f.write(CONTAINERS_CONF)
        self.env["CONTAINERS_CONF"] = conf
        self.podman = ["podman"] + [w for kind in ("root", "runroot", "tmpdir") for w in
                                    ("--" + kind, os.path.join(self.folder, kind))]
        self.options = ["--network", "none", "--cgroup-parent", "/" + self.group]
        self.run_true = self.podman + ["run", "--rm"] + self.options + ["local/bench", "/bin/true"]
        self.exec_true = self.podman + ["exec", self.group, "/bin/true"]
        self.start()
        try:
            self.inside(self.podman + ["import", "-q", image(work), "local/bench"])
        except Absent:
            self.stop()
            raise

    def keep_one(self):
        """A container to exec in."""
        self.inside(self.podman + ["run", "-d", "--name", self.group] + self.options +
                    ["local/bench", "/bin/sleep", "100000"])

    def stop(self):
        try:
            self.inside(self.podman + ["rm", "-a", "-f", "-t", "0"])
            self.inside(self.podman + ["rmi", "-a", "-f"])
        except Absent as why:
            log("bench: podman: %s" % why)
        super().stop()


class Docker(Engine):
    def __init__(self, work):
        super().__init__("docker", work)
        self.daemon = None
        if not have("dockerd") or not have("docker"):
            raise Absent("is not installed")
        socket = os.path.join(self.folder, "s")
        self.env["DOCKER_HOST"] = "unix://" + socket
        self.options = ["--network", "none"]
        self.run_true = ["docker", "run", "--rm"] + self.options + ["local/bench", "/bin/true"]
        self.exec_true = ["docker", "exec", self.group, "/bin/true"]
        self.start()
        try:
            self._start_daemon(socket)
            self.inside(["docker", "import", image(work), "local/bench"])
        except Absent:
            self.stop()
            raise

    def _start_daemon(self, socket):
        pid = self.worker.p.pid
        self.worker.time(["true"])
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "wb") as out:
            self.daemon = subprocess.Popen(
                ["nsenter", "--mount=/proc/%d/ns/mnt" % pid, "--net=/proc/%d/ns/net" % pid,
                 "setpriv", "--pdeathsig", "SIGTERM", "dockerd", "--data-root",
                 os.path.join(self.folder, "data"), "--exec-root",
                 os.path.join(self.folder, "exec"), "-p", os.path.join(self.folder, "pid"), "-H",
                 "unix://" + socket, "--bridge=none", "--iptables=false", "--ip6tables=false",
                 "--cgroup-parent", "/" + self.group], env=self.env, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out)
        end = time.monotonic() + 30
        while time.monotonic() < end and self.daemon.poll() is None:
            try:
                self.inside(["docker", "version"])
                return
            except Absent:
                time.sleep(0.1)
        with open(self.log, errors="replace") as f:
            raise Absent("its daemon does not start: " + " ".join(f.read()[-300:].split()))

    def keep_one(self):
        self.inside(["docker", "run", "-d", "--name", self.group] + self.options +
                    ["local/bench", "/bin/sleep", "100000"])

    def stop(self):
        if self.daemon and self.daemon.poll() is None:
            try:
                left = self.inside(["docker", "ps", "-a", "-q"]).split()
                if left:
                    self.inside(["docker", "rm", "-f"] + left)
            except Absent as why:
                log("bench: docker: %s" % why)
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        super().stop()


def srt_package():
    """Where srt is; it needs bubblewrap and socat. Kept below build/, so that it is fetched once."""
    for program in ("node", "npm", "bwrap", "socat", "rg"):
        if not have(program):
            raise Absent("%s is not installed" % program)
    home = os.path.join(os.path.dirname(HERE), "build", "bench-srt")
    package = os.path.join(home, "node_modules", "@anthropic-ai", "sandbox-runtime")
    os.makedirs(home, exist_ok=True)
    if not os.path.exists(package):
        # npm trusts its own list of authorities alone; this machine may have more.
        env = clean_env(NODE_EXTRA_CA_CERTS="/etc/ssl/certs/ca-certificates.crt")
        env.update((k, v) for k, v in os.environ.items() if k.lower().startswith("npm_config_"))
        run(["npm", "install", "--no-audit", "--no-fund", "--prefix", home,
             "@anthropic-ai/sandbox-runtime"], env)
    return package


def fetch_srt():
    try:
        srt_package()
    except Absent as why:
        log("bench: srt: %s" % why)


def srt(work):
    """The command that runs /bin/true in srt."""
    cli = os.path.join(srt_package(), "dist", "cli.js")
    settings = os.path.join(work, "srt.json")
    with open(settings, "w") as f:
        json.dump({"network": {"allowedDomains": [], "deniedDomains": []},
                   "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}, f)
    return ["node", cli, "--settings", settings, "/bin/true"]
