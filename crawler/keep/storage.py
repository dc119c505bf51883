"""The size of every part of a crawl, its growth, and the day on which the disk will be full.

Growth is read from the files themselves: what was written in the last 24 hours and 7 days. A map is one file that
changes as a whole, so it counts as grown by what its runs added to it, in proportion to their new pages.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from crawler.database.completed_map import runs_folder
from crawler.database.growth import share_of_pages_since
from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from crawler.model.shown_text import counted, size_words
from crawler.workspace.keeping import OldSchema, Part
from crawler.workspace.opening import open_keeping, open_schemas

_DAY = 86_400
_FAR = 3650  # days: nobody plans further


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system with parts of the crawl. `full_in_days`: at the pace of `daily` bytes; None: it does not grow."""

    place: str
    size: int
    free: int
    daily: int
    full_in_days: int | None
    full_on: str | None


@dataclass(frozen=True, slots=True)
class Storage:
    """Everything that a crawl takes on disk, part by part."""

    parts: tuple[Part, ...]
    disks: tuple[Disk, ...]
    old_schemas: tuple[OldSchema, ...] = ()  # in an engine

    @property
    def total(self) -> Part:
        return sum(self.parts, Part("together"))

    def text(self) -> str:
        lines = [f"{'':<16}{'on disk':>12}{'last 24 h':>12}{'last 7 days':>13}   files"]
        for part in (*self.parts, self.total):
            sizes = f"{size_words(part.size):>12}{size_words(part.last_day):>12}{size_words(part.last_week):>13}"
            lines.append(f"{part.name:<16}{sizes}   {part.files:,}")
        aside = [f"  {old.name}  {size_words(old.size)}" for old in self.old_schemas]
        if aside:
            aside = [
                "",
                "Moved aside in the engine (sumi-ripple prune aside removes what is older than a limit):",
                *aside,
            ]
        in_engine = ["The engine's own disk cannot be seen from here"] if any(not p.place for p in self.parts) else []
        return "\n".join([*lines, *aside, "", *(_disk_words(disk) for disk in self.disks), *in_engine])

    def json(self) -> str:
        fields = {
            "parts": [asdict(part) for part in self.parts],
            "together": asdict(self.total),
            "disks": [asdict(disk) for disk in self.disks],
            "old_schemas": [asdict(old) for old in self.old_schemas],
        }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def measure(config: Config, now: float | None = None) -> Storage:
    """Measure a crawl. Raises SumiError where there is none yet."""
    now = time.time() if now is None else now
    database = config.output.database_path
    of_workspace = open_keeping(config.workspace).parts(now)
    of_map = [part for part in _map_parts(database, now) if part.files]
    schemas = open_schemas(config)
    of_engine = [] if schemas is None else schemas.parts(now, _shares(config.map_place, now))
    old = [] if schemas is None else schemas.old()
    if not of_workspace and not of_map and not of_engine:
        raise SumiError(f"nothing has been crawled with {config.source} yet: neither {database} nor a workspace exists")
    here = (*of_map, *of_workspace, *_archive_part(config, now))
    disks = [_disk(place, _daily(sum(those, Part(""))), now) for place, those in _by_disk(config, here)]
    return Storage((*of_engine, *here), tuple(disks), tuple(old))


def _archive_part(config: Config, now: float) -> list[Part]:
    """Results that left the engine, where they do not lie in the workspace anyway."""
    archive = config.engine.archive
    if not config.engine.url or archive is None or archive.is_relative_to(config.workspace) or not archive.is_dir():
        return []
    found = Part("archive", place=str(archive))
    for path in archive.rglob("*.jsonl"):
        found += _file_part("archive", path, now)
    return [found]


def _shares(place: MapPlace, now: float) -> tuple[float, float]:
    """The shares of a map's pages that are of the last 24 hours, and of the last 7 days."""
    day, week = (share_of_pages_since(place, _text(now - days * _DAY)) for days in (1, 7))
    return day, week


def _by_disk(config: Config, parts: Iterable[Part]) -> list[tuple[Path, list[Part]]]:
    """The parts on each disk, and its name for people: workspace, map and stored pages may have one each."""
    usual = (config.workspace, config.output.database_path.parent, config.workspace / "store")
    names = {place.stat().st_dev: place for place in reversed(usual) if place.exists()}
    found: dict[int, list[Part]] = {}
    for part in parts:
        found.setdefault(Path(part.place).stat().st_dev, []).append(part)
    return [(names.get(device, config.workspace), those) for device, those in found.items()]


def _map_parts(database: Path, now: float) -> list[Part]:
    """The map (with its log), the maps of single runs, and maps from before a change of rules or a fresh start."""
    size = sum(_bytes(path) for path in (database, *_beside(database, "-wal", "-shm")))
    files = sum(path.exists() for path in (database, *_beside(database, "-wal", "-shm")))
    shares = _shares(database, now)
    place = str(database.parent)
    parts = [Part("map", files, size, int(size * shares[0]), int(size * shares[1]), place)] if files else []
    runs = Part("maps of runs", place=place)
    for path in runs_folder(database).glob("*.db") if runs_folder(database).is_dir() else ():
        runs += _file_part("maps of runs", path, now)
    older = Part("older maps", place=place)
    for path in older_maps(database):
        older += _file_part("older maps", path, now)
    return [*parts, runs, older]


def older_maps(database: Path) -> list[Path]:
    """Maps that a change of rules (`….before-…`) or `--fresh` put aside, oldest first."""
    stamp = "[0-9]" * 8 + "-" + "[0-9]" * 6
    found = {
        *database.parent.glob(f"{database.name}.before-{stamp}*"),
        *database.parent.glob(f"{database.stem}.{stamp}*{database.suffix}"),
    }
    plain = (path for path in found if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return sorted(plain, key=lambda path: path.stat().st_mtime)


def _beside(database: Path, *suffixes: str) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in suffixes]


def _bytes(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512 or found.st_size


def _file_part(name: str, path: Path, now: float) -> Part:
    size, age = _bytes(path), now - path.stat().st_mtime
    return Part(name, 1, size, size if age < _DAY else 0, size if age < 7 * _DAY else 0)


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _daily(part: Part) -> int:
    """Bytes a day: the mean of the last week; of a younger crawl, what its last day brought."""
    return max(part.last_week // 7, part.last_day if part.last_week == part.last_day else 0)


def _disk(place: Path, daily: int, now: float) -> Disk:
    usage = shutil.disk_usage(place)
    days = usage.free // daily if daily else None
    on = None
    if days is not None and days <= _FAR:
        on = (datetime.fromtimestamp(now, UTC) + timedelta(days=days)).date().isoformat()
    return Disk(os.fspath(place), usage.total, usage.free, daily, days, on)


def _disk_words(disk: Disk) -> str:
    start = f"The disk of {disk.place} has {size_words(disk.free)} of {size_words(disk.size)} free"
    if disk.full_in_days is None:
        return f"{start}; nothing was added in the last 7 days"
    pace = f"{start}; at {size_words(disk.daily)} a day"
    if disk.full_on is None:
        return f"{pace} that is enough for more than ten years"
    return f"{pace} it will be full in {counted(disk.full_in_days, 'day')}, on {disk.full_on}"
