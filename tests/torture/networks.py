"""How machines reach an engine and a web server, and how one is cut off.

`Namespaces`: each machine is a namespace of Linux for its network and its processes, with an address of its own, on a
bridge that leads nowhere else; the servers are in others. A machine that is cut off is really cut off: what it sends is
lost, and nobody is told. `Doors`: where namespaces are not permitted, machines are groups of processes, which reach the
engine through a port that can be shut.

A namespace lives as long as a process in it, and its keeper ends when this process closes its input or dies, however it
does. So nothing is left: links and bridges go with their namespaces, processes of a machine with their keeper.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.hosts import HERE, Host
from tests.torture.run import children_of

_NETWORK = "10.213.0"  # no route leads from it, and none to it
_TOOLS = ("unshare", "nsenter", "ip", "setpriv", "env", "sh", "cat")
_BRIDGE = "sumi0"
# A machine that loses its power does not go on sending what its processes had begun to send, as this kernel would.
_KEEPING = (
    "{ echo 1 > /proc/sys/net/ipv4/tcp_orphan_retries; } 2>/dev/null; ip link set lo up && echo ready && exec cat"
)

Way = tuple[str, int]  # address and port


class Networks:
    """What both have in common."""

    words = ""

    def host(self, name: str) -> Host:
        """Where a server of this name runs."""
        raise NotImplementedError

    def words_on(self, machine: str, folder: Path) -> tuple[str, ...]:
        """The words of a command that runs another one on this machine, in this folder."""
        raise NotImplementedError

    def way(self, machine: str, server: str, port: int) -> Way:
        """How a machine reaches a port of a server."""
        raise NotImplementedError

    def cut(self, machine: str, *, is_silent: bool = True) -> None:
        """From now on nothing passes. `is_silent`: the machine's own link looks well."""
        raise NotImplementedError

    def heal(self, machine: str) -> None:
        """The machine is back."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove everything that was made."""
        raise NotImplementedError


def best_networks(machines: list[str], servers: list[str]) -> Networks:
    """Namespaces where they are permitted, else doors."""
    try:
        return Namespaces(machines, servers)
    except (OSError, subprocess.SubprocessError):
        return Doors()


class Namespaces(Networks):
    """See the module. Raises OSError or SubprocessError where they are not permitted."""

    words = "machines are network namespaces"

    def __init__(self, machines: list[str], servers: list[str]) -> None:
        if os.getuid() != 0 or not all(map(shutil.which, _TOOLS)):
            raise PermissionError("namespaces are root's, and need iproute2 and util-linux")
        self._keepers: dict[str, subprocess.Popen[bytes]] = {}
        self._inner: dict[str, int] = {}  # the process that keeps it
        self._addresses: dict[str, str] = {}
        try:
            self._keep("bridge", "--net")
            self._ip("bridge", "link add", _BRIDGE, "type bridge stp_state 0 forward_delay 0")
            self._ip("bridge", "link set", _BRIDGE, "up")
            for number, name in enumerate([*servers, *machines], start=1):
                self._keep(name, "--net" if name in servers else "--net --pid --fork --kill-child --mount-proc")
                self._join(name, f"{_NETWORK}.{number}")
        except BaseException:
            self.close()
            raise

    def _keep(self, name: str, kinds: str) -> None:
        words = ["unshare", *kinds.split(), "sh", "-c", _KEEPING]
        keeper = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._keepers[name] = keeper
        assert keeper.stdout is not None and keeper.stderr is not None
        if keeper.stdout.readline() != b"ready\n":
            raise PermissionError(f"no namespace: {keeper.stderr.read().decode(errors='replace')}")
        self._inner[name] = children_of(keeper.pid)[0] if "--fork" in kinds else keeper.pid

    def _join(self, name: str, address: str) -> None:
        self._addresses[name] = address
        self._ip("bridge", "link add", self._link(name), f"type veth peer name eth0 netns {self._inner[name]}")
        self._ip("bridge", "link set", self._link(name), f"master {_BRIDGE} up")
        self._ip(name, "addr add", f"{address}/24", "dev eth0")
        self._ip(name, "link set eth0 up")

    def _link(self, name: str) -> str:
        return f"to-{name}"[:15]

    def _ip(self, name: str, *words: str) -> None:
        command = [*self._entering(name), "ip", *(part for word in words for part in word.split())]
        subprocess.run(command, check=True, capture_output=True, timeout=30)

    def _entering(self, name: str) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._inner[name]}/ns/net")

    def host(self, name: str) -> Host:
        return Host(self._addresses[name], self._entering(name), f"{_NETWORK}.0/24")

    def words_on(self, machine: str, folder: Path) -> tuple[str, ...]:
        entering = ("nsenter", f"--target={self._inner[machine]}", "--net", "--pid", "--mount")
        return (*entering, "env", "-C", str(folder))

    def way(self, machine: str, server: str, port: int) -> Way:
        return self._addresses[server], port

    def cut(self, machine: str, *, is_silent: bool = True) -> None:
        self._ip("bridge", "link set", self._link(machine), "nomaster" if is_silent else "down")

    def heal(self, machine: str) -> None:
        self._ip("bridge", "link set", self._link(machine), f"master {_BRIDGE} up")

    def close(self) -> None:
        for keeper in self._keepers.values():
            for pipe in (keeper.stdin, keeper.stdout, keeper.stderr):
                if pipe is not None:
                    pipe.close()
        for keeper in self._keepers.values():
            with suppress(subprocess.TimeoutExpired):
                keeper.wait(5)
            keeper.kill()
            keeper.wait()


class Doors(Networks):
    """See the module."""

    words = "machines are groups of processes, and reach the engine through a door each: namespaces are not permitted"

    def __init__(self) -> None:
        self._doors: dict[tuple[str, int], Door] = {}

    def host(self, name: str) -> Host:
        return HERE

    def words_on(self, machine: str, folder: Path) -> tuple[str, ...]:
        return ()

    def way(self, machine: str, server: str, port: int) -> Way:
        door = self._doors.get((machine, port))
        if door is None:
            door = self._doors[machine, port] = Door(port)
        return "127.0.0.1", door.port

    def cut(self, machine: str, *, is_silent: bool = True) -> None:
        for door in self._of(machine):
            door.shut()

    def heal(self, machine: str) -> None:
        for door in self._of(machine):
            door.open()

    def _of(self, machine: str) -> list[Door]:
        return [door for (name, _), door in self._doors.items() if name == machine]

    def close(self) -> None:
        for door in self._doors.values():
            door.close()
        self._doors.clear()


class Door:
    """A machine's way to a port: a port of its own, which can be shut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._is_shut = False
        self._pairs: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """From now on nothing passes, and nobody is told: packets are lost."""
        self._is_shut = True

    def open(self) -> None:
        """What was lost is lost: connections of before are reset."""
        for end in self._pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()
        self._is_shut = False

    def close(self) -> None:
        self.open()
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                try:
                    engine = socket.create_connection(("127.0.0.1", self._target), 5)
                except OSError:
                    client.close()
                    continue
                engine.settimeout(None)
                self._pairs += [client, engine]
                for source, sink in ((client, engine), (engine, client)):
                    threading.Thread(target=self._carry, args=[source, sink], daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                while self._is_shut and source in self._pairs:
                    time.sleep(0.05)
                if source not in self._pairs:
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
