"""The map of the last completed run, which stays whole while the next run is under way.

A run changes the rows of the one before: visited pages wait again, links are seen again one by one. So the ingest keeps
a copy of the map when a run begins. People's questions go to the copy meanwhile; the stages, `status` and `digest`
always read the live map. When the run is completed, the copy is put aside: the two runs can then be compared without
building their maps again. A large one is removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from crawler.database.map_errors import MapError
from crawler.database.run_log import RecordedRun, RecordedRuns, recorded_runs
from crawler.model.map_place import EngineMap, MapPlace, files_of

_COPY = "completed"


def runs_folder(place: MapPlace) -> Path:
    """The folder beside a database for maps of single runs and the copy. It may be deleted at any time."""
    database = files_of(place)
    return database.with_name(f"{database.name}.runs")


def live_database(path: MapPlace) -> MapPlace:
    """The database that a map of a single run, or the copy, belongs to; any other path is its own."""
    if isinstance(path, EngineMap):
        return replace(path, schema=path.schema.removesuffix(f"_{_COPY}"))
    name = path.parent.name
    return path.parent.with_name(name.removesuffix(".runs")) if name.endswith(".runs") else path


def copy_path(database: Path) -> Path:
    """The place of the copy of a map in a file."""
    return runs_folder(database) / f"{_COPY}.db"


def copy_place(database: MapPlace) -> MapPlace:
    """The place of the copy."""
    return database.beside(_COPY) if isinstance(database, EngineMap) else copy_path(database)


def aside_path(database: Path) -> Path:
    """The place of the copy of a file when the run after it is completed, until the next run begins."""
    return runs_folder(database) / "before.db"


@dataclass(frozen=True, slots=True)
class ShownMap:
    """The file that a question goes to. `run` is the run it shows, None: that of the live map; `note` tells people."""

    path: MapPlace
    run: RecordedRun | None = None
    note: str = ""


def shown_map(database: MapPlace) -> ShownMap:
    """The copy while a run is under way, else the live map; that one too if it cannot be read: its reader says why."""
    try:
        runs = recorded_runs(database)
    except MapError:
        return ShownMap(database)
    newest = runs.runs[-1] if runs.runs else None
    completed = runs.completed()
    if newest is None or newest.is_completed or not completed:
        return ShownMap(database)
    how = "is under way" if newest.status == "running" else "is not finished"
    shown = completed_run(runs)
    if shown is None:
        note = f"Run {newest.number} {how}; this is its map so far. The map of run {completed[-1].number} was not kept."
        return ShownMap(database, note=note)
    when = f", completed {shown.finished_at}" if shown.finished_at else ""
    note = f"This is the map of run {shown.number}{when}. Run {newest.number} {how}; --run {newest.number} shows it."
    return ShownMap(copy_place(database), shown, note)


def maps_before(runs: RecordedRuns, before: RecordedRun, after: RecordedRun) -> Iterator[Path]:
    """Where the map may be as the first of two runs left it, if the live map shows the second, next run under the same
    rules. A page has the same number in both, unless the live map was built anew in between.

    The copy is looked for first where it lies during a run: it may be put aside just now.
    """
    is_next = after == runs.runs[-1] and after.is_completed and before.number == after.number - 1
    if is_next and before.settings is not None and before.settings == after.settings:
        if isinstance(runs.path, EngineMap):
            return  # its copy is not put aside
        for path in (copy_path(runs.path), aside_path(runs.path)):
            if _run_shown(path, runs) == before:
                yield path


def completed_run(runs: RecordedRuns) -> RecordedRun | None:
    """The run that the copy shows; None: there is no copy of this map, or it cannot be read."""
    return _run_shown(copy_place(runs.path), runs)


def _run_shown(path: MapPlace, runs: RecordedRuns) -> RecordedRun | None:
    """The completed run of this map that a copy shows; None: it shows none, or cannot be read."""
    try:
        kept = recorded_runs(path).runs[-1]
    except (MapError, IndexError):
        return None
    # A copy of another map may lie there, from before --fresh or from a crash.
    same = [run for run in runs.completed() if (run.number, run.started_at) == (kept.number, kept.started_at)]
    return same[0] if same and kept.is_completed else None
