"""A web face that is served in a thread of the test, on a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import uvicorn

from crawler.cli.web_commands import tools
from crawler.config.load import load
from reporter.web.call_limits import A_MINUTE, CallLimits
from reporter.web.face import Binding, Face
from reporter.web.routing import Bucket, Role
from reporter.web.web_app import make_app
from reporter.web.wire_protocol import WireProtocol
from tests.reporter.terrain import rich_map

PASSWORD = "a long enough password"
CONFIG = """\
[output]
database-path = "sumi-ripple.db"
workspace-path = "workspace"

[[quality]]
domain = "q.test"
seeds = ["https://q.test/"]
"""


class NoLimits(CallLimits):
    """Passes every call."""

    def _hit(self, limit: int, bucket: str, who: str) -> int | None:
        return None


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, settings: uvicorn.Config) -> None:
        super().__init__(settings)
        self.is_ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.is_ready.set()


class Served:
    """A running face, and calls to it."""

    def __init__(self, face: Face) -> None:
        self.face = face
        self.base = f"http://127.0.0.1:{face.binding.port}"

    def call(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        cookie: str | None = None,
        token: str | None = None,
        json: Any = None,
        data: bytes | None = None,
        stream: bool = False,
    ) -> requests.Response:
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if cookie:
            sent["Cookie"] = f"{self.face.binding.cookie}={cookie}"
        return requests.request(
            method,
            self.base + path,
            headers=sent,
            json=json,
            data=data,
            allow_redirects=False,
            stream=stream,
            timeout=30,
        )

    def get(self, path: str, **more: Any) -> requests.Response:
        return self.call("GET", path, **more)

    def post(self, path: str, **more: Any) -> requests.Response:
        return self.call("POST", path, **more)

    def token(self, role: Role) -> str | None:
        """A bearer token of an account with this role; None for nobody."""
        if role is Role.ANONYMOUS:
            return None
        name = f"one-{role.word}"
        if self.face.accounts.find(name) is None:
            self.face.accounts.add(name, role, PASSWORD)
        return self.face.accounts.add_token(name, "test")

    def entered(self) -> str:
        """The owner's session, by a single-use link."""
        answer = self.get(f"/enter?token={self.face.accounts.add_link()}")
        return answer.cookies[self.face.binding.cookie]


@contextmanager
def served(folder: Path, *, config: str = CONFIG, limited: bool = False) -> Iterator[Served]:
    """A face on the config in this folder; the map is there already, or not."""
    path = folder / "my.toml"
    if not path.exists():
        path.write_text(config)
    settings = uvicorn.Config(
        _nothing,
        port=0,
        http=WireProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        timeout_graceful_shutdown=1,
    )
    sock = settings.bind_socket()
    port = int(sock.getsockname()[1])
    hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
    face = Face(load(path), Binding(port, hosts), "1.0.0", tools())
    if not limited:
        face.limits = NoLimits()
    settings.app = make_app(face)
    server = _Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    assert server.is_ready.wait(30)
    try:
        yield Served(face)
    finally:
        server.should_exit = True
        thread.join(20)
        sock.close()


async def _nothing(scope: object, receive: object, send: object) -> None:
    raise RuntimeError


def make_rich_folder(folder: Path) -> Path:
    """A folder with a config and the map that most of the reporter's tests read."""
    (folder / "my.toml").write_text(CONFIG)
    rich_map(folder / "sumi-ripple.db")
    return folder


__all__ = ["A_MINUTE", "CONFIG", "PASSWORD", "Bucket", "Served", "make_rich_folder", "served"]
