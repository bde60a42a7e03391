# SPDX-License-Identifier: Apache-2.0
"""WebSocket frames as bytes (RFC 6455 section 5), right and wrong ones."""
import base64
import hashlib
import re
import struct


def websocket_accept(request):
    key = re.search(rb"(?im)^sec-websocket-key: *(\S+)", request)
    text = (key.group(1) if key else b"") + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    return base64.b64encode(hashlib.sha1(text).digest()).decode()


def frame(opcode, payload, fin=True, mask=b"", rsv=0):
    """One WebSocket frame; mask: its key, or b""."""
    n = len(payload)
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += struct.pack("!BH", bit | 126, n)
    else:
        head += struct.pack("!BQ", bit | 127, n)
    return head + mask + unmask(payload, mask)


def unmask(payload, mask):
    if not mask:
        return payload
    key = (mask * (len(payload) // 4 + 1))[:len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(
        len(payload), "big")


def parse_frame(data):
    """(opcode, fin, mask, payload, what follows), or None if it is not whole."""
    if len(data) < 2:
        return None
    n, at = data[1] & 127, 2
    if n > 125:
        size = 2 if n == 126 else 8
        if len(data) < at + size:
            return None
        n, at = int.from_bytes(data[at:at + size], "big"), at + size
    mask = data[at:at + 4] if data[1] & 128 else b""
    at += len(mask)
    if len(data) < at + n or (data[1] & 128 and len(mask) < 4):
        return None
    return data[0] & 15, bool(data[0] & 128), mask, unmask(data[at:at + n], mask), data[at + n:]
