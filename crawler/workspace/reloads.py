"""Orders to read the config again, left in the document `reload` by the command line or the web face.

An order is a token; who heeds orders remembers the token that was there when it began, because it has read the config
since. The answer of a crawl is kept in the document `reloaded`, for the one who gave the order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace

_ORDER = "reload"
_ANSWER = "reloaded"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an order. `is_taken`: the config was read and holds from now on."""

    token: str
    is_taken: bool
    lines: tuple[str, ...]


def order_reload(workspace: Workspace) -> str:
    """Ask whoever is at work to read the config again; returns the token of the order."""
    token = f"{time.time_ns():x}"
    workspace.write_document(_ORDER, orjson.dumps({"v": 1, "token": token, "at": now_text()}))
    for name in workspace.bells():
        workspace.ring(name)
    return token


def reload_answer(workspace: Workspace, token: str) -> Answer | None:
    """The crawl's answer to this order; None: there is none yet."""
    try:
        found = orjson.loads(workspace.document(_ANSWER) or b"{}")
        answer = Answer(str(found["token"]), bool(found["is_taken"]), tuple(str(line) for line in found["lines"]))
    except (ValueError, KeyError, TypeError):
        return None
    return answer if answer.token == token else None


class ReloadWatch:
    """Watches for orders, for one who has read the config just before."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._token = self._newest()

    def is_ordered(self) -> bool:
        """Has an order come since the last one that was taken up?"""
        return self._newest() != self._token

    def take_up(self) -> None:
        """The config is about to be read: orders so far are heeded with that."""
        self._token = self._newest()

    def answer(self, is_taken: bool, lines: Sequence[str]) -> None:
        """Tell the one who gave the last order what came of it."""
        fields = {"v": 1, "token": self._token, "at": now_text(), "is_taken": is_taken, "lines": list(lines)}
        self._workspace.write_document(_ANSWER, orjson.dumps(fields))

    def _newest(self) -> str:
        try:
            return str(orjson.loads(self._workspace.document(_ORDER) or b"{}").get("token", ""))
        except (ValueError, AttributeError):
            return self._token if hasattr(self, "_token") else ""
