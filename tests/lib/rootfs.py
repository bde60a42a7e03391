# SPDX-License-Identifier: Apache-2.0
"""A root file system for images that is made of programs of this machine, as nothing can be downloaded here."""
import os
import re
import shutil
import subprocess


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
