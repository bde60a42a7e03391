# SPDX-License-Identifier: Apache-2.0
"""Row 1.5: a start from a stored image beside a start on the host's root."""
import os
import re
import subprocess

from common import RULES_HEAD, Contest, Worker, clean_env, rule, runtime_folder
from images import Image, Layer
from start import PLAIN, TRUE, USER
from testlib import CLOCHE

LAYERS = (1, 40)


def image_of(n):
    """The host's true with what it needs, spread over so many layers."""
    p = subprocess.run(["ldd", TRUE[0]], stdout=subprocess.PIPE, text=True, check=True)
    files = TRUE + re.findall(r"(/\S+) \(0x", p.stdout)
    layers = [Layer().file("usr/share/layers/%d" % i, "of a layer\n") for i in range(n)]
    for i, name in enumerate(files):
        with open(name, "rb") as f:
            layers[i * n // len(files)].file(name.lstrip("/"), f.read(), mode=0o755)
    return Image(layers, "bench:%d" % n)


def add(contest, worker, work, tail):
    contest.add("the host's root" + tail, worker, PLAIN + TRUE)
    for n in LAYERS:
        layout = image_of(n).write_archive(os.path.join(work, "image.tar"))
        os.chmod(layout, 0o644)
        name = "image of %d" % n + tail
        contest.add(name, worker, PLAIN[:-1] + ["--root", "image:bench:%d" % n, "--"] + TRUE)
        if worker.time([CLOCHE, "image", "load", "-q", layout])[1] != 0:
            contest.leave_out(name, "cannot be loaded")


def row(work, rounds=120):
    contest, workers, tails = Contest(), [], [""]
    with runtime_folder(work) as own, runtime_folder(work) as users:
        workers.append(Worker([], clean_env(CLOCHE_RUNTIME_DIR=own, CLOCHE_STATE_DIR=work + "/state")))
        add(contest, workers[0], work, "")
        if os.geteuid() == 0:
            tails.append(", as a user")
            home = os.path.join(work, "images-home")
            os.makedirs(home)
            for folder in (home, users):
                os.chown(folder, USER, USER)
            os.chmod(work, 0o755)
            workers.append(Worker(["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--"],
                                  clean_env(HOME=home, XDG_RUNTIME_DIR=users, TMPDIR=home)))
            add(contest, workers[1], work, tails[1])
        contest.run(rounds)
        for w in workers:
            w.close()
    lines = ["## Start from a stored image", "",
             "Milliseconds of wall time, all in turn. The command is the host's /bin/true, in the images with its "
             "libraries, which lie in some of the layers.", ""] + contest.table() + RULES_HEAD
    for tail in tails:
        for n in LAYERS:
            rule(lines, "image of %d / the host's root%s" % (n, tail),
                 contest.ratio("image of %d" % n + tail, "the host's root" + tail), 1.3)
    return lines
