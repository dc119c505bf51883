"""Levels of pages: those of one domain, the surroundings of one page, and the paths that lead to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from math import cos, pi, sin, sqrt
from typing import Any

from crawler.database.map_errors import NotOnMap
from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import plain, url_words
from crawler.rules.lists import DomainClass
from reporter.explain.shortest_path import shortest_path
from reporter.map.placement import place
from reporter.queries import one_page, overview, page_network
from reporter.queries.page_network import NetworkPage
from reporter.queries.rows import PageRow

MOST_PAGES = 400  # of a domain
MOST_NEIGHBOURS = 60  # of a page, on each side
MOST_PATHS = 12  # quality entries whose path is drawn
_MOST_LINKS = 6_000
_MOST_COUNTED = 10_000  # pages that link somewhere: more are "10,000 or more"
_CLASSES = tuple(DomainClass)
_TEXT = 160
_STEP, _ROW = 190.0, 64.0  # between two steps of a path, and between two paths


def pages_of_domain(database: MapPlace, domain: str, most: int = MOST_PAGES) -> dict[str, Any]:
    """The pages of one domain and the links between them. Raises NotOnMap, NoDatabase, NotAMap, NoSuchRun."""
    with open_map(database) as reader:
        run, _ = overview.shown_run(reader, None)
        found = one_page.domain_by_name(reader, domain)
        if found is None:
            raise NotOnMap(database, domain)
        pages, total = page_network.pages_of_domain(reader, found[0].id, run.id, most)
        links = _links(reader, pages, run.id)
    linked = [0] * len(pages)
    for _, target, _ in links:
        linked[target] += 1
    radii = [round(4 + 2.2 * sqrt(min(count, 60)), 1) for count in linked]
    placed = place(radii, links)
    level = _level("pages", run, pages, radii, (placed.x, placed.y), links)
    level["nodes"]["shown"] = [words.partition("/")[1] + words.partition("/")[2] for words in level["nodes"]["shown"]]
    level["counts"] |= {"known": total}
    return {**level, "domain": domain}


def surroundings(database: MapPlace, key: str) -> dict[str, Any]:
    """A page in the middle, on the left those that link to it, on the right those that it links to.

    Raises NotOnMap, NoDatabase, NotAMap, NoSuchRun.
    """
    with open_map(database) as reader:
        run, _ = overview.shown_run(reader, None)
        page = _page(reader, key)
        rows = (number for number, _ in one_page.linking_pages(reader, page.id, page.domain_id, page.seen_run))
        counted = [number for number in islice(rows, _MOST_COUNTED) if number != page.id]
        before = counted[:MOST_NEIGHBOURS]
        after, after_total = page_network.linked_pages(reader, page.id, page.seen_run, MOST_NEIGHBOURS)
        pages = page_network.pages_by_id(reader, {page.id, *before, *after})
        links = _links(reader, pages, page.seen_run)
    sides = {number: (number in set(before)) - (number in set(after)) for number in (each.id for each in pages)}
    level = _level("surroundings", run, pages, [], _fans(pages, page.id, sides), links)
    level["nodes"]["r"] = [14.0 if each.id == page.id else 7.0 for each in pages]
    level["counts"] |= {"links_here": len(counted), "links_from_here": after_total, "known": None}
    middle = [each.id for each in pages].index(page.id)
    return {**level, "page": key, "middle": middle}


def paths(database: MapPlace, key: str) -> dict[str, Any]:
    """A shortest path to a page from each quality entry that reaches it. Raises as `surroundings`."""
    with open_map(database) as reader:
        run, _ = overview.shown_run(reader, None)
        page = _page(reader, key)
        found: list[dict[str, Any]] = []
        depths = one_page.depths_of(reader, page.id)
        for number, pattern, depth in depths[:MOST_PATHS]:
            steps = shortest_path(reader, page, number, pattern, depth)
            found.append({"origin": pattern, "depth": depth, "steps": steps or []})
        passed = {step.page for path in found for step in path["steps"]} | {page.id}
        pages = page_network.pages_by_id(reader, passed)
    places = {each.id: index for index, each in enumerate(pages)}
    links = sorted(
        {(places[one.page], places[other.page], 1) for path in found for one, other in pairwise(path["steps"])}
    )
    at = _in_rows(found, page.id)
    level = _level("paths", run, pages, [8.0] * len(pages), _columns([at[each.id] for each in pages]), links)
    level["paths"] = [
        {**path, "steps": [[places[step.page], step.depth, step.via] for step in path["steps"]]} for path in found
    ]
    level["counts"] |= {"paths": len(depths), "paths_shown": len(found), "known": len(pages)}
    return {**level, "page": key, "middle": places[page.id]}


def _page(reader: MapReader, key: str) -> PageRow:
    page = one_page.page_by_key(reader, key)
    if page is None:
        raise NotOnMap(reader.path, key)
    return page


def _links(reader: MapReader, pages: Sequence[NetworkPage], run: int) -> list[tuple[int, int, int]]:
    places = {page.id: index for index, page in enumerate(pages)}
    found = page_network.links_among(reader, places, run, _MOST_LINKS)
    return [(places[source], places[target], 1) for source, target in found if source != target]


def _level(
    level: str,
    run: Any,
    pages: Sequence[NetworkPage],
    radii: Sequence[float],
    places: tuple[Sequence[float], Sequence[float]],
    links: Sequence[tuple[int, int, int]],
) -> dict[str, Any]:
    nodes: dict[str, list[Any]] = {
        "name": [page.url for page in pages],
        "shown": [url_words(page.url, _TEXT).removeprefix("https://") for page in pages],
        "title": [plain(page.title or "", _TEXT) for page in pages],
        "class": [_CLASSES.index(DomainClass(page.klass)) for page in pages],
        "state": [page.state for page in pages],
        "depth": [page.depth for page in pages],
        "known": [0] * len(pages),
        "r": list(radii),
        "x": [round(value, 1) for value in places[0]],
        "y": [round(value, 1) for value in places[1]],
    }
    return {
        "v": 1,
        "kind": "graph",
        "level": level,
        "run": {"id": run.id, "status": run.status, "started": run.started_at, "finished": run.finished_at},
        "classes": [str(klass) for klass in _CLASSES],
        "counts": {"shown": len(pages), "known": len(pages), "links": len(links), "links_known": len(links)},
        "nodes": nodes,
        "links": [value for link in links for value in link],
    }


def _fans(pages: Sequence[NetworkPage], middle: int, sides: Mapping[int, int]) -> tuple[list[float], list[float]]:
    """Pages that link here in a half circle on the left, linked ones on the right, those that do both above."""
    x, y = [0.0] * len(pages), [0.0] * len(pages)
    for side, start, end in ((1, 0.62 * pi, 1.38 * pi), (-1, -0.38 * pi, 0.38 * pi), (0, -0.62 * pi, -0.38 * pi)):
        on_side = [index for index, page in enumerate(pages) if page.id != middle and sides[page.id] == side]
        radius = max(200.0, 34.0 * len(on_side) / (end - start))
        for place_, index in enumerate(on_side):
            angle = start + (end - start) * (place_ + 0.5) / len(on_side)
            x[index], y[index] = radius * cos(angle), radius * sin(angle)
    return x, y


def _in_rows(found: Sequence[Mapping[str, Any]], target: int) -> dict[int, tuple[float, float]]:
    """Every path is a row, its steps go to the right; a page of several paths stands in the first; the target last."""
    longest = max((len(path["steps"]) for path in found), default=1)
    at: dict[int, tuple[float, float]] = {target: ((longest - 1) * _STEP, (max(len(found), 1) - 1) * _ROW / 2)}
    for row, path in enumerate(found):
        for column, step in enumerate(path["steps"]):
            at.setdefault(step.page, (column * _STEP, row * _ROW))
    return at


def _columns(places: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]
