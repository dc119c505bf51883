"""The runs that a map knows, with the settings recorded with them."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.database.map_errors import NoSuchRun
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run. `settings` are the last ones that were recorded with it; None: none were."""

    number: int
    started_at: str
    finished_at: str | None
    status: str
    settings: str | None

    @property
    def is_completed(self) -> bool:
        return self.status == "completed"


@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """All runs of a map, oldest first."""

    path: MapPlace
    runs: tuple[RecordedRun, ...]

    def find(self, number: int) -> RecordedRun:
        """The run with this number. Raises NoSuchRun, which names those that there are."""
        for run in self.runs:
            if run.number == number:
                return run
        known = ", ".join(str(run.number) for run in self.runs[-20:])
        raise NoSuchRun(
            self.path, f"there is no run {number}; the runs there are: {known}" if self.runs else "nothing has run yet"
        )

    def completed(self) -> list[RecordedRun]:
        return [run for run in self.runs if run.is_completed]


def recorded_runs(database: MapPlace) -> RecordedRuns:
    """Raises NoDatabase and NotAMap."""
    with open_map(database) as reader:
        settings = "NULL"
        if reader.has("run_settings"):
            settings = "(SELECT s.settings FROM run_settings s WHERE s.run = r.id ORDER BY s.id DESC LIMIT 1)"
        rows = reader.all(f"SELECT r.id, r.started_at, r.finished_at, r.status, {settings} FROM runs r ORDER BY r.id")
    return RecordedRuns(database, tuple(RecordedRun(*row) for row in rows))


def rules_hash(database: MapPlace) -> str | None:
    """The hash of the rules that a map was built under; None: it has none. Raises NoDatabase and NotAMap."""
    with open_map(database) as reader:
        row = reader.first("SELECT value FROM meta WHERE name = 'map_hash'")
    return None if row is None else str(row[0])
