"""A headless Chromium, driven over the pipe of its DevTools protocol: no port, no driver, no other part.

It opens files only. Requests, console messages and errors of the page are noted, so that a test can say there are none.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import is_readable

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    *("--no-default-browser-check", "--disable-extensions", "--remote-debugging-pipe"),
)
# Chromium reads commands from descriptor 3 and answers on 4.
_START = (
    "import os, sys; pair = [os.dup(int(each)) for each in sys.argv[1:3]];"
    " os.dup2(pair[0], 3); os.dup2(pair[1], 4); os.set_inheritable(3, True); os.set_inheritable(4, True);"
    " os.execv(sys.argv[3], sys.argv[3:])"
)
_PATIENCE = 60  # seconds for one answer


class Browser:
    """One page of one browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []  # errors, and everything that was written to the console
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{part}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command; events that come before it are noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            chunk = os.read(self._from, 1 << 20) if is_readable(self._from, deadline - time.monotonic()) else b""
            assert chunk, "the browser is gone, or does not answer"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))

    def open(self, page: Path) -> None:
        """Open a file, and wait until it has been loaded and drawn."""
        self.call("Page.navigate", url=page.absolute().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
        self.wait_for_frame()

    def wait_for_frame(self) -> None:
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self.ask(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"

    def text(self, selector: str) -> str:
        return str(self.ask(f"document.querySelector({json.dumps(selector)}).innerText"))

    def click(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.wait_for_frame()

    def click_domain(self, name: str) -> None:
        """A real click on the place where a domain is drawn."""
        x, y = self.ask(
            "(() => { const data = JSON.parse(document.getElementById('data').textContent);"
            f" const at = sumiRippleMap.placeOf(data.nodes.name.indexOf({json.dumps(name)}));"
            " const box = document.getElementById('map').getBoundingClientRect();"
            " return [at.x + box.left, at.y + box.top]; })()"
        )
        self.click(x, y)

    def press(self, key: str, text: str = "") -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        for letter in text:
            self.press(letter, letter)
        self.wait_for_frame()

    def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )
        self.wait_for_frame()

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.wait_for_frame()

    def picture(self, path: Path) -> None:
        self.wait_for_frame()
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser of its own, with a new profile in this folder; it is ended by its process id."""
    assert CHROMIUM
    command_out, command_in = os.pipe()
    answer_out, answer_in = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _START,
            str(command_out),
            str(answer_in),
            CHROMIUM,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
        ],
        pass_fds=(command_out, answer_in),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(profile)},
    )
    os.close(command_out)
    os.close(answer_in)
    try:
        yield Browser(command_in, answer_out)
    finally:
        os.close(command_in)  # Chromium ends when its pipe does
        os.close(answer_out)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
