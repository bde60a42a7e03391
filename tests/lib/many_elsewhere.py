# SPDX-License-Identifier: Apache-2.0
"""A program that makes sandboxes by cloche/manager.h, in a process of its own: a few at a time, as many as are asked for. It says
the id of each, destroys those that it is told by a line, and the rest at the end of its input.

usage: many_elsewhere.py LIBRARY COUNT AT-ONCE NAME=VALUE..."""
import ctypes
import sys
import threading


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("max_runs", ctypes.c_uint64), ("lifetime_ms", ctypes.c_uint64),
                ("cleanup_interval_ms", ctypes.c_uint64), ("cleanup_at_exit", ctypes.c_int)]


class Manager:
    def __init__(self, library, at_once, settings):
        self.lib = ctypes.CDLL(library)
        self.lib.cloche_manager_configure.restype = ctypes.c_void_p
        self.lib.cloche_instance_id.restype = ctypes.c_char_p
        self.manager, self.settings, self.lock = ctypes.c_void_p(), settings, threading.Lock()
        err = ctypes.create_string_buffer(65536)
        self.good(self.lib.cloche_manager_open(None, None, ctypes.byref(self.manager), err), err)
        options = Options(ctypes.sizeof(Options), at_once, 2**64 - 1, 0, -1)
        self.good(self.lib.cloche_manager_set_options(self.manager, ctypes.byref(options), err), err)

    @staticmethod
    def good(result, err):
        if result != 0:
            raise RuntimeError(err.raw[:2048].decode(errors="replace").replace("\0", " "))

    def say(self, *words):
        with self.lock:
            print(*words, flush=True)

    def create(self):
        err, box = ctypes.create_string_buffer(65536), ctypes.c_void_p()
        sandbox = ctypes.c_void_p(self.lib.cloche_manager_configure(self.manager))
        try:
            for name, value in self.settings:
                self.good(self.lib.cloche_sandbox_set(sandbox, name.encode(), value.encode(), err), err)
            self.good(self.lib.cloche_manager_create(self.manager, sandbox, b"hundred", ctypes.c_uint64(2**64 - 1), ctypes.byref(box), err), err)
            self.say("made", self.lib.cloche_instance_id(box).decode())
        except RuntimeError as e:
            self.say("failed", " ".join(str(e).split()))

    def destroy(self, identity):
        err = ctypes.create_string_buffer(65536)
        try:
            self.good(self.lib.cloche_manager_destroy(self.manager, identity.encode(), err), err)
            self.say("gone", identity)
        except RuntimeError as e:
            self.say("stays", identity, " ".join(str(e).split()))

    def end(self):
        err = ctypes.create_string_buffer(65536)
        self.good(self.lib.cloche_manager_cleanup(self.manager, err), err)


def main(library, count, at_once, *settings):
    manager = Manager(library, int(at_once), [s.split("=", 1) for s in settings])
    makers = [threading.Thread(target=manager.create, daemon=True) for _ in range(int(count))]
    for thread in makers:
        thread.start()
    enders = []
    for line in sys.stdin:
        enders.append(threading.Thread(target=manager.destroy, args=(line.strip(),)))
        enders[-1].start()
    for thread in enders:
        thread.join()
    manager.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
