"""A network that can fail: a door between the crawl and the server, which the harness closes and opens.

refused   nobody listens any more, and open connections are cut
silent    connections are accepted, and nothing comes back
"""

from __future__ import annotations

import random
import selectors
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

KINDS = ("refused", "silent", "no-names")


class FailingNetwork:
    """Forwards connections on `port` to the server's, but for the times of an outage. A thread of its own."""

    def __init__(self, server_port: int, no_names: Path) -> None:
        self.no_names = no_names  # a file that is there during an outage of that kind
        self._server = ("127.0.0.1", server_port)
        self._lock = threading.Lock()
        self._kind = ""
        self._pairs: dict[socket.socket, socket.socket] = {}  # both ways
        self._mute: list[socket.socket] = []  # accepted during a silent outage
        self._is_over = False
        self._selector = selectors.DefaultSelector()
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(512)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        return listener

    def fail(self, kind: str) -> None:
        """Begin an outage of this kind."""
        with self._lock:
            self._kind = kind
            if kind == "refused":
                self._selector.unregister(self._listener)
                self._listener.close()
                self._cut_all()
            elif kind == "no-names":
                self.no_names.touch()

    def mend(self) -> None:
        self.no_names.unlink(missing_ok=True)
        with self._lock:
            if self._kind == "refused":
                self._listener = self._listen(self.port)
            elif self._kind == "silent":
                self._cut_all()
            self._kind = ""

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        with self._lock:
            self._cut_all()
            self._listener.close()
            self._selector.close()

    def _cut_all(self) -> None:
        for sock in [*self._pairs, *self._mute]:
            self._cut(sock)
        self._mute.clear()

    def _cut(self, sock: socket.socket) -> None:
        other = self._pairs.pop(sock, None)
        for each in (sock, other):
            if each is not None:
                self._pairs.pop(each, None)
                with suppress(KeyError, ValueError):
                    self._selector.unregister(each)
                each.close()

    def _run(self) -> None:
        while not self._is_over:
            ready = self._selector.select(0.02)
            with self._lock:
                for key, _ in ready:
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if sock.fileno() < 0:
                        continue
                    if sock is self._listener:
                        self._accept()
                    elif self._kind != "silent":
                        self._forward(sock)
            if self._kind == "silent":
                time.sleep(0.02)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        if self._kind == "silent":
            self._mute.append(client)
            return
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        self._pairs[client], self._pairs[server] = server, client
        for sock in (client, server):
            self._selector.register(sock, selectors.EVENT_READ)

    def _forward(self, sock: socket.socket) -> None:
        other = self._pairs.get(sock)
        if other is None:
            return
        try:
            data = sock.recv(1 << 18)
            if not data:
                raise OSError
            other.sendall(data)
        except OSError:
            self._cut(sock)


class Weather(threading.Thread):
    """Lets the network fail at random moments for random times, until it is told that it is over."""

    def __init__(
        self,
        network: FailingNetwork,
        seed: int,
        calm: tuple[float, float] = (0.5, 6.0),
        most: float = 5.0,
        first: float = 0.5,
    ) -> None:
        """Outages last up to `most` seconds, most of them much less if that is long; the first one `first` at least."""
        super().__init__(daemon=True)
        self._network = network
        self._chance = random.Random(seed)
        self._calm = calm
        self._most = most
        self._least = first
        self._over = threading.Event()
        self.seconds = 0.0
        self.longest = 0.0
        self.outages = 0

    def run(self) -> None:
        while not self._over.wait(self._chance.uniform(*self._calm)):
            lasts = self._lasting()
            self._network.fail(self._chance.choice(KINDS))
            self.outages += 1
            began = time.monotonic()
            self._over.wait(lasts)
            self._network.mend()
            lasted = time.monotonic() - began
            self.seconds += lasted
            self.longest = max(self.longest, lasted)

    def _lasting(self) -> float:
        least, self._least = self._least, 0.5
        usual = self._most if least > 0.5 else min(self._most, 5.0)
        return self._chance.uniform(least, usual)

    def words(self) -> str:
        return f"{self.outages} outages ({self.seconds:.0f} s, the longest {self.longest:.0f})"

    def stop(self) -> None:
        self._over.set()
        self.join()
