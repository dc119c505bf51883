"""`state/config.json`: the settings that a workspace was last crawled with, so that changes can be shown."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from crawler.settings import Config
from crawler.spool import segments
from crawler.workspace import Workspace, WorkspaceError, write_atomically

_SECTIONS = ("crawler", "user_agent", "traps")
_LISTS = ("quality", "blacklist", "stub")


def take(config: Config) -> dict[str, Any]:
    """Settings and places as plain values."""
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


def write(config: Config) -> None:
    workspace = Workspace(config.workspace)
    write_atomically(_path(workspace), orjson.dumps(take(config), option=orjson.OPT_INDENT_2))


def read(workspace: Workspace) -> dict[str, Any] | None:
    try:
        found = orjson.loads(_path(workspace).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("settings"), dict) else None


def database_of(workspace: Workspace) -> Path | None:
    """Where the map of this workspace is, as far as is known."""
    found = read(workspace)
    return Path(found["database"]) if found and isinstance(found.get("database"), str) else None


def require_own_workspace(config: Config) -> None:
    """Raise WorkspaceError if the spools here belong to another map: they would all be drawn into this one.

    A database that exists knows how far it has read; only a new one would begin with what others crawled.
    """
    workspace = Workspace(config.workspace)
    found = read(workspace)
    if found is None or found.get("database") == str(config.output.database_path):
        return
    has_results = any(segments(workspace.results_of(name)) for name in workspace.result_writers())
    if has_results and not config.output.database_path.exists():
        raise WorkspaceError(
            f"the workspace {workspace.root} holds the crawl of {found.get('source') or found.get('database')}; give "
            f"this one a --workspace of its own, or move the other one aside with --fresh"
        )


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is different, one line a setting: `crawler.max-depth: 3 → 2`, `blacklist: + ads.example`."""
    old, new = before["settings"], now["settings"]
    lines = []
    for name in sorted(old.keys() | new.keys()):
        was, is_now = old.get(name), new.get(name)
        if was == is_now:
            continue
        if name in _LISTS and isinstance(was, list) and isinstance(is_now, list):
            gone = [f"− {entry}" for entry in was if entry not in is_now]
            come = [f"+ {entry}" for entry in is_now if entry not in was]
            lines += [f"{name}: {entry}" for entry in gone + come] or [f"{name}: another order"]
        else:
            lines.append(f"{name}: {_show(was)} → {_show(is_now)}")
    return lines


def _show(value: Any) -> str:
    return orjson.dumps(value).decode() if not isinstance(value, str) else value or '""'


def _path(workspace: Workspace) -> Path:
    return workspace.state / "config.json"
