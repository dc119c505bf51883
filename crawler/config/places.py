"""The places that a crawl writes to: can it, and is there room? Checked before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

from crawler.model.settings import Config
from crawler.workspace.door import WorkspaceError

LEAST_FREE = 32 * 1024 * 1024  # bytes; a batch of results and the write-ahead log of its commit


def require_places(config: Config) -> None:
    """Raise WorkspaceError if the workspace, the database or the summary cannot be written."""
    for name, path, remedy in (
        ("workspace", config.workspace, "give another --workspace or [output] workspace-path"),
        ("database", config.output.database_path, "give another [output] database-path"),
        ("summary", config.output.summary_path, "give another [output] summary-path"),
    ):
        why = _problem(path)
        if why is not None:
            raise WorkspaceError(f"cannot write the {name} {path}: {why}; mend that, or {remedy}")


def _problem(path: Path) -> str | None:
    """The reason why this file or folder cannot be written; None: it can, as far as can be seen."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return f"{place} is not a folder"
    found = os.statvfs(place)
    if found.f_flag & os.ST_RDONLY:
        return f"{place} is on a disk that is read-only"
    if not os.access(place, os.W_OK):
        return f"{place} may not be written to"
    free = found.f_bavail * found.f_frsize
    if free < LEAST_FREE:
        return f"the disk of {place} is full ({free // 2**20:,} MiB are free, {LEAST_FREE // 2**20:,} are needed)"
    return None
