# SPDX-License-Identifier: Apache-2.0
"""The demonstration of `make run` (tools/demo/run), as a test runs it. It checks each of its claims itself."""
import glob
import os
import re
import signal
import subprocess

import npm
from testlib import CLOCHE, ROOT, Skip, clean_env, expect, need, processes_with_marker, wait_until

DEMO = os.path.join(ROOT, "tools", "demo")
# What would be missed most, were it no longer claimed: of each of its three runs.
CLAIMS = [["the agent ended with success", "all tests pass", "the real API key is in nothing that came out of the room",
           "the room held a surrogate of the same form", "/etc/shadow could not be read", "the API was allowed",
           "the host that is not allowed was blocked", "the double: every request to the API had the real key",
           "a page is made of its record"],
          ["it is the same session", "the context holds both replies"],
          ["it gives the same answer, without API and key", "all tests pass again", "it leaves the same files", "no connection was made"]]


def agent():
    """The program itself: what npm would link to it is made by a script of the package."""
    with open(os.path.join(DEMO, "claude-code.version"), encoding="ascii") as f:
        modules = npm.package("@anthropic-ai/claude-code", f.read().strip())
    found = glob.glob(modules + "/@anthropic-ai/claude-code-linux-*/claude")
    if not found:
        raise Skip("there is no Claude Code for this machine")
    return found[0]


def start(folder, env=None, **variables):
    """It under way, with everything that it makes in that folder."""
    need("git", "node", "openssl")
    os.chmod(folder, 0o755)  # its sshd is an ordinary user's
    os.mkdir(folder + "/t")
    return subprocess.Popen([os.path.join(DEMO, "run")],
                            env=dict(env or clean_env(), CLOCHE=CLOCHE, AGENT=agent(), PAGE=folder + "/page.html", TMPDIR=folder + "/t",
                                     CLOCHE_STATE_DIR=folder + "/state", STATE=folder + "/state", **variables),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            errors="replace", start_new_session=True)


def whole(p):
    """Its exit status, and what it has said."""
    try:
        out, _ = p.communicate(timeout=550)
        return p.returncode, out
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGTERM)
            p.communicate(timeout=60)


def judge(status, out, runs=3):
    """It has ended well, and has claimed what it should in so many runs."""
    held = re.findall(r"^   ok     (.+)$", out, re.M)
    expect(status == 0, "exit %d" % status, out[-6000:])
    for claim in sum(CLAIMS[:runs], []):
        expect(any(one.startswith(claim) for one in held), "not claimed: " + claim, *held)


def interrupt(p, folder):
    """Ctrl-C when the agent is at work: it ends with 130, and nothing of it is left."""
    seen = ""
    while "-> Bash: git log" not in seen:
        line = p.stdout.readline()
        expect(line, "it has ended", seen)
        seen += line
    os.killpg(p.pid, signal.SIGINT)
    out, _ = p.communicate(timeout=300)
    expect(p.returncode == 130 and "demo: stopped" in out, "the end", p.returncode, out[-2000:])
    expect(wait_until(lambda: not processes_with_marker(folder.encode())), "left", processes_with_marker(folder.encode()))
    expect(os.listdir(folder + "/t") == [], "files are left", os.listdir(folder + "/t"))
