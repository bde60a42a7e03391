# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that is driven by the DevTools protocol over a pipe."""
import base64
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

from testlib import Failure, clean_env, expect


class Browser:
    """One page. What it asks the network for, says on its console and is refused by a policy is kept."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="cloche-test-")
        to_us, from_us = os.pipe(), os.pipe()
        os.set_inheritable(from_us[0], True)
        os.set_inheritable(to_us[1], True)
        # The protocol's descriptors are 3 and 4.
        script = 'exec chromium "$@" 3<&%d 4>&%d' % (from_us[0], to_us[1])
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"],
            env=clean_env(HOME=self.profile), pass_fds=(from_us[0], to_us[1]), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(from_us[0])
        os.close(to_us[1])
        self.read_fd, self.write_fd, self.number, self.rest = to_us[0], from_us[1], 0, b""
        self.session, self.events = None, []
        self.attach([t["targetId"] for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"][0])

    def attach(self, target):
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.target, self.events = target, []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def fresh(self):
        """The same browser, which takes a second to start, with a new page in place of the last one."""
        self.session, last = None, self.target
        self.attach(self.call("Target.createTarget", url="about:blank")["targetId"])
        page, self.session = self.session, None
        self.call("Target.closeTarget", targetId=last)
        self.session = page
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (Failure, OSError):
            self.process.kill()
        self.process.wait(30)
        os.close(self.read_fd)
        os.close(self.write_fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready = select.select([self.read_fd], [], [], max(0, end - time.monotonic()))[0]
            expect(ready, "the browser says nothing")
            piece = os.read(self.read_fd, 1 << 20)
            expect(piece, "the browser has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        wanted = self.number
        message = {"id": wanted, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        while True:
            answer = self.message(120)
            if answer.get("id") == wanted:
                expect("error" not in answer, method, answer)
                return answer["result"]
            self.keep(answer)

    def keep(self, event):
        """If it is of the page that there is now."""
        if self.session and event.get("sessionId") == self.session:
            self.events.append(event)

    def of(self, method):
        return [e["params"] for e in self.events if e.get("method") == method]

    def load(self, url):
        self.events = []
        self.call("Page.navigate", url=url)
        while not self.of("Page.loadEventFired"):
            self.keep(self.message(120))

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        expect("exceptionDetails" not in answer, expression, answer)
        return answer["result"].get("value")

    def type_text(self, text):
        self.call("Input.insertText", text=text)

    def photo(self):
        """(width, height, rows of bytes) of what is to be seen, and the file."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return png_rows(data) + (data,)


def png_rows(data):
    """(width, height, lines as they are filtered) of a PNG of 8 bits a sample."""
    expect(data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG", data[:20])
    at, packed, width, height = 8, b"", 0, 0
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + n]
        at += 12 + n
    plain = zlib.decompress(packed)
    length = len(plain) // height
    return width, height, [plain[i * length:(i + 1) * length] for i in range(height)]
