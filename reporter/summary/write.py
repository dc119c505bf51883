"""The Markdown summary of a crawl.

    write_summary(database, path, *, run=None, notes=(), changes="") -> None
    render(database, *, run=None, notes=(), changes="") -> str

Both raise (`crawler.database.map_errors`) NoDatabase (no such file), NotAMap (no Sumi-Ripple database, or a newer one)
and NoSuchRun, a NotAMap (no run yet, or `run` is not the run that the map shows). `write_summary` makes the folder if
there is none, and replaces the file as a whole: a reader sees the old one or the new one. It raises
`NotWritten` where that cannot be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace
from crawler.model.settings import EntryNote
from crawler.workspace.atomic import write_atomically
from reporter.summary import markdown
from reporter.summary.ending import quoted
from reporter.survey import survey


class NotWritten(SumiError):
    """The summary cannot be written to its configured path; the map is complete."""


def write_summary(
    database: MapPlace, path: Path, *, run: int | None = None, notes: Sequence[EntryNote] = (), changes: str = ""
) -> None:
    """Write the summary of the run that the map shows (of `run`, if that is it) to `path`."""
    write_text(Path(path), render(database, run=run, notes=notes, changes=changes))


def write_text(path: Path, text: str) -> None:
    """Replace a summary as a whole. Raises NotWritten."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as problem:
        raise NotWritten(f"cannot write the summary {path}: {problem.strerror}") from None


def render(database: MapPlace, *, run: int | None = None, notes: Sequence[EntryNote] = (), changes: str = "") -> str:
    """The summary as text. `changes` is its section about an earlier run, as Markdown."""
    return markdown.summary(survey(database, run), version(), quoted(database.name), notes, changes)


def version() -> str:
    """Sumi-Ripple's version, as people write it: `1.0` for 1.0.0."""
    try:
        number = metadata.version("sumi-ripple")
    except metadata.PackageNotFoundError:
        number = "1.0.0"
    return number.removesuffix(".0") if number.count(".") > 1 else number
