"""Deliveries of hooks: written down before they are sent, kept afterwards as a log of the last ones.

A delivery is `pending`, `delivered` or `failed`. Several processes may write: the supervisor, and a resend.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from crawler.hooks.hook_message import body_of
from crawler.model.settings import HookRule
from crawler.workspace.clock import now_text
from crawler.workspace.door import RoleTaken, Workspace

DOCUMENT = "hooks"
KEPT = 200  # deliveries
_PATIENCE = 5.0  # seconds for the lock, which is held for milliseconds


@dataclass(frozen=True, slots=True)
class Delivery:
    number: int
    hook: str  # its name in the config
    event: str
    at: str
    body: str
    state: str = "pending"  # pending | delivered | failed
    attempts: int = 0
    answer: str = ""  # the status code, or why there was none
    done_at: str = ""


class Outbox:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def deliveries(self) -> list[Delivery]:
        """The last deliveries, oldest first."""
        try:
            found = orjson.loads(self._workspace.document(DOCUMENT) or b"")["deliveries"]
            return [Delivery(**each) for each in found]
        except (ValueError, KeyError, TypeError):
            return []

    def put(self, hooks: tuple[HookRule, ...], event: str, facts: dict[str, Any]) -> list[Delivery]:
        """Write one delivery for each hook that wants the event."""
        wanted = [hook for hook in hooks if event in hook.events or event == "test"]
        made: list[Delivery] = []

        def add(before: list[Delivery]) -> list[Delivery]:
            number = before[-1].number if before else 0
            for offset, hook in enumerate(wanted, 1):
                at = now_text()
                body = body_of(event, number + offset, at, facts).decode()
                made.append(Delivery(number + offset, hook.name, event, at, body))
            return [*before, *made]

        if wanted:
            self._change(add)
        return made

    def again(self, number: int) -> Delivery | None:
        """Make a delivery pending once more; None: it is not known any more."""
        found: list[Delivery] = []

        def revive(before: list[Delivery]) -> list[Delivery]:
            after = [
                replace(each, state="pending", answer="", done_at="") if each.number == number else each
                for each in before
            ]
            found.extend(each for each in after if each.number == number)
            return after

        self._change(revive)
        return found[0] if found else None

    def note(self, delivery: Delivery) -> None:
        """How it went."""
        self._change(lambda before: [delivery if each.number == delivery.number else each for each in before])

    def _change(self, change: Callable[[list[Delivery]], list[Delivery]]) -> None:
        lock = self._lock()
        try:
            after = change(self.deliveries())[-KEPT:]
            content = {"v": 1, "deliveries": [asdict(each) for each in after]}
            self._workspace.write_document(DOCUMENT, orjson.dumps(content))
        finally:
            lock.release()

    def _lock(self) -> Any:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._workspace.take_role(DOCUMENT)
            except RoleTaken:
                if time.monotonic() > until:
                    raise
