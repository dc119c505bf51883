"""A stage's progress, as the result logs and the map show it."""

from __future__ import annotations

from pathlib import Path

from crawler.database.frontier import Frontier, MapAway
from crawler.workspace.door import Workspace
from crawler.workspace.log import Cursor


class Progress:
    """Compares the result logs with the positions up to which the map has applied them."""

    def __init__(self, workspace: Workspace, database: Path) -> None:
        self._results = workspace.results
        self._map = Frontier(database)

    def of(self, stage: str) -> object:
        """A value that differs whenever this stage has done something."""
        if stage == "ingest":
            return sorted(self._positions().items())
        return [self._results.end(name) for name in self._results.writers() if name != "scheduler"]

    def has_unapplied_results(self) -> bool:
        """Are there results that the map has not applied yet?"""
        positions = self._positions()
        for name in self._results.writers():
            reader = self._results.reader(name, positions.get(name, Cursor()))
            try:
                if reader.read(1):
                    return True
            finally:
                reader.close()
        return False

    def close(self) -> None:
        self._map.close()

    def _positions(self) -> dict[str, Cursor]:
        try:
            if not self._map.is_open or self._map.has_been_replaced():
                self._map.open()
            return self._map.positions()
        except MapAway:
            self._map.close()
            return {}
