"""The web face in a real browser (Playwright on Chromium), on the demo: a server and crawls as people start them.

Every page that is opened here is watched: a console message, an error, or a request to anything but the server fails
the test.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.places import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-first-run", "--disable-quic", "--disable-dev-shm-usage", "--hide-scrollbars"),
)
PATIENCE = 60_000  # milliseconds


def missing() -> str | None:
    """What is missing here to try the face in a browser; None: nothing."""
    if CHROMIUM is None:
        return "no chromium here"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return None


@contextmanager
def browser() -> Iterator[Any]:
    """One Chromium with a profile of its own."""
    from playwright.sync_api import sync_playwright

    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            yield opened
        finally:
            opened.close()


class Demo:
    """The demo in a folder: crawled as often as wanted, and served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "demo"
        self.config = self.workspace / "demo.toml"

    def crawl(self) -> subprocess.Popen[str]:
        """Start a run. With a delay that leaves time to watch it."""
        command = [sys.executable, "-m", "crawler", "demo", "--workspace", str(self.folder), "--workers", "2", "-q"]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def crawled(self) -> None:
        run = self.crawl()
        words, _ = run.communicate(timeout=120)
        assert run.returncode == 0, words

    @contextmanager
    def served(self) -> Iterator[str]:
        """The single-use link of a server."""
        command = [sys.executable, "-m", "crawler", "serve", str(self.config), "--port", "0"]
        server = subprocess.Popen(
            [*command, "--workspace", str(self.workspace)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield _link_of(server)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def _link_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(r"http://\S+/enter\?token=\S+", line):
            threading.Thread(target=server.stdout.read, daemon=True).start()  # a full pipe would hold the server up
            return found[0]
    raise AssertionError("".join(said))


class Watched:
    """A page under watch."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.base}/", "data:", "blob:")):
            self.foreign.append(url)

    def open(self, path: str) -> Page:
        """Open a page of the face and wait until it is filled."""
        self.page.goto(self.base + path)
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def until(self, condition: str) -> None:
        """Wait for an expression to be true. (Playwright waits by an eval in the page, which its policy forbids.)"""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            self.page.wait_for_timeout(50)

    def violations(self) -> list[str]:
        """What axe-core finds on the page as it is now. Evaluated, not injected: the page's policy allows no script."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        return [
            f"{rule['id']}: {rule['help']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def close(self) -> None:
        self.page.close()


def base_of(link: str) -> str:
    return link.partition("/enter")[0]
