"""PURE. Where a map is: in a file of SQLite, or in a schema of the engine's database."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

LIVE = "sumi_map"  # the schema that the ingest writes; those of other maps begin with it


@dataclass(frozen=True, slots=True)
class EngineMap:
    """A map in the engine. Its text names the schema alone: the URL may hold a password.

    `files` is the path that the map would have as a file: what is derived from a map for people lies beside that.
    """

    url: str = field(repr=False)
    schema: str = LIVE
    files: Path = field(default=Path("sumi-ripple.db"), compare=False)

    def __str__(self) -> str:
        return f"{self.schema} in the engine"

    @property
    def name(self) -> str:
        return self.schema

    def beside(self, suffix: str) -> EngineMap:
        """Another map of the same database, named after this one."""
        return replace(self, schema=f"{self.schema}_{suffix}")


MapPlace = Path | EngineMap


def files_of(place: MapPlace) -> Path:
    """The path beside which files lie that are derived from this map."""
    return place.files if isinstance(place, EngineMap) else place


def named_place(text: str) -> MapPlace:
    """The place that a person names: a URL of the engine, or a path."""
    return EngineMap(text) if text.startswith(("postgresql://", "postgres://")) else Path(text)
