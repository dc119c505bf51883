"""Serves a terrain over HTTPS on loopback: one process, one thread, one port for every name.

`serve_terrain` starts it as a process of its own and stops it again; `python -m crawler.demo.server` does the
same by hand. Names are distinguished by SNI (the certificate) and by the Host header (the site). The
certificates come from a CA that lives as long as the server does.

It is also the server of the benchmarks, so it is made to cost little: one epoll loop over non-blocking TLS
sockets, responses that are bytes already, and no more HTTP than GET and HEAD with keep-alive.
"""

from __future__ import annotations

import argparse
import errno
import heapq
import os
import pickle
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from crawler.demo.sites import Certificate, Terrain, response

_HOST = re.compile(rb"\r\n[Hh][Oo][Ss][Tt]:[ \t]*([^\r\n]*)")
_CONDITION = re.compile(rb"\r\n[Ii]f-[Nn]one-[Mm]atch:[ \t]*([^\r\n]*)")
_CLOSE = re.compile(rb"\r\n[Cc]onnection:[ \t]*close")
_MOST_HEAD = 64 * 1024  # bytes of a request head; no honest client sends more
_LISTENER = -1  # the listening socket among the connections' numbers


@dataclass(frozen=True, slots=True)
class Served:
    """A running server. `port` answers for every name; nothing listens on `closed_port` while it runs."""

    pid: int
    port: int
    closed_port: int
    ca_path: Path
    log_path: Path | None
    address: str = "127.0.0.1"

    def requests(self) -> list[Seen]:
        """Every request so far, oldest first (needs `log=True`)."""
        if self.log_path is None or not self.log_path.exists():
            return []
        lines = self.log_path.read_text("latin-1").splitlines()
        words = (line.split(" ", 4) for line in lines)
        return [Seen(int(at), host, method, target, int(status)) for at, host, method, status, target in words]


@dataclass(frozen=True, slots=True)
class Seen:
    """One line of the request log: when the request was read, on the machine's monotonic clock."""

    at_ns: int
    host: str
    method: str
    target: str
    status: int = 0  # of the answer


