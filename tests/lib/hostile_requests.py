# SPDX-License-Identifier: Apache-2.0
"""Requests on which parsers have disagreed, one after the other in a connection. All of them are made of
a request's id, so that what an origin saw, what a log says and what was answered can be compared."""

# Each makes the bytes of a request with this id. {n} the id, {h} the host, {x} another, which nobody
# may be asked for by this request alone: what a body or a field smuggles.
SMUGGLED = "GET /{p}/{x} HTTP/1.1\r\nHost: {h}\r\nX-Id: {x}\r\n\r\n"
HEAD = "{m} /ok/{n} HTTP/1.1\r\nHost: {h}\r\nX-Id: {n}\r\n"
CHUNKED = "5\r\nhello\r\n0\r\n\r\n"

# Fields that frame, or seem to; each before a body that is short, empty or another request.
FRAMING = [
    "Content-Length: {s}\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "Content-Length: 0\r\nContent-Length: {s}", "Content-Length: {s}\r\nContent-Length: {s}",
    "Content-Length: +{s}", "Content-Length: {s} ", "Content-Length: 0{s}", "Content-Length: 0x5",
    "Content-Length: {s},{s}", "Content-Length: {s}, {s}", "Content-Length: -1", "Content-Length:",
    "Content-Length : {s}", "Content-Length\t: {s}", " Content-Length: {s}", "Content-Length: {s}\t",
    "Content-Length: 1e1", "Content-Length: 5 5", "Content-Length: \"5\"", "Content_Length: {s}",
    "Content-Length:\r\n {s}", "Content-Length: {s};x", "content-length: {s}",
    "Content-Length: 18446744073709551621", "Content-Length: 4294967301", "X: y\r\n {s}",
    "X: y\nContent-Length: {s}", "X: y\rContent-Length: {s}", "X: y\x00\r\nContent-Length: {s}",
    "Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "transfer-encoding: CHUNKED",
    "Transfer-Encoding : chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked,",
    "Transfer-Encoding: ,chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity",
    "Transfer-Encoding: identity, chunked", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: 'chunked'", "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: \x0cchunked", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding\r\n: chunked", "X: x\nTransfer-Encoding: chunked", "X: x\rTransfer-Encoding: chunked",
    "Transfer_Encoding: chunked", "Transfer-Encoding: chun\x00ked", "Transfer-Encoding: chunked\x00",
    "Transfer-Encoding\x00: chunked", "\x0bTransfer-Encoding: chunked", "Transfer-Encoding: c\xeduncked",
    "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding", "TE: chunked", "Trailer: Content-Length",
    "Content-Length: {s}\r\nConnection: Content-Length", "Content-Length: {s}\r\nConnection: Host, X-Id",
    "Content-Length: {s}\r\nExpect: 100-continue", "Content-Length: {s}\r\nExpect: 200-ok",
    "Transfer-Encoding: chunked\r\nExpect: 100-continue", "Content-Length: {s}\r\nUpgrade: h2c\r\n"
    "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
    "Content-Length: {s}\r\nConnection: Upgrade\r\nUpgrade: websocket",
    "Content-Length: {s}\r\nContent-Encoding: gzip", "Content-Length: {s}\r\nContent-Type: multipart/x",
]

# Bodies of a request that is chunked.
CHUNKS = [
    "5\r\nhello\r\n0\r\n\r\n", "05\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n",
    "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-1\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhelloo\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n00000000000000000\r\n\r\n", "5;\r\nhello\r\n0;\r\n\r\n",
    "100000000000000005\r\nhello\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-T: y\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n",
    "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\nHost: other.test\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-Id: stolen\r\nX-Front: other\r\n\r\n", "5\r\nhello\r\n0\r\nX\r\n\r\n",
    "5\r\nhello\r\n0\r\nX : y\r\n\r\n", "5\r\nhello\r\n0\r\n X: y\r\n\r\n", "5\r\nhello\r\n0\r\nX: y\n\n",
    "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\n\r", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\nG\r\n\r\n",
    "\r\n5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n\r\n0\r\n\r\n", "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
    "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "5;" + "x" * 5000 + "\r\nhello\r\n0\r\n\r\n",
    "5\x00\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n" + "X: y\r\n" * 300 + "\r\n",
]

