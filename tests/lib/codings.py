# SPDX-License-Identifier: Apache-2.0
"""Content codings and other writings of bytes, for scripted origins. What Python does not have itself is
done by the libraries that cloche decodes with."""
import base64
import ctypes
import json
import urllib.parse
import zlib


def _library(name):
    return ctypes.CDLL(name)


def _brotli(data):
    size = ctypes.c_size_t(len(data) + 1024)
    out = ctypes.create_string_buffer(size.value)
    if not _library("libbrotlienc.so.1").BrotliEncoderCompress(
            5, 22, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(size), out):
        raise ValueError("brotli")
    return out.raw[:size.value]


def _zstd(data):
    library = _library("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(len(data) + 1024)
    n = library.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:n]


def _zlib(bits):
    def encode(data):
        c = zlib.compressobj(6, zlib.DEFLATED, bits)
        return c.compress(data) + c.flush()
    return encode


CODINGS = {"gzip": _zlib(31), "deflate": _zlib(15), "raw-deflate": _zlib(-15), "br": _brotli,
           "zstd": _zstd}


def encode(data, codings):
    """With the codings one after the other."""
    for coding in codings:
        data = CODINGS[coding](data)
    return data


def flushed(pieces):
    """gzip of the pieces, each of which can be read when it is there."""
    c = zlib.compressobj(6, zlib.DEFLATED, 31)
    out = [c.compress(p) + c.flush(zlib.Z_SYNC_FLUSH) for p in pieces]
    return out + [c.flush()]


def zeros(size):
    """gzip of so many zeros (a multiple of 8 MiB); its checksum is wrong, so its end is, too."""
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    c.compress(bytes(1 << 20))
    c.flush(zlib.Z_FULL_FLUSH)
    block = c.compress(bytes(8 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\3" + block * (size >> 23) + b"\3\0" + bytes(8)


def write_as(data, way):
    """Each line of data, written another way."""
    text = data.decode("latin-1")
    if way == "url":
        return urllib.parse.quote(text, safe="\r\n").encode()
    if way == "url-plus":
        return urllib.parse.quote_plus(text).encode()
    if way == "url-all":
        return "".join("%%%02x" % b for b in data).encode()
    if way == "json":
        return json.dumps({"echo": text}).replace("/", "\\/").encode()
    if way == "json-all":
        return ("{\"echo\": \"%s\"}" % "".join("\\u%04x" % b for b in data)).encode()
    if way.startswith("base64"):  # base64+1: behind one more byte
        data = b"x" * int(way.partition("+")[2] or 0) + data
        return base64.b64encode(data)
    if way.startswith("urlsafe64"):
        data = b"x" * int(way.partition("+")[2] or 0) + data
        return base64.urlsafe_b64encode(data)
    raise ValueError(way)


def forms(data):
    """(way, bytes) of what is left of data wherever it was written in one of these ways."""
    found = [("plain", data)] + [(way, write_as(data, way)) for way in ("url", "url-all", "json-all")]
    found[-1] = ("json-all", found[-1][1][10:-2])
    for before in range(3):
        for way in ("base64+%d" % before, "urlsafe64+%d" % before):
            found.append((way, write_as(data, way)[4 if before else 0:-4]))
    return found