@contextmanager
def serve_terrain(
    terrain: Terrain, folder: Path, *, log: bool = False, address: str = "127.0.0.1", prefix: Sequence[str] = ()
) -> Iterator[Served]:
    """Serve `terrain` in a process of its own while the block runs.

    `prefix`: the words of a command that runs it elsewhere, as in a network namespace, where it has this `address`.

    `folder` gets the CA and, with `log`, the request log. The server is ready when the block begins, and ends
    with it, or with this process, however that one ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    terrain_path = folder / "terrain.pickle"
    terrain_path.write_bytes(pickle.dumps(terrain))
    command = [
        *prefix,
        sys.executable,
        "-m",
        "crawler.demo.server",
        str(terrain_path),
        "--folder",
        str(folder),
        "--until-stdin-closes",
        "--address",
        address,
    ]
    process = subprocess.Popen(
        command + (["--log"] if log else []),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()  # it prints its address once it listens
        if not line:
            raise RuntimeError(f"the demo server did not start (exit code {process.wait()})")
        yield _served(orjson.loads(line))
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _served(facts: dict[str, Any]) -> Served:
    log_path = facts["log_path"]
    return Served(
        facts["pid"],
        facts["port"],
        facts["closed_port"],
        Path(facts["ca_path"]),
        Path(log_path) if log_path else None,
        facts["address"],
    )


# -- certificates -----------------------------------------------------------------------------------------


class Certificates:
    """A throw-away CA and a TLS context for each certificate of the terrain, picked by the name asked for."""

    def __init__(self, certificates: tuple[Certificate, ...]) -> None:
        import trustme  # half a second of imports that only a server needs

        self.ca = trustme.CA(organization_name="Sumi-Ripple demo")
        strangers = trustme.CA(organization_name="Nobody you trust")
        self._contexts: dict[str, ssl.SSLContext] = {}
        self.default = _context(self.ca.issue_cert("nobody.test"))
        self.default.sni_callback = self._choose
        for certificate in certificates:
            names = certificate.names
            if certificate.fault == "self-signed":
                leaf = strangers.issue_cert(*names)
            elif certificate.fault == "wrong-name":
                leaf = self.ca.issue_cert("somebody-else.test")
            elif certificate.fault == "expired":
                leaf = self.ca.issue_cert(*names, not_before=_YESTERYEAR, not_after=_YESTERYEAR + timedelta(days=90))
            else:
                leaf = self.ca.issue_cert(*names)
            context = _context(leaf)
            for name in names:
                self._contexts[name] = context

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        if name is not None:
            chosen = self._contexts.get(name) or self._contexts.get("*." + name.partition(".")[2])
            if chosen is not None:
                connection.context = chosen


_YESTERYEAR = datetime(2020, 1, 1, tzinfo=UTC)


def _context(leaf: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 1  # enough to resume a session with; each is one more record to send
    leaf.configure_cert(context)
    return context


# -- the loop ---------------------------------------------------------------------------------------------


class Connection:
    """One client. Bytes come in until a request is whole; its answer goes out before the next is read."""

    __slots__ = ("closing", "handshaken", "incoming", "interest", "number", "outgoing", "socket")

    def __init__(self, connected: ssl.SSLSocket, number: int) -> None:
        self.socket = connected
        self.number = number
        self.handshaken = False
        self.incoming = b""
        self.outgoing: memoryview | None = None
        self.interest = select.EPOLLIN
        self.closing = False


class Server:
    """The event loop. Single-threaded: what a request changes (counts, the log) changes in order."""

    def __init__(
        self, terrain: Terrain, log: BinaryIO | None = None, *, port: int = 0, address: str = "127.0.0.1"
    ) -> None:
        self._terrain = terrain
        self.certificates = Certificates(terrain.certificates)
        self._log = log
        self._asked: dict[tuple[str, str], int] = {}
        self._connections: dict[int, Connection] = {}
        self._later: list[tuple[float, int, Connection, bytes]] = []
        self._ticket = 0
        self._listener = socket.create_server((address, port), backlog=1024)
        self._listener.setblocking(False)
        # Bound and never listened on: connections are refused, and no other process can use the port meanwhile.
        self._closed = socket.socket()
        self._closed.bind((address, 0))
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._stop_on: int | None = None
        self.is_stopping = False

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def closed_port(self) -> int:
        return int(self._closed.getsockname()[1])

    def stop_when_readable(self, descriptor: int) -> None:
        """End the loop when this descriptor closes (or says anything)."""
        self._stop_on = descriptor
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLHUP)

    def run(self) -> None:
        listener = self._listener.fileno()
        connections = self._connections
        while not self.is_stopping:
            for number, _ in self._epoll.poll(self._time_to_next()):
                connection = connections.get(number)
                if connection is not None:
                    self._serve(connection)
                elif number == listener:
                    self._accept()
                elif number == self._stop_on:
                    return
            if self._later:
                self._send_what_is_due()

    def _time_to_next(self) -> float:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else -1.0

    def _accept(self) -> None:
        for _ in range(64):
            try:
                raw, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE):
                    self._drop_idle()
                return
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secured = self.certificates.default.wrap_socket(
                raw, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
            )
            connection = Connection(secured, secured.fileno())
            self._connections[connection.number] = connection
            self._epoll.register(connection.number, select.EPOLLIN)

    def _drop_idle(self) -> None:
        """Out of descriptors: close the oldest idle connection."""
        for connection in self._connections.values():
            if connection.outgoing is None:
                self._drop(connection)
                return

    def _serve(self, connection: Connection) -> None:
        try:
            if not connection.handshaken:
                connection.socket.do_handshake()
                connection.handshaken = True
            if connection.outgoing is not None and not self._flush(connection):
                return
            received = connection.socket.recv(65536)
            if not received:
                self._drop(connection)
                return
            connection.incoming += received
            self._answer_requests(connection)
        except ssl.SSLWantReadError:
            self._watch(connection, select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self._watch(connection, select.EPOLLOUT)
        except (OSError, ValueError):
            self._drop(connection)

    def _answer_requests(self, connection: Connection) -> None:
        """Answer every whole request that has come in, in order."""
        while connection.outgoing is None:
            end = connection.incoming.find(b"\r\n\r\n")
            if end < 0:
                if len(connection.incoming) > _MOST_HEAD:
                    self._drop(connection)
                return
            head, connection.incoming = connection.incoming[: end + 2], connection.incoming[end + 4 :]
            line_end = head.index(b"\r\n")
            words = head[:line_end].split(b" ")
            named = _HOST.search(head)
            if len(words) != 3 or named is None or words[0] not in (b"GET", b"HEAD"):
                connection.closing = True
                self._send(connection, response(400, b"cannot do that\n", "text/plain", (("Connection", "close"),)))
                return
            if words[2] != b"HTTP/1.1" or _CLOSE.search(head):
                connection.closing = True
            host = named[1].partition(b":")[0].decode("latin-1").lower()
            self._answer(connection, host, words[0].decode(), words[1].decode("latin-1"), head)

    def _answer(self, connection: Connection, host: str, method: str, target: str, head: bytes) -> None:
        came_at = time.monotonic_ns()
        answer = self._terrain.answer(host, method, target)
        data = answer.data
        if answer.first:
            asked = self._asked.get((host, target), 0)
            self._asked[host, target] = asked + 1
            if asked < len(answer.first):
                data = answer.first[asked]
        if answer.etag and data is answer.data and _names(head, answer.etag):
            data = response(304, b"", None, (("ETag", answer.etag),))
        if self._log is not None:
            words = (came_at, host.encode(), method.encode(), data[9:12], target.encode("latin-1"))
            self._log.write(b"%d %b %b %b %b\n" % words)
        if answer.delay:
            self._ticket += 1
            connection.outgoing = memoryview(b"")  # busy: the next request waits its turn
            heapq.heappush(self._later, (time.monotonic() + answer.delay, self._ticket, connection, data))
            self._watch(connection, 0)
        else:
            self._send(connection, data)

    def _send(self, connection: Connection, data: bytes) -> None:
        connection.outgoing = memoryview(data)
        self._flush(connection)

    def _flush(self, connection: Connection) -> bool:
        """Send what is waiting. True once nothing is."""
        waiting = connection.outgoing
        assert waiting is not None
        try:
            while waiting:
                waiting = waiting[connection.socket.send(waiting) :]
        except ssl.SSLWantWriteError:
            connection.outgoing = waiting
            self._watch(connection, select.EPOLLOUT)
            return False
        connection.outgoing = None
        if connection.closing:
            self._drop(connection)
            return False
        self._watch(connection, select.EPOLLIN)
        return True

    def _send_what_is_due(self) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, _, connection, data = heapq.heappop(self._later)
            if connection.number in self._connections and connection.socket.fileno() >= 0:
                try:
                    self._send(connection, data)
                    if connection.outgoing is None:
                        self._answer_requests(connection)
                except (OSError, ValueError):
                    self._drop(connection)

    def _watch(self, connection: Connection, interest: int) -> None:
        if connection.interest != interest:
            connection.interest = interest
            self._epoll.modify(connection.number, interest)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self._epoll.unregister(connection.number)
        connection.socket.close()


def _names(head: bytes, etag: str) -> bool:
    """Does the request ask for the page only if it has another ETag than this one?"""
    found = _CONDITION.search(head)
    return found is not None and found[1].decode("latin-1") == etag


# -- by hand ----------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m crawler.demo.server", description="Serve the demo terrain on loopback."
    )
    parser.add_argument("terrain", nargs="?", type=Path, help="a pickled terrain; without it, the demo terrain")
    parser.add_argument("--folder", type=Path, default=Path("demo-server"), help="where ca.pem and requests.log go")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--address", default="127.0.0.1", help="of this machine; tests have others in namespaces")
    parser.add_argument("--log", action="store_true", help="write a line for each request to requests.log")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end together with the process that started this"
    )
    options = parser.parse_args(arguments)
    terrain: Terrain
    if options.terrain is None:
        from crawler.demo.terrain import demo_terrain

        terrain = demo_terrain()
    else:
        terrain = pickle.loads(options.terrain.read_bytes())
    options.folder.mkdir(parents=True, exist_ok=True)
    ca_path = options.folder.resolve() / "ca.pem"
    log_path = options.folder.resolve() / "requests.log" if options.log else None
    log = open(log_path, "ab", buffering=0) if log_path else None  # noqa: PTH123
    server = Server(terrain, log, port=options.port, address=options.address)
    server.certificates.ca.cert_pem.write_to_path(ca_path)

    def stop(*_: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if options.until_stdin_closes:
        server.stop_when_readable(sys.stdin.fileno())
    facts = asdict(Served(os.getpid(), server.port, server.closed_port, ca_path, log_path, options.address))
    try:
        os.write(sys.stdout.fileno(), orjson.dumps(facts, default=str) + b"\n")
    except BrokenPipeError:  # whoever started this is gone
        return 0
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
