"""Tables as CSV and the map as a file: everything that can be downloaded."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from crawler.database.reader import open_map
from crawler.observe.domain_waits import DomainWait
from crawler.rules.lists import EntryNotes
from reporter import candidate_views
from reporter.candidates import candidates as find_candidates
from reporter.diff import diff_views
from reporter.escape import cell
from reporter.export.graph import FORMATS, LEVELS, TABLES, Filters, export
from reporter.queries import overview
from reporter.queries.broken_links import mark_broken, pages_with_broken_links
from reporter.queries.domain_links import mark_quality
from reporter.queries.page_list import ListedPage
from reporter.queries.referrers import Referrer
from reporter.runs_list import list_runs
from reporter.survey import survey
from reporter.web.crawl_api import waiting_now
from reporter.web.map_api import DomainsQuery, Text, changes_of, domain_shape, fitting_domains, prepared_survey
from reporter.web.map_choice import ChosenMap, chosen
from reporter.web.page_api import PageFilterQuery, fitting_pages, linking_here
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call, is_among

_PART = 2000  # rows that are read at one time
_MOST_REFERRERS = 1_000_000


class ExportQuery(PageFilterQuery):
    """Besides the filters of pages (`pages.csv`): `level` of the map, `url` and `from` of referrers, and those of
    domains and of waiting domains, of which `closed` and `reason` are theirs alone.
    """

    level: Annotated[str, msgspec.Meta(max_length=20)] = "domain"
    url: Text = ""
    source: Text = ""
    closed: bool | None = None
    reason: Annotated[str, msgspec.Meta(max_length=40)] = ""


def export_table(call: Call) -> Response:
    """`NAME.csv`, one of `_TABLES`; or `map.FORMAT`."""
    about = chosen(call.face, call.query.run)
    make = _maker(call, about)
    tag = _tag(call, about)
    if is_among(call.headers.get("if-none-match", ""), tag):  # before the work, not after it
        return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache"})
    response = make()
    response.headers["ETag"] = tag
    return response


def _maker(call: Call, about: ChosenMap) -> Callable[[], Response]:
    """What makes the file that was asked for. Raises Problem where there is no such export."""
    name, _, ending = call.path["file"].rpartition(".")
    if ending == "csv" and name in _TABLES:
        return lambda: _csv(f"{name}.csv", _TABLES[name](call, about))
    if name == "map" and ending in FORMATS and ending not in TABLES:
        return lambda: _map_file(call, about, ending)
    if name in ("map.nodes", "map.edges") and ending == "csv":
        return lambda: _map_file(call, about, "csv", name.removeprefix("map."))
    known = ", ".join(EXPORTS)
    raise Problem(404, "no-such-export", f"the exports are {known}")


def _tag(call: Call, about: ChosenMap) -> str:
    """A weak ETag: the same state of the map, asked in the same way."""
    live = waiting_now(call.face) if call.path["file"] == "waiting.csv" else None
    parts = (about.stamp, call.path["file"], call.query, call.face.config.entry_notes, live)
    return f'W/"{blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()}"'


def diff_table(call: Call) -> Response:
    text = diff_views.as_csv(changes_of(call))
    return Response(text, media_type="text/csv; charset=utf-8", headers=_attached("changes.csv"))


def _csv(name: str, rows: Iterator[Sequence[Any]]) -> Response:
    """Rows as they are read: a table of a large map is never held in memory."""

    def parts() -> Iterator[str]:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            writer.writerow(["" if each is None else cell(each) if isinstance(each, str) else each for each in row])
            if text.tell() > 65536:
                yield text.getvalue()
                text.seek(0)
                text.truncate()
        yield text.getvalue()

    return StreamingResponse(parts(), media_type="text/csv; charset=utf-8", headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _pages(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    rows, after = fitting_pages(call.face, about, call.query, 0, _PART)  # a mistake shows before the first line

    def parts() -> Iterator[Sequence[Any]]:
        yield ["class" if name == "klass" else name for name in ListedPage._fields]
        yield from rows
        following = after
        while following is not None:
            more, following = fitting_pages(call.face, about, call.query, following, _PART)
            yield from more

    return parts()


def _domains(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    query = call.query
    filters = {"q": query.q, "class": query.klass, "closed": query.closed, "reason": query.reason}
    try:
        wanted = msgspec.convert(filters, DomainsQuery)
    except msgspec.ValidationError as problem:
        raise Problem(422, "bad-query", str(problem)) from None
    return _shapes([domain_shape(row) for row in fitting_domains(prepared_survey(call.face, about).domains, wanted)])


def _candidates(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    text = candidate_views.as_csv(find_candidates(about.path, 100_000))
    return iter(csv.reader(io.StringIO(text)))


def _fixable(kind: str) -> Callable[[Call, ChosenMap], Iterator[Sequence[Any]]]:
    def rows(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
        found = getattr(survey(about.path, is_uncut=True), kind)
        return _shapes([{**asdict(row), "examples": " ".join(row.examples)} for row in found])

    return rows


def _mending(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    """A row for each page with such a link: what a site's owner works through."""
    with open_map(about.path) as reader:
        mark_quality(reader, overview.domains(reader).values())
        mark_broken(reader, about.run)
        rows = pages_with_broken_links(reader, about.run)
    return iter([("kind", "domain", "page", "link"), *rows])


def _referrers(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    rows = linking_here(call.face, about, call.query.url, call.query.source, 0, _MOST_REFERRERS)
    return iter([Referrer._fields, *rows])


def _runs(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    return _shapes([_flat(asdict(run)) for run in list_runs(call.face.database)])


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {name: " ".join(value) if isinstance(value, list | tuple) else value for name, value in row.items()}


def _waiting(call: Call, about: ChosenMap) -> Iterator[Sequence[Any]]:
    found = waiting_now(call.face).domains
    yield [*DomainWait._fields, "pages"]
    yield from ((*each, pages) for each, pages in found if call.query.reason in ("", each.reason))


def _shapes(rows: Iterable[dict[str, Any]]) -> Iterator[Sequence[Any]]:
    for number, row in enumerate(rows):
        if number == 0:
            yield list(row)
        yield list(row.values())


_TABLES: dict[str, Callable[[Call, ChosenMap], Iterator[Sequence[Any]]]] = {
    "pages": _pages,
    "domains": _domains,
    "candidates": _candidates,
    "dead-links": _fixable("dead_links"),
    "unreachable-links": _fixable("unreachable_links"),
    "moved-links": _fixable("moved_links"),
    "links-to-mend": _mending,
    "referrers": _referrers,
    "runs": _runs,
    "waiting": _waiting,
}
EXPORTS = (
    *(f"{name}.csv" for name in _TABLES),
    *("diff.csv", "map.gexf", "map.graphml", "map.jsonl", "map.nodes.csv", "map.edges.csv"),
)


def exports(call: Call) -> Answer:
    """The files that can be had, and the formats and levels of the map."""
    files = [{"name": name, "path": f"/api/export/{name}"} for name in EXPORTS]
    return Answer({"files": files, "levels": list(LEVELS)})


def _map_file(call: Call, about: ChosenMap, format: str, part: str = "") -> Response:
    folder = TemporaryDirectory(prefix="sumi-export-")
    target = Path(folder.name) / f"map.{format}"
    try:
        made = export(
            about.path,
            target,
            format=format,
            level=call.query.level,
            filters=Filters(),
            notes=EntryNotes(call.face.config),
        )
        path = next(each for each in made.files if part in each.name)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=path.name, background=BackgroundTask(folder.cleanup))
