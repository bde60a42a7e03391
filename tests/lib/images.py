# SPDX-License-Identifier: Apache-2.0
"""Images for tests, made on the spot: OCI layouts and what `docker save` writes."""
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "cat", "echo", "ls", "id", "env", "pwd", "touch", "stat", "rm", "mkdir", "sleep", "test", "wget",
           "readlink", "true", "find", "head", "wc", "sort", "grep", "ln", "cp", "chmod")
# What cloche-far and tests of rooms elsewhere need besides.
MORE = ("uname", "cut", "mv", "sha256sum", "seq", "dd", "ps", "kill", "sed", "yes", "tail")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Layer:
    """A tar that is put together entry by entry; every method returns the layer."""

    def __init__(self):
        self.out = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.out, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name, kind=tarfile.REGTYPE, data=b"", mode=0o644, link="", uid=0, gid=0, pax=None, device=(0, 0),
            size=None):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.uid, info.gid, info.mtime = kind, mode, link, uid, gid, 1000000000
        info.devmajor, info.devminor = device
        info.pax_headers = pax or {}
        info.size = len(data) if size is None else size
        self.tar.addfile(info, io.BytesIO(data) if kind == tarfile.REGTYPE and size is None else None)
        return self

    def file(self, name, data="", **more):
        return self.add(name, data=data.encode() if isinstance(data, str) else data, **more)

    def dir(self, name, mode=0o755, **more):
        return self.add(name, tarfile.DIRTYPE, mode=mode, **more)

    def link(self, name, target, **more):
        return self.add(name, tarfile.SYMTYPE, link=target, **more)

    def hard(self, name, target):
        return self.add(name, tarfile.LNKTYPE, link=target)

    def busybox(self):
        with open(BUSYBOX, "rb") as f:
            self.dir("bin").file("bin/busybox", f.read(), mode=0o755)
        for name in APPLETS:
            self.link("bin/" + name, "busybox")
        return self

    def bytes(self):
        self.tar.close()
        return self.out.getvalue()


def gzip_fast(data):
    """What is packed here is unpacked once: how small it is does not matter."""
    return gzip.compress(data, 1)


class Image:
    """layers: Layers or the bytes of tars. config: members of the image's "config". kind: whose media types; podman
    keeps what OCI does not know, such as a health check, with those of docker alone."""

    def __init__(self, layers, name=None, compress=gzip_fast, media="+gzip", kind="oci", **config):
        self.tars = [x.bytes() if isinstance(x, Layer) else x for x in layers]
        self.name = name
        self.diff_ids = [sha256(t) for t in self.tars]
        self.blobs = [compress(t) for t in self.tars] if compress else list(self.tars)
        self.media = media if compress else ""
        self.config = config
        self.history = {}
        self.kind = kind

    def config_bytes(self):
        arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, "")
        return json.dumps({"architecture": arch, "os": "linux", "created": "2026-01-02T03:04:05Z", "config": self.config,
                           "rootfs": {"type": "layers", "diff_ids": ["sha256:" + d for d in self.diff_ids]},
                           **self.history}).encode()

    def id(self):
        return sha256(self.config_bytes())

    def manifest_id(self):
        return json.loads(self.files()["index.json"])["manifests"][0]["digest"].partition(":")[2]

    def files(self):
        """The files of an OCI layout: path to bytes."""
        out = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

        def put(data, media):
            out["blobs/sha256/" + sha256(data)] = data
            return {"mediaType": media, "digest": "sha256:" + sha256(data), "size": len(data)}

        types = {"oci": ("image.manifest.v1+json", "image.config.v1+json", "image.layer.v1.tar" + self.media),
                 "docker": ("distribution.manifest.v2+json", "container.image.v1+json",
                            "image.rootfs.diff.tar" + self.media.replace("+", "."))}[self.kind]
        manifest_type, config_type, layer_type = ("application/vnd.%s.%s" % (self.kind, t) for t in types)
        manifest = {"schemaVersion": 2, "mediaType": manifest_type, "config": put(self.config_bytes(), config_type),
                    "layers": [put(b, layer_type) for b in self.blobs]}
        entry = put(json.dumps(manifest).encode(), manifest["mediaType"])
        if self.name:
            entry["annotations"] = {"org.opencontainers.image.ref.name": self.name}
        out["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
        return out

    def write_layout(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for path, data in self.files().items():
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        return folder

    def write_archive(self, path):
        with tarfile.open(path, "w") as tar:
            for name, data in self.files().items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return path

    def write_saved(self, path, links=False):
        """As `docker save`; with links, layers that are the same are links to the first."""
        with tarfile.open(path, "w") as tar:
            def put(name, data):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

            names = []
            for i, data in enumerate(self.tars):
                name = "%s%d/layer.tar" % (self.diff_ids[i], i)
                if links and data in self.tars[:i]:
                    info = tarfile.TarInfo(name)
                    info.type, info.linkname = tarfile.SYMTYPE, "../" + names[self.tars.index(data)]
                    tar.addfile(info)
                else:
                    put(name, data)
                names.append(name)
            put(self.id() + ".json", self.config_bytes())
            put("manifest.json", json.dumps([{"Config": self.id() + ".json", "Layers": names,
                                              "RepoTags": [self.name] if self.name else None}]).encode())
        return path


def toolbox(name):
    """An image with what cloche-far needs, and curl."""
    layer = Layer().busybox().dir("tmp", mode=0o1777).dir("etc").dir("usr").dir("usr/bin").file("etc/passwd", "root:x:0:0::/:/bin/sh\n")
    for applet in MORE:
        layer.link("bin/" + applet, "busybox")
    said = subprocess.run(["ldd", "/usr/bin/curl"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for path in ["/usr/bin/curl", *sorted(set(re.findall(r"(/\S+) \(0x", said)))]:
        with open(path, "rb") as f:
            layer.file(path[1:], f.read(), mode=0o755)
    return Image([layer], name, kind="docker")
