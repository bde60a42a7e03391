# SPDX-License-Identifier: Apache-2.0
"""Reads scenarios, and turns their clients into what the driver in the room gets. LANGUAGE.md beside this
file says what every word means."""
import ast
import os
import re

import codings
import h2frames
from origin import Reply


class Bad(Exception):
    """A scenario file that cannot be read."""


STRINGS = re.compile(r'\s*("(?:\\.|[^"\\])*")(?:\s*\*\s*(\d+))?')


def string(text):
    r"""'"ab\r\n" "x"*3' as a latin-1 string."""
    out, at, text = "", 0, text.strip()
    while at < len(text):
        m = STRINGS.match(text, at)
        if not m:
            raise Bad("not a string: %s" % text[at:])
        out += ast.literal_eval("b" + m.group(1)).decode("latin-1") * int(m.group(2) or 1)
        at = m.end()
    return out


def size(text):
    m = re.match(r"^(\d+)([kmg]?)$", text.strip())
    if not m:
        raise Bad("not a size: %s" % text)
    return int(m.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[m.group(2)]


def sections(text):
    """[(first line, [(depth, line)...])]; comments and empty lines are gone."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] not in "\t ":
            found.append((line.strip(), [], number))
        elif not found:
            raise Bad("line %d: indented, but in no section" % number)
        else:
            found[-1][1].append(line[1:])
    return found


class Scenario:
    def __init__(self, path):
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.allowlist, self.secrets, self.options, self.origins = None, [], [], []
        self.config, self.environment = None, []
        self.clients, self.checks, self.title = [], [], ""
        self.offline, self.recording, self.policies = None, None, []
        with open(path, encoding="utf-8") as f:
            text = f.read()
        comments = [line[1:].strip() for line in text.split("\n") if line.startswith("#")]
        self.title = next((c for c in comments if not c.startswith("SPDX")), "")
        for head, body, number in sections(text):
            try:
                self._section(head, body)
            except (Bad, ValueError, IndexError) as error:
                raise Bad("line %d: %s: %s" % (number, head, error))

    def _section(self, head, body):
        word, _, rest = head.partition(" ")
        if word == "allowlist":
            self.allowlist = "\n".join(body) + "\n"
        elif word == "net-set":
            self.policies.append("\n".join(body) + "\n")
        elif word == "config":
            self.config = "\n".join(body) + "\n"
        elif word == "environment":
            name, _, value = rest.partition(" ")
            self.environment.append((name, string(value)))
        elif word == "secret":
            m = re.match(r'^(\w+) ("(?:\\.|[^"])*") (@.+)$', rest)
            self.secrets.append((m.group(1), string(m.group(2)), m.group(3)))
        elif word == "option":
            self.options += rest.split()
        elif word == "origin":
            self.origins.append(self._origin(rest.split(), body))
        elif word == "client":
            self.clients.append({"head": rest, "body": body, "expect": []})
        elif word == "expect":
            self.clients[-1]["expect"] += [line.strip() for line in body]
        elif word == "check":
            self.checks += [line.strip() for line in body]
        elif word == "recording":
            self.recording = "".join(string(line) + "\n" for line in body)
        elif word == "offline":
            self.offline = [line.strip() for line in body]
        else:
            raise Bad("no such section")

    def fill_in(self, ports):
        """Put the ports of origins where the policies and clients name them."""
        for name, port in ports.items():
            self.allowlist = self.allowlist and self.allowlist.replace(name, port)
            self.policies = [p.replace(name, port) for p in self.policies]
            for c in self.clients:
                c["head"] = c["head"].replace(name, port)
                c["body"] = [line.replace(name, port) for line in c["body"]]

    @staticmethod
    def _origin(words, body):
        origin = {"name": words[0], "tls": words[1] != "plain", "h2": words[1] == "h2",
                  "cert": "good", "as-it-is": None, "patience": "0", "replies": []}
        origin["port"] = 443 if origin["tls"] else 80
        for w in words[2:]:
            key, _, value = w.partition("=")
            if key not in ("port", "cert", "as-it-is", "patience"):
                raise Bad("no such origin setting: " + w)
            origin[key] = int(value) if key == "port" else value
        for head, frames in h2_answers(body) if origin["h2"] else []:
            reply = Reply()
            reply.raw, reply.close = frames, "close" in head
            origin["replies"].append(reply)
        for line in body if not origin["h2"] else []:
            word, _, rest = line.strip().partition(" ")
            if word in ("reply", "raw", "websocket"):
                reply = Reply()
                origin["replies"].append(reply)
                if word == "websocket":
                    reply.websocket = True
                elif word == "raw":
                    reply.raw = string(rest).encode("latin-1")
                else:
                    status, _, text = rest.partition(" ")
                    reply.status = int(status)
                    if text:
                        reply.body = string(text).encode("latin-1")
                continue
            reply = origin["replies"][-1]
            if word == "header":
                name, _, value = rest.partition(":")
                reply.headers.append((name, value.strip()))
            elif word == "size":
                reply.size = size(rest)
            elif word in ("drip", "drip-gzip"):
                times, seconds, text = rest.split(None, 2)
                pieces = [string(text).encode("latin-1")] * int(times)
                if word == "drip-gzip":
                    pieces = codings.flushed(pieces)
                reply.headers.append(("Transfer-Encoding", "chunked"))
                reply.body = b""
                reply.drip = ([b"%x\r\n%s\r\n" % (len(p), p) for p in pieces] +
                              [b"0\r\n\r\n"], float(seconds))
            elif word == "encode":
                reply.encode = rest.split()
            elif word == "as":
                reply.write_as = rest
            elif word == "zeros":
                reply.zeros = size(rest)
            elif word == "frames":
                reply.frames = string(rest).encode("latin-1")
            elif word == "accept":
                reply.accept = string(rest)
            elif word in ("echo", "close", "deaf", "early"):
                setattr(reply, word, True)
            elif word == "delay":
                reply.delay = float(rest)
            else:
                raise Bad("no such origin line: " + line)
        return origin


def h2_answers(body):
    """[(first line, bytes)...]: "answer" lines, and below each "N * FRAME" or "FRAME" lines."""
    answers = []
    for line in body:
        if line[0] not in "\t ":
            answers.append((line.split(), b""))
            continue
        m = re.match(r"^(?:(\d+) \* )?(.*)$", line.strip())
        kind, flags, stream, payload = h2_frame(m.group(2))
        if isinstance(payload, list):
            fields = [f[:1] + f[1:].partition(":")[0] for f in payload]
            payload = h2frames.block([(n.encode(), f[len(n) + 1:].strip().encode())
                                      for n, f in zip(fields, payload)])
        else:
            payload = payload.encode("latin-1")
        head, sent = answers[-1]
        answers[-1] = head, sent + h2frames.frame(kind, flags, int(stream), payload) * int(
            m.group(1) or 1)
    return answers


def compile_client(c):
    """What the driver in the room gets to read."""
    words = c["head"].split()
    kind = words[0]
    if kind in ("shell", "python"):
        text = "\n".join(c["body"]) + "\n"
        program = ["/bin/sh", "-c"] if kind == "shell" else ["/usr/bin/python3", "-c"]
        return {"kind": "command", "argv": program + [text]}
    if kind in ("dns-udp", "dns-tcp"):
        options = dict(w.split("=", 1) for w in words[1:])
        return {"kind": "dns", "tcp": kind == "dns-tcp", "to": options.get("to"),
                "port": int(options.get("port", 53)),
                "patience": float(options.get("patience", 10)),
                "steps": [dns_step(line.strip()) for line in c["body"]]}
    if kind not in ("tls", "plain", "h2"):
        raise Bad("no such client: " + kind)
    host, port = re.match(r"^(\[[^\]]*\]|[^:]*):?(\d*)$", words[1]).groups()
    options = dict(w.split("=", 1) for w in words[2:])
    known = {"sni", "to", "alpn", "chop", "records", "patch-sni", "max-tls", "verify", "each", "ca",
             "ech", "window", "groups", "then-sni", "sni-body", "pad", "behind"}
    if set(options) - known:
        raise Bad("no such client option: %s" % (set(options) - known))
    sni = options.get("sni", host)
    client = {"kind": "connection", "host": host, "tls": kind != "plain",
              "h2": kind == "h2", "window": int(options.get("window", -1)),
              "port": int(port) if port else (80 if kind == "plain" else 443),
              "to": options.get("to"), "sni": None if sni == "none" else sni,
              "alpn": options["alpn"].split(",") if "alpn" in options else None,
              "chop": int(options.get("chop", 0)), "records": int(options.get("records", 0)),
              "patch_sni": string(options["patch-sni"]) if "patch-sni" in options else None,
              "max_tls": options.get("max-tls"), "ca": options.get("ca"),
              "ech": options.get("ech"), "groups": options.get("groups"),
              "then_sni": options.get("then-sni"), "pad": int(options.get("pad", 0)),
              "behind": string(options.get("behind", '""')),
              "sni_body": string(options["sni-body"]) if "sni-body" in options else None,
              "verify": options.get("verify", "yes")}
    if client["h2"]:
        client["alpn"] = client["alpn"] or ["h2"]
    client["each"] = options.get("each") == "yes"
    client["wait_closed"] = "closed" in c["expect"]
    client["due"] = sum(line.startswith("status ") for line in c["expect"])
    client["linger"] = 17 if client["wait_closed"] else 5
    client["steps"] = steps(client, c["body"])
    return client


def dns_step(line):
    word, _, rest = line.partition(" ")
    if word == "query":
        m = re.match(r'^(".*"|\S+) (\w+)$', rest)
        return ["query", string(m.group(1)) if m.group(1)[0] == '"' else m.group(1), m.group(2)]
    if word == "raw":
        return ["raw", string(rest)]
    raise Bad("no such query: " + line)


def steps(client, body):
    out, at = [], 0
    while at < len(body):
        line = body[at]
        word, _, rest = line.strip().partition(" ")
        headers = []
        at += 1
        while at < len(body) and body[at][0] in "\t ":
            headers.append(body[at].strip())
            at += 1
        if word in ("get", "head", "post", "request"):
            method, target, data = word.upper(), rest, ""
            if word == "request":
                method, _, target = rest.partition(" ")
            m = re.match(r'^(\S+) (".*)$', target)
            if m:
                target, data = m.group(1), string(m.group(2))
            if client["h2"]:
                out.append(["open", method, target, [bytes_of(h) for h in headers], data, True])
            else:
                out.append(["send", compose(client, method, target, headers, data),
                            method == "HEAD"])
            out.append(["receive"])
        elif word in ("open", "begin") and client["h2"]:
            m = re.match(r'^(\S+) (\S+) ?(".*")?$', rest)
            out.append(["open", m.group(1), m.group(2), [bytes_of(h) for h in headers],
                        string(m.group(3) or '""'), word == "open"])
        elif word == "frames" and client["h2"]:
            out.append(["frames", [h2_frame(h) for h in headers], int(rest or 1)])
        elif word == "send":
            out.append(["send", string(rest)])
        elif word == "slow":
            seconds, _, text = rest.partition(" ")
            out.append(["slow", float(seconds), string(text)])
        elif word == "wait":
            out.append(["wait", float(rest)])
        elif word in ("receive-bytes", "receive-frames"):
            out.append([word, size(rest)])
        elif word == "websocket":
            out.append(["send", compose(client, "GET", rest, headers + WEBSOCKET, ""), False])
            out.append(["receive-interim"])
        elif word == "frame":
            opcode, text, options = re.match(r'^(\d+) (".*"\S*?)((?: \w+=\w+)*)$', rest).groups()
            out.append(["frame", int(opcode), string(text),
                        dict(w.split("=") for w in options.split())])
        elif word in ("receive", "receive-interim", "half-close", "net-set"):
            out.append([word])
        else:
            raise Bad("no such step: " + line)
        if headers and word not in ("get", "head", "post", "request", "websocket",
                                            "open", "begin", "frames"):
            raise Bad("headers below " + word)
    return out


def bytes_of(text):
    r"""A field line of HTTP/2, where \xNN may stand for any byte."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m.group(1), 16)), text)


def h2_frame(line):
    """TYPE FLAGS STREAM ["payload"]; a payload `name: value, ...` is a head's fields."""
    kind, flags, stream, *rest = line.split(None, 3)
    payload = rest[0] if rest else '""'
    fields = [f.strip() for f in payload[1:].split(";") if f.strip()] if payload[0] == "!" \
        else string(payload)
    return [h2frames.TYPES[kind] if kind in h2frames.TYPES else int(kind), int(flags), stream,
            fields]


WEBSOCKET = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


def compose(client, method, target, headers, data):
    default = 443 if client["tls"] else 80
    host = client["host"] + ("" if client["port"] == default else ":%d" % client["port"])
    lines = ["%s %s HTTP/1.1" % (method, target)]
    if not any(h.lower().startswith("host:") for h in headers):
        lines.append("Host: " + host)
    lines += headers
    if data:
        lines.append("Content-Length: %d" % len(data))
    return "\r\n".join(lines) + "\r\n\r\n" + data
