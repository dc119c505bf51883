"""A receiver of hooks on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

Got = list[tuple[dict[str, str], bytes]]


class _Receiver(BaseHTTPRequestHandler):
    got: Got

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((dict(self.headers.items()), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[tuple[int, Got]]:
    """Its port, and the headers and body of every message that it gets."""
    got: Got = []
    server = HTTPServer(("127.0.0.1", 0), type("Receiver", (_Receiver,), {"got": got}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, got
    finally:
        server.shutdown()
        server.server_close()
