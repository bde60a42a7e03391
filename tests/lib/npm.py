# SPDX-License-Identifier: Apache-2.0
"""Packages of npm that tests use as clients: installed once, below .cache of the source tree."""
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


def package(name, version):
    """The node_modules folder that has it; skips the test where npm cannot install it."""
    need("npm", "node")
    folder = "%s@%s" % (name.replace("/", "_"), version)
    for place in PLACES:
        modules = os.path.join(place, folder, "node_modules")
        if is_ours(place) and os.path.isdir(os.path.join(modules, name)):
            return modules
    place, stage = stage_folder()
    modules = os.path.join(place, folder, "node_modules")
    try:
        env = clean_env(npm_config_update_notifier="false")
        for variable in ("NODE_EXTRA_CA_CERTS", "npm_config_registry", "HTTPS_PROXY"):
            if variable in os.environ:
                env[variable] = os.environ[variable]
        p = subprocess.run(["npm", "install", "--prefix", stage, "--no-save", "--no-audit",
                            "--no-fund", "--ignore-scripts", "%s@%s" % (name, version)], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                           check=False, text=True)
        if p.returncode != 0 or not os.path.isdir(os.path.join(stage, "node_modules", name)):
            raise Skip("npm cannot install %s: %s" % (name, p.stdout.strip()[-200:]))
        try:
            os.rename(stage, os.path.dirname(modules))
        except OSError:  # somebody else was quicker
            if not os.path.isdir(modules):
                raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return modules
