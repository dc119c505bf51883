"""PURE. What all processes know of the network: one small document, written by whoever diagnoses, read by the fetchers.

Times are monotonic nanoseconds of one boot; those of another boot say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import orjson

DOCUMENT = "network"
VERSION = 1
HOLDS = "waiting for the network"  # what a fetcher says it does while it holds its requests back


@dataclass(frozen=True, slots=True)
class NetworkState:
    """`is_waiting`: no request leaves but the probe.

    `asked_ns`: the newest question that is answered. `proof_ns`: the network worked then; `names_proof_ns`: the
    name servers too. `out_from_ns` and `out_until_ns`: the last outage; failures of requests that began in it are
    nobody's. `hosts`: those that answered in run `run`; `earlier_hosts`: those of the run before, if they are of
    several domains (one site alone may be gone since).
    """

    is_waiting: bool = False
    asked_ns: int = 0
    proof_ns: int = 0
    names_proof_ns: int = 0
    out_from_ns: int = 0
    out_until_ns: int = 0
    since: str = ""  # wall clock, for people
    findings: tuple[str, ...] = ()
    run: int = 0
    hosts: tuple[str, ...] = ()
    earlier_hosts: tuple[str, ...] = ()
    guesses: int = 0  # pauses that were made because nothing was there to ask
    boot: str = ""

    def was_out(self, started_ns: int) -> bool:
        """Did a request that began then begin during the last outage?"""
        return self.out_until_ns > 0 and self.out_from_ns <= started_ns <= self.out_until_ns


def dump(state: NetworkState) -> bytes:
    return orjson.dumps({"v": VERSION, **{field.name: getattr(state, field.name) for field in fields(state)}})


def read(content: bytes | None, boot: str) -> NetworkState:
    """The state in a document; a calm one where none can be read. Of another boot only the hosts count."""
    try:
        values = orjson.loads(content or b"")
        if not isinstance(values, dict) or values.get("v") != VERSION:
            return NetworkState(boot=boot)
        for name in ("findings", "hosts", "earlier_hosts"):
            values[name] = tuple(str(text) for text in values.get(name, ()))
        state = NetworkState(**{field.name: values[field.name] for field in fields(NetworkState)})
    except (ValueError, KeyError, TypeError):
        return NetworkState(boot=boot)
    if state.boot == boot:
        return state
    return NetworkState(run=state.run, hosts=state.hosts, earlier_hosts=state.earlier_hosts, boot=boot)
