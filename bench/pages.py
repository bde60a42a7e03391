# SPDX-License-Identifier: Apache-2.0
"""A page of a log of 10,000 operations: what it takes to write it, and to open it in a browser. Nothing is measured
beside, as nobody else makes such a page."""
import json
import os
import subprocess
import time

from browser import Browser
from common import Series, clean_env, have
from testlib import CLOCHE

COMMANDS = 2500  # of four operations each
ROUNDS = 10
BEGAN = 1795429979000000
TIMES = ("(() => { const n = performance.getEntriesByType('navigation')[0]; "
         "const p = performance.getEntriesByName('first-contentful-paint')[0]; return [n.loadEventEnd, p ? p.startTime : 0]; })()")


def operations():
    for i in range(1, COMMANDS + 1):
        yield "exec.start", {"exec": i, "argv": ["tool", "--number", str(i)], "cwd": "/workspace", "tty": False, "uid": 0, "gid": 0}
        yield "fs.write", {"path": "/workspace/f%d" % (i % 100), "exec": i, "data": "".join("%d\n" % (i * k % 7) for k in range(40))}
        yield "fs.mkdir", {"path": "/workspace/d%d" % i, "exec": i}
        yield "exec.end", {"exec": i, "status": 0, "signaled": False, "timed_out": False, "duration_usec": 1500000,
                           "stdout": "line of output %d\n" % i * 20, "stderr": ""}


def worked(browser):
    """Seconds of the main thread, which do not depend on what else the machine does."""
    return next(m["value"] for m in browser.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")


def row(work):
    title = ["## A page of 10,000 operations", ""]
    if not have("chromium"):
        return title + ["Not measured: chromium is not installed."]
    path, page = os.path.join(work, "pages.jsonl"), os.path.join(work, "pages.html")
    with open(path, "w") as f:
        for n, (op, args) in enumerate(operations(), 1):
            f.write(json.dumps({"op": op, "args": args, "n": n, "t": BEGAN + 1000 * n}) + "\n")
    env = clean_env(CLOCHE_RUNTIME_DIR=os.path.join(work, "run"), CLOCHE_STATE_DIR=os.path.join(work, "state"))
    written, opened, busy = Series(), Series(), Series()
    with Browser() as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            subprocess.run([CLOCHE, "log", path, "report", "--force", "-o", page], env=env, check=True)
            written.add(time.perf_counter() - start)
            browser.load("about:blank")
            before = worked(browser)
            browser.load("file://" + page)
            loaded, paint = browser.js(TIMES)
            opened.add(max(loaded, paint))
            busy.add(worked(browser) - before)
        elements = browser.js("document.querySelectorAll('*').length")
    return title + [
        "Loaded and painted by headless Chromium %d times: %d KiB, %d elements." % (ROUNDS, os.path.getsize(page) >> 10, elements), "",
        "| what | median ms (range) |", "|---|---|",
        "| `cloche log FILE report` | %s |" % written.text(1e3, 0), "| the page is opened | %s |" % opened.text(1, 0),
        "| ... processor time of the browser's main thread | %s |" % busy.text(1e3, 0), "",
        "| time | measured | hold |", "|---|---|---|",
        "| the page is opened, ms | %.0f | at most 1000: %s |" % (opened.median, "yes" if opened.median <= 1000 else "NO")]
