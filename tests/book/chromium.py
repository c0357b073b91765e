"""A small driver of headless Chromium, for the tests of the book's widgets.

It speaks the DevTools protocol over two pipes (``--remote-debugging-pipe``: JSON messages that end in a zero byte), so
nothing is downloaded, no port is opened and no other package is needed. Where no Chromium is found the tests that ask
for one are skipped and say so.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE_S = 30.0
"""How long one answer of the browser may take on a busy machine."""

# Chromium reads file descriptor 3 and writes 4. The two ends may bear these numbers themselves, so they are moved away
# (to ten and above) before they are moved there.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number, inheritable=True)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


def found() -> str | None:
    """Return the Chromium of this machine, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running Chromium; use `running`."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        launch = [sys.executable, "-S", "-c", _LAUNCH, str(to_browser), str(from_browser), program, *FLAGS]
        self._process = subprocess.Popen(
            [*launch, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._unread = b""
        self._last = 0
        self._pages: dict[str, Page] = {}

    def open(
        self, file: Path, *, width: int = 1000, height: int = 900, reduced_motion: bool = False, dark: bool = False
    ) -> Page:
        """Open a local file in a tab of its own and wait until it has loaded."""
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.ask(f"{domain}.enable")
        page.resize(width, height)
        features = [
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"},
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        ]
        page.ask("Emulation.setEmulatedMedia", {"features": features})
        page.ask("Page.navigate", {"url": file.resolve().as_uri()})
        self.read_until(lambda: page.loaded)
        return page

    def ask(self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        """Send one command and return its result.

        Raises
        ------
        RuntimeError
            The browser refuses the command.
        """
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self.read_until(lambda: bool(answers), answers, wanted=self._last)
        if "error" in answers[0]:
            raise RuntimeError(f"{method}: {answers[0]['error']['message']}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def read_until(
        self, done: Callable[[], bool], answers: list[dict[str, Any]] | None = None, wanted: int | None = None
    ) -> None:
        """Take in what the browser says until a condition holds.

        Raises
        ------
        TimeoutError
            It did not come to hold, or the browser has gone.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._read, 1 << 16) if ready else b""
            if not piece:
                raise TimeoutError("Chromium does not answer")
            *whole, self._unread = (self._unread + piece).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if answers is not None and message.get("id") == wanted:
                    answers.append(message)
                elif (page := self._pages.get(message.get("sessionId"))) is not None and "method" in message:
                    page.hear(message["method"], message["params"])

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)  # it ends when its pipe does
        os.close(self._read)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Page:
    """One tab, with what it asked for and what went wrong in it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.loaded = False
        self.requests: list[str] = []
        """Addresses of everything that the page asked for."""
        self.errors: list[str] = []
        """What went to the console as an error or a warning, and exceptions that nobody caught."""

    def hear(self, method: str, found: dict[str, Any]) -> None:
        """Take in one event."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = found["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(each.get("value", each)) for each in found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.errors.append(found["entry"]["text"])

    def ask(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one command to this tab."""
        return self._browser.ask(method, parameters, self._session)

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression comes to; a promise is awaited.

        Raises
        ------
        RuntimeError
            The expression throws.
        """
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def when(self, expression: str) -> None:
        """Wait until an expression is true, looked at with each picture that the page draws."""
        self.value(
            f"new Promise((done) => {{ const look = () => ({expression}) ? done() : setTimeout(look, 10); look(); }})"
        )

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
            self.ask("Input.dispatchMouseEvent", {"type": kind, **where})

    def press(self, key: str) -> None:
        """Press one key on what has the focus, by its name (``ArrowRight``) or its letter."""
        text = {"Space": " ", "Enter": "\r"}.get(key, key if len(key) == 1 else "")
        name = " " if key == "Space" else key
        code = KEY_CODES.get(key, ord(key.upper()[0]) if len(key) == 1 else 0)
        known = {"key": name, "code": key, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown" if text else "rawKeyDown", "text": text, **known}
        self.ask("Input.dispatchKeyEvent", down)
        self.ask("Input.dispatchKeyEvent", {"type": "keyUp", **known})

    def choose(self, selector: str, value: str) -> None:
        """Set a control to a value, as a hand does: the page hears of it."""
        self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            " for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true})); })()"
        )

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Give the tab the size of a screen; a window has a least width, this has none."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", size)

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Write what the tab shows to a PNG file; `whole`: the page to its end."""
        shot = self.ask("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Close the tab."""
        self._browser.ask("Target.closeTarget", {"targetId": self._target})


KEY_CODES = {
    "Space": 32, "Enter": 13, "Tab": 9, "Home": 36, "End": 35,
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip


@contextmanager
def running() -> Iterator[Browser]:
    """Run a Chromium with a fresh profile.

    Raises
    ------
    RuntimeError
        There is none on this machine.
    """
    program = found()
    if program is None:
        raise RuntimeError(f"no Chromium here: none of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory(prefix="speclab-chromium-", ignore_cleanup_errors=True) as profile:
        browser = Browser(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
