"""Serves a layout over HTTPS on loopback: nginx where it is installed, otherwise the project's own server.

Both keep a log of requests. From it comes when a crawl sent its first request, when every host had been asked, and
which pages were fetched, independently of what the crawl says of itself.
"""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from benchmarks.measure import children, cpu_seconds
from benchmarks.sites import SUFFIX, Host, Layout
from crawler.demo.server import Served, serve_terrain
from crawler.demo.sites import Answer, Certificate, Terrain, response

ROBOTS = "User-agent: *\nDisallow: /private/\n"
_FLUSH = 1.0  # s after which nginx writes its log at the latest
_READY = 10.0  # s that nginx may take until it listens


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that was answered: when it began and ended, on the wall clock, in seconds."""

    began: float
    ended: float
    host: str
    method: str
    status: int
    path: str


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running server. `name` is nginx or own."""

    name: str
    pid: int
    port: int
    ca_path: Path
    read_log: Callable[[], list[Seen]]

    def cpu(self) -> float:
        """CPU seconds of the server's processes so far."""
        return sum(map(cpu_seconds, children(self.pid)))

    def seen(self, since: float) -> list[Seen]:
        """Requests that began after a moment, robots.txt included, oldest first."""
        return sorted((each for each in self.read_log() if each.began >= since), key=lambda each: each.began)


@contextmanager
def serve_layout(layout: Layout, folder: Path, *, nginx: str | None = None) -> Iterator[WebServer]:
    """Serve the folders of a layout while the block runs; `nginx` is the program, or None for the own server."""
    if nginx is None:
        with serve(FolderTerrain({host.name: host.root for host in layout.hosts}), folder) as server:
            yield server
    else:
        with _nginx(nginx, layout, folder) as server:
            yield server


@contextmanager
def serve(terrain: Terrain, folder: Path) -> Iterator[WebServer]:
    """Serve any terrain with the project's own server."""
    with serve_terrain(terrain, folder, log=True) as served:
        yield WebServer("own", served.pid, served.port, served.ca_path, lambda: _own_log(served))


def find_nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def _own_log(served: Served) -> list[Seen]:
    """The own server logs when it has read a request, and no status: what it was asked for is taken as given."""
    ahead = time.time() - time.monotonic()
    return [
        Seen(at, at, each.host, each.method, 200, _path(each.target))
        for each in served.requests()
        for at in (each.at_ns / 1e9 + ahead,)
    ]


def _path(target: str) -> str:
    return unquote(target).lstrip("/")


# -- nginx -------------------------------------------------------------------------------------------------


@contextmanager
def _nginx(program: str, layout: Layout, folder: Path) -> Iterator[WebServer]:
    import trustme

    folder.mkdir(parents=True, exist_ok=True)
    ca = trustme.CA(organization_name="Sumi-Ripple benchmark")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    leaf = ca.issue_cert(f"*{SUFFIX}")
    leaf.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    process, port = _start(program, layout, folder)
    log = folder / "access.log"
    try:
        yield WebServer("nginx", process.pid, port, folder / "ca.pem", lambda: _nginx_log(log))
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start(program: str, layout: Layout, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """nginx cannot choose a port by itself; one that was free a moment ago may be taken, so try a few."""
    error = b""
    for _ in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = folder / "nginx.conf"
        path.write_text(nginx_config(layout.hosts, folder, port, getpass.getuser()))
        with (folder / "nginx.err").open("wb") as errors:
            command = [program, "-p", str(folder), "-c", str(path), "-e", str(folder / "error.log")]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        if _answers(process, port):
            return process, port
        process.kill()
        process.wait()
        error = (folder / "nginx.err").read_bytes()
    raise RuntimeError(f"nginx did not start: {error.decode(errors='replace')[-1000:]}")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _READY
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return process.poll() is None
    return False


def nginx_config(hosts: tuple[Host, ...], folder: Path, port: int, user: str) -> str:
    """One worker in the foreground, everything it writes in `folder`, a server block for each folder served."""
    by_root: dict[Path, list[str]] = {}
    for host in hosts:
        by_root.setdefault(host.root, []).append(host.name)
    robots = ROBOTS.replace("\n", "\\n")
    blocks = "".join(
        f"""
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name {" ".join(names)};
    root "{root}";
    location = /robots.txt {{ default_type text/plain; return 200 "{robots}"; }}
  }}"""
        for root, names in by_root.items()
    )
    temporary = "\n".join(
        f'  {kind}_temp_path "{folder}/{kind}";' for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""daemon off;
worker_processes 1;
user {user};
pid "{folder}/nginx.pid";
events {{ worker_connections 8192; }}
worker_rlimit_nofile 16384;
http {{
{temporary}
  log_format seen '$msec $request_time $host $request_method $status $request_uri';
  access_log "{folder}/access.log" seen buffer=128k flush={_FLUSH:.0f}s;
  types {{ text/html html htm; text/css css; text/javascript js; image/png png; image/svg+xml svg; }}
  default_type application/octet-stream;
  charset utf-8;
  keepalive_timeout 300s;
  keepalive_requests 100000;
  server_names_hash_max_size 8192;
  ssl_certificate "{folder}/server.pem";
  ssl_certificate_key "{folder}/server.pem";
  sendfile on;
  tcp_nopush on;{blocks}
}}
"""


def _nginx_log(path: Path) -> list[Seen]:
    time.sleep(1.5 * _FLUSH)  # until nginx has written what it has buffered
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    return [read_line(line) for line in lines]


def read_line(line: str) -> Seen:
    """One line of nginx's log. The request's end is logged; its beginning follows from how long it took."""
    ended, took, host, method, status, target = line.split(" ", 5)
    return Seen(float(ended) - float(took), float(ended), host, method, int(status), _path(target))


# -- folders on the project's own server ---------------------------------------------------------------------


class FolderTerrain:
    """Folders as a terrain for the project's server. A file is read when it is first asked for, and kept."""

    certificates = (Certificate((f"*{SUFFIX}",)),)

    def __init__(self, roots: dict[str, Path]) -> None:
        self._roots = roots
        self._bodies: dict[tuple[Path, str], bytes | None] = {}

    def answer(self, host: str, method: str, target: str) -> Answer:
        get = method != "HEAD"
        if target == "/robots.txt":
            return Answer(response(200, ROBOTS.encode(), "text/plain", with_body=get))
        root = self._roots.get(host)
        body = None if root is None else self._body(root, _path(target.partition("?")[0]))
        if body is None:
            return Answer(response(404, b"<!DOCTYPE html><title>Not found</title>", with_body=get))
        return Answer(response(200, body, with_body=get))

    def _body(self, root: Path, path: str) -> bytes | None:
        where = root, path
        if where not in self._bodies:
            file = (root / path).resolve()
            is_page = file.suffix == ".html" and file.is_relative_to(root) and file.is_file()
            self._bodies[where] = file.read_bytes() if is_page else None
        return self._bodies[where]