# First lines, and what they say beside the id.
LINES = [
    "GET http://{h}/ok/{n} HTTP/1.1", "GET HTTP://{h}/ok/{n} HTTP/1.1", "GET https://{h}/ok/{n} HTTP/1.1",
    "GET http://other.test/ok/{n} HTTP/1.1", "GET https://other.test/ok/{n} HTTP/1.1",
    "GET https://{h}:443/ok/{n} HTTP/1.1", "GET https://u@{h}/ok/{n} HTTP/1.1", "GET //{h}/ok/{n} HTTP/1.1",
    "GET https://{h}@other.test/ok/{n} HTTP/1.1", "GET https:/ok/{n} HTTP/1.1", "GET ftp://{h}/ok/{n} HTTP/1.1",
    "GET /ok/../no/{n} HTTP/1.1", "GET /ok/%2e%2e/no/{n} HTTP/1.1", "GET /ok/%2E./no/{n} HTTP/1.1",
    "GET /ok/..%2fno/{n} HTTP/1.1", "GET /ok\\..\\no\\{n} HTTP/1.1", "GET /ok/..;/no/{n} HTTP/1.1",
    "GET /ok/./{n} HTTP/1.1", "GET /no/../ok/{n} HTTP/1.1", "GET /ok//{n} HTTP/1.1", "GET //ok/{n} HTTP/1.1",
    "GET /OK/{n} HTTP/1.1", "GET /%6fk/{n} HTTP/1.1", "GET /%256fk/{n} HTTP/1.1", "GET /ok%2f{n} HTTP/1.1",
    "GET /ok/{n}%00 HTTP/1.1", "GET /ok/{n}%0d%0aX HTTP/1.1", "GET /ok/{n}%zz HTTP/1.1", "GET /ok/{n}# HTTP/1.1",
    "GET /ok/{n}?a=/../no HTTP/1.1", "GET /ok/{n}?a#b HTTP/1.1", "GET /ok/{n};/../x HTTP/1.1",
    "GET /ok/\xc3\xa4{n} HTTP/1.1", "GET /ok/{n}\xff HTTP/1.1", "GET /ok/{n}%ff HTTP/1.1", "GET /ok/~{n} HTTP/1.1",
    "GET /ok/{n}|{{}}^` HTTP/1.1", "GET /ok/{n}\" HTTP/1.1", "GET /ok/{n}<> HTTP/1.1", "GET ok/{n} HTTP/1.1",
    "GET ?/ok/{n} HTTP/1.1", "GET * HTTP/1.1", "OPTIONS * HTTP/1.1", "OPTIONS /ok/{n} HTTP/1.1",
    "CONNECT {h}:443 HTTP/1.1", "CONNECT /ok/{n} HTTP/1.1", "TRACE /ok/{n} HTTP/1.1", "PUT /ok/{n} HTTP/1.1",
    "get /ok/{n} HTTP/1.1", "Get /ok/{n} HTTP/1.1", "GET: /ok/{n} HTTP/1.1", "GE T /ok/{n} HTTP/1.1",
    "POST\t/ok/{n} HTTP/1.1", "GET  /ok/{n} HTTP/1.1", "GET /ok/{n}  HTTP/1.1", "GET /ok/{n}\tHTTP/1.1",
    " GET /ok/{n} HTTP/1.1", "GET /ok/{n} HTTP/1.1 ", "GET /ok/{n} HTTP/1.0", "GET /ok/{n} HTTP/0.9",
    "GET /ok/{n} HTTP/1.2", "GET /ok/{n} HTTP/2.0", "GET /ok/{n} HTTP/11", "GET /ok/{n} HTTP/1.1.",
    "GET /ok/{n} http/1.1", "GET /ok/{n} HTTPS/1.1", "GET /ok/{n}", "GET /ok/{n} /no/x HTTP/1.1",
    "GET /ok/{n} HTTP/1.1\r\rX: y", "GET /ok/{n} HTTP/1.1\nX: y", "PRI * HTTP/2.0", "M-SEARCH /ok/{n} HTTP/1.1",
    "\r\nGET /ok/{n} HTTP/1.1", "\r\n\r\nGET /ok/{n} HTTP/1.1", "\nGET /ok/{n} HTTP/1.1", "\x00GET /ok/{n} HTTP/1.1",
    "GET /no/{n} HTTP/1.1", "POST /no/{n} HTTP/1.1", "DELETE /ok/{n} HTTP/1.1", "GET / HTTP/1.1", "GET /okay/{n} HTTP/1.1",
]

