# SPDX-License-Identifier: Apache-2.0
"""A root file system for images that is made of programs of this machine, as nothing can be downloaded here."""
import io
import os
import re
import shutil
import subprocess
import tarfile

from images import Image


def copy(top, path):
    """A file below top, where it really is, by its own name; once."""
    to = top + os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.realpath(path), to)


def merge(top):
    """/bin, /lib and the like lead to those of /usr, as they do on this machine."""
    for name in ("bin", "lib", "lib64"):
        if os.path.islink("/" + name):
            os.symlink("usr/" + name, top + "/" + name)


def libraries(program):
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


def program(top, name):
    """One of the PATH, with the libraries that it needs."""
    path = shutil.which(name, path="/usr/bin:/bin")
    copy(top, path)
    for library in libraries(path):
        copy(top, library)
    return path


def package(top, name):
    """The programs of a Debian package."""
    for path in subprocess.run(["dpkg", "-L", name], stdout=subprocess.PIPE, text=True, check=True).stdout.split():
        if os.path.dirname(path) in ("/bin", "/usr/bin") and os.path.isfile(path):
            copy(top, path)
            for library in libraries(path):
                copy(top, library)


def tree(top, path, *skip):
    """A folder at its own place, and what its libraries need."""
    shutil.copytree(path, top + path, ignore=shutil.ignore_patterns(*skip), ignore_dangling_symlinks=True)
    for folder, _, names in os.walk(top + path):
        for name in names:
            if name.endswith(".so"):
                for library in libraries(os.path.join(folder, name)):
                    copy(top, library)


def for_agents(folder):
    """The bytes of a tar with what Claude Code and its tools need. It is put together in that folder."""
    top = os.path.join(folder, "rootfs")
    for name in ("coreutils", "diffutils", "grep", "sed", "findutils"):
        package(top, name)
    for name in ("dash", "bash", "git", "curl", "python3"):
        program(top, name)
    for name in ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"):  # its own program's
        for where in ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"):
            if os.path.exists(os.path.join(where, name)):
                copy(top, os.path.join(where, name))
    python = os.path.basename(os.path.realpath("/usr/bin/python3"))
    tree(top, "/usr/lib/" + python, "__pycache__", "test", "idlelib", "lib2to3", "ensurepip", "config-*", "pydoc_data")
    merge(top)
    os.symlink("dash", top + "/usr/bin/sh")
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        tar.add(top, arcname=".")
    shutil.rmtree(top)
    return whole.getvalue()


def agent_image(folder, name):
    """The same as an image, as `docker save` writes it. Returns its path."""
    return Image([for_agents(folder)], name, kind="docker").write_saved(os.path.join(folder, "agent-image.tar"))
