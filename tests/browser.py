"""A headless Chromium, driven over a pipe by the DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from select import select

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ),
)
MISSING = "no Chromium that can be driven was found"
"""Why tests in a browser are skipped."""

PATIENCE = 60
"""Seconds after which a browser that does not answer is given up."""


def found():
    """Return the path of a Chromium, or None; ``MUHAT_CHROMIUM`` names another."""
    if sys.platform == "win32":  # handles are not inherited there as files are
        return None
    named = os.environ.get("MUHAT_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


WITH_PIPES = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for pipe, place in zip(pipes, (3, 4)):
    os.dup2(pipe, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser hears on file 3 and answers on file 4."""


class Browser:
    """One tab of a browser that has no network."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="muhat-browser-")
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        command = [sys.executable, "-c", WITH_PIPES, str(theirs), str(answers), path]
        arguments = [*command, *FLAGS, f"--user-data-dir={self.profile}", "--remote-debugging-pipe"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(
            arguments, pass_fds=(theirs, answers), start_new_session=True, **quiet
        )
        os.close(theirs)
        os.close(answers)
        self.events, self._rest, self._number, self.session = deque(), b"", 0, None
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        offline = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.call("Network.emulateNetworkConditions", offline=True, **offline)

    def close(self):
        """End it, and remove its profile."""
        for pipe in (self._out, self._in):
            os.close(pipe)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result; other messages go to ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self._number:
                assert "error" not in heard, (method, heard["error"])
                return heard["result"]
            self.events.append(heard)

    def wait(self, method):
        """Wait for an event and forget those before it."""
        while True:
            heard = self.events.popleft() if self.events else self._hear()
            if heard.get("method") == method:
                return heard["params"]
            if heard.get("method") in PROBLEMS:
                self.problems.append(heard["params"])

    def _hear(self):
        while b"\0" not in self._rest:
            ready, _, _ = select([self._in], [], [], PATIENCE)
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1280, height=900):
        """Open a file, and forget the problems of others."""
        self.problems = []
        self.events.clear()
        self.resize(width, height)
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait("Page.loadEventFired")

    def resize(self, width, height=900):
        """Set the size of the window, in CSS pixels; up to 600 of them, as a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width <= 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def media(self, scheme="light", kind="screen"):
        """Prefer light or dark, on the screen or in print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def js(self, expression):
        """Return the value of an expression in the page; a promise is waited for."""
        options = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code=0):
        """Press a key, as a person does."""
        for kind in ("rawKeyDown", "char" if key == " " else "", "keyUp"):
            if kind:
                text = {"text": " "} if kind == "char" else {}
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=code,
                    **text,
                )

    def point(self, x, y, kind="mouseMoved"):
        """Move the pointer to a place of the window."""
        button = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click(self, selector):
        """Click the middle of an element, as a person does."""
        find = f"document.querySelector({json.dumps(selector)})"
        box = (
            "(() => "
            f"{{ const e = {find}; e.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
        )
        x, y = self.js(
            box
            + "const b = e.getBoundingClientRect(); "
            + "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.point(x, y, kind)

    def complaints(self):
        """Return the errors and warnings that the page gave since it was opened."""
        self.js("0")
        self.problems += [
            heard["params"] for heard in self.events if heard.get("method") in PROBLEMS
        ]
        self.events.clear()
        return [each for each in self.problems if each.get("type", "error") in ("error", "warning")]

    def requests(self):
        """Return the addresses that the page has loaded anything from, itself apart."""
        return self.js("performance.getEntriesByType('resource').map(each => each.name)")

    def misfits(self):
        """Return what is wider than the window or its box, and labels that cover each other."""
        wider = self.js("document.documentElement.scrollWidth > innerWidth")
        return ["the page"] * wider + self.js(OVERFLOWING) + self.js(COVERING)

    def screenshot(self, path, whole=True):
        """Write a picture of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        """Print it to a file."""
        self.call("Emulation.setEmulatedMedia", media="")
        made = self.call(
            "Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69
        )
        Path(path).write_bytes(base64.b64decode(made["data"]))


OVERFLOWING = """[...document.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    const may = e.closest(".scroll, pre, .skip, .hidden, svg");
    return box.width && box.right > innerWidth + 1 && !may;
}).map((e) => e.outerHTML.slice(0, 120))"""

COVERING = """[...document.querySelectorAll("figure.plot")].flatMap((figure) => {
    const ticks = [...figure.querySelectorAll(".tick.x")];
    const boxes = ticks.map((e) => e.getBoundingClientRect()).filter((b) => b.width);
    const covering = boxes.slice(1).filter((box, place) => box.left < boxes[place].right);
    return covering.map(() => figure.innerText);
})"""

PROBLEMS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
"""What a page gives if something in it fails."""
