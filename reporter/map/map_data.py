"""The domains, links, figures and sample pages that the page shows, with a place for each domain.

Quality domains come first, then those that the most different quality domains link to. A map is data for a browser, so
it is bounded: `most` domains, MOST_LINKS links (the strongest), SAMPLES pages a domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import sqrt
from typing import Any

from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import domain_words, plain, url_words
from crawler.rules.lists import DomainClass
from reporter import counting
from reporter.figures import DomainFigures
from reporter.map.kept_places import Places, settle
from reporter.queries import domain_links, overview
from reporter.queries.rows import DomainRow
from reporter.queries.sample_pages import sample_pages

VERSION = 1
DEFAULT_DOMAINS = 2_000
MOST_DOMAINS = 5_000
MOST_LINKS = 30_000  # between domains: more are a grey disc on every screen
SAMPLES = 4
_CLASSES = tuple(DomainClass)
_SMALLEST, _LARGEST = 4.0, 24.0  # radius of a domain
_LEAST_QUALITY = 7.0  # of a quality domain: it is seen even if no other one links to it
_TEXT = 160  # characters of a title or URL that are shown


@dataclass(frozen=True, slots=True)
class MapData:
    """The page's data, ready for JSON, and the numbers of domains and links shown and known."""

    content: dict[str, Any]
    domains: int
    domains_known: int
    links: int
    links_known: int

    def places(self) -> dict[str, tuple[float, float]]:
        """The place of each domain."""
        nodes = self.content["nodes"]
        return {name: (x, y) for name, x, y in zip(nodes["name"], nodes["x"], nodes["y"], strict=True)}


def map_data(database: MapPlace, most: int = DEFAULT_DOMAINS, kept: Places[str] | None = None) -> MapData:
    """The map of the run that the database shows. `kept` are places of an earlier map.

    Raises NoDatabase, NotAMap, NoSuchRun.
    """
    with open_map(database) as reader:
        run, _ = overview.shown_run(reader, None)
        rows = overview.domains(reader)
        pages = counting.page_figures(overview.page_counts(reader, run.id), rows, run.id)
        figures = {figure.domain: figure for figure in pages.domains}
        known = {number: row for number, row in rows.items() if row.domain in figures}
        linked = _links_from_quality(reader, known)
        shown = _most_linked(known, linked, most)
        links, links_known, totals = _links(reader, known, shown)
        samples = sample_pages(reader, shown, run.id, SAMPLES)
    nodes = _nodes(shown, known, figures, linked, totals)
    nodes["pages"] = [[_page(*page) for page in samples.get(number, ())] for number in shown]
    placed = settle(nodes["name"], nodes["r"], links, kept or {})
    nodes["x"], nodes["y"] = ([round(value, 1) for value in values] for values in (placed.x, placed.y))
    nodes["group"] = placed.group
    content = {
        "v": VERSION,
        "kind": "domain-map",
        "run": {"id": run.id, "status": run.status, "started": run.started_at, "finished": run.finished_at},
        "classes": [str(klass) for klass in _CLASSES],
        "counts": {"domains": len(shown), "domains_known": len(known), "links": len(links), "links_known": links_known},
        "nodes": nodes,
        "links": [number for link in links for number in link],
    }
    return MapData(content, len(shown), len(known), len(links), links_known)


def _links_from_quality(reader: MapReader, known: Mapping[int, DomainRow]) -> dict[int, tuple[int, int]]:
    """Domain → (different quality domains that link to it, links from them)."""
    domain_links.mark_quality(reader, known.values())
    return {domain: (different, links) for domain, different, links in domain_links.linked_by_quality(reader)}


def _most_linked(known: Mapping[int, DomainRow], linked: Mapping[int, tuple[int, int]], most: int) -> list[int]:
    def rank(number: int) -> tuple[bool, int, int, str]:
        different, links = linked.get(number, (0, 0))
        return known[number].klass != DomainClass.QUALITY, -different, -links, known[number].domain

    return sorted(known, key=rank)[:most]


@dataclass(slots=True)
class _Totals:
    """Of all links between different domains, shown or not."""

    links_in: Counter[int]
    links_out: Counter[int]
    domains_in: Counter[int]
    domains_out: Counter[int]


def _links(
    reader: MapReader, known: Mapping[int, DomainRow], shown: list[int]
) -> tuple[list[tuple[int, int, int]], int, _Totals]:
    """(from, to, links) between shown domains by their places, the strongest first; how many pairs there are in all."""
    places = {number: place for place, number in enumerate(shown)}
    totals = _Totals(Counter(), Counter(), Counter(), Counter())
    found: list[tuple[int, int, int]] = []
    pairs = 0
    for source, target, links in domain_links.domain_links(reader):
        if source == target or source not in known or target not in known:
            continue
        pairs += 1
        totals.links_out[source] += links
        totals.links_in[target] += links
        totals.domains_out[source] += 1
        totals.domains_in[target] += 1
        if source in places and target in places:
            found.append((places[source], places[target], links))
    strongest = nlargest(MOST_LINKS, found, key=lambda link: (link[2], -link[0], -link[1]))
    return strongest, pairs, totals


def _nodes(
    shown: list[int],
    known: Mapping[int, DomainRow],
    figures: Mapping[str, DomainFigures],
    linked: Mapping[int, tuple[int, int]],
    totals: _Totals,
) -> dict[str, list[Any]]:
    """The figures of the shown domains, a list for each figure."""
    largest = max((different for different, _ in linked.values()), default=0) or 1
    nodes: dict[str, list[Any]] = {
        name: []
        for name in (
            *("name", "shown", "class", "r", "quality_domains", "links_from_quality", "links_in", "links_out"),
            *("domains_in", "domains_out", "crawled", "known", "errors", "waiting", "depth", "closed"),
        )
    }
    for number in shown:
        row = known[number]
        figure = figures[row.domain]
        different, links = linked.get(number, (0, 0))
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * sqrt(different / largest)
        if row.klass == DomainClass.QUALITY:
            radius = max(radius, _LEAST_QUALITY)
        values = (
            *(plain(row.domain), domain_words(row.domain), _CLASSES.index(DomainClass(row.klass))),
            *(round(radius, 1), different, links),
            *(totals.links_in[number], totals.links_out[number]),
            *(totals.domains_in[number], totals.domains_out[number]),
            *(figure.crawled, figure.known, figure.errors, figure.waiting, figure.depth_low, figure.closed),
        )
        for column, value in zip(nodes.values(), values, strict=True):
            column.append(value)
    return nodes


def _page(url: str, title: str | None, state: str) -> list[str]:
    """[URL to open, URL as it is shown, title, state]. The first is left as it is: the page opens only http(s)."""
    return [url, url_words(url, _TEXT), plain(title or "", _TEXT), state]
