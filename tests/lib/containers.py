# SPDX-License-Identifier: Apache-2.0
"""Real container engines for the tests, each with a storage of its own: podman, and a docker daemon in a network of
its own, so that nothing of the machine's is touched."""
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from testlib import Skip, TemporaryDir, clean_env, expect, need, processes_with_marker, run_cloche, wait_until

STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n'
# Without CAP_SYS_RESOURCE podman's own limits cannot be set; runc, as crun takes no hybrid hierarchy.
CONTAINERS = ('[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]\nlog_driver = "none"\n'
              '[engine]\ntmp_dir = "%s/tmp"\nevents_logger = "none"\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n')


def own_mounts(network=False):
    """Has this test program run again with mounts of its own: those of engines, and what they keep in /run, are
    nobody else's, and gone with it. network: with a network of its own too, in which an engine may make its own."""
    if os.geteuid() != 0 or os.environ.get("CLOCHE_TEST_OWN_MOUNTS"):
        return
    os.environ["CLOCHE_TEST_OWN_MOUNTS"] = "1"
    script = "mount -t tmpfs run /run && "
    if network:
        script += "ip link set lo up && mkdir -p /var/lib/cni && mount -t tmpfs cni /var/lib/cni && "
    os.execvp("unshare", ["unshare", "--mount", *(["--net"] if network else []), "--propagation", "private",
                          "sh", "-c", script + 'exec "$@"', "sh", sys.executable, *sys.argv])


def groups():
    """Control groups that engines make and leave: the highest of each hierarchy."""
    return {d for name in ("docker", "libpod_parent") for d in glob.glob("/sys/fs/cgroup/*/" + name)}


def remove_groups(tops):
    for top in tops:
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass  # another test uses it, and removes it


def end_those_of(folder):
    """Ends all that have the folder's name in their words or variables, also those that these start meanwhile."""
    def none_is_left():
        found = processes_with_marker(folder.encode())
        for pid, _ in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not found
    wait_until(none_is_left)


def left(env):
    """Directories of sandboxes."""
    base = env["CLOCHE_RUNTIME_DIR"]
    return [n for n in os.listdir(base) if n.startswith("sandbox-")]


def cloche(env, *argv, status=0, **how):
    """status: None: any"""
    p = run_cloche(list(argv), env=env, timeout=120, **how)
    expect(status is None or p.returncode == status, "cloche %s: exit %d" % (" ".join(argv), p.returncode), p.stdout, p.stderr)
    return p


class Place:
    """A runtime and a state directory for one provider."""

    def __init__(self, provider, **more):
        self.provider, self.more = provider, more

    def __enter__(self):
        self.tmp = TemporaryDir()
        d = self.dir = self.tmp.__enter__()
        os.mkdir(os.path.join(d, "run"), 0o700)
        return self, clean_env(CLOCHE_PROVIDER=self.provider, CLOCHE_RUNTIME_DIR=os.path.join(d, "run"),
                               CLOCHE_STATE_DIR=os.path.join(d, "state"), HOME=d, **self.more)

    def __exit__(self, *_):
        self.tmp.__exit__(None, None, None)


