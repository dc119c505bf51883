"""Lists of pages: by filters, by words in titles and URLs, those that link to a page, and those that wait."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import msgspec

from crawler.database.reader import MapReader, open_map
from reporter.queries import frontier_list, search_index
from reporter.queries.one_page import domain_by_name, page_by_key
from reporter.queries.page_list import ListedPage, PageFilters, list_pages, pages_among
from reporter.queries.referrers import Referrer, referring_pages
from reporter.web.face import Face
from reporter.web.map_api import Limit, Run, Text, host, url_key
from reporter.web.map_choice import ChosenMap, chosen
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

After = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_INDEXING = 1.0  # seconds that a question waits for an index that is being made
_TRIED = 2000  # pages that may have all words of a question, looked at for one answer


class PageFilterQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"klass": "class", "source": "from"}):
    """The filters of lists of pages."""

    q: Text = ""
    state: Annotated[str, msgspec.Meta(max_length=40)] = ""
    domain: Text = ""
    klass: Annotated[str, msgspec.Meta(max_length=40)] = ""
    depth: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] | None = None
    error: Annotated[str, msgspec.Meta(max_length=100)] = ""
    origin: Annotated[str, msgspec.Meta(max_length=40)] = ""
    run: Run | None = None


class PagesQuery(PageFilterQuery):
    after: After = 0
    limit: Limit = 50


def pages(call: Call) -> Answer:
    """Pages that pass all filters. A part may be short though the list goes on: `next` says where."""
    about, query = chosen(call.face, call.query.run), call.query
    found, following = fitting_pages(call.face, about, query, query.after, query.limit)
    return Answer(
        {"run": about.run, "note": about.note, "pages": [page_shape(row) for row in found], "next": following}
    )


def fitting_pages(
    face: Face, about: ChosenMap, query: PageFilterQuery, after: int, limit: int
) -> tuple[list[ListedPage], int | None]:
    """At most `limit` pages that pass the filters, after this number; and the number to go on from. Raises Problem."""
    with open_map(about.path) as reader:
        filters = _filters(reader, query)
        if filters is None:
            return [], None
        if query.q.strip():
            return _searched(face, about, reader, query.q, filters, after, limit)
        return list_pages(reader, about.run, filters, after, limit)


def page_shape(row: ListedPage) -> dict[str, Any]:
    fields = row._asdict()
    fields["class"] = fields.pop("klass")
    return fields


def _filters(reader: MapReader, query: PageFilterQuery) -> PageFilters | None:
    """None: there is no such domain, so no page passes."""
    domain_id = None
    if query.domain.strip():
        found = domain_by_name(reader, host(query.domain.strip()))
        if found is None:
            return None
        domain_id = found[0].id
    return PageFilters(query.state, domain_id, query.klass, query.depth, query.status, query.error, query.origin)


def _searched(
    face: Face, about: ChosenMap, reader: MapReader, text: str, filters: PageFilters, after: int, limit: int
) -> tuple[list[ListedPage], int | None]:
    if not about.is_completed:
        raise Problem(409, "run-under-way", "words can be searched for when the first run is completed")
    if not face.search.prepare(about.path, about.stamp):
        face.search.wait(_INDEXING)
    words, numbers = face.search.candidates(about.path, about.stamp, text, after)
    found: list[ListedPage] = []
    for _ in range(_TRIED // limit + 1):
        some = list(itertools.islice(numbers, limit))
        for row in pages_among(reader, about.run, some, filters):
            if search_index.has_words(words, row.url, row.title):
                found.append(row)
                if len(found) == limit:
                    return found, row.id
        if len(some) < limit:
            return found, None
    return found, some[-1]


# -- who links to a page -----------------------------------------------------------------------------------------


class ReferrersQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    url: Text
    source: Text = ""  # a domain
    after: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    limit: Limit = 50
    run: Run | None = None


def referrers(call: Call) -> Answer:
    """The pages of a run that link to a page, all or those of one domain."""
    query, about = call.query, chosen(call.face, call.query.run)
    found = linking_here(call.face, about, query.url, query.source, query.after, query.limit + 1)
    is_more = len(found) > query.limit
    return Answer(
        {
            "run": about.run,
            "note": about.note,
            "referrers": [each._asdict() for each in found[: query.limit]],
            "next": query.after + query.limit if is_more else None,
        }
    )


def linking_here(face: Face, about: ChosenMap, url: str, source: str, after: int, limit: int) -> list[Referrer]:
    """Pages that link to a page, all or those of the domain `source`, without the first `after`. Raises Problem."""
    key = url_key(face, url)
    wanted = host(source.strip()) if source.strip() else None
    with open_map(about.path) as reader:
        page = page_by_key(reader, key)
        if page is None:
            raise Problem(404, "not-on-map", "this page is not on the map")
        return list(itertools.islice(referring_pages(reader, page, wanted), after, after + limit))


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
