"""The map that a call is about: that of a run, or the one that people see; and the stamp that names its state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crawler.database.completed_map import copy_place
from crawler.database.ingest_progress import spool_positions
from crawler.database.reader import open_map
from crawler.database.run_log import recorded_runs
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from reporter.queries.search_index import map_stamp
from reporter.web.face import Face


@dataclass(frozen=True, slots=True)
class ChosenMap:
    """`note` is for people: that another run is under way.

    `key` names the map among those that answers are kept of: the map of a completed run is the same before and after
    the next run begins, when it becomes a copy.
    """

    path: MapPlace
    key: str
    stamp: str
    run: int
    is_completed: bool
    rules: Config
    note: str = ""


def chosen(face: Face, run: int | None = None) -> ChosenMap:
    """Raises NoDatabase, NotAMap, NoSuchRun, and ReplayError where a run's results are gone."""
    config = face.config
    shown = face.shown()
    path, note = shown.path, shown.note
    if run is not None:
        runs = recorded_runs(face.database)
        found = runs.find(run)
        if found == runs.runs[-1]:
            path, note = face.database, ""
        elif shown.run is None or shown.run.number != run:
            path, note = _map_of_run(face, config, run, found.started_at), ""
    with open_map(path) as reader:
        stamp = map_stamp(reader)
    number, _, status = [*stamp.split(" "), "", "", ""][:3]
    is_completed = status == "completed"
    if not is_completed:  # it changes with every batch of the ingest
        stamp += f" {_last_change(path)}"
    is_shown = is_completed and path in (face.database, copy_place(face.database))
    key = f"{'completed' if is_shown else path} {number}"
    return ChosenMap(path, key, f"{key} {stamp}", int(number or 0), is_completed, config, note)


def _last_change(path: MapPlace) -> int:
    """Another number after every batch of the ingest."""
    if not isinstance(path, Path):
        return sum(cursor.segment + cursor.offset for cursor in (spool_positions(path) or {}).values())
    found_at = path.with_name(path.name + "-wal")
    return found_at.stat().st_mtime_ns if found_at.exists() else 0


def _map_of_run(face: Face, config: Config, run: int, started: str) -> Path:
    """The map of an earlier run, rebuilt from its results in the background. Raises Problem while that goes on."""

    def make() -> Path:
        with face.replays:
            return face.tools.map_of_run(config, run)

    path = face.prepared.get(f"map of run {run}", f"{started} {config.map_hash}", make)
    return path if path.exists() else make()  # the folder of such maps may be emptied at any time