class Engine:
    """env: what the engine's command needs."""

    def __enter__(self):
        self.tmp = TemporaryDir()
        self.dir = self.tmp.__enter__()
        self.groups = groups()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def command(self, *argv, check=True):
        p = subprocess.run([self.name, *argv], env=dict(os.environ, **self.env), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        if check and p.returncode:
            raise AssertionError("%s %s: %s" % (self.name, argv, p.stdout))
        return p.stdout

    def names(self):
        """of all containers"""
        return self.command("ps", "--all", "--format", "{{.Names}}").split()


class Podman(Engine):
    name = "podman"

    def start(self):
        need("podman", "runc")
        if os.geteuid() != 0:
            raise Skip("podman of an ordinary user needs subordinate ids")
        for name, text in (("storage.conf", STORAGE % (self.dir, self.dir)), ("containers.conf", CONTAINERS % self.dir)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        self.env = {"CONTAINERS_STORAGE_CONF": os.path.join(self.dir, "storage.conf"),
                    "CONTAINERS_CONF": os.path.join(self.dir, "containers.conf")}

    def __exit__(self, *_):
        if hasattr(self, "env"):
            for name in self.names():
                self.command("rm", "--force", "--time", "0", name, check=False)
        remove_groups(groups() - self.groups)
        self.tmp.__exit__(None, None, None)


class RootlessPodman(Podman):
    """Of an ordinary user, whose subordinate ids are in files that are mounted over those of the machine here alone.
    wrap: what a command is started with; tree: what of the tree he can read."""
    UID, FIRST = 64390, 3000000

    def start(self):
        need("newuidmap", "setpriv", "runc")
        if os.geteuid() != 0 or not os.environ.get("CLOCHE_TEST_OWN_MOUNTS"):
            raise Skip("only root can give somebody subordinate ids")
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            raise Skip("its groups would be systemd's")
        ids = "%d:%d:65536\n" % (self.UID, self.FIRST)
        with open("/etc/passwd") as f:
            accounts = f.read() + "cloche-test:x:%d:%d::%s:/bin/sh\n" % (self.UID, self.UID, self.dir)
        for name, text in (("subuid", ids), ("subgid", ids), ("passwd", accounts)):
            path = os.path.join(self.dir, name)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o644)
            if not os.path.exists("/etc/" + name):
                raise Skip("there is no /etc/" + name)
            subprocess.run(["mount", "--bind", path, "/etc/" + name], check=True)
        storage = STORAGE + 'rootless_storage_path = "%s/graph"\n'
        for name, text in (("storage.conf", storage % (self.dir, self.dir, self.dir)), ("containers.conf", CONTAINERS % self.dir)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
        for name in ("home", "x", "tmp", "run"):
            os.makedirs(os.path.join(self.dir, name), exist_ok=True)
            os.chmod(os.path.join(self.dir, name), 0o700)
            os.chown(os.path.join(self.dir, name), self.UID, self.UID)
        os.chown(self.dir, self.UID, self.UID)
        os.chmod(self.dir, 0o755)
        self.env = {"CONTAINERS_STORAGE_CONF": os.path.join(self.dir, "storage.conf"),
                    "CONTAINERS_CONF": os.path.join(self.dir, "containers.conf"), "HOME": self.dir + "/home",
                    "XDG_RUNTIME_DIR": self.dir + "/x", "TMPDIR": self.dir + "/home"}
        self.wrap = ["setpriv", "--reuid", str(self.UID), "--regid", str(self.UID), "--clear-groups", "--"]

    def command(self, *argv, check=True):
        p = subprocess.run(self.wrap + [self.name, *argv], env=dict(os.environ, **self.env), stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False, timeout=60, cwd="/")
        if check and p.returncode:
            raise AssertionError("%s %s: %s" % (self.name, argv, p.stdout))
        return p.stdout

    def __exit__(self, *_):
        if hasattr(self, "wrap"):
            for name in self.names():
                self.command("rm", "--force", "--time", "0", name, check=False)
            # Podman leaves one that keeps its namespaces, and what cleans up after a container may start that anew.
            end_those_of(self.dir)
            pathlib.Path("/dev/shm/libpod_rootless_lock_%d" % self.UID).unlink(missing_ok=True)
        for name in ("subuid", "subgid", "passwd"):
            subprocess.run(["umount", "--lazy", "/etc/" + name], stderr=subprocess.DEVNULL, check=False)
        self.tmp.__exit__(None, None, None)


class Docker(Engine):
    """more: further words for the daemon; own_net: whether it has a network of its own."""
    name = "docker"
    daemon, more, own_net = None, [], True

    def start(self):
        need("dockerd", "docker", "containerd", "runc", "unshare")
        if os.geteuid() != 0:
            raise Skip("the docker daemon runs as root")
        self.env = {"DOCKER_HOST": "unix://%s/socket" % self.dir, "DOCKER_CONFIG": self.dir}
        self.run()

    def run(self):
        self.daemon = subprocess.Popen(
            ["unshare", "--mount", *(["--net"] if self.own_net else []), "--propagation", "private", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", "dockerd",
             "--data-root", self.dir + "/data", "--exec-root", self.dir + "/exec", "-p", self.dir + "/pid", "-H", self.env["DOCKER_HOST"],
             "--shutdown-timeout", "2", "--iptables=false", "--bridge=none", "--ip-forward=false", *self.more],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.dir + "/log", "ab"), start_new_session=True)
        if not wait_until(lambda: self.daemon.poll() is not None or
                          "Server" in self.command("version", check=False) and os.path.exists(self.dir + "/socket"), 60, 0.2) or \
                self.daemon.poll() is not None:
            with open(self.dir + "/log") as f:
                raise AssertionError("dockerd does not start: " + f.read()[-2000:])

    def end(self):
        """The daemon, and with it the containers that it has."""
        self.daemon.terminate()
        self.daemon.wait()

    def __exit__(self, *_):
        if self.daemon and self.daemon.poll() is None:
            for name in self.names():
                self.command("rm", "--force", name, check=False)
            self.end()
        end_those_of(self.dir)
        # What it may have left to the kernel's mercy: overlays that are mounted.
        with open("/proc/self/mountinfo") as f:
            for line in reversed(f.readlines()):
                at = line.split()[4]
                if at.startswith(self.dir + "/"):
                    subprocess.run(["umount", "--lazy", at], check=False)
        remove_groups(groups() - self.groups)
        shutil.rmtree(self.dir, ignore_errors=True)
        self.tmp.__exit__(None, None, None)
