"""Lists of pages: by filters, by words in titles and URLs, and those that wait."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import msgspec

from crawler.database.reader import MapReader, open_map
from reporter.queries import frontier_list, search_index
from reporter.queries.one_page import domain_by_name
from reporter.queries.page_list import ListedPage, PageFilters, list_pages, pages_among
from reporter.web.face import Face
from reporter.web.map_api import Limit, Run, Text, host
from reporter.web.map_choice import ChosenMap, chosen
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

After = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_INDEXING = 1.0  # seconds that a question waits for an index that is being made
_TRIED = 2000  # pages that may have all words of a question, looked at for one answer


class PagesQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"klass": "class"}):
    q: Text = ""
    state: Annotated[str, msgspec.Meta(max_length=40)] = ""
    domain: Text = ""
    klass: Annotated[str, msgspec.Meta(max_length=40)] = ""
    depth: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] | None = None
    error: Annotated[str, msgspec.Meta(max_length=100)] = ""
    origin: Annotated[str, msgspec.Meta(max_length=40)] = ""
    after: After = 0
    limit: Limit = 50
    run: Run | None = None


def pages(call: Call) -> Answer:
    """Pages that pass all filters. A part may be short though the list goes on: `next` says where."""
    about, query = chosen(call.face, call.query.run), call.query
    with open_map(about.path) as reader:
        filters = _filters(reader, query)
        if filters is None:
            found, following = list[ListedPage](), None
        elif query.q.strip():
            found, following = _searched(call.face, about, reader, query, filters)
        else:
            found, following = list_pages(reader, about.run, filters, query.after, query.limit)
    return Answer(
        {"run": about.run, "note": about.note, "pages": [page_shape(row) for row in found], "next": following}
    )


def page_shape(row: ListedPage) -> dict[str, Any]:
    fields = row._asdict()
    fields["class"] = fields.pop("klass")
    return fields


def _filters(reader: MapReader, query: PagesQuery) -> PageFilters | None:
    """None: there is no such domain, so no page passes."""
    domain_id = None
    if query.domain.strip():
        found = domain_by_name(reader, host(query.domain.strip()))
        if found is None:
            return None
        domain_id = found[0].id
    return PageFilters(query.state, domain_id, query.klass, query.depth, query.status, query.error, query.origin)


def _searched(
    face: Face, about: ChosenMap, reader: MapReader, query: PagesQuery, filters: PageFilters
) -> tuple[list[ListedPage], int | None]:
    if not about.is_completed:
        raise Problem(409, "run-under-way", "words can be searched for when the first run is completed")
    if not face.search.prepare(about.path, about.stamp):
        face.search.wait(_INDEXING)
    words, numbers = face.search.candidates(about.path, about.stamp, query.q, query.after)
    found: list[ListedPage] = []
    for _ in range(_TRIED // query.limit + 1):
        some = list(itertools.islice(numbers, query.limit))
        for row in pages_among(reader, about.run, some, filters):
            if search_index.has_words(words, row.url, row.title):
                found.append(row)
                if len(found) == query.limit:
                    return found, row.id
        if len(some) < query.limit:
            return found, None
    return found, some[-1]


# -- the frontier ------------------------------------------------------------------------------------------------


class FrontierQuery(msgspec.Struct, forbid_unknown_fields=True):
    domain: Text = ""
    after: After = 0
    limit: Limit = 50


def frontier_stats(call: Call) -> Answer:
    """How many pages wait, and for how many domains. The number of pages is the ingest's own count."""
    live = call.face.live.newest()
    with open_map(call.face.database) as reader:
        domains = frontier_list.waiting_domains(reader)
    scheduler: dict[str, Any] = next((stage["facts"] for stage in live["stages"] if stage["stage"] == "scheduler"), {})
    return Answer(
        {
            "run": live["run"],
            "waiting": live["figures"]["waiting"],
            "in_flight": live["figures"]["in_flight"],
            "domains": domains,
            "outstanding": scheduler.get("outstanding", 0),
            "active_domains": scheduler.get("active_domains", 0),
            "cooling_domains": scheduler.get("cooling_domains", 0),
        }
    )


def frontier_urls(call: Call) -> Answer:
    query = call.query
    with open_map(call.face.database) as reader:
        number = None
        if query.domain.strip():
            found = domain_by_name(reader, host(query.domain.strip()))
            number = found[0].id if found else -1
        rows = frontier_list.waiting_pages(reader, number, query.after, query.limit)
    shapes = [
        {"url": row.url, "domain": row.domain, "priority": row.priority, "added_at": row.added_at} for row in rows
    ]
    return Answer({"urls": shapes, "next": rows[-1].row if len(rows) == query.limit else None})
