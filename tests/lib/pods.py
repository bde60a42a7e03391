# SPDX-License-Identifier: Apache-2.0
"""Rooms in pods, for the tests of the group cluster: a namespace of the cluster, and an image that its nodes have."""
import json
import os

from cluster import Cluster
from far_place import Rig
from images import toolbox
from testlib import TemporaryDir, expect, need, wait_until

IMAGE = "localhost/cloche/toolbox:1"


class InCluster(Rig):
    """A namespace of the cluster, and an image that its nodes have."""
    name, remote, image = "kubernetes", True, IMAGE

    def __enter__(self):
        need("curl")
        self.cluster = Cluster().__enter__()
        try:
            self.tmp = TemporaryDir()
            self.dir = self.tmp.__enter__()
            os.mkdir(os.path.join(self.dir, "run"), 0o700)
            self.env = self.cluster.env(CLOCHE_RUNTIME_DIR=os.path.join(self.dir, "run"), CLOCHE_STATE_DIR=os.path.join(self.dir, "state"),
                                        HOME=self.dir)
            self.cluster.import_image(self.write_image())
            self.context = self.cluster.kubectl("config", "current-context").strip()
            self.place = self.context + "/" + self.cluster.namespace
            self.options = ["--provider", "kubernetes", "--place", self.place, "--root", "image:" + self.image, "--no-workspace"]
        except BaseException:
            self.cluster.__exit__()
            raise
        return self

    def write_image(self):
        """An archive with that image."""
        return toolbox(self.image).write_saved(os.path.join(self.dir, "image.tar"))

    def __exit__(self, *_):
        self.cluster.__exit__()
        self.tmp.__exit__(None, None, None)

    def get(self, *what):
        return json.loads(self.cluster.kubectl("get", *what, "-o", "json"))

    def pods(self):
        """Those that are not being deleted already."""
        return [p["metadata"]["name"] for p in self.get("pods")["items"] if "deletionTimestamp" not in p["metadata"]]

    def template(self, **spec):
        path = os.path.join(self.dir, "template.json")
        with open(path, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"team/of": "tests"}}, "spec": spec}, f)
        return {"CLOCHE_POD_TEMPLATE": path}

    def nothing_left(self):
        """A node that has much else to do removes a pod late."""
        expect(wait_until(lambda: not self.get("pods")["items"] and not self.here(), 300, .3), "left", self.cluster.kubectl("get", "pods"), self.here())
        expect(wait_until(lambda: not self.get("networkpolicies")["items"], 300, .3), "policies are left")
