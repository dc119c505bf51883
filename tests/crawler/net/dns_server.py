"""A name server on loopback, over UDP and TCP, that answers from a table and misbehaves on demand."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from ipaddress import IPv4Address, ip_address
from types import TracebackType

A, AAAA = 1, 28
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 1, 2, 3, 5


class NameServer:
    """`table` maps the first label of a name to its addresses, or to one of the words in `_answer`."""

    def __init__(self, **table: list[str] | str) -> None:
        self.table = table
        self.asked: list[tuple[str, int, str]] = []  # (name, type, "udp" or "tcp")
        self.was_asked = threading.Semaphore(0)
        self._udp, self._tcp = _bind_both(self)

    @property
    def address(self) -> str:
        host, port = self._udp.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> NameServer:
        for server in (self._udp, self._tcp):
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for server in (self._udp, self._tcp):
            server.shutdown()
            server.server_close()

    def names(self) -> list[str]:
        return [name for name, kind, _ in self.asked if kind == A]

    def reply(self, query: bytes, protocol: str) -> bytes | None:
        name, kind, question = _parse(query)
        self.asked.append((name, kind, protocol))
        try:
            return self._answer(query[:2], question, kind, self.table.get(name.partition(".")[0], []), protocol)
        finally:
            self.was_asked.release()

    def _answer(self, number: bytes, question: bytes, kind: int, says: list[str] | str, protocol: str) -> bytes | None:
        if says == "silence" or (says == "silence on AAAA" and kind == AAAA):
            return None
        if says == "garbage":
            return number + b"\xff" * 40
        if says == "another number":
            return bytes([number[0] ^ 1, number[1]]) + _packet(number, question, kind, ["8.8.8.8"])[2:]
        if says == "server failure":
            return _packet(number, question, kind, [], SERVER_FAILURE)
        if says == "refused":
            return _packet(number, question, kind, [], REFUSED)
        if says == "no data":
            return _packet(number, question, kind, [])
        if says == "truncated" and protocol == "udp":
            return _packet(number, question, kind, [], is_truncated=True)
        if isinstance(says, str):
            return _packet(number, question, kind, ["8.8.4.4"])
        return _packet(number, question, kind, says, NO_ERROR if says else NO_SUCH_NAME)


def _parse(query: bytes) -> tuple[str, int, bytes]:
    labels, place = [], 12
    while length := query[place]:
        labels.append(query[place + 1 : place + 1 + length].decode("ascii"))
        place += length + 1
    (kind,) = struct.unpack_from(">H", query, place + 1)
    return ".".join(labels).lower(), kind, query[12 : place + 5]


def _packet(
    number: bytes, question: bytes, kind: int, ips: list[str], code: int = NO_ERROR, is_truncated: bool = False
) -> bytes:
    addresses = [ip_address(ip) for ip in ips]
    wanted = [address.packed for address in addresses if isinstance(address, IPv4Address) == (kind == A)]
    flags = 0x8180 | code | (0x0200 if is_truncated else 0)
    records = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 1, len(data)) + data for data in wanted)
    return number + struct.pack(">HHHHH", flags, 1, len(wanted), 0, 0) + question + records


class _Udp(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        query, sock = self.request
        reply = self.server.owner.reply(query, "udp")  # type: ignore[attr-defined]
        if reply is not None:
            sock.sendto(reply, self.client_address)


class _Tcp(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while len(size := self.rfile.read(2)) == 2:
            reply = self.server.owner.reply(self.rfile.read(int.from_bytes(size)), "tcp")  # type: ignore[attr-defined]
            if reply is not None:
                self.wfile.write(len(reply).to_bytes(2) + reply)


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def _bind_both(owner: NameServer) -> tuple[socketserver.UDPServer, socketserver.TCPServer]:
    """The same free port for both protocols."""
    for _ in range(50):
        udp = socketserver.ThreadingUDPServer(("127.0.0.1", 0), _Udp)
        udp.daemon_threads = True
        try:
            tcp = _TcpServer(("127.0.0.1", udp.server_address[1]), _Tcp)
        except OSError:
            udp.server_close()
            continue
        udp.owner = tcp.owner = owner  # type: ignore[attr-defined]
        return udp, tcp
    raise AssertionError("no port is free for UDP and TCP")


def closed_port() -> str:
    """An address at which nothing listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"
