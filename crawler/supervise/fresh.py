"""`--fresh`: the map and the spools so far are moved aside under a dated name. Nothing is ever deleted."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from crawler.model.settings import Config
from crawler.pace.gate import Gate
from crawler.workspace.layout import Workspace, WorkspaceError

_MOVED = ("spool", "state", "status", "quarantine")


def move_aside(config: Config) -> list[Path]:
    """Move database, spools and state aside; returns where they are now. The clocks of domains asked a moment ago
    stay: a fresh start is no reason to ask a site again at once.
    """
    workspace = Workspace(config.workspace)
    database = config.output.database_path
    stamp = _free_stamp(workspace.root, database)
    kept = workspace.root / f"old-{stamp}"
    moved: list[Path] = []
    try:
        for suffix in ("-wal", "-shm", ""):  # the log first: a crash in between leaves a database that is whole
            source = database.with_name(database.name + suffix)
            if source.exists():
                target = database.with_name(_dated(database, stamp) + suffix)
                source.rename(target)
                if not suffix:
                    moved.append(target)
        for name in _MOVED:
            source = workspace.root / name
            if source.exists() and any(path.is_file() and path != workspace.format_file for path in source.rglob("*")):
                kept.mkdir(parents=True, exist_ok=True)
                source.rename(kept / name)
        workspace.format_file.unlink(missing_ok=True)
        workspace.prepare()
        if kept.exists():
            moved.append(kept)
            _keep_clocks(config, kept / "state" / "gates", workspace)
    except OSError as problem:
        raise WorkspaceError(
            f"cannot move what was crawled aside: {problem.strerror}: {problem.filename}; nothing is lost"
        ) from None
    return moved


def _dated(database: Path, stamp: str) -> str:
    return f"{database.stem}.{stamp}{database.suffix}"


def _free_stamp(root: Path, database: Path) -> str:
    """The time, to the second, and a number behind it where that is taken."""
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    number = 1
    stamp = now
    while (root / f"old-{stamp}").exists() or database.with_name(_dated(database, stamp)).exists():
        number += 1
        stamp = f"{now}-{number}"
    return stamp


def _keep_clocks(config: Config, gates: Path, workspace: Workspace) -> None:
    """Take over the gates of domains that may not be asked again yet, with budgets and closures begun anew."""
    recent = time.time() - (config.crawler.max_crawl_delay + config.crawler.minimum_time_on_page) / 1000
    try:
        found = [path for path in gates.iterdir() if path.stat().st_mtime >= recent]
    except FileNotFoundError:
        return
    for path in found:
        shutil.copy2(path, workspace.gates / path.name)
        gate = Gate(workspace.gates / path.name)
        try:
            gate.update(0, lambda record: record)  # of no run: the first run will find it new
        finally:
            gate.close()
