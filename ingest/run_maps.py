"""The map of one run alone, built from that run's results under the rules it had, and kept for the next question.

The live map keeps of each page only its newest visit. A replay of one run's results is the map as that run saw it,
exact by construction. Maps are kept in a folder beside the database (`sumi-ripple.db.runs/`), at most `KEPT` of them,
as files of SQLite with every engine;
they may be deleted at any time.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from crawler.database.completed_map import runs_folder
from crawler.database.ingest_progress import results_kept_from
from crawler.database.run_log import RecordedRun, recorded_runs
from crawler.model import recorded_settings
from crawler.model.settings import Config
from crawler.workspace.opening import open_workspace
from ingest.replay import Progress, ReplayError, replay

KEPT = 6  # maps of single runs


def rules_of_run(config: Config, run: RecordedRun) -> Config:
    """The config with the settings that the run had; as it is for a run that recorded none."""
    values = recorded_settings.read(run.settings) if run.settings else None
    return config if values is None else recorded_settings.restored(values, config)


def map_of_run(config: Config, number: int, progress: Progress | None = None) -> Path:
    """The path of the map of this run. Raises NoSuchRun, and ReplayError where its results are gone."""
    database = config.map_place
    run = recorded_runs(database).find(number)
    kept_from = results_kept_from(database)
    if kept_from is not None and number < kept_from:
        raise ReplayError(
            f"the results of run {number} are gone ([spool] results): only those of run {kept_from} and later are kept"
        )
    rules = rules_of_run(config, run)
    folder = runs_folder(database)
    path = folder / f"run-{number}-{_fingerprint(config, rules, run)}.db"
    if path.exists():
        path.touch()
        return path
    folder.mkdir(exist_ok=True)
    _drop_oldest(folder, KEPT - 1)
    replay(replace(rules, output=replace(config.output, database_path=path)), path, run=number, progress=progress)
    return path


def result_bytes(config: Config) -> int:
    """The size of all results: what building the map of a run has to read."""
    results = open_workspace(config).results
    return sum(results.segment_bytes(writer, n) for writer in results.writers() for n in results.segments(writer))


def _fingerprint(config: Config, rules: Config, run: RecordedRun) -> str:
    """Another text for other rules, and for another run of the same number; of a run under way, for other results."""
    facts = [rules.map_hash, run.started_at, run.finished_at or "", run.status]
    if run.status != "completed":
        results = open_workspace(config).results
        facts += [f"{writer} {results.end(writer)}" for writer in results.writers()]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _drop_oldest(folder: Path, most: int) -> None:
    maps = sorted(folder.glob("run-*.db"), key=lambda path: path.stat().st_mtime)
    for path in maps[: max(0, len(maps) - most)]:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
