# SPDX-License-Identifier: Apache-2.0
"""Finds and ends programs that outlive the test that began them, such as the supervisor of a sandbox that is kept. A
program whose parent has ended becomes a child of keep()'s process (prctl(2), PR_SET_CHILD_SUBREAPER), and so a sibling
of the process that runs the tests."""
import ctypes
import os
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def keep():
    """Returns in a child of the caller's process. The caller's process stays behind as the parent of orphans, passes
    to the child what interrupts it, and ends with the child's exit status. Call it before there are threads."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become the parent of orphans")
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    child = os.fork()
    if child != 0:
        for number in INTERRUPTS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda n, frame: os.kill(child, n))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    if child == 0:
        return
    pid = 0
    while pid != child:
        pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def left_running():
    """{process id: name} of orphans and of our own children. Only for the process that came back from keep()."""
    parents, found = (os.getppid(), os.getpid()), {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open("/proc/%d/stat" % pid) as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) in parents and state not in "ZX" and pid != os.getpid():
            found[pid] = name
    return found


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
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            told |= left.keys()
            time.sleep(.05)
