# SPDX-License-Identifier: Apache-2.0
"""Compares what came of a scenario with what it expects."""
import base64
import json
import re

import codings
from language import Bad, size


class Judge:
    def __init__(self, scenario, outcome):
        self.s, self.o = scenario, outcome
        self.problems = []

    def fill(self, text):
        """{NAME}: surrogate, {NAME.real}: real value, {basic[.real] USER NAME}; for regexes."""
        for name, real, _ in self.s.secrets:
            shown = self.o["surrogates"].get(name) or "<no surrogate>"
            for mark, value in (("", shown), (".real", real)):
                text = text.replace("{%s%s}" % (name, mark), re.escape(value))
                text = re.sub(r"\{basic%s (\S*) %s\}" % (re.escape(mark), name),
                              lambda m: re.escape(base64.b64encode(
                                  (m.group(1) + ":" + value).encode("latin-1")).decode()), text)
        return text

    def pattern(self, text):
        m = re.match(r"^/(.*)/$", text.strip())
        if not m:
            raise Bad("not a /pattern/: " + text)
        return re.compile(self.fill(m.group(1)), re.M)

    def want(self, cond, line, *got):
        if not cond:
            self.problems.append("expected: %s; got: %s" % (line, " ".join(map(str, got))[:600]))

    def client(self, number, got, line):
        word, _, rest = line.partition(" ")
        if got.get("error", "").startswith("driver:"):
            self.problems.append(got["error"])
            return
        responses = got.get("responses", [])
        last = responses[-1] if responses else {"status": 0, "headers": [], "body": "",
                                                "length": 0, "complete": False}
        summary = "client %d %s" % (number, line)
        statuses = [r["status"] for r in responses]
        if word == "status":
            self.want(statuses == [int(x) for x in rest.split()], summary, statuses,
                      got.get("error"), repr(got.get("rest", ""))[:200])
        elif word == "interim":
            self.want(got.get("interim") == [int(x) for x in rest.split()], summary,
                      got.get("interim"))
        elif word == "frames":
            self.want(self.pattern(rest).search(got.get("frames", "")), summary,
                      repr(got.get("frames", "")[:300]), got.get("error"))
        elif word == "body":
            self.want(self.pattern(rest).search(last["body"]), summary, repr(last["body"][:300]))
        elif word == "json":
            key, _, value = rest.partition(" ")
            try:
                found = json.loads(last["body"]).get(key)
            except (ValueError, AttributeError):
                found = "no JSON object: %r" % last["body"][:200]
            ok = self.pattern(value).search(str(found)) if re.match("^/.+/$", value) else \
                str(found) == value
            self.want(ok, summary, repr(found))
        elif word == "header":
            name, _, value = rest.partition(":")
            have = [v for k, v in last["headers"] if k.lower() == name.lower()]
            self.want(any(self.pattern(value).search(v) for v in have), summary, have)
        elif word == "length":
            self.want(last["length"] == size(rest), summary, last["length"])
        elif word == "received":
            _, _, bound = rest.partition("below ")
            self.want(got.get("received", 0) < size(bound), summary, got.get("received"))
        elif word == "trailers":
            self.want(self.pattern(rest).search(last.get("trailers", "")), summary,
                      last.get("trailers"))
        elif word in ("complete", "incomplete"):
            self.want(last["complete"] == (word == "complete"), summary, last["complete"])
        elif word == "closed":
            self.want(got.get("closed"), summary, "still open", statuses)
        elif word == "open":
            self.want(not got.get("closed"), summary, got.get("error"), statuses)
        elif word == "goaway":
            self.want(got.get("goaway") == rest, summary, got.get("goaway"), statuses)
        elif word == "reset":
            self.want(rest in got.get("resets", []), summary, got.get("resets"), statuses)
        elif word == "handshake":
            self.want(got["handshake"] == (rest != "failed"), summary, got["error"])
        elif word == "nothing":
            self.want(got.get("received", 0) == 0, summary, statuses, repr(got.get("rest")))
        elif word in ("san", "alpn", "tls"):
            self.want(str(got.get(word)) == rest or got.get(word) == [rest], summary,
                      got.get(word))
        elif word == "stdout":
            self.want(self.pattern(rest).search(got.get("stdout", "")), summary,
                      repr(got.get("stdout")))
        elif word == "exit":
            self.want(got.get("exit") == int(rest), summary, got.get("exit"), got.get("stdout"))
        elif word == "answers":
            self.answers(got["answers"], rest, summary)
        elif word == "after":
            self.want(got["seconds"] >= float(rest), summary, "%.2f s" % got["seconds"])
        elif word == "no":
            self.absent(got, last, rest, summary)
        else:
            raise Bad("no such expectation: " + line)

    def answers(self, answers, rest, summary):
        """answers NOERROR 1 | NOERROR 0 | FORMERR 0: for each query its code and how many."""
        have = " | ".join("%s %d" % (a["rcode"], len(a["answers"])) for a in answers)
        if rest.startswith("/"):
            text = " ".join(x for a in answers for x in a["answers"])
            self.want(self.pattern(rest).search(text), summary, text)
        else:
            self.want(have == rest, summary, have)

    def absent(self, got, last, rest, summary):
        word, _, rest = rest.partition(" ")
        if word == "body":
            self.want(not self.pattern(rest).search(last["body"]), summary, last["body"][:300])
        elif word == "header":
            have = [k for k, _ in last["headers"] if k.lower() == rest.lower()]
            self.want(not have, summary, have)
        elif word == "frames":
            self.want(not self.pattern(rest).search(got.get("frames", "")), summary,
                      repr(got.get("frames")))
        elif word == "trailers":
            self.want(not self.pattern(rest).search(last.get("trailers", "")), summary,
                      last.get("trailers"))
        elif word == "stdout":
            self.want(not self.pattern(rest).search(got.get("stdout", "")), summary,
                      repr(got.get("stdout")))
        else:
            raise Bad("no such expectation: no " + word)

    def check(self, line):
        word, _, rest = line.partition(" ")
        log = self.o["log"]
        if word == "origin":
            self.origin(rest, line)
        elif word == "log":
            m = re.match(r"^count (\d+) (/.*)$", rest)
            found = len(self.pattern(m.group(2) if m else rest).findall(log))
            self.want(found == int(m.group(1)) if m else found > 0, line, found, "in", repr(log))
        elif word == "jsonl":
            self.want(self.pattern(rest).search(self.o["jsonl"]), line, self.o["jsonl"])
        elif word == "memory":
            _, _, bound = rest.partition("below ")
            peak = {k: v for k, v in self.o["memory"].items() if k in
                    ("cloche-gateway", "cloche-broker")}
            self.want(len(peak) == 2 and sum(peak.values()) << 10 < size(bound), line, peak, "KiB")
        elif word == "exit":
            self.want(self.o["exit"] == int(rest), line, self.o["exit"])
        elif word == "stderr":
            self.want(self.pattern(rest).search(self.o["stderr"]), line, self.o["stderr"])
        elif word == "no":
            word, _, rest = rest.partition(" ")
            text = {"log": log, "jsonl": self.o["jsonl"], "stderr": self.o["stderr"]}[word]
            self.want(not self.pattern(rest).search(text), line, text)
        else:
            raise Bad("no such check: " + line)

    def origin(self, rest, line):
        name, word, *more = rest.split(None, 2)
        more = more[0] if more else ""
        matching = [o for o in self.o["origins"] if o.name == name or
                    "%s:%d" % (o.name, o.port) == name]
        if not matching:
            raise Bad("no origin " + name)
        o = matching[0]
        text = b"".join(o.requests).decode("latin-1")
        if word == "nothing":
            self.want(not o.requests, line, repr(text[:500]))
        elif word == "requests":
            self.want(len(o.requests) == int(more), line, len(o.requests), repr(text[:500]))
        elif word == "connections":
            self.want(o.connections == int(more), line, o.connections)
        elif word == "handshakes":
            self.want(o.handshakes == int(more), line, o.handshakes, o.handshake_errors)
        elif word == "got":
            self.want(self.pattern(more).search(text), line, repr(text[:800]))
        elif word == "not":
            self.want(not self.pattern(more).search(text), line, repr(text[:800]))
        elif word == "sent":
            self.want(o.sent < size(more.partition("below ")[2]), line, o.sent)
        else:
            raise Bad("no such check of an origin: " + word)


