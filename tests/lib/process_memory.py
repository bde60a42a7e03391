# SPDX-License-Identifier: Apache-2.0
"""Looks through the memory of processes for values that must not be there, in the forms that they take on
the way. Needs root."""
import base64
import re
import urllib.parse


def forms(value):
    """A value as it is, url-encoded, and within base64 at each of the three places in a group."""
    found = {value, urllib.parse.quote(value, safe="").encode()}
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + value)
        # Without what also depends on the bytes before and behind.
        found.add(text[(0, 2, 3)[shift]:len(text) - (0, 3, 2)[(len(value) + shift) % 3]])
    return found


def key_numbers(der):
    """Parts of the secret numbers of a PKCS#1 key: as they are written, and as a library holds them."""
    at, numbers = 4, []
    while at < len(der):
        size, at = der[at + 1], at + 2
        if size & 0x80:
            size, at = int.from_bytes(der[at:at + (size & 0x7f)], "big"), at + (size & 0x7f)
        numbers.append(der[at:at + size])
        at += size
    return {part[24:56] for n in numbers[3:] for part in (n, n[::-1])}  # d, p, q, ...


def pieces(pid):
    """What can be read of a process, range by range. One that has ended has none."""
    try:
        with open("/proc/%d/maps" % pid) as f:
            lines = [line for line in f if "[vvar" not in line and "[vsyscall" not in line]
        mem = open("/proc/%d/mem" % pid, "rb", 0)
    except (FileNotFoundError, ProcessLookupError):
        return
    with mem:
        for m in (re.match(r"^([0-9a-f]+)-([0-9a-f]+) r", line) for line in lines):
            if not m:
                continue
            begin, end = int(m.group(1), 16), int(m.group(2), 16)
            try:
                mem.seek(begin)
                yield mem.read(end - begin)
            except (OSError, ValueError, OverflowError):
                continue


def found_in(pid, needles):
    """Names of those needles ({name: set of bytes}) that are in the memory of the process; and how many
    bytes were looked at."""
    names, size = set(), 0
    for data in pieces(pid):
        size += len(data)
        names |= {name for name, some in needles.items() if any(n in data for n in some)}
    return names, size
