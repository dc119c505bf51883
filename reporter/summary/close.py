"""The end of a run: its summary is written, and the last words of the crawl are made.

    close_run(config, stopped_by, is_summary_due) -> Ending

Every completed run has its own summary, `summaries/run-N.md` in the workspace. The configured summary is that of the
last run that crawled something: a run that reached nothing does not replace it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawler.database.map_errors import MapMoved
from crawler.database.reader import open_map
from crawler.engine.place import place_of
from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.settings import Config
from reporter.figures import Figures
from reporter.queries.seeds import one_failed_page
from reporter.summary import ending, markdown
from reporter.summary.write import version, write_text
from reporter.survey import survey_of
from reporter.verdict import is_success

FOLDER = "summaries"


@dataclass(frozen=True, slots=True)
class Ending:
    """The last words of a crawl, and its exit code if nothing else failed."""

    lines: tuple[str, ...]
    exit_code: int
    summary: Path | None = None  # the summary that was written


@dataclass(frozen=True, slots=True)
class Written:
    """The summaries that were written. `kept`: the configured one was left as it is, because nothing was crawled."""

    own: Path
    summary: Path
    kept: bool


def close_run(
    config: Config,
    stopped_by: str | None = None,
    is_summary_due: bool = True,
    *,
    changes_of: Callable[[Config], str] = lambda config: "",
) -> Ending:
    """The last words. `stopped_by`: why the run is not complete. `is_summary_due`: its summary is written first.

    `changes_of` makes the summary's section about the run before.

    Raises NoDatabase, NotAMap, NoSuchRun (no run has started yet) and NotWritten.
    """
    figures, failed_url = _figures(config.map_place, in_full=is_summary_due)
    names = names_of(config, failed_url)
    files = _files(config)
    summary = None
    if is_summary_due:
        written = write_summaries(config, figures, changes_of(config))
        if written.kept:
            note = f"{short(written.summary)} (of the last run that crawled something)"
            files = [("summary", short(written.own)), ("kept", note), *files]
        else:
            files = [("summary", short(written.summary)), *files]
        summary = written.own if written.kept else written.summary
    lines = ending.ending_lines(figures, names, files, stopped_by)
    return Ending(tuple(lines), 1 if is_summary_due and not is_success(figures) else 0, summary)


def _figures(place: MapPlace, *, in_full: bool) -> tuple[Figures, str | None]:
    """The figures, and the URL of a page that failed. The ingest puts its log into the file of the map meanwhile, which
    waits for readers: so this one takes several snapshots, as long as they differ in nothing but indexes.
    """
    try:
        return _figures_of(place, in_full=in_full, is_settled=True)
    except MapMoved:
        return _figures_of(place, in_full=in_full, is_settled=False)


def _figures_of(place: MapPlace, *, in_full: bool, is_settled: bool) -> tuple[Figures, str | None]:
    with open_map(place, is_settled=is_settled) as reader:
        figures = survey_of(reader, None, in_full=in_full)
        return figures, one_failed_page(reader, figures.run.id, figures.states)


def _files(config: Config) -> list[tuple[str, str]]:
    place = config.map_place
    if isinstance(place, EngineMap):
        return [("map", str(place)), ("engine", str(place_of(config.engine.url, os.environ)))]
    return [("database", short(place)), ("spools", short(config.workspace / "spool"))]


def write_summaries(config: Config, figures: Figures, changes: str = "") -> Written:
    """Write the run's own summary, and the configured one if the run crawled something. Raises NotWritten."""
    summary = config.output.summary_path
    own = config.workspace / FOLDER / f"run-{figures.run.id}.md"
    name = ending.quoted(_from(summary.parent, config.source or summary))
    text = markdown.summary(figures, version(), name, config.entry_notes, changes)
    is_kept = figures.overall.pages_crawled == 0 and summary.exists()
    write_text(own, text)
    if not is_kept:
        write_text(summary, text)
    return Written(own, summary, is_kept)


def names_of(config: Config, failed_url: str | None = None) -> ending.Names:
    """The arguments that a user would type here for this config."""
    source = ending.quoted(short(config.source or config.output.database_path))
    given = f" --workspace {ending.quoted(short(config.workspace))}" if config.is_workspace_given else ""
    return ending.Names(source, source + given, failed_url)


def short(path: Path) -> str:
    """The path, relative to the current folder if it is below that."""
    return _from(Path.cwd(), path)


def _from(folder: Path, path: Path) -> str:
    relative = os.path.relpath(path, folder)
    return str(path) if relative.startswith("..") else relative
