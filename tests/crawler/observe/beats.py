"""Heartbeats as the stages write them, for a workspace without stages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from crawler.observe.processes import Snapshot, observe
from crawler.workspace.files.file_workspace import FileWorkspace

NOW = datetime(2025, 1, 15, 10, 30, tzinfo=UTC)


def beat(workspace: FileWorkspace, name: str, facts: dict[str, Any], *, doing: str = "running", age: int = 0) -> None:
    stage = "fetcher" if name.startswith("fetcher") else name
    at = datetime.fromtimestamp(NOW.timestamp() - age, UTC).isoformat().replace("+00:00", "Z")
    content = {"v": 1, "stage": stage, "name": name, "pid": 7, "started": at, "at": at, "doing": doing, "facts": facts}
    workspace.layout.status_of(name).write_bytes(orjson.dumps(content))


def seen(workspace: FileWorkspace) -> Snapshot:
    return observe(workspace, NOW, with_locks=False)
