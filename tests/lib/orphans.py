# SPDX-License-Identifier: Apache-2.0
"""Finds and ends programs that outlive the test that began them, such as the supervisor of a sandbox that is kept. A
program whose parent has ended becomes a child of keep()'s process (prctl(2), PR_SET_CHILD_SUBREAPER), and so a sibling
of the process that runs the tests."""
import ctypes
import os
import signal
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KEEPER = None  # the process id of the parent of orphans
EARLIER = set()  # children that it had before


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
