"""The log of everything that was changed through the web face: `workspace/web/log.jsonl`, one JSON object a line."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from crawler.workspace.atomic import open_own
from crawler.workspace.clock import now_text

_TAIL = 4 * 1024 * 1024  # bytes of the log that a question looks at


class WriteLog:
    """Appended to before a call is answered. Only its owner can read it."""

    def __init__(self, root: Path) -> None:
        self._path = root / "web" / "log.jsonl"
        self._lock = threading.Lock()

    def add(self, who: str, role: str, action: str, status: int, detail: Mapping[str, Any]) -> None:
        entry = {"at": now_text(), "who": who or "nobody", "role": role, "action": action, "status": status}
        line = msgspec.json.encode({**entry, "detail": detail}, enc_hook=str) + b"\n"
        with self._lock:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)

    def newest(self, limit: int, before: int | None = None) -> tuple[list[dict[str, Any]], int | None]:
        """At most so many entries, the newest first, and the place to go on from; None at the beginning."""
        try:
            with self._path.open("rb") as file:
                end = file.seek(0, os.SEEK_END) if before is None else before
                start = max(0, end - _TAIL)
                file.seek(start)
                content = file.read(max(0, end - start))
        except OSError:
            return [], None
        if start:
            torn = content.find(b"\n") + 1  # the first line may be the end of one
            start, content = start + torn, content[torn:]
        placed: list[tuple[int, bytes]] = []
        at = start
        for line in content.split(b"\n"):
            placed.append((at, line))
            at += len(line) + 1
        found: list[dict[str, Any]] = []
        for place, line in reversed(placed):
            try:
                found.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.DecodeError:
                continue  # the empty end, or a line that was torn by a crash
            if len(found) == limit:
                return found, place or None
        return found, start or None
