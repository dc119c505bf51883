"""Questions to the map: figures, domains, runs, changes, explanations, candidates, the levels of the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec
import orjson
from starlette.responses import PlainTextResponse, Response

from crawler.config.checks import Bad, domain_pattern
from crawler.database.map_errors import NoSuchRun
from crawler.database.presence import is_there
from crawler.database.reader import open_map
from crawler.database.run_log import recorded_runs
from crawler.model.shown_text import unicode_domain
from crawler.model.urls import UrlError, normalize, without_www
from reporter import candidate_views
from reporter.atlas import behind_links, community_level, domain_level, page_level, run_difference
from reporter.candidates import candidates as find_candidates
from reporter.diff import diff_views
from reporter.explain.domain_explanation import explain_domain
from reporter.explain.explanation import explain as explain_url
from reporter.figures import DomainFigures, Figures
from reporter.queries.one_page import domain_by_name
from reporter.queries.run_history import run_history
from reporter.queries.visit_totals import visit_totals
from reporter.runs_list import list_runs
from reporter.survey import survey
from reporter.web.face import Face
from reporter.web.map_choice import ChosenMap, chosen
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

Run = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=500)]
Text = Annotated[str, msgspec.Meta(max_length=4000)]
_MOST_CHANGES = 500  # of a kind, in one answer; the CSV has all


class RunQuery(msgspec.Struct, forbid_unknown_fields=True):
    run: Run | None = None


class StatsQuery(RunQuery):
    newest: bool = False  # of the newest run, even while it is under way


# -- figures -----------------------------------------------------------------------------------------------------


def prepared_survey(face: Face, about: ChosenMap) -> Figures:
    """The figures of a run, worked out once."""
    return face.prepared.get(
        f"survey {about.key}", about.stamp, lambda: survey(about.path, in_full=False), is_live=not about.is_completed
    )


def stats(call: Call) -> Answer:
    """The figures of the run that people see, as far as counts go: no names of pages or domains."""
    newest = recorded_runs(call.face.database).runs[-1:] if call.query.newest else ()
    about = chosen(call.face, newest[0].number if newest else call.query.run)
    found = prepared_survey(call.face, about)
    with open_map(about.path) as reader:
        status_codes = visit_totals(reader, about.run, "status")
        size = visit_totals(reader, about.run, "bytes").get("", 0)
    return Answer(
        {
            "run": asdict(found.run),
            "note": about.note,
            "overall": asdict(found.overall),
            "states": found.states,
            "depths": [asdict(depth) for depth in found.depths],
            "errors": [asdict(error) for error in found.errors],
            "error_slugs": found.error_slugs,
            "status_codes": status_codes,
            "bytes": size,
            "domains": len(found.domains),
            "seeds": {"all": found.seeds, "waiting": found.seeds_waiting, "failed": len(found.failed_seeds)},
        }
    )


def mending(call: Call) -> Answer:
    """Links of quality domains that their owners may want to change: gone, not reachable, permanently redirected."""
    about = chosen(call.face, call.query.run)
    found = call.face.prepared.get(
        f"full {about.key}", about.stamp, lambda: survey(about.path, is_uncut=True), is_live=not about.is_completed
    )
    lists = {"dead": found.dead_links, "unreachable": found.unreachable_links, "moved": found.moved_links}
    totals = {"dead": found.dead_links_total, "unreachable": found.unreachable_links_total}
    return Answer(
        {
            "run": found.run.id,
            "totals": {**totals, "moved": found.moved_links_total},
            **{name: [asdict(row) for row in rows[:2000]] for name, rows in lists.items()},
        }
    )


# -- domains -----------------------------------------------------------------------------------------------------


Sort = Literal["domain", "known", "crawled", "waiting", "errors", "requests"]


class DomainsQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"klass": "class"}):
    q: Text = ""
    klass: Literal["", "quality", "discovered", "stubbed", "blacklisted"] = ""
    closed: bool | None = None
    reason: Annotated[str, msgspec.Meta(max_length=40)] = ""  # of its closure
    sort: Sort = "known"
    after: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    limit: Limit = 50
    run: Run | None = None


def domains(call: Call) -> Answer:
    about, query = chosen(call.face, call.query.run), call.query
    name = f"domains by {query.sort} {about.key}"
    known = prepared_survey(call.face, about).domains
    rows = call.face.prepared.get(name, about.stamp, lambda: _sorted(known, query.sort), is_live=not about.is_completed)
    fits = fitting_domains(rows, query)
    part = fits[query.after : query.after + query.limit]
    end = query.after + len(part)
    return Answer(
        {
            "run": about.run,
            "note": about.note,
            "total": len(fits),
            "domains": [domain_shape(row) for row in part],
            "next": end if end < len(fits) else None,
        }
    )


def fitting_domains(rows: list[DomainFigures], query: DomainsQuery) -> list[DomainFigures]:
    """Those that pass the filters, in their order."""
    wanted = query.q.lower().strip()
    return [
        row
        for row in rows
        if (not wanted or wanted in row.domain or wanted in (unicode_domain(row.domain) or ""))
        and (not query.klass or row.klass == query.klass)
        and (query.closed is None or (row.closed is not None) == query.closed)
        and query.reason in ("", row.closed)
    ]


def _sorted(rows: list[DomainFigures], sort: str) -> list[DomainFigures]:
    if sort == "domain":
        return sorted(rows, key=lambda row: row.domain)
    return sorted(rows, key=lambda row: (-getattr(row, sort), row.domain))


def domain_shape(row: DomainFigures) -> dict[str, Any]:
    fields = asdict(row)
    fields["class"] = fields.pop("klass")
    return {"unicode": unicode_domain(row.domain), **fields}


def robots(call: Call) -> Answer:
    """robots.txt as it was last read."""
    name = host(call.path["domain"])
    with open_map(call.face.database) as reader:
        found = domain_by_name(reader, name)
    if found is None or found[0].robots_outcome is None:
        raise Problem(404, "no-robots", f"no robots.txt of {name} has been read")
    row, body, fetched = found
    return Answer(
        {
            "domain": name,
            "outcome": row.robots_outcome,
            "fetched_at": fetched,
            "crawl_delay": row.crawl_delay,
            "body": body,
        }
    )


def host(text: str) -> str:
    """A domain as keys write it. Raises Problem."""
    try:
        pattern = str(domain_pattern(text))
    except Bad as problem:
        raise Problem(422, "no-domain", f"{text[:100]!r} is not a domain; give {problem}") from None
    if pattern.startswith("*."):
        raise Problem(422, "no-domain", "give one domain, without *.")
    return without_www(pattern)


# -- runs --------------------------------------------------------------------------------------------------------


def runs(call: Call) -> Answer:
    """The runs. Figures of a run under way come with the live figures, so none are counted here."""
    database = call.face.database
    with open_map(database) as reader:
        newest = run_history(reader)
    if not newest:
        raise NoSuchRun(database, "no run has been started yet")
    stamp = " ".join(str(part) for row in newest for part in row)
    is_under_way = newest[-1].status == "running"
    found = call.face.prepared.get("runs", stamp, lambda: list_runs(database, is_counted=not is_under_way))
    shapes = [asdict(run) for run in found]
    if is_under_way:
        figures = call.face.live.newest()["figures"]
        shapes[-1] |= {"pages": figures["crawled"], **{name: figures[name] for name in ("known", "links", "errors")}}
    return Answer({"runs": shapes})


def summary(call: Call) -> Response:
    """The Markdown summary of a run, as it was written when the run ended."""
    try:
        number = int(call.path["run"])
    except ValueError:
        raise Problem(404, "no-such-run", "a run is a number") from None
    recorded_runs(call.face.database).find(number)
    path = call.face.first_config.workspace / "summaries" / f"run-{number}.md"
    try:
        return PlainTextResponse(path.read_bytes(), media_type="text/markdown; charset=utf-8")
    except OSError:
        raise Problem(404, "no-summary", f"no summary of run {number} is kept") from None


class DiffQuery(msgspec.Struct, forbid_unknown_fields=True):
    before: Run | None = None
    after: Run | None = None


def changes_of(call: Call) -> Any:
    query = call.query
    if (query.before is None) != (query.after is None):
        raise Problem(422, "one-run", "give both runs, or none for the last two that are completed")
    numbers = None if query.before is None else (query.before, query.after)
    known = recorded_runs(call.face.database)
    stamp = " ".join(f"{run.number} {run.status} {run.finished_at}" for run in known.runs)
    config = call.face.config

    def make() -> Any:
        with call.face.replays:
            return call.face.tools.changes(config, numbers)

    return call.face.prepared.get(f"diff {numbers}", stamp, make)


def diff(call: Call) -> Answer:
    found = changes_of(call)
    shape = orjson.loads(diff_views.as_json(found))
    counted: dict[str, int] = {}
    listed = []
    for change in shape["changes"]:
        counted[change["change"]] = counted.get(change["change"], 0) + 1
        if counted[change["change"]] <= _MOST_CHANGES:
            listed.append(change)
    return Answer({**_content(shape), "changes": listed, "listed_at_most": _MOST_CHANGES})


# -- explanations ------------------------------------------------------------------------------------------------


class ExplainQuery(msgspec.Struct, forbid_unknown_fields=True):
    url: Text = ""
    domain: Text = ""
    run: Run | None = None


def explain(call: Call) -> Answer:
    """A URL or a whole domain: its state, and why."""
    query, face = call.query, call.face
    if bool(query.url) == bool(query.domain):
        raise Problem(422, "url-or-domain", "give either url or domain")
    about = _chosen_or_none(face, query.run)
    database = about.path if about else None
    if query.domain:
        name, config = host(query.domain), face.config
        stamp = f"{about.stamp if about else ''} {config.map_hash} {config.entry_notes}"
        # Who links there is summed up over all domains: some tenths of a second on a large map.
        found = face.prepared.get(
            f"explain {name} {about.key if about else ''}",
            stamp,
            lambda: explain_domain(config, database, name).json(),
            is_live=about is not None and not about.is_completed,
        )
    else:
        try:
            found = explain_url(face.config, database, query.url).json()
        except UrlError as problem:
            raise Problem(422, "no-url", f"{problem}; give a whole URL, like https://example.com/page") from None
    return Answer({**orjson.loads(found), "note": about.note if about else ""})


def _chosen_or_none(face: Face, run: int | None) -> ChosenMap | None:
    return chosen(face, run) if is_there(face.database) or run is not None else None


# -- candidates --------------------------------------------------------------------------------------------------


class CandidatesQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Limit = 50
    run: Run | None = None


def candidates(call: Call) -> Answer:
    about = chosen(call.face, call.query.run)
    name = f"candidates {about.key}"
    found = call.face.prepared.get(
        name, about.stamp, lambda: find_candidates(about.path, 500), is_live=not about.is_completed
    )
    shape = orjson.loads(candidate_views.as_json(found))
    return Answer({**_content(shape), "candidates": shape["candidates"][: call.query.limit], "note": about.note})


# -- the map in levels -------------------------------------------------------------------------------------------


class GraphQuery(msgspec.Struct, forbid_unknown_fields=True):
    level: Literal["communities", "domains", "pages", "surroundings", "paths"] = "domains"
    domain: Text = ""
    url: Text = ""
    most: Annotated[int, msgspec.Meta(ge=1, le=domain_level.MOST_DOMAINS)] = domain_level.DEFAULT_DOMAINS
    run: Run | None = None
    against: Run | None = None  # an earlier run: what is new since then, and what vanished


def graph(call: Call) -> Answer:
    """One level of the map, as data for a browser (reporter/atlas)."""
    query, face = call.query, call.face
    about = chosen(face, query.run)
    if query.level == "pages":
        name = host(query.domain)
        found = face.prepared.get(
            f"pages of {name} {about.key}",
            about.stamp,
            lambda: page_level.pages_of_domain(about.path, name),
            is_live=not about.is_completed,
        )
    elif query.level in ("surroundings", "paths"):
        key = url_key(face, query.url)
        found = (page_level.surroundings if query.level == "surroundings" else page_level.paths)(about.path, key)
    else:
        found = _domain_levels(face, about, query)
    return Answer({**found, "note": about.note})


def _domain_levels(face: Face, about: ChosenMap, query: GraphQuery) -> dict[str, Any]:
    config, most = face.config, query.most
    tagged = f"{about.stamp} {config.entry_notes}"
    name = f"level {about.key} {most}"
    if query.against is None:
        level = face.prepared.get(
            name, tagged, lambda: domain_level.domain_level(config, about.path, most), is_live=not about.is_completed
        )
    else:
        runs = query.against, about.run
        if runs[0] == runs[1]:
            raise Problem(422, "same-run", "give two different runs")
        recorded_runs(face.database).find(runs[0])
        level = face.prepared.get(f"{name} {runs}", tagged, lambda: _difference(face, runs, most))
    return community_level.community_level(level) if query.level == "communities" else level


def _difference(face: Face, runs: tuple[int, int], most: int) -> dict[str, Any]:
    """Two runs as one. The live map remembers domains and links of earlier runs, so both are maps of single runs."""
    with face.replays:
        maps = [face.tools.map_of_run(face.config, run) for run in runs]
    before, after = (domain_level.domain_level(face.config, path, most) for path in maps)
    return run_difference.difference(before, after, *(domain_level.known_domains(path) for path in maps))


class LinksQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}):
    source: Text
    target: Text
    run: Run | None = None


def graph_links(call: Call) -> Answer:
    """The page links behind a link between two domains."""
    about = chosen(call.face, call.query.run)
    return Answer(behind_links.behind_link(about.path, host(call.query.source), host(call.query.target)))


def url_key(face: Face, url: str) -> str:
    """The key of a URL. Raises Problem."""
    try:
        return normalize(url, face.config.crawler.tracking_parameters)
    except UrlError as problem:
        raise Problem(422, "no-url", f"{problem}; give a whole URL, like https://example.com/page") from None


def _content(shape: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shape.items() if name not in ("v", "kind")}
