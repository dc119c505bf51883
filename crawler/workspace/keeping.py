"""The door for the commands that keep a workspace over time: backups, figures about its size, what may be removed.

Stages do not use it. `crawler.workspace.files.kept_files` implements it for a workspace of files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawler.workspace.log import Cursor


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a workspace: its size on disk, and the share of it that was written in the last 24 hours and 7 days.

    `place`: a folder on the disk that it takes; empty for what is in an engine.
    """

    name: str
    files: int = 0
    size: int = 0
    last_day: int = 0
    last_week: int = 0
    place: str = ""

    def __add__(self, other: Part) -> Part:
        return Part(
            self.name,
            self.files + other.files,
            self.size + other.size,
            self.last_day + other.last_day,
            self.last_week + other.last_week,
            self.place or other.place,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that may be removed one day: `name` is its path in the workspace, `at` when it was last written."""

    name: str
    size: int
    at: float


@dataclass(frozen=True, slots=True, order=True)
class OldSchema:
    """A schema of an engine with a crawl, or a map, that was moved aside at that time."""

    name: str
    size: int
    at: float


class Schemas(Protocol):
    """What an engine keeps of a crawl, and of those before it. Raises EngineError."""

    def parts(self, now: float, map_shares: tuple[float, float]) -> list[Part]:
        """Sizes. `map_shares`: the shares of the map that are of the last 24 hours, and of the last 7 days."""

    def old(self) -> list[OldSchema]:
        """Crawls and maps that were moved aside."""

    def archives(self, name: str) -> list[Path]:
        """The folders on this machine with results that left the crawl in this old schema."""

    def mark(self, names: list[str]) -> list[Path]:
        """Rename old schemas, to be deleted; returns the folders of their archives on this machine."""

    def drop_marked(self) -> int:
        """Delete the schemas that were marked, now or by a purge that was killed; returns their number."""


class Keeping(Protocol):
    """A workspace as something to be kept."""

    def save(self, target: Path, ends: Mapping[str, Cursor], *, has_store: bool) -> None:
        """Copy what a crawl needs to go on into the folder `target`: results up to `ends`, gates, logs, summaries.

        Sealed files are linked where the disk is the same one. Jobs and hints are left out: they are made again from
        the map. With `has_store`, the stored pages too. Raises WorkspaceError.
        """

    def settle(self, run: int, closed: Collection[str]) -> None:
        """After a restore: every domain waits its full delay, and counts its requests as it did at the backup.

        `closed`: the domains that the restored map knows as closed in `run`. The others are open.
        """

    def parts(self, now: float) -> list[Part]:
        """The size of every part."""

    def old(self, kind: str, before: float) -> list[Kept]:
        """Files of a kind (`logs`, `quarantine`, `summaries`, `aside`) last written before then, oldest first."""

    def remove(self, kept: Kept) -> None:
        """Remove such a file, or folder. What is gone already is passed over."""

    def read(self, kept: Kept) -> bytes:
        """The content of such a file."""

    def append(self, name: str, header: bytes, content: bytes) -> None:
        """Append to a file of the workspace, durably; a new one begins with `header`."""
