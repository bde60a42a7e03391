# SPDX-License-Identifier: Apache-2.0
"""Builds Kubernetes from the source package of Debian, and unpacks what else it needs, into a cache outside of the
tree. Nothing is installed but what tools/setup installs: apt works with lists of its own."""
import fcntl
import os
import pwd
import shutil
import subprocess
import sys

# The last release of Debian whose source package of Kubernetes has everything that it is built from.
SUITE = "bookworm"
VERSION = "1.20.2"
COMMIT = "faecb196815e248d3ecfb03c680a4507229c2a56"
RECIPE = 1  # it rises when the cache has to be made anew
PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"]
# They are unpacked into the cache, not installed: the machine gets no daemon from us.
PACKAGES = {"golang-1.19-go": False, "golang-1.19-src": False, "etcd-server": True, "containerd": True, "runc": True,
            "containernetworking-plugins": True}  # True: what the cluster needs when it runs
SOURCES = """deb{src} [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {debian} {suite} main
deb{src} [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {debian} {suite}-updates main
deb{src} [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {debian}-security {suite}-security main
"""



def say(text):
    print("tools/cluster: " + text, file=sys.stderr, flush=True)


def fail(text):
    say(text)
    sys.exit(1)


def cache():
    base = os.environ.get("CLOCHE_CLUSTER_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(home, "cloche", "cluster")
    return os.path.join(base, "kubernetes-%s-%d" % (VERSION, RECIPE))


class Builder:
    """Everything is made below CACHE.work, where an interrupted build is taken up again, and moved when it is whole."""

    def __init__(self, to):
        self.to, self.work = to, to + ".work"

    def path(self, *names):
        return os.path.join(self.work, *names)

    def run(self, *argv, cwd=None, env=None):
        with open(self.path("log"), "ab") as log:
            status = subprocess.run(argv, cwd=cwd or self.work, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, check=False).returncode
        if status:
            with open(self.path("log"), errors="replace") as f:
                sys.stderr.write("".join(f.readlines()[-20:]))
            fail("%s failed; the whole output is in %s. Run it again: it goes on where it was." % (argv[0], self.path("log")))

    def apt(self, *argv, cwd=None):
        """With places of packages, lists and a cache of its own: the machine's stay as they are."""
        self.run("apt-get", "-q", "-o", "Dir::Etc::SourceList=" + self.path("sources.list"), "-o",
                 "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::State::Lists=" + self.path("lists"), "-o",
                 "Dir::Cache=" + self.path("apt"), "-o", "APT::Sandbox::User=" + pwd.getpwuid(os.geteuid()).pw_name, *argv, cwd=cwd)

    def once(self, name, make):
        """A step, unless an earlier build has done it."""
        done = self.path(name + ".done")
        if not os.path.exists(done):
            make()
            with open(done, "w"):
                pass

    def get(self):
        say("getting the sources of Kubernetes %s and the packages that it needs" % VERSION)
        debian = os.environ.get("CLOCHE_CLUSTER_MIRROR", "http://deb.debian.org/debian")
        with open(self.path("sources.list"), "w") as f:
            for src in ("", "-src"):
                f.write(SOURCES.format(src=src, debian=debian, suite=SUITE))
        for name in ("lists/partial", "apt/archives/partial", "packages", "root"):
            os.makedirs(self.path(name), exist_ok=True)
        self.apt("update")
        self.apt("download", *PACKAGES, cwd=self.path("packages"))
        shutil.rmtree(self.path("source"), ignore_errors=True)
        os.mkdir(self.path("source"))
        self.apt("source", "kubernetes", cwd=self.path("source"))

    def unpack(self):
        for name in os.listdir(self.path("packages")):
            needed = PACKAGES[name.partition("_")[0]]
            self.run("dpkg", "-x", self.path("packages", name), self.path("root" if needed else "go"))

    def compile(self):
        say("compiling; this takes some ten minutes, once. What it does is in %s" % self.path("log"))
        with open(self.path("version"), "w") as f:
            major, minor, _ = VERSION.split(".")
            f.write("KUBE_GIT_COMMIT='%s'\nKUBE_GIT_TREE_STATE='archive'\nKUBE_GIT_VERSION='v%s'\nKUBE_GIT_MAJOR='%s'\n"
                    "KUBE_GIT_MINOR='%s'\n" % (COMMIT, VERSION, major, minor))
        env = {"PATH": self.path("go/usr/lib/go-1.19/bin") + ":/usr/bin:/bin:/usr/sbin:/sbin", "HOME": self.work,
               "GOROOT": self.path("go/usr/lib/go-1.19"), "GOFLAGS": "", "GOPROXY": "off", "LANG": "C.UTF-8",
               "GOCACHE": self.path("gocache"), "KUBE_GIT_VERSION_FILE": self.path("version"), "GOLDFLAGS": "-s -w",
               "KUBE_STATIC_OVERRIDES": "kubelet"}
        self.run("nice", "-n", "10", "make", "WHAT=" + " ".join("cmd/" + p for p in PROGRAMS), cwd=self.tree(), env=env)

    def tree(self):
        return self.path("source", next(n for n in os.listdir(self.path("source")) if os.path.isdir(self.path("source", n))))

    def finish(self):
        os.makedirs(self.path("root/bin"), exist_ok=True)
        for name in PROGRAMS:
            shutil.copy(os.path.join(self.tree(), "_output/local/go/bin", name), self.path("root/bin"))
        with open(self.path("root/versions"), "w") as f:
            found = os.listdir(self.path("packages")) + [n for n in os.listdir(self.path("source")) if n.endswith(".dsc")]
            f.write("".join(n + "\n" for n in sorted(found)))
        os.rename(self.path("root"), self.to)
        subprocess.run(["chmod", "-R", "u+w", self.work], check=False)
        shutil.rmtree(self.work)

    def build(self):
        os.makedirs(self.work, exist_ok=True)
        with open(self.path("lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(self.to):  # another one has not built it meanwhile
                self.steps()

    def steps(self):
        self.once("get", self.get)
        self.once("unpack", self.unpack)
        self.once("compile", self.compile)
        self.finish()
        say("built: " + self.to)
