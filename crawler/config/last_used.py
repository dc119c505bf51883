"""The settings that a workspace was last crawled with, kept in its document `config`, so that changes can be shown."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from crawler.database.ingest_progress import spool_positions
from crawler.model.settings import Config
from crawler.workspace.door import Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace

_DOCUMENT = "config"
_SECTIONS = ("crawler", "user_agent", "traps")
_LISTS = ("quality", "blacklist", "stub")


def describe_settings(config: Config) -> dict[str, Any]:
    """Settings and paths as plain values."""
    settings: dict[str, Any] = {}
    for section in _SECTIONS:
        for name, value in asdict(getattr(config, section)).items():
            settings[f"{section}.{name}".replace("_", "-")] = list(value) if isinstance(value, tuple) else value
    settings["quality"] = [f"{entry.domain} from {' '.join(entry.seeds)}" for entry in config.quality]
    settings["blacklist"] = list(config.blacklist)
    settings["stub"] = list(config.stub)
    return {
        "v": 1,
        "source": str(config.source) if config.source else None,
        "database": str(config.output.database_path),
        "summary": str(config.output.summary_path),
        "settings": settings,
    }


def write_last_used(config: Config) -> None:
    content = orjson.dumps(describe_settings(config), option=orjson.OPT_INDENT_2)
    open_workspace(config.workspace).write_document(_DOCUMENT, content)


def read_last_used(workspace: Workspace) -> dict[str, Any] | None:
    """The settings as `describe_settings` gave them; None if there are none that can be read."""
    content = workspace.document(_DOCUMENT)
    if content is None:
        return None
    try:
        found = orjson.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("settings"), dict) else None


def last_used_database(workspace: Workspace) -> Path | None:
    """The path of the map that this workspace was last crawled into; None if unknown."""
    found = read_last_used(workspace)
    return Path(found["database"]) if found and isinstance(found.get("database"), str) else None


def require_own_workspace(config: Config) -> None:
    """Raise WorkspaceError if the result spools here are not those of this map.

    A new map would be built from another config's results. A map that was built from other spools stores positions
    in those; here they would skip results, and a run could end before it began.
    """
    workspace = open_workspace(config.workspace)
    database = config.output.database_path
    positions = spool_positions(database)
    if positions:
        if not all(workspace.results.is_line_end(writer, cursor) for writer, cursor in positions.items()):
            raise WorkspaceError(
                f"the database {database} was not built from the spools in {workspace.name}; name the --workspace that "
                f"it was crawled in, or start from nothing with --fresh, which keeps the database under a dated name"
            )
        return
    found = read_last_used(workspace)
    if found is None or found.get("database") == str(database):
        return
    if any(workspace.results.segments(name) for name in workspace.results.writers()):
        raise WorkspaceError(
            f"the workspace {workspace.name} holds the crawl of {found.get('source') or found.get('database')}; give "
            f"this config its own --workspace, or move the other crawl aside with --fresh"
        )


def changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One line for each difference: `crawler.max-depth: 3 → 2`, `blacklist: + ads.example`."""
    old, new = before["settings"], now["settings"]
    lines = []
    for name in sorted(old.keys() | new.keys()):
        was, is_now = old.get(name), new.get(name)
        if was == is_now:
            continue
        if name in _LISTS and isinstance(was, list) and isinstance(is_now, list):
            removed = [f"− {entry}" for entry in was if entry not in is_now]
            added = [f"+ {entry}" for entry in is_now if entry not in was]
            lines += [f"{name}: {entry}" for entry in removed + added] or [f"{name}: another order"]
        else:
            lines.append(f"{name}: {_show(was)} → {_show(is_now)}")
    return lines


def _show(value: Any) -> str:
    return orjson.dumps(value).decode() if not isinstance(value, str) else value or '""'
