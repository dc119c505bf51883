"""`--fresh` and `reset`: the map and the earlier crawl in the workspace are moved aside under a dated name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from crawler.database.completed_map import runs_folder
from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.settings import Config
from crawler.workspace.door import Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace


def move_aside(config: Config, *, is_whole: bool = False) -> list[str]:
    """Move database, spools and state aside; returns their new paths. `is_whole`: stored pages and summaries too.

    The gates of domains that were just requested stay: after a fresh start too, the delay between requests holds.
    """
    workspace = open_workspace(config)
    database = config.output.database_path
    stamp = _free_stamp(workspace, database)
    recent_seconds = (config.crawler.max_crawl_delay + config.crawler.minimum_time_on_page) / 1000
    moved: list[str] = []
    try:
        is_file = not isinstance(config.map_place, EngineMap)  # with an engine, a file there is another crawl's map
        # The write-ahead log first: a crash in between leaves an intact database.
        for suffix in ("-wal", "-shm", "") if is_file else ():
            source = database.with_name(database.name + suffix)
            if source.exists():
                target = database.with_name(_dated(database, stamp) + suffix)
                source.rename(target)
                if not suffix:
                    moved.append(str(target))
        moved += _map_of_engine_aside(config.map_place, stamp)
        of_runs = runs_folder(database)
        if of_runs.exists() and not database.exists():
            of_runs.rename(runs_folder(database.with_name(_dated(database, stamp))))
        moved += workspace.move_aside(stamp, recent_seconds, is_whole=is_whole)
    except OSError as problem:
        raise WorkspaceError(
            f"cannot move the earlier crawl aside: {problem.strerror}: {problem.filename}; nothing is lost"
        ) from None
    return moved


def _map_of_engine_aside(place: MapPlace, stamp: str) -> list[str]:
    """Rename the schema of a map in the engine, and that of its copy."""
    if not isinstance(place, EngineMap):
        return []
    from ingest.whole_maps import keep_aside

    return [str(kept) for kept in keep_aside(place, stamp)]


def _dated(database: Path, stamp: str) -> str:
    return f"{database.stem}.{stamp}{database.suffix}"


def _free_stamp(workspace: Workspace, database: Path) -> str:
    """The time, to the second, with a number added if that name is taken."""
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    number = 1
    stamp = now
    while workspace.is_aside(stamp) or database.with_name(_dated(database, stamp)).exists():
        number += 1
        stamp = f"{now}-{number}"
    return stamp