# Other fields; Host is one of them if they bring one.
FIELDS = [
    "Host: {h}\r\nHost: {h}", "Host: {h}\r\nHost: other.test", "Host: other.test", "Host:", "X-Y: z",
    "Host: {h}:443", "Host: {h}:80", "Host: {h}:0443", "Host: {h}.", "Host: {h}/x", "Host: u@{h}", "Host: {h},{h}",
    "Host : {h}", "HOST:{h}", "Host: {h}\t", "Host:\r\n {h}", "Host: {h}\x00", "Host: {h} other.test", " Host: {h}",
    "Host: {h}\r\nX-Forwarded-Host: other.test\r\nX-Original-URL: /no/x\r\nX-Rewrite-URL: /no/x",
    "Host: {h}\r\nX-HTTP-Method-Override: DELETE", "Host: {h}\r\nForwarded: host=other.test",
    "Host: {h}\r\n: empty", "Host: {h}\r\nno colon", "Host: {h}\r\nX(Y): z", "Host: {h}\r\nX\xe4: z",
    "Host: {h}\r\nX: a\r\n\tb", "Host: {h}\r\nX: a\x0bb", "Host: {h}\r\nX: a\xe4b", "Host: {h}\r\nX: a\x7fb",
    "Host: {h}\r\nConnection: close, X-Id", "Host: {h}\r\nConnection: Host", "Host: {h}\r\nKeep-Alive: 5",
    "Host: {h}\r\nProxy-Connection: close", "Host: {h}\r\nProxy-Authorization: Basic eDp5", "Host: {h}\r\nTE: gzip",
    "Host: {h}\r\nUpgrade: h2c\r\nConnection: Upgrade", "Host: {h}\r\nUpgrade: TLS/1.0\r\nConnection: Upgrade",
    "Host: {h}\r\nVia: 1.1 x\r\nMax-Forwards: 0", "Host: {h}\r\nRange: bytes=0-1", "Host: {h}\r\nIf-Match: *",
    "Host: {h}\r\n" + "\r\n".join("X-%d: y" % i for i in range(110)), "Host: {h}\r\n" + "\r\n".join(["Y: z"] * 200),
    "Host: {h}\r\nX: " + "y" * 7000, "Host: {h}\r\nX: " + "y" * 40000, "Host: {h}\r\nCookie: a=b\r\nCookie: c=d",
    "Host: {h}\r\nExpect: 100-continue",
]


def raw(text, **names):
    return text.format(**names)


def good(dice, n, host, last=False):
    """A request that is answered: (bytes, method, target, length of its body)."""
    method, body, more, target = "GET", "", "", "/ok/%s" % n
    kind = dice.randrange(5)
    if kind == 1:
        method, body = "POST", "x" * dice.choice([0, 1, 700, 20000])
        more = "Content-Length: %d\r\n" % len(body)
    elif kind == 2:
        method, more = "POST", "Transfer-Encoding: chunked\r\n"
        body = "".join("%x\r\n%s\r\n" % (k, "y" * k) for k in (1, 5, dice.randrange(1, 3000)))
        # Trailers of a request over HTTP/2 are a connection error to nginx 1.22.
        trailers = ["", "X-Trailer: z\r\n"][:1 if host == "nginx2.test" else 2]
        body += "0\r\n" + dice.choice(trailers) + "\r\n"
    elif kind == 3:
        target += "?a=%d&b=%%20" % dice.randrange(9)
    head = raw(HEAD, m=method, n=n, h=host).replace("/ok/%s" % n, target, 1)
    length = len(body) if kind != 2 else body.count("y")
    return head + more + ("Connection: close\r\n" if last else "") + "\r\n" + body, method, target, length


def hostile_texts():
    """All of them, each as a text to be filled in."""
    for field in FRAMING:
        for body in ("", CHUNKED, "0\r\n\r\n" + SMUGGLED, SMUGGLED):
            yield HEAD.replace("{m}", "POST") + field + "\r\n\r\n" + body
    for chunks in CHUNKS:
        yield HEAD.replace("{m}", "POST") + "Transfer-Encoding: chunked\r\n\r\n" + chunks
    for line in LINES:
        yield line + "\r\nHost: {h}\r\nX-Id: {n}\r\n\r\n"
    for field in FIELDS:
        yield "GET /ok/{n} HTTP/1.1\r\n" + field + "\r\nX-Id: {n}\r\n\r\n"
        yield "POST /ok/{n} HTTP/1.1\r\nX-Id: {n}\r\n" + field + "\r\nContent-Length: 3\r\n\r\nabc"


def hostile(text, dice, n, host):
    smuggled = raw(SMUGGLED, p=dice.choice(["ok", "no"]), x="s" + n, h=host)
    size = str(len(smuggled)) if SMUGGLED in text else "5"
    text = text.replace(SMUGGLED, "\x01")
    return raw(text, n=n, h=host, s=size).replace("\x01", smuggled)


