"""Results that may go by `[retention] results`, at the wish of a person: the ingest's role is held meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crawler.database.map_errors import MapError
from crawler.database.run_log import recorded_runs
from crawler.model.daily import VISITS_HEADER, visits_by_day
from crawler.model.removal import Pruning, Removal
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.workspace.opening import open_workspace
from ingest.upkeep.retention import old_segments, visits_of
from ingest.writing.kept_runs import note_results_kept_from

# (table, header, source, rows): see crawler/keep/prune.py
RollUp = Callable[[str, bytes, str, Callable[[], bytes]], None]


def prune_results(config: Config, roll_up: RollUp, *, is_named: bool) -> Pruning:
    """What would go. Without their name (`is_named`) results stay: replay needs them."""
    keep = config.retention.results
    if not keep:
        return Pruning()
    try:
        runs = recorded_runs(config.map_place).runs
    except MapError:
        return Pruning()
    keep_from = runs[-1].number - keep + 1 if runs else 0
    results = open_workspace(config).results
    segments = old_segments(results, keep_from) if keep_from > 1 else []
    if not segments:
        return Pruning()
    size = sum(results.segment_bytes(writer, number) for writer, number in segments)
    words = f"{counted(len(segments), 'segment')} with results of runs before {keep_from}"
    if not is_named:
        return Pruning(stays=(f"results: {words} stay: replay needs them; to remove them: sumi-ripple prune results",))
    why = f"only the results of the last {counted(keep, 'run')} are kept ([retention] results)"
    remove = partial(_remove, config, roll_up, keep_from, segments)
    return Pruning((Removal("results", words, size, why, remove, _loses(keep_from)),))


def _loses(keep_from: int) -> str:
    return (
        f"of runs before {keep_from} there will be no map, no diff, no audit, no `store cat --run` and no visits in"
        " WARC files but those of pages that were not due since; a rebuild under other rules needs them too"
    )


def _remove(config: Config, roll_up: RollUp, keep_from: int, segments: list[tuple[str, int]]) -> None:
    """The map says first that they are gone: a cut in between leaves segments that the next prune removes."""
    workspace = open_workspace(config)
    role = workspace.take_role("ingest")
    try:
        note_results_kept_from(config.map_place, keep_from)
        for writer, number in segments:
            source = f"results/{writer}/{number}"
            rows = partial(_daily_figures, config, writer, number, source)
            roll_up("results.csv", VISITS_HEADER, source, rows)
            workspace.results.remove_segment(writer, number)
    finally:
        role.release()


def _daily_figures(config: Config, writer: str, number: int, source: str) -> bytes:
    return visits_by_day(visits_of(open_workspace(config).results, writer, number), source)
