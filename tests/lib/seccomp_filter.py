# SPDX-License-Identifier: Apache-2.0
"""The system call filter of a running process, read back from the kernel and asked what it does. Needs
root, x86-64, and a kernel with checkpoint/restore."""
import ctypes
import errno
import os
import re
import struct

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_SECCOMP_GET_FILTER = 17, 0x4206, 0x4207, 0x420c
ARCH, HEADER = 0xc000003e, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
ACTIONS = {0x7fff0000: "allow", 0x00050000: "refuse", 0x80000000: "kill"}
JUMPS = {0x15: int.__eq__, 0x25: int.__gt__, 0x35: int.__ge__, 0x45: int.__and__}  # JEQ, JGT, JGE, JSET
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def numbers():
    """{name: number}, as the C library's headers have them."""
    with open(HEADER) as f:
        return {m.group(1): int(m.group(2)) for m in re.finditer(r"#define __NR_(\w+) (\d+)", f.read())}


def filters(pid):
    """The filters of a process, each a list of (code, jt, jf, k); OSError if that cannot be had."""
    def call(request, address=None, data=None):
        r = libc.ptrace(request, pid, address, data)
        if r < 0:
            raise OSError(ctypes.get_errno(), "ptrace: " + os.strerror(ctypes.get_errno()))
        return r
    found = []
    call(PTRACE_SEIZE)
    call(PTRACE_INTERRUPT)
    os.waitpid(pid, 0x40000000)
    try:
        while True:
            n = call(PTRACE_SECCOMP_GET_FILTER, len(found))
            code = ctypes.create_string_buffer(8 * n)
            call(PTRACE_SECCOMP_GET_FILTER, len(found), code)
            found.append([struct.unpack_from("=HBBI", code, 8 * i) for i in range(n)])
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    finally:
        call(PTRACE_DETACH)
    return found


def action(program, nr, args=(), arch=ARCH):
    """What one filter does: "allow", "refuse" (EPERM), "kill". The few instructions that ours have."""
    data = struct.pack("=IIQ6Q", nr, arch, 0, *(list(args) + [0] * 6)[:6])
    at = accumulator = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            accumulator = struct.unpack_from("=I", data, k)[0]
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= k
        elif code == 0x05:  # BPF_JMP | BPF_JA
            at += k
        elif code in JUMPS:
            at += yes if JUMPS[code](accumulator, k) else no
        elif code == 0x06:  # BPF_RET | BPF_K
            return ACTIONS.get(k & 0xffff0000, hex(k)) if k != 0x00050000 else "lie"
        else:
            raise ValueError("instruction 0x%x" % code)
