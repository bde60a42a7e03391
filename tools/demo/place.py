# SPDX-License-Identifier: Apache-2.0
"""Where the demonstration's agent works, as PROVIDER, PLACE and IMAGE say: the options that lead there, and what has to be
started for it. What was started is ended with the demonstration, however that ends."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
HERE = ("native", "landlock", "podman", "docker")
PYTHON = "python:3.12"  # has git and curl, too
OWN = "localhost/cloche/agent:1"


class Missing(Exception):
    """There is no such place; the text says why."""


class Place:
    """Used by `with`. options: of cloche agent."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.provider = os.environ.get("PROVIDER") or "native"
        self.place = os.environ.get("PLACE")
        self.image = os.environ.get("IMAGE")

    def __enter__(self):
        from testlib import Failure, Skip
        try:
            self.options = self.choose()
            return self
        except (Failure, Skip) as e:
            self.__exit__()
            raise Missing(f"PROVIDER={self.provider}: {e}") from e
        except BaseException:
            self.__exit__()
            raise

    def choose(self):
        if self.provider in HERE:
            if self.place:
                raise Missing("PLACE needs PROVIDER=ssh or PROVIDER=kubernetes")
        elif self.provider == "ssh":
            self.place = self.place or self.start_sshd()
        elif self.provider == "kubernetes":
            self.image = self.image or (PYTHON if self.place else OWN)
            self.place = self.place or self.start_cluster()
        else:
            raise Missing(f"PROVIDER={self.provider}: it is one of {', '.join(HERE)}, ssh, kubernetes")
        found = [] if self.provider == "native" else ["--provider", self.provider]
        found += ["--place", self.place] if self.place else []
        return found + (["--root", "image:" + self.image] if self.image else [])

    def start(self, thing):
        thing.__enter__()
        self.started.append(thing)
        return thing

    @staticmethod
    def use(env, *names):
        """These variables are those of what was started."""
        os.environ.update((n, env[n]) for n in names if n in env)

    def start_sshd(self):
        from ssh_place import SshPlace
        place = self.start(SshPlace())
        self.use(place.env, "PATH", "CLOCHE_RUNTIME_DIR")
        print("   a sshd of this machine is the place: an ordinary user, in a mount namespace of its own", flush=True)
        return "there"

    def start_cluster(self):
        from cluster import Cluster
        from rootfs import agent_image
        print("   starting a cluster of two nodes ...", flush=True)
        cluster = self.start(Cluster())
        self.use(cluster.env(), "PATH", "KUBECONFIG")
        cluster.import_image(agent_image(self.folder, OWN))
        print(f"   a cluster of this machine is the place; its image {OWN} has programs of this machine", flush=True)
        return cluster.kubectl("config", "current-context").strip() + "/" + cluster.namespace

    def __exit__(self, *_):
        while self.started:
            self.started.pop().__exit__(None, None, None)
