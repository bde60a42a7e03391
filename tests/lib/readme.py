# SPDX-License-Identifier: Apache-2.0
"""What README.md and other pages show at a prompt, and a shell that runs it: every command of its blocks, in order, but for those that ask a person."""
import os
import pwd
import re
import subprocess
import time

from testlib import BIN, ROOT, expect

try:
    PERSON = pwd.getpwuid(os.getuid()).pw_name
except KeyError:
    PERSON = "ann"
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"


def indented(page):
    """The lines of each block of that page."""
    with open(os.path.join(ROOT, page)) as f:
        text = f.read()
    for block in re.findall(r"(?:^(?:    .*)?\n)+", text, re.M):
        lines = [line[4:] for line in block.strip("\n").splitlines()]
        if lines:
            yield lines


def typed():
    """What README.md says to type without what it prints: the lines of the blocks without a prompt, without remarks."""
    for lines in indented("README.md"):
        if not lines[0].startswith("$ "):
            yield from filter(None, (re.sub(r"\s+# .*", "", line) for line in lines if not line.lstrip().startswith("#")))


def blocks(of_cluster, page):
    """[(command, what it prints), ...] of each block that begins with a prompt: of those that need a cluster, or of the others."""
    for lines in indented(page):
        if not lines[0].startswith("$ "):
            continue
        steps = []
        for line in lines:
            if line.startswith("$ "):
                steps.append([line[2:], ""])
            elif not steps[-1][1] and steps[-1][0].endswith("\\"):
                steps[-1][0] += "\n" + line
            else:
                steps[-1][1] += line + "\n"
        # What asks a person needs one, and a terminal: tests/integration/test-consent answers it.
        asks = any("[y/N]" in shown for _, shown in steps)
        if not asks and of_cluster == any("kubectl" in command for command, _ in steps):
            yield steps


def plain(text):
    """Without what is another each time (ids, numbers, dates) and how lines are broken."""
    out = []
    for line in text.splitlines():
        line = re.sub(r"sandbox-[a-z0-9]+", "ID", line)
        line = re.sub(r"sk-[\w-]+", "SURROGATE", line)
        line = re.sub(r"\b(ann|root|u[0-9]+|%s)\b" % re.escape(PERSON), "PERSON", line)
        line = re.sub(MONTHS, "MONTH", line)
        if not line.strip().isdigit():
            line = re.sub(r"[0-9]+", "N", line)
        out.append(re.sub(r"[\s\\]+|(?<=\\)n", "", line))
    return "".join(out)


def matches(got, shown):
    pattern = ".*".join(re.escape(part) for part in plain(shown).split("..."))
    # Standard output and error come by two ways, so lines of both may change places.
    in_lines = [sorted(plain(line) for line in text.splitlines() if line.strip()) for text in (got, shown)]
    return in_lines[0] == in_lines[1] or re.fullmatch(pattern, plain(got), re.S) is not None


class Shell:
    """One shell for a block, as the person who types it has."""

    def __init__(self, folder, env):
        env = dict(env, PATH=BIN + ":" + env["PATH"], COLUMNS="200")
        self.p = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=env, cwd=folder, text=True,
                                  start_new_session=True)

    def run(self, command, interrupt):
        """Its output; interrupt: Ctrl-C once there is some."""
        mark = "end-of-%d" % time.monotonic_ns()
        if interrupt:
            command = "timeout -s INT 1 %s; echo ^C" % command
        self.p.stdin.write("{ %s\n} </dev/null 2>&1; s=$?; echo; echo %s; (exit $s)\n" % (command, mark))
        self.p.stdin.flush()
        out = ""
        while mark not in out:
            line = self.p.stdout.readline()
            expect(line, "the shell ended", command, out)
            out += line
        return out.replace("\n" + mark + "\n", "").replace(mark + "\n", "")

    def end(self):
        self.p.stdin.close()
        self.p.wait()


def run(of_cluster, folder, env, page="README.md"):
    """Each command prints what the page shows. Returns how many there were."""
    number = 0
    for steps in blocks(of_cluster, page):
        shell = Shell(folder, env)
        try:
            for command, shown in steps:
                number += 1
                got = shell.run(command, shown.endswith("^C\n"))
                until = time.monotonic() + 10
                # A server needs a moment, which a person gives it.
                while command.startswith("curl") and not got.strip() and time.monotonic() < until:
                    time.sleep(0.1)
                    got = shell.run(command, False)
                expect(matches(got, shown), page + ": " + command, "shown:", shown, "got:", got,
                       plain(shown), plain(got))
        finally:
            shell.end()
    return number


def workspace(folder):
    """What README.md works on."""
    os.mkdir(folder)
    with open(folder + "/calc.py", "w") as f:
        f.write("def add(a, b):\n    return a - b\n")
    return folder