# HTTP/2: fields that replace or add to those of a request (see the scenarios' README), and whether it
# has a body.
H2_FIELDS = [
    ([], ""), ([], "hello"), (["content-length: 5"], "hello"), (["content-length: 4"], "hello"),
    (["content-length: 6"], "hello"), (["content-length: 5", "content-length: 5"], "hello"),
    (["content-length: 0"], "hello"), (["content-length: +5"], "hello"), (["transfer-encoding: chunked"], "hello"),
    (["connection: close"], ""), (["upgrade: h2c"], ""), (["te: gzip"], ""), (["te: trailers"], ""),
    (["host: other.test"], ""), (["+:path: /no/x"], ""), (["x-a: b\r\nx-c: d"], ""), (["x-a: b\nx-c: d"], ""),
    (["x-a: b\0c"], ""), (["X-Upper: a"], ""), (["x a: b"], ""), (["x-a\r\n: b"], ""), ([":scheme: http"], ""),
    ([":scheme: ftp"], ""), ([":method: GET /no/x HTTP/1.1\r\nX: y"], ""), ([":method: get"], ""),
    ([":method: DELETE"], ""), ([":method: "], ""), ([":method: -"], ""), ([":path: -"], ""), ([":path: "], ""),
    ([":path: *"], ""), ([":path: /ok/{n} HTTP/1.1\r\nX: y\r\n\r\nGET /no/x"], ""), ([":path: /ok/../no/{n}"], ""),
    ([":path: ok/{n}"], ""), ([":path: https://{h}/ok/{n}"], ""), ([":path: /ok/{n}#x"], ""), ([":path: /ok/ {n}"], ""),
    ([":authority: other.test"], ""), ([":authority: {h}:443"], ""), ([":authority: u@{h}"], ""),
    ([":authority: -", "host: {h}"], ""), ([":authority: -"], ""), ([":authority: {h}\r\nX: y"], ""),
    (["+:authority: other.test"], ""), (["+:protocol: websocket"], ""), (["+:status: 200"], ""), (["expect: 100-continue"], "hello"),
    (["cookie: a=b", "cookie: c=d"], ""), (["x-big: " + "y" * 9000], ""), (["proxy-connection: close"], ""),
    ([":method: CONNECT"], ""), ([":method: CONNECT", ":path: -", ":scheme: -", ":authority: {h}:443"], ""),
    ([":method: TRACE"], ""), ([":method: HEAD"], ""), ([":path: /no/{n}"], ""), (["keep-alive: 5"], ""),
    (["content-length: 5"], ""), (["x-\xe4: b"], ""), (["x-a: \xe4"], ""), (["x-a: \x7f"], ""),
]

# HTTP/2, frame by frame (see h2frames.py): TYPE, flags, stream, payload.
POST = [":method: POST", ":path: /ok/{n}", "x-id: {n}"]
H2_FRAMES = [
    [[1, 4, "new", POST], [0, 9, "last", "\x03hello\0\0\0"]],
    [[1, 4, "new", POST], [0, 9, "last", "\x09hello\0\0\0"]],
    [[1, 4, "new", POST], [0, 0, "last", "hello"], [0, 0, "last", ""], [0, 1, "last", ""]],
    [[1, 4, "new", POST], [0, 1, "last", "hello"], [0, 1, "last", "again"]],
    [[1, 5, "new", POST], [0, 1, "last", "late"]],
    [[1, 4, "new", POST], [0, 0, "last", "hello"], [1, 5, "last", POST]],
    [[1, 4, "new", POST], [0, 0, "last", "hello"], [1, 4, "last", POST], [0, 1, "last", "more"]],
    [[1, 4, "new", POST], [0, 0, "last", "hello"], [3, 0, "last", "\0\0\0\x08"], [0, 1, "last", "more"]],
    [[1, 0, "new", POST], [9, 4, "last", ""], [0, 1, "last", "hello"]],
    [[1, 0, "new", POST], [0, 1, "last", "hello"]],
    [[1, 4, "new", POST + ["content-length: 5"]], [0, 1, "last", "hello GET /no/x HTTP/1.1"]],
    [[1, 5, "new", POST + ["content-length: 5"]]],
    [[1, 4, "new", POST + ["content-length: 9"]], [0, 1, "last", "hello"]],
    [[1, 37, "new", "\0\0\0\0\x10" + "\x82\x87\x84"]],
]
