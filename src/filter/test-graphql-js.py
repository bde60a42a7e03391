#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the GraphQL parser with the reference implementation, as Debian's node-graphql has it, on
generated documents, valid and mutated: both must refuse a document, or read the same tree from it.

usage: test-graphql-js.py DUMP [SEED]

Intended differences, all of them documents that only the other takes: control characters, and
definitions of types and schemas (graphql-dump.js refuses both).
"""
import os
import random
import subprocess
import sys

MODULE = "/usr/share/nodejs/graphql"
HERE = os.path.dirname(os.path.abspath(__file__))

VALID, MUTATED = 2000, 5000
NAMES = ["a", "on", "id", "query", "fragment", "repository", "_x9", "true", "null", "mutation", "Type"]
BLANKS = [" ", "\n", ",", "\t", "\r\n", "\r", "#c\n", "# \"}\u00e9\n", "\ufeff", " , "]
PIECES = ["{", "}", "(", ")", "[", "]", "...", ":", "$", "@", "!", "=", "|", "&", '"', '"""', "\\", ".",
          "-", "0", "1e5", "#", "\n", "\r", "\ufeff", "\u2028", "\u00e9", "\U0001f600", "\x00", "\x7f", "\x0b",
          "\\u0041", "\\uD83D\\uDE00", "\\uD83D", "\\u{1F600}", "\\u{110000}", "on", "query", "fragment", "'"]


class Maker:
    """A random document, token by token, with random blanks between."""

    def __init__(self, rng):
        self.rng = rng
        self.out = []

    def word(self, text):
        self.out.append(text)
        if self.rng.random() < 0.3:
            self.out.append(self.rng.choice(BLANKS))
        else:
            self.out.append(" ")

    def name(self):
        self.word(self.rng.choice(NAMES))

    def maybe(self, what, chance=0.3):
        if self.rng.random() < chance:
            what()

    def some(self, what, most=3):
        for _ in range(self.rng.randint(1, most)):
            what()

    def string(self):
        body = "".join(self.rng.choice(["a", " ", "\\n", "\\\"", "\\u00e9", "\\uD83D\\uDE00", "\\u{1F600}",
                                        "\u00e9", "\\\\", "\t", "\\/", "#", "{"])
                       for _ in range(self.rng.randint(0, 6)))
        self.word('"%s"' % body)

    def block(self):
        body = "".join(self.rng.choice(["a", " ", "  ", "\n", "\r\n", "\r", "\t", '\\"""', "\\", "\\n", '" ',
                                        "\n   ", "\u00e9"])
                       for _ in range(self.rng.randint(0, 14)))
        self.word('"""%s """' % body)

    def value(self, constant, depth=0):
        kinds = [self.string, self.block,
                 lambda: self.word(self.rng.choice(["0", "-1", "17", "1.5", "-0.0e+3", "6E9"])),
                 lambda: self.word(self.rng.choice(["true", "false", "null", "RED", "on"]))]
        if not constant:
            kinds.append(lambda: (self.word("$"), self.name()))
        if depth < 3:
            kinds += [lambda: self.list(constant, depth), lambda: self.object(constant, depth)]
        self.rng.choice(kinds)()

    def list(self, constant, depth):
        self.word("[")
        for _ in range(self.rng.randint(0, 3)):
            self.value(constant, depth + 1)
        self.word("]")

    def object(self, constant, depth):
        self.word("{")
        for _ in range(self.rng.randint(0, 3)):
            self.name()
            self.word(":")
            self.value(constant, depth + 1)
        self.word("}")

    def argument(self, constant):
        self.name()
        self.word(":")
        self.value(constant)

    def arguments(self, constant):
        self.word("(")
        self.some(lambda: self.argument(constant))
        self.word(")")

    def directive(self, constant):
        self.word("@")
        self.name()
        self.maybe(lambda: self.arguments(constant))

    def directives(self, constant):
        self.maybe(lambda: self.some(lambda: self.directive(constant), 2), 0.2)

    def type(self, depth=0):
        if depth < 3 and self.rng.random() < 0.3:
            self.word("[")
            self.type(depth + 1)
            self.word("]")
        else:
            self.name()
        self.maybe(lambda: self.word("!"))

    def definition(self):
        self.word("$")
        self.name()
        self.word(":")
        self.type()
        if self.rng.random() < 0.4:
            self.word("=")
            self.value(True)
        self.directives(True)

    def definitions(self):
        self.word("(")
        self.some(self.definition)
        self.word(")")

    def field(self, depth):
        if self.rng.random() < 0.3:
            self.name()
            self.word(":")
        self.name()
        self.maybe(lambda: self.arguments(False))
        self.directives(False)
        if depth < 4:
            self.maybe(lambda: self.selections(depth + 1))

    def selection(self, depth):
        if self.rng.random() < 0.75:
            self.field(depth)
            return
        self.word("...")
        if self.rng.random() < 0.5:
            self.word(self.rng.choice([n for n in NAMES if n != "on"]))
            self.directives(False)
            return
        self.maybe(lambda: (self.word("on"), self.name()), 0.6)
        self.directives(False)
        self.selections(min(depth + 1, 5))

    def selections(self, depth=0):
        self.word("{")
        self.some(lambda: self.selection(depth), 3 if depth < 4 else 1)
        self.word("}")

    def operation(self):
        if self.rng.random() < 0.8:
            self.word(self.rng.choice(["query", "mutation", "subscription"]))
            self.maybe(self.name, 0.5)
            self.maybe(self.definitions)
            self.directives(False)
        self.selections()

    def fragment(self):
        self.word("fragment")
        self.word(self.rng.choice([n for n in NAMES if n != "on"]))
        self.word("on")
        self.name()
        self.directives(False)
        self.selections()

    def document(self):
        self.some(lambda: self.operation() if self.rng.random() < 0.75 else self.fragment())
        return "".join(self.out)


