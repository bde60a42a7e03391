# SPDX-License-Identifier: Apache-2.0
"""What runs as process 1 of each machine of a cluster: of the one for the control plane, and of each node. Theory of
operation:

A machine is a process in namespaces of its own (pid, mount, network, names, ipc, control groups), and all that it
starts. When it dies, the kernel ends the rest, and nothing that it has mounted is left. Who has started it waits for
the line "ready" on its standard output; before that, each machine waits for a line on its standard input, which says
that it has its network.

A node has a root of its own, made of /usr of the machine that it stands on, read-only, and of a directory for /var: so
its kubelet and its containerd have the usual paths, and nothing that they write is seen elsewhere. What kubelet would
set for the whole machine (/proc/sys) is files in that root."""
import glob
import json
import os
import socket
import subprocess
import sys
import time

CONTROL = "172.31.0.1"
PORT = 6443
SERVICES = "10.96.0.0/16"
PAUSE = "localhost/cloche/pause:1"
PATIENCE = 120
SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
           "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}
CONTAINERD = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
 "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
 address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
 sandbox_image = "%s"
 restrict_oom_score_adj = true
 disable_apparmor = true
 [plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cluster/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"
 [plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
   runtime_type = "io.containerd.runc.v2"
""" % PAUSE


def address(node):
    return "172.31.0.%d" % (10 + node)


def pods(node):
    return "10.244.%d.0/24" % node


def run(*argv):
    p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode:
        raise RuntimeError("%s: %s" % (" ".join(argv), p.stdout.strip()))


def wait(what, condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError("%s is not ready after %d seconds" % (what, PATIENCE))
        time.sleep(.1)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


class Machine:
    def __init__(self, name, folder, programs):
        self.name, self.dir, self.programs = name, folder, programs
        self.logs = {}

    def log(self, name):
        """Opened before the machine has a root of its own."""
        return open(os.path.join(self.dir, "log", "%s-%s.log" % (self.name, name)), "ab")

    def start(self, *argv, env=None):
        name = os.path.basename(argv[0])
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.logs[name], stderr=subprocess.STDOUT, env=env)
        print(name, p.pid, flush=True)
        return p

    def forever(self):
        print("ready", flush=True)
        while True:
            try:
                os.wait()  # also what has lost its parent
            except ChildProcessError:
                time.sleep(1)


class Control(Machine):
    """etcd, the API server, the controllers and the scheduler."""

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def answers(self, port, host="127.0.0.1"):
        try:
            socket.create_connection((host, port), timeout=5).close()
        except OSError:
            return False
        return True

    def begin(self):
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            self.logs[name] = self.log(name)
        run("mount", "-t", "proc", "proc", "/proc")
        os.mkdir(self.path("etcd"))
        run("mount", "-t", "tmpfs", "-o", "mode=0700,size=1g", "etcd", self.path("etcd"))
        sys.stdin.readline()
        self.start(self.programs + "/usr/bin/etcd", "--data-dir", self.path("etcd/data"), "--listen-client-urls", "http://127.0.0.1:2379",
                   "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380")
        wait("etcd", lambda: self.answers(2379))
        self.start(*self.apiserver())
        wait("the API server", lambda: self.answers(PORT, CONTROL))
        self.start(self.programs + "/bin/kube-controller-manager", "--kubeconfig=" + self.path("pki/controllers.conf"),
                   "--service-account-private-key-file=" + self.path("pki/accounts.key"), "--root-ca-file=" + self.path("pki/ca.crt"),
                   "--use-service-account-credentials=true", "--leader-elect=false", "--bind-address=127.0.0.1", "--port=0",
                   # A node that says nothing for so long is not ready any more; the default is 40 s.
                   "--node-monitor-period=2s", "--node-monitor-grace-period=20s")
        self.start(self.programs + "/bin/kube-scheduler", "--kubeconfig=" + self.path("pki/scheduler.conf"), "--leader-elect=false",
                   "--bind-address=127.0.0.1", "--port=0")

    def apiserver(self):
        pki = self.path("pki")
        return (self.programs + "/bin/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=" + CONTROL,
                "--advertise-address=" + CONTROL, "--secure-port=%d" % PORT, "--service-cluster-ip-range=" + SERVICES,
                "--tls-cert-file=%s/apiserver.crt" % pki, "--tls-private-key-file=%s/apiserver.key" % pki,
                "--client-ca-file=%s/ca.crt" % pki, "--kubelet-certificate-authority=%s/ca.crt" % pki,
                "--kubelet-client-certificate=%s/to-kubelet.crt" % pki, "--kubelet-client-key=%s/to-kubelet.key" % pki,
                "--service-account-key-file=%s/accounts.pub" % pki, "--service-account-signing-key-file=%s/accounts.key" % pki,
                "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--anonymous-auth=false",
                "--kubelet-preferred-address-types=InternalIP", "--cert-dir=" + pki)


class Node(Machine):
    """A kubelet and a containerd."""

    def __init__(self, number, folder, programs):
        super().__init__("node%d" % number, folder, programs)
        self.number = number

    def begin(self):
        for name in ("containerd", "kubelet"):
            self.logs[name] = self.log(name)
        sys.stdin.readline()
        socket.sethostname(self.name)
        self.root()
        path = "/opt/cluster/bin:/opt/cluster/usr/bin:/opt/cluster/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        env = {"PATH": path, "HOME": "/root", "LANG": "C.UTF-8"}
        os.environ.clear()
        os.environ.update(env)
        self.start("/opt/cluster/usr/bin/containerd", "-c", "/etc/containerd.toml", env=env)
        wait("containerd", self.containerd_answers)
        for image in sorted(glob.glob("/images/*.tar")):
            run("ctr", "-n", "k8s.io", "images", "import", image)
        self.start(*self.kubelet(), env=env)

    @staticmethod
    def containerd_answers():
        return subprocess.run(["ctr", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def kubelet(self):
        return ("/opt/cluster/bin/kubelet", "--kubeconfig=/etc/pki/kubelet.conf", "--hostname-override=" + self.name,
                "--node-ip=" + address(self.number), "--container-runtime=remote",
                "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--cgroup-driver=cgroupfs",
                "--fail-swap-on=false", "--root-dir=/var/lib/kubelet", "--client-ca-file=/etc/pki/ca.crt",
                "--tls-cert-file=/etc/pki/kubelet.crt", "--tls-private-key-file=/etc/pki/kubelet.key", "--anonymous-auth=false",
                "--authorization-mode=Webhook", "--authentication-token-webhook=true", "--oom-score-adj=0",
                "--protect-kernel-defaults=true", "--resolv-conf=/etc/resolv.conf", "--eviction-hard=", "--max-open-files=20000",
                "--volume-plugin-dir=/var/lib/kubelet/plugins-exec", "--register-node=true", "--v=1")

    def root(self):
        """Makes the root, and goes into it."""
        top = os.path.join(self.dir, self.name, "root")
        os.makedirs(top, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "root", top)
        for name in ("etc/cni/net.d", "etc/alternatives", "etc/pki", "opt/cluster", "images", "root", "run", "tmp", "var", "dev", "proc", "sys", "old"):
            os.makedirs(os.path.join(top, name))
        for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64"):
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), os.path.join(top, name))
            elif os.path.isdir("/" + name):
                os.mkdir(os.path.join(top, name))
                run("mount", "--bind", "-o", "ro", "/" + name, os.path.join(top, name))
        for at, where in ((self.programs, "opt/cluster"), ("/etc/alternatives", "etc/alternatives"),
                          (os.path.join(self.dir, "images"), "images"), (os.path.join(self.dir, self.name, "pki"), "etc/pki")):
            run("mount", "--bind", "-o", "ro", at, os.path.join(top, where))
        run("mount", "--bind", os.path.join(self.dir, self.name, "var"), os.path.join(top, "var"))
        run("mount", "--rbind", "--make-rslave", "/dev", os.path.join(top, "dev"))
        for name in ("run", "tmp"):
            run("mount", "-t", "tmpfs", name, os.path.join(top, name))
        run("mount", "-t", "proc", "proc", os.path.join(top, "proc"))
        run("mount", "-t", "sysfs", "-o", "ro", "sysfs", os.path.join(top, "sys"))
        self.groups(os.path.join(top, "sys/fs/cgroup"))
        self.files(top)
        os.chdir(top)
        run("pivot_root", ".", "old")
        os.chdir("/")
        run("umount", "--lazy", "/old")
        run("mount", "--make-rshared", "/")

    @staticmethod
    def groups(at):
        """The hierarchies of control groups; each one's top is this node's own group."""
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "cgroup", at)
        for name, options in hierarchies().items():
            os.mkdir(os.path.join(at, name))
            run("mount", "-t", "cgroup", "-o", options, "cgroup", os.path.join(at, name))
            for alias in name.split(","):
                if alias != name:
                    os.symlink(name, os.path.join(at, alias))

    def files(self, top):
        for name in ("nsswitch.conf", "ld.so.cache", "passwd", "group", "protocols", "services"):
            if os.path.exists("/etc/" + name):
                with open("/etc/" + name, "rb") as f, open(os.path.join(top, "etc", name), "wb") as to:
                    to.write(f.read())
        for name in ("lib", "log", "tmp", "cache"):
            os.makedirs(os.path.join(top, "var", name), exist_ok=True)
        if not os.path.islink(os.path.join(top, "var/run")):  # /var stays when a node comes back
            os.symlink("/run", os.path.join(top, "var/run"))
        write(os.path.join(top, "etc/hosts"), "127.0.0.1 localhost\n%s %s\n" % (address(self.number), self.name))
        write(os.path.join(top, "etc/resolv.conf"), "nameserver %s\noptions attempts:1 timeout:1\n" % CONTROL)
        write(os.path.join(top, "etc/containerd.toml"), CONTAINERD)
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False,
                  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": pods(self.number)}]],
                           "routes": [{"dst": "0.0.0.0/0"}]}}
        write(os.path.join(top, "etc/cni/net.d/10-bridge.conflist"),
              json.dumps({"cniVersion": "0.4.0", "name": "cloche", "plugins": [bridge, {"type": "loopback"}]}))
        for name, value in SYSCTLS.items():
            write(os.path.join(top, "etc/proc-sys", name), value + "\n")
            run("mount", "--bind", "-o", "ro", os.path.join(top, "etc/proc-sys", name), os.path.join(top, "proc/sys", name))


def hierarchies():
    """{name: options of its mount} of control groups of version 1, as they are mounted on this machine."""
    found = {}
    with open("/proc/self/mountinfo") as f:
        for line in f:
            words, _, rest = line.partition(" - ")
            kind, _, options = rest.split()[:3]
            at = words.split()[4]
            if kind == "cgroup" and os.path.dirname(at) == "/sys/fs/cgroup":
                named = [o for o in options.split(",") if o not in ("rw", "ro", "clone_children", "noprefix", "xattr") and not o.startswith("release_agent")]
                found[os.path.basename(at)] = ",".join((["none"] if named[0].startswith("name=") else []) + named)
    return found


def main(name, folder, programs):
    """Process 1 of a machine."""
    machine = Control(name, folder, programs) if name == "control" else Node(int(name[len("node"):]), folder, programs)
    try:
        machine.begin()
    except (RuntimeError, OSError) as e:
        print("error", " ".join(str(e).split()), flush=True)
        return 1
    machine.forever()
