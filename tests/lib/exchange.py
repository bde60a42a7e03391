# SPDX-License-Identifier: Apache-2.0
"""Somebody who exchanges names while others look them up, as a room can do where it may write."""
import os
import subprocess
import sys

from testlib import wait_until

EXCHANGE = """
import ctypes, sys, os, time
libc = ctypes.CDLL(None)
pause = float(sys.argv[2])
pairs = [(a.encode(), b.encode()) for a, b in zip(sys.argv[3::2], sys.argv[4::2])]
turns = 0
while os.getppid() == int(sys.argv[1]):
    for a, b in pairs:
        libc.renameat2(-100, a, -100, b, 2)
    turns += 1
    if pause:
        time.sleep(pause)
    if pause or turns % 1000 == 0:
        print(turns, flush=True)
"""


class Exchange:
    """Exchanges the two names of each pair as long as it is entered. pause: in seconds, after each time: for those who look
    names up so slowly that a core of its own would only take theirs."""

    def __init__(self, cwd, *names, pause=0):
        self.cwd, self.names, self.pause = cwd, names, pause

    def __enter__(self):
        self.log = open(os.path.join(self.cwd, ".turns"), "w+b")
        self.process = subprocess.Popen([sys.executable, "-c", EXCHANGE, str(os.getpid()), str(self.pause), *self.names], cwd=self.cwd,
                                        stdout=self.log, stdin=subprocess.DEVNULL)
        wait_until(lambda: os.fstat(self.log.fileno()).st_size > 0)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