def mutate(rng, text):
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(text))
        to = min(len(text), at + rng.randint(0, 5))
        text = text[:at] + rng.choice([lambda: "", lambda: rng.choice(PIECES),
                                       lambda: text[at:to] * 2])() + text[to:]
    return text


def dumps(argv, frames):
    """One line for each document, or None if the program failed."""
    run = subprocess.run(argv, input=frames, stdout=subprocess.PIPE, timeout=120, check=False)
    return run.stdout.decode().split("\n")[:-1] if run.returncode == 0 else []


def main():
    if not os.path.exists(MODULE):
        print("TAP version 13\n1..0 # SKIP node-graphql is not installed")
        return 0
    rng = random.Random(sys.argv[2] if len(sys.argv) > 2 else "cloche")
    valid = [Maker(rng).document() for _ in range(VALID)]
    texts = valid + [mutate(rng, rng.choice(valid)) for _ in range(MUTATED)]
    frames = b"".join(b"%d\n%s" % (len(t.encode()), t.encode()) for t in texts)
    ours = dumps([sys.argv[1]], frames)
    theirs = dumps(["node", os.path.join(HERE, "graphql-dump.js")], frames)
    wrong = [(t, a, b) for t, a, b in zip(texts, ours, theirs) if a != b]
    for text, a, b in wrong[:5]:
        print("# %r\n#   ours   %s\n#   theirs %s" % (text, a[:2000], b[:2000]))
    taken = sum(t != "-" for t in theirs)
    checks = [("both answer for each document", len(ours) == len(theirs) == len(texts)),
              ("what is generated is valid", all(t != "-" for t in theirs[:VALID])),
              ("mutations leave some valid and break some", VALID + 100 < taken < len(texts) - 100),
              ("both read the same (%d taken, %d refused)" % (taken, len(texts) - taken), not wrong)]
    print("TAP version 13\n1..%d" % len(checks))
    for i, (name, ok) in enumerate(checks, 1):
        print("%sok %d - %s" % ("" if ok else "not ", i, name))
    return 0 if all(ok for _, ok in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
