"""A copy of a whole crawl, made while it goes on.

The map comes first, in one snapshot. Its place in every result log is committed with it, so the logs are copied up to
those places: map and results of a backup always agree, and a replay of the copy gives the digest of the map. What is
not yet in the map is visited again. The gates come last, so that they never count fewer requests than the ledgers.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from crawler.database.digest import digest
from crawler.database.map_errors import MapError, NoDatabase
from crawler.database.online_copy import copy_completed, copy_map, fault_of
from crawler.database.run_log import recorded_runs
from crawler.keep.manifest import (
    NAME,
    BackupError,
    Manifest,
    damaged_files,
    read_manifest,
    write_manifest,
    write_sums,
)
from crawler.keep.named_files import named_paths
from crawler.model.errors import UsageError, sentence
from crawler.model.settings import Config
from crawler.workspace.atomic import OWNER_ONLY_FOLDER
from crawler.workspace.clock import now_text
from crawler.workspace.log import Cursor
from crawler.workspace.opening import open_keeping, open_workspace

MAP = "map.db"
COMPLETED = "completed.db"
CONFIG = "config"
WORKSPACE = "workspace"
STORES = ("whole", "reference", "none")


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made. `unapplied`: bytes of results that were not in the map yet, and so are not in it."""

    folder: Path
    manifest: Manifest
    files: int
    size: int
    unapplied: int


def back_up(config: Config, folder: Path, store: str) -> BackupReport:
    """Make a backup in a new or empty folder. Raises SumiError; the crawl itself is never touched."""
    if config.engine.url:
        raise BackupError(
            "this crawl is in an engine, whose own means back it up, consistently and while it runs: pg_dump or "
            "pg_basebackup, and a copy of the workspace folder for stored pages, summaries and archived results"
        )
    require_room_for(folder, config)
    workspace = open_workspace(config)
    workspace.check_format()
    database = config.output.database_path
    if not database.is_file():
        raise NoDatabase(database)
    try:
        folder.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        ends = copy_map(database, folder / MAP)
        unapplied = sum(_bytes_between(config, writer, ends.get(writer)) for writer in workspace.results.writers())
        copy_completed(database, folder / COMPLETED)
        open_keeping(config.workspace).save(folder / WORKSPACE, ends, has_store=store == "whole")
        moved, names = _copy_config(config, folder / CONFIG)
        os.sync()
        runs = recorded_runs(folder / MAP).runs
        manifest = Manifest(
            made_at=now_text(),
            program=_program(),
            config=config.source.name if config.source else "",
            database=names["database"],
            summary=names["summary"],
            workspace=names["workspace"],
            run=runs[-1].number if runs else 0,
            status=runs[-1].status if runs else "",
            digest=digest(folder / MAP),
            store=store,
            store_path=str(config.workspace / "store") if store == "reference" else "",
            moved=moved,
            sums=write_sums(folder),
        )
        write_manifest(folder, manifest)
    except BaseException as problem:
        _empty(folder)
        if isinstance(problem, OSError):
            raise BackupError(f"the backup cannot be written: {sentence(problem)}; mend that and try again") from None
        raise
    found = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return BackupReport(folder, manifest, len(found), sum(found), unapplied)


def _empty(folder: Path) -> None:
    """Remove what was written of a backup that cannot be completed. The folder was new, or empty."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def require_room_for(folder: Path, config: Config) -> None:
    """Raise UsageError unless this folder can take a backup."""
    if (folder / NAME).exists():
        raise UsageError(f"{folder} holds a backup already; name another folder, or check it with --verify")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder; name a new one for the backup")
    if config.workspace.absolute() in (folder.absolute(), *folder.absolute().parents):
        raise UsageError(f"{folder} is inside of the workspace {config.workspace}; name a folder elsewhere")


def verify(folder: Path) -> Manifest:
    """Check every file of a backup, the map's pages and its digest. Raises BackupError."""
    manifest = read_manifest(folder)
    faults = damaged_files(folder, manifest)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BackupError(f"the backup {folder} is damaged: {faults[0]}{more}; use another backup")
    fault = fault_of(folder / MAP)
    if fault is not None:
        raise BackupError(f"the map in the backup {folder} is damaged: {fault}; use another backup")
    try:
        found = digest(folder / MAP)
    except MapError as problem:
        raise BackupError(f"the map in the backup {folder} is damaged: {problem}") from None
    if found != manifest.digest:
        raise BackupError(f"the map in the backup {folder} has the digest {found}, not {manifest.digest}")
    return manifest


def _copy_config(config: Config, target: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Copy the config and the files that it reads; returns the paths that change, and where its places will be."""
    assert config.source is not None
    target.mkdir(OWNER_ONLY_FOLDER)
    shutil.copyfile(config.source, target / config.source.name)
    named = named_paths(config)
    for key, path in named.items():
        if key in ("database", "summary", "workspace"):
            continue
        place = target / path.inside
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path.place, place)
    summary = config.output.summary_path
    if summary.is_file():
        place = target / named["summary"].inside
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(summary, place)
    moved = {path.text: f"./{path.inside}" for path in named.values() if path.text and path.is_moved}
    is_named = "workspace" in named and not config.is_workspace_given
    inside = named["workspace"].inside if is_named else _workspace_inside(config)
    return moved, {"database": named["database"].inside, "summary": named["summary"].inside, "workspace": inside}


def _workspace_inside(config: Config) -> str:
    """The workspace's place in the restored folder; elsewhere than below the config, it will be `workspace`."""
    assert config.source is not None
    try:
        return config.workspace.relative_to(config.source.parent).as_posix()
    except ValueError:
        return "workspace"


def _bytes_between(config: Config, writer: str, start: Cursor | None) -> int:
    reader = open_workspace(config).results.reader(writer, start or Cursor())
    try:
        return reader.unread_bytes()
    finally:
        reader.close()


def _program() -> str:
    try:
        return metadata.version("sumi-ripple")
    except metadata.PackageNotFoundError:
        return ""
