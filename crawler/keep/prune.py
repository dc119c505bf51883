"""What may go from a workspace by `[retention]`: logs, quarantined lines, summaries, old maps, crawls moved aside.

Results, page records and stored pages are others' (`ingest/old_results.py`, `ingest/old_records.py`, `old_blobs`).
Figures are rolled up into `rolled-up/` of the workspace before their details go.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from crawler.database.completed_map import aside_path, runs_folder
from crawler.database.map_errors import MapError
from crawler.database.run_figures import FIGURES_HEADER, figures_row
from crawler.database.run_log import recorded_runs
from crawler.keep.storage import older_maps
from crawler.model.daily import METRICS_HEADER, VISITS_HEADER, metrics_by_day, page_log_by_day
from crawler.model.errors import UsageError
from crawler.model.removal import Pruning, Removal
from crawler.model.settings import Config
from crawler.model.shown_text import age_words
from crawler.workspace.keeping import Keeping, Kept, Schemas
from crawler.workspace.opening import open_keeping, open_schemas

ROLLED_UP = "rolled-up"
OF_WORKSPACE = ("logs", "quarantine", "summaries")
KINDS = ("results", "blobs", *OF_WORKSPACE, "metadata", "run-maps", "aside")
NEEDED = {
    "results": "replay needs them",
    "aside": "they are whole crawls",
}  # kinds that go only if they are named


def require_limits(config: Config, kinds: tuple[str, ...]) -> None:
    """Raise UsageError for a kind that was named but has no limit in the config."""
    for kind in kinds:
        if not limit_of(config, kind):
            raise UsageError(
                f"[retention] {kind} is not set in {config.source}, so none of that kind may go; set it first"
            )


def limit_of(config: Config, kind: str) -> int:
    """The limit of a kind: seconds, or runs of results; 0: none goes."""
    return int(getattr(config.retention, kind.replace("-", "_")))


def prune_workspace(config: Config, kinds: tuple[str, ...], now: float | None = None) -> Pruning:
    """What would go of these kinds; without any, of all that nothing needs."""
    now = time.time() if now is None else now
    keeping = open_keeping(config.workspace)
    found = Pruning()
    for kind in kinds or (*OF_WORKSPACE, "run-maps", "aside"):
        limit = limit_of(config, kind)
        if not limit:
            continue
        if kind == "run-maps":
            found += Pruning(tuple(_old_maps_of_runs(config, now - limit, limit)))
        elif kind == "aside":
            removals = tuple(_moved_aside(config, keeping, now - limit, limit))
            found += Pruning(removals) if kind in kinds else _left(kind, removals)
        elif kind in OF_WORKSPACE:
            found += Pruning(tuple(_old_files(config, keeping, kind, now - limit, limit)))
    return found


def _left(kind: str, removals: tuple[Removal, ...]) -> Pruning:
    """The sentence about what stays because it was not named."""
    if not removals:
        return Pruning()
    words = (
        f"{kind}: {len(removals)} older than the limit stay: {NEEDED[kind]}; to remove them: sumi-ripple prune {kind}"
    )
    return Pruning(stays=(words,))


def _old_files(config: Config, keeping: Keeping, kind: str, before: float, limit: int) -> Iterator[Removal]:
    newest = _run_under_way(config)
    for kept in keeping.old(kind, before):
        if newest is not None and f"-{newest}." in kept.name:
            continue  # the log, or summary, of a run that is not over grows on
        why = f"older than {age_words(limit)} ([retention] {kind})"
        yield Removal(kind, kept.name, kept.size, why, partial(_roll_up_and_remove, config, keeping, kept))


def _roll_up_and_remove(config: Config, keeping: Keeping, kept: Kept) -> None:
    found = _rolled_up(config, kept)
    if found is not None:
        name, header, rows = found
        with suppress(FileNotFoundError):
            roll_up(keeping, name, header, kept.name, lambda: rows(keeping.read(kept).decode("utf-8", "replace")))
    keeping.remove(kept)


def roll_up(keeping: Keeping, name: str, header: bytes, source: str, rows: Callable[[], bytes]) -> None:
    """Append the figures of one source to a table of `rolled-up/`, unless they are in it already."""
    place = f"{ROLLED_UP}/{name}"
    with suppress(FileNotFoundError):
        if f",{source}\r\n".encode() in keeping.read(Kept(place, 0, 0)):
            return
    keeping.append(place, header, rows())


def _rolled_up(config: Config, kept: Kept) -> tuple[str, bytes, Callable[[str], bytes]] | None:
    """The table for the figures of this file, with its header and the function that makes rows; None: it has none."""
    stem = Path(kept.name).stem
    if kept.name.startswith("logs/metrics"):
        return "metrics.csv", METRICS_HEADER, partial(metrics_by_day, source=kept.name)
    if kept.name.startswith("logs/pages"):
        return "visits.csv", VISITS_HEADER, partial(page_log_by_day, source=kept.name)
    if kept.name.startswith("summaries/run-") and stem.removeprefix("run-").isdecimal():
        run = int(stem.removeprefix("run-"))
        return "runs.csv", FIGURES_HEADER, lambda _: figures_row(config.map_place, run, kept.name)
    return None


def _run_under_way(config: Config) -> int | None:
    try:
        runs = recorded_runs(config.map_place).runs
    except MapError:
        return None
    return runs[-1].number if runs and not runs[-1].is_completed else None


def _old_maps_of_runs(config: Config, before: float, limit: int) -> Iterator[Removal]:
    folder = runs_folder(config.output.database_path)
    aside = aside_path(config.output.database_path)
    for path in sorted([*folder.glob("run-*.db"), *folder.glob(aside.name)]) if folder.is_dir() else ():
        if path.stat().st_mtime < before:
            why = f"not asked for since {age_words(limit)} ([retention] run-maps); it is made again from results"
            yield Removal("run-maps", str(path), path.stat().st_size, why, partial(_remove_map, path))


def _moved_aside(config: Config, keeping: Keeping, before: float, limit: int) -> Iterator[Removal]:
    why = f"older than {age_words(limit)} ([retention] aside)"
    for kept in keeping.old("aside", before):
        yield Removal("aside", kept.name, kept.size, why, partial(keeping.remove, kept))
    for path in older_maps(config.output.database_path):
        if path.stat().st_mtime < before:
            yield Removal("aside", str(path), path.stat().st_size, why, partial(_remove_map, path))
    yield from _old_schemas(config, before, why)


def _old_schemas(config: Config, before: float, why: str) -> Iterator[Removal]:
    """Crawls and maps that were moved aside in an engine, with the results in the archive of this machine."""
    schemas = open_schemas(config)
    if schemas is None:
        return
    for old in schemas.old():
        if old.at < before:
            name = f"{old.name} in the engine"
            yield Removal("aside", name, old.size, why, partial(_remove_schema, schemas, old.name))


def _remove_schema(schemas: Schemas, name: str) -> None:
    """The archive first: a cut in between leaves the schema, and the next prune removes the rest."""
    for folder in schemas.archives(name):
        shutil.rmtree(folder)
    schemas.mark([name])
    schemas.drop_marked()


def _remove_map(path: Path) -> None:
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
