# SPDX-License-Identifier: Apache-2.0
"""A terminal of the test's own, with a program on it."""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from testlib import clean_env, expect

PATIENCE = 60


class Terminal:
    """A terminal with a program on it, as a person has it."""

    def __init__(self, argv, **env):
        self.text = ""
        self.at = 0
        self.status = None
        # Nothing of the test's own is to stop with it.
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, {**clean_env(), "TERM": "xterm", **env})
        self.resize(40, 120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def wait(self, pattern):
        """What is printed from here on, up to the first match."""
        until = time.monotonic() + PATIENCE
        while not (found := re.compile(pattern).search(self.text, self.at)):
            expect(time.monotonic() < until and self.read(1) is not None, "no %r" % pattern, self.text[self.at:])
        self.at = found.end()
        return found

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        while self.read(PATIENCE):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status
