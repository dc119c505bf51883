"""Where a process of a test runs: on this machine, or in a network namespace with an address of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """`prefix`: the words of a command that runs another one there. `network`: who may connect to it."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    network: str = "127.0.0.0/8"


HERE = Host()