def read_file(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def judge_record(scenario, path):
    """No real value of a secret is in a record of requests: in no head, and in no body, however that
    was written."""
    text, bodies = read_file(path), {}
    for line in text.splitlines():
        entry = json.loads(line)
        for key in ("sent", "data"):
            if key in entry:
                bodies[entry["e"], key] = bodies.get((entry["e"], key), b"") + \
                    base64.b64decode(entry[key])
        for head in ("request", "response"):
            text += "".join("\n%s: %s" % tuple(h) for h in entry.get(head, {}).get("headers", []))
        text += "".join("\n%s: %s" % tuple(h) for h in entry.get("trailers", []))
    everywhere = [text.encode("latin-1", "replace")] + list(bodies.values())
    return ["the real value of %s is in the record, %s" % (name, way)
            for name, real, _ in scenario.secrets
            for way, coded in codings.forms(real.encode())
            if any(coded in where for where in everywhere)]


def judge(scenario, code, out, err, origins, log, memory, verbose):
    m = re.search(r"^SCENARIO-RESULT (.*)$", out, re.M)
    result = json.loads(m.group(1)) if m else {"clients": [], "surrogates": {}}
    outcome = {"exit": code, "stderr": err, "origins": origins, "log": read_file(log),
               "jsonl": read_file(log + ".jsonl") or read_file(log[:-4] + ".jsonl"),
               "memory": memory,
               "surrogates": result["surrogates"]}
    j = Judge(scenario, outcome)
    if not m and scenario.clients:
        j.problems.append("the clients did not finish: exit status %s" % code)
    for number, (c, got) in enumerate(zip(scenario.clients, result["clients"]), 1):
        if not c["expect"]:
            j.problems.append("client %d has no expectations" % number)
        for line in c["expect"]:
            j.client(number, got, line)
    for line in scenario.checks:
        j.check(line)
    # Nothing of what a room may say gets into the log unescaped, in any scenario.
    if re.search(r"[^\x20-\x7e\n]", outcome["log"]):
        j.problems.append("the network log holds unescaped bytes: %r" % outcome["log"])
    for name, real, _ in scenario.secrets:
        for where in (outcome["log"], outcome["jsonl"], out, err):
            if real in where:
                j.problems.append("the real value of %s shows up: %r" % (name, where[:600]))
    if j.problems or verbose:
        j.problems += ["exit status %d, stderr: %s" % (code, err.strip()[-1500:]),
                       "network log:"] + ["  " + x for x in outcome["log"].splitlines()[-30:]]
    return j.problems
