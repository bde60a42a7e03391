# SPDX-License-Identifier: Apache-2.0
"""The certificates of a cluster: one authority of its own, and one certificate a role, by which Kubernetes knows who
somebody is (the organisation is his group)."""
import base64
import json
import os
import subprocess


class Authority:
    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder, 0o700)
        self.openssl("req", "-x509", *self.new("ca"), "-out", self.path("ca.crt"), "-days", "30", "-subj", "/CN=cloche-cluster")

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*argv):
        p = subprocess.run(["openssl", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False)
        if p.returncode:
            raise RuntimeError("openssl %s: %s" % (" ".join(argv), p.stdout))

    def new(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path(name + ".key"))

    def issue(self, name, user, group=None, names=()):
        """NAME.crt and NAME.key; with names (IP:..., DNS:...) it may also be a server's."""
        with open(self.path(name + ".ext"), "w") as f:
            f.write("extendedKeyUsage=clientAuth,serverAuth\n")
            if names:
                f.write("subjectAltName=%s\n" % ",".join(names))
        subject = ("/O=" + group if group else "") + "/CN=" + user
        self.openssl("req", *self.new(name), "-out", self.path(name + ".csr"), "-subj", subject)
        self.openssl("x509", "-req", "-in", self.path(name + ".csr"), "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"),
                     "-set_serial", str(int.from_bytes(os.urandom(8), "big")), "-days", "30", "-extfile", self.path(name + ".ext"),
                     "-out", self.path(name + ".crt"))

    def account_key(self):
        """The pair of keys that tokens of service accounts are signed with."""
        self.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.path("accounts.key"))
        self.openssl("pkey", "-in", self.path("accounts.key"), "-pubout", "-out", self.path("accounts.pub"))

    def data(self, name):
        with open(self.path(name), "rb") as f:
            return base64.b64encode(f.read()).decode()

    def kubeconfig(self, name, server, path):
        """A file for clients that has everything in it. A kubeconfig is YAML, of which JSON is a part."""
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "cloche",
                  "clusters": [{"name": "cloche", "cluster": {"server": server, "certificate-authority-data": self.data("ca.crt")}}],
                  "users": [{"name": name, "user": {"client-certificate-data": self.data(name + ".crt"),
                                                    "client-key-data": self.data(name + ".key")}}],
                  "contexts": [{"name": "cloche", "context": {"cluster": "cloche", "user": name}}]}
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            json.dump(config, f, indent=1)
            f.write("\n")
