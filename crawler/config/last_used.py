"""The settings that a workspace was last crawled with, kept in its document `config`, so that changes can be shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from crawler.database.ingest_progress import spool_positions
from crawler.engine.place import place_of
from crawler.model.map_place import MapPlace
from crawler.model.recorded_settings import changes, flat
from crawler.model.settings import Config
from crawler.workspace.door import Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace

DOCUMENT = "config"


def describe_settings(config: Config) -> dict[str, Any]:
    """Settings and paths as plain values."""
    return {
        "v": 1,
        "source": str(config.source) if config.source else None,
        "database": str(config.map_place),
        # From the workspace, so that a crawl folder can be moved or copied as a whole.
        "source_from_workspace": os.path.relpath(config.source, config.workspace) if config.source else None,
        "database_from_workspace": os.path.relpath(config.output.database_path, config.workspace),
        "summary": str(config.output.summary_path),
        "engine": str(place_of(config.engine.url, os.environ)) if config.engine.url else None,
        "settings": flat(config),
    }


def write_last_used(config: Config) -> None:
    """For the whole crawl, and where that is in an engine, for commands on this machine that name no config too."""
    content = orjson.dumps(describe_settings(config), option=orjson.OPT_INDENT_2)
    open_workspace(config).write_document(DOCUMENT, content)
    if config.engine.url:
        open_workspace(config.workspace).write_document(DOCUMENT, content)


def with_places_of(content: bytes, config: Config) -> bytes:
    """The document of a crawl that was brought to where this config has it. Its settings stay."""
    try:
        found = orjson.loads(content)
        settings = found["settings"]
    except (ValueError, KeyError, TypeError):
        return content
    return orjson.dumps(describe_settings(config) | {"settings": settings}, option=orjson.OPT_INDENT_2)


def read_last_used(workspace: Workspace) -> dict[str, Any] | None:
    """The settings as `describe_settings` gave them; None if there are none that can be read."""
    content = workspace.document(DOCUMENT)
    if content is None:
        return None
    try:
        found = orjson.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("settings"), dict) else None


def last_used_database(workspace: Workspace) -> Path | None:
    """The path of the map that this workspace was last crawled into; None if unknown."""
    return _place_of(workspace, "database")


def last_used_source(workspace: Workspace) -> Path | None:
    """The path of the config that this workspace was last crawled with; None if unknown."""
    return _place_of(workspace, "source")


def engine_source(root: Path) -> Path | None:
    """The config of a crawl in an engine that keeps what this machine alone needs here; None: it is no such folder."""
    workspace = open_workspace(root)
    found = read_last_used(workspace)
    return last_used_source(workspace) if found is not None and found.get("engine") else None


def _place_of(workspace: Workspace, name: str) -> Path | None:
    """A recorded path. The one from the workspace comes first: the whole crawl may have been moved or copied."""
    found = read_last_used(workspace) or {}
    relative, absolute = found.get(f"{name}_from_workspace"), found.get(name)
    if isinstance(relative, str):
        place = Path(os.path.normpath(Path(workspace.name).absolute() / relative))
        if place.exists() or not isinstance(absolute, str) or not Path(absolute).exists():
            return place
    return Path(absolute) if isinstance(absolute, str) else None


def is_crawl_of(root: Path, database: MapPlace) -> bool:
    """Does this folder hold a crawl into this map?"""
    workspace = open_workspace(root)
    return workspace.exists() and last_used_database(workspace) == database


def require_own_workspace(config: Config) -> None:
    """Raise WorkspaceError if the result spools here are not those of this map.

    A new map would be built from another config's results. A map that was built from other spools stores positions
    in those; here they would skip results, and a run could end before it began.
    """
    workspace = open_workspace(config)
    database = config.map_place
    positions = spool_positions(database)
    if positions:
        if not all(workspace.results.is_line_end(writer, cursor) for writer, cursor in positions.items()):
            raise WorkspaceError(
                f"the database {database} was not built from the spools in {workspace.name}; name the --workspace that "
                f"it was crawled in, or start from nothing with --fresh, which keeps the database under a dated name"
            )
        return
    found = read_last_used(workspace)
    own = {str(database), str(config.output.database_path)}  # a crawl may have been brought into the engine from a file
    if found is None or own & {found.get("database"), str(last_used_database(workspace))}:
        return
    if any(workspace.results.segments(name) for name in workspace.results.writers()):
        raise WorkspaceError(
            f"the workspace {workspace.name} holds the crawl of {found.get('source') or found.get('database')}; give "
            f"this config its own --workspace, or move the other crawl aside with --fresh"
        )


def changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One line for each difference between two answers of `describe_settings`."""
    return changes(before["settings"], now["settings"])
