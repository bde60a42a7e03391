# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes for the tests of the group cluster (tools/cluster): two nodes, of which one can be killed. All the
programs of that group share one, which tools/test starts and ends; a program that is run by hand has one of its own.
Each Cluster() has a namespace in it, so that tests do not see each other's pods."""
import json
import os
import shutil
import signal
import subprocess
import sys

from testlib import ROOT, Skip, TemporaryDir, clean_env, expect, wait_until

TOOL = os.path.join(ROOT, "tools", "cluster")
sys.path.insert(0, os.path.join(ROOT, "tools", "kubernetes"))
from build import cache  # noqa: E402


def why_not():
    """Why there can be no cluster here, or None."""
    if os.geteuid() != 0:
        return "a cluster needs root: its nodes mount file systems and have control groups"
    if not os.path.isdir(cache()):
        return "Kubernetes is not built here; \"make cluster\" builds it"
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "a cluster needs control groups of version 1 here"
    return None


def tool(*argv, timeout=450):
    """tools/cluster, with where the caller's cache is."""
    names = ("CLOCHE_CLUSTER_CACHE", "XDG_CACHE_HOME")
    return subprocess.run([TOOL, *argv], env=clean_env(**{n: os.environ[n] for n in names if n in os.environ}), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)


class Cluster:
    """kubeconfig: its context leads to the namespace. image: a name that each node has (busybox); a pod that names another
    one needs import_image(). env(): for kubectl, and for what calls it. own: never the shared one."""

    def __init__(self, own=False):
        self.shared = None if own else os.environ.get("CLOCHE_TEST_CLUSTER")

    def __enter__(self):
        reason = why_not()
        if reason:
            raise Skip(reason)
        self.tmp = TemporaryDir()
        folder = self.tmp.__enter__()
        self.dir = self.shared or os.path.join(folder, "cluster")
        try:
            if not self.shared:
                p = tool("up", "--with", str(os.getpid()), self.dir)
                expect(p.returncode == 0, "the cluster does not start", p.stdout)
            self.image = self.read("image")
            self.kubeconfig = os.path.join(folder, "kubeconfig")
            shutil.copy(os.path.join(self.dir, "kubeconfig"), self.kubeconfig)
            self.begin_namespace()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin_namespace(self):
        self.namespace = "test-%d" % os.getpid()
        self.kubectl("create", "namespace", self.namespace)
        self.kubectl("config", "set-context", "--current", "--namespace", self.namespace)
        expect(wait_until(lambda: self.kubectl("get", "serviceaccount", "default", check=False), 60, .2), "no service account")

    def read(self, *names):
        with open(os.path.join(self.dir, *names)) as f:
            return f.read().strip()

    def env(self, **more):
        env = clean_env(KUBECONFIG=self.kubeconfig, **more)
        env["PATH"] = os.path.join(self.dir, "bin") + ":" + env["PATH"]
        return env

    def kubectl(self, *argv, check=True, input=None, timeout=120):
        """What it prints. With check=False it is empty if it fails."""
        p = subprocess.run(["kubectl", "--request-timeout=60s", *argv], env=self.env(), input=input, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL if input is None else None, text=True, timeout=timeout, check=False)
        expect(not check or p.returncode == 0, "kubectl %s: exit %d" % (" ".join(argv), p.returncode), p.stdout, p.stderr)
        return p.stdout if p.returncode == 0 else ""

    def ready_nodes(self):
        """{name: when its kubelet last said so} of those that are ready"""
        items = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return {i["metadata"]["name"]: c["lastHeartbeatTime"] for i in items for c in i["status"].get("conditions", [])
                if c["type"] == "Ready" and c["status"] == "True"}

    def pid(self, machine, program):
        """machine: control or nodeN. program: init (the whole machine), kubelet, containerd, kube-apiserver and so on."""
        return int(self.read(machine, program + ".pid"))

    def kill_node(self, n):
        """Its kubelet, its containerd and all its pods die at once. The cluster knows after 20 seconds."""
        os.kill(self.pid("node%d" % n, "init"), signal.SIGKILL)

    def start_node(self, n):
        """It comes back, as a machine that lost its power; returns when it is ready."""
        name = "node%d" % n
        before = self.ready_nodes().get(name)  # what it said while it lived may still hold
        p = tool("node", str(n), self.dir)
        expect(p.returncode == 0, "the node does not start", p.stdout)
        expect(wait_until(lambda: self.ready_nodes().get(name) not in (None, before), 180, .5), "the node is not ready",
               self.kubectl("describe", "node", name))

    def import_image(self, archive):
        """An archive as `docker save` writes it, onto each node; pods then find it by its name (IfNotPresent)."""
        for machine in sorted(n for n in os.listdir(self.dir) if n.startswith("node")):
            with open(archive, "rb") as f:
                p = subprocess.run(["nsenter", "--target", str(self.pid(machine, "init")), "--all", "/opt/cluster/usr/bin/ctr", "-n", "k8s.io",
                                    "images", "import", "-"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   timeout=300, check=False)
            expect(p.returncode == 0, "the image cannot be imported", p.stdout)

    def __exit__(self, *_):
        if not self.shared and os.path.isdir(self.dir):
            p = tool("down", self.dir)
            expect(p.returncode == 0, "the cluster does not end", p.stdout)
        elif self.shared and hasattr(self, "namespace"):
            self.kubectl("delete", "namespace", self.namespace, "--wait=false", check=False)
        self.tmp.__exit__(None, None, None)
