# SPDX-License-Identifier: Apache-2.0
"""Packages of npm that tests use as clients: installed once, below .cache of the source tree."""
import os
import shutil
import subprocess
import tempfile

from testlib import ROOT, Skip, clean_env, need

PLACE = os.environ.get("CLOCHE_TEST_NPM") or os.path.join(ROOT, ".cache", "npm-tests")


def package(name, version):
    """The node_modules folder that has it; skips the test where npm cannot install it."""
    need("npm", "node")
    place = os.path.join(PLACE, "%s@%s" % (name.replace("/", "_"), version))
    modules = os.path.join(place, "node_modules")
    if os.path.isdir(os.path.join(modules, name)):
        return modules
    os.makedirs(PLACE, exist_ok=True)
    stage = tempfile.mkdtemp(dir=PLACE)
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
            os.rename(stage, place)
        except OSError:  # somebody else was quicker
            if not os.path.isdir(modules):
                raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return modules
