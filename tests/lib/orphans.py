# SPDX-License-Identifier: Apache-2.0
"""Finds and ends programs that outlive the test that began them, such as the supervisor of a sandbox that is kept.

usage: orphans.py SECONDS PROGRAM [ARG...]

A program whose parent has ended becomes a child of the nearest process that asked for orphans (prctl(2),
PR_SET_CHILD_SUBREAPER). Each test runs below one (watch()): what it leaves has so many seconds to end by itself; then
it is named, in lines that begin with LEFT, and ended. If a test is interrupted, what it leaves comes to the parent of
the process that runs the tests (keep()), which ends it."""
import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KEEPER = None  # the process id of the parent of orphans
EARLIER = set()  # children that it had before
LEFT = "# left running: "


def keep():
    """Returns in a child of the caller's process. The caller's process stays behind as the parent of orphans, passes
    to the child what interrupts it, and ends as the child does. If it is killed, the child gets SIGTERM. Call it before
    there are threads."""
    global KEEPER, EARLIER
    KEEPER, EARLIER = os.getpid(), set(children((os.getpid(),)))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        return
    for number in INTERRUPTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda n, _: kill(child, n))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    pid = 0
    while pid != child:
        pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    if code == 128 + signal.SIGINT:  # a shell's loop ends only if it sees that its command was interrupted
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code if code >= 0 else 128 - code)


def prctl(option, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, int(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(%d)" % option)


def kill(pid, number):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def children(parents):
    """{process id: name and command line} of those that have not ended."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open("/proc/%d/stat" % pid, errors="replace") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            state, parent = rest.split()[:2]
            if int(parent) in parents and state not in "ZX":
                with open("/proc/%d/cmdline" % pid, errors="replace") as f:
                    found[pid] = "%s: %s" % (name, f.read().replace("\0", " "))
        except OSError:
            continue
    return found


def left_running():
    """{process id: what it is} of orphans and of our own children. Only for the process that came back from keep()."""
    # Without its keeper, this process and the orphans have a parent with children of its own.
    parents = {os.getpid(), KEEPER} if os.getppid() == KEEPER else {os.getpid()}
    return {pid: what for pid, what in children(parents).items() if pid != os.getpid() and pid not in EARLIER}


def end_left(patience=10):
    """Asks each of them to end, so that it can tidy up, and kills it after so many seconds. The children of one that
    ends by this are orphans too."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5)):
        told, until = set(), time.monotonic() + seconds
        while time.monotonic() < until:
            left = left_running()
            if not left:
                return
            for pid in left.keys() - told:
                kill(pid, number)
            told |= left.keys()
            time.sleep(.05)


def watch(seconds, argv):
    """Runs a test, and ends as it did, some time after it."""
    hurry = []
    for number in INTERRUPTS:  # the test has them as well, as it is in the same process group
        signal.signal(number, lambda n, _: hurry.append(n))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        for number in (*INTERRUPTS, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(argv[0], argv)
        except OSError as e:
            print("%s: %s" % (argv[0], e.strerror), flush=True)
            os._exit(127)
    pid = 0
    while pid != child:
        pid, status = os.wait()
    until = time.monotonic() + seconds
    while has_children() and not hurry and time.monotonic() < until:
        time.sleep(.02)
    if not hurry:
        for what in left_running().values():
            print(LEFT + what, flush=True)
        end_left()
    code = os.waitstatus_to_exitcode(status)
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


def has_children():
    """Whether any runs. Those that have ended are no longer there then."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    watch(float(sys.argv[1]), sys.argv[2:])
