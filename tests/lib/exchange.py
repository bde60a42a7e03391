# SPDX-License-Identifier: Apache-2.0
"""Somebody who exchanges names while others look them up, as a room can do where it may write."""
import os
import subprocess
import sys

from testlib import wait_until

EXCHANGE = """
import ctypes, sys, os
libc = ctypes.CDLL(None)
pairs = [(a.encode(), b.encode()) for a, b in zip(sys.argv[2::2], sys.argv[3::2])]
turns = 0
while os.getppid() == int(sys.argv[1]):
    for a, b in pairs:
        libc.renameat2(-100, a, -100, b, 2)
    turns += 1
    if turns % 1000 == 0:
        print(turns, flush=True)
"""


class Exchange:
    """Exchanges the two names of each pair as long as it is entered."""

    def __init__(self, cwd, *names):
        self.cwd, self.names = cwd, names

    def __enter__(self):
        self.log = open(os.path.join(self.cwd, ".turns"), "w+b")
        self.process = subprocess.Popen([sys.executable, "-c", EXCHANGE, str(os.getpid()), *self.names], cwd=self.cwd,
                                        stdout=self.log, stdin=subprocess.DEVNULL)
        wait_until(lambda: os.fstat(self.log.fileno()).st_size > 0)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()
