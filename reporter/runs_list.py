"""`sumi-ripple runs`: every run with its figures, and the settings that changed from one to the next.

list_runs(database: MapPlace) -> list[RunSummary]      raises NoDatabase, NotAMap, NoSuchRun (nothing has run yet)
as_text(runs) -> str, as_json(runs) -> str
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from crawler.database.map_errors import NoSuchRun
from crawler.database.reader import open_map
from crawler.model import recorded_settings
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import plain, text_words
from reporter.counting import run_figures
from reporter.escape import json_text
from reporter.figures import duration_words, whole_seconds
from reporter.queries.run_history import RunHistoryRow, run_history, run_settings
from reporter.stats import columns
from reporter.survey import survey_of

VERSION = 1
_HASH = 8  # characters of a hash that people see
_CHANGES = 12  # changed settings of a run that people see


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run. Figures are None where none were kept; `changed` is None where the settings were not recorded."""

    id: int
    status: str
    started: str
    finished: str | None
    seconds: int | None
    pages: int | None
    known: int | None
    links: int | None
    errors: int | None
    domains: int | None
    config_hash: str
    changed: tuple[str, ...] | None


def list_runs(database: MapPlace, *, is_counted: bool = True) -> list[RunSummary]:
    """All runs, oldest first. The newest one's figures are counted where they were not kept, unless told otherwise."""
    with open_map(database) as reader:
        rows = run_history(reader)
        if not rows:
            raise NoSuchRun(reader.path, "no run has been started yet")
        if rows[-1].pages is None and is_counted:
            found = survey_of(reader, None, in_full=False)
            overall = found.overall
            rows[-1] = rows[-1]._replace(
                pages=overall.pages_crawled,
                known=overall.urls_known,
                links=overall.links,
                errors=overall.errors,
                domains=len(found.domains),
            )
        changed = _changes(run_settings(reader))
        return [_summary(row, changed.get(row.id)) for row in rows]


def _summary(row: RunHistoryRow, changed: tuple[str, ...] | None) -> RunSummary:
    times = run_figures(row)
    return RunSummary(
        id=row.id,
        status=row.status,
        started=row.started_at,
        finished=row.finished_at,
        seconds=times.seconds,
        pages=row.pages,
        known=row.known,
        links=row.links,
        errors=row.errors,
        domains=row.domains,
        config_hash=row.config_hash,
        changed=changed,
    )


def _changes(recorded: list[tuple[int, str]]) -> dict[int, tuple[str, ...] | None]:
    """Run → what its settings changed, against the settings before; None for the first that are known."""
    found: dict[int, tuple[str, ...] | None] = {}
    before: recorded_settings.Values | None = None
    for run, text in recorded:
        values = recorded_settings.read(text)
        if values is None:
            continue
        if before is not None:
            found[run] = (*(found.get(run) or ()), *recorded_settings.changes(before, values))
        else:
            found[run] = None
        before = values
    return found


# -- for people and machines -----------------------------------------------------------------------------------


def as_text(runs: list[RunSummary]) -> str:
    head = ("run", "started", "took", "ended", "crawled", "known", "links", "failed", "config")
    rows = [
        (
            f"{run.id}",
            plain(whole_seconds(run.started)).replace("T", " ").removesuffix("Z"),
            "-" if run.seconds is None else duration_words(run.seconds),
            plain(run.status),
            *(_count(number) for number in (run.pages, run.known, run.links, run.errors)),
            plain(run.config_hash[:_HASH]) or "-",
        )
        for run in runs
    ]
    first, *lines = columns(head, rows, texts=0)
    text = [first]
    for run, line in zip(runs, lines, strict=True):
        text.append(line)
        changed = run.changed or ()
        text += [f"     {text_words(each, 120)}" for each in changed[:_CHANGES]]
        if len(changed) > _CHANGES:
            text.append(f"     ... and {len(changed) - _CHANGES} more settings; --json lists them all")
    return "\n".join(text) + "\n"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def as_json(runs: list[RunSummary]) -> str:
    return json_text({"v": VERSION, "kind": "runs", "runs": [asdict(run) for run in runs]})
