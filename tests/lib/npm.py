# SPDX-License-Identifier: Apache-2.0
"""Packages of npm that tests use as clients: installed once, below .cache of the source tree."""
import hashlib
import os
import shutil
import subprocess
import tempfile

from testlib import ROOT, Skip, clean_env, need

PLACES = [os.environ.get("CLOCHE_TEST_NPM") or os.path.join(ROOT, ".cache", "npm-tests"),
          os.path.join(tempfile.gettempdir(), "cloche-npm-%d" % os.geteuid())]


def is_ours(path):
    """What lies there may be run: nobody else could have put it there."""
    try:
        return os.stat(path).st_uid in (0, os.geteuid())
    except OSError:
        return False


def stage_folder():
    """In the first place where this user may write: where the tests run a second time, as an
    ordinary user, that is not the source tree."""
    for place in PLACES:
        try:
            os.makedirs(place, mode=0o755, exist_ok=True)
            if not is_ours(place):
                continue
            stage = tempfile.mkdtemp(dir=place)
            os.chmod(stage, 0o755)
            return place, stage
        except PermissionError:
            continue
    raise Skip("nowhere to install packages of npm")


def environment():
    """npm trusts its own list of authorities alone; this machine may have more."""
    env = clean_env(npm_config_update_notifier="false",
                    NODE_EXTRA_CA_CERTS="/etc/ssl/certs/ca-certificates.crt")
    for variable, value in os.environ.items():
        if variable.lower().startswith(("npm_config_", "http_proxy", "https_proxy", "no_proxy")):
            env[variable] = value
    return env


def install(stage, specs):
    try:
        p = subprocess.run(["npm", "install", "--prefix", stage, "--no-save", "--no-audit",
                            "--no-fund", "--ignore-scripts", "--fetch-timeout=60000"] + specs,
                           env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=240, check=False, text=True)
    except subprocess.TimeoutExpired:
        raise Skip("npm does not get %s in time" % " ".join(specs)) from None
    if p.returncode != 0 or not os.path.isdir(os.path.join(stage, "node_modules")):
        raise Skip("npm cannot install %s: %s" % (" ".join(specs), p.stdout.strip()[-200:]))


def packages(specs):
    """The node_modules folder that has all of them ("name@version"); skips the test if npm cannot
    install them."""
    need("npm", "node")
    folder = "+".join(specs).replace("/", "_")
    if len(folder) > 100:
        folder = hashlib.sha256(folder.encode()).hexdigest()
    for place in PLACES:
        modules = os.path.join(place, folder, "node_modules")
        if is_ours(place) and os.path.isdir(modules):
            return modules
    place, stage = stage_folder()
    modules = os.path.join(place, folder, "node_modules")
    try:
        install(stage, specs)
        try:
            os.rename(stage, os.path.dirname(modules))
        except OSError:  # somebody else was quicker
            if not os.path.isdir(modules):
                raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return modules


def package(name, version):
    return packages(["%s@%s" % (name, version)])
