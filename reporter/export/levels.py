"""Nodes and edges of an export: by page, or by domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import log2, sqrt
from typing import Any

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT
from crawler.database.reader import MapReader
from crawler.model.states import PageState
from crawler.rules.lists import EntryNotes
from reporter.export.formats import Edge, Look, Node, Schema
from reporter.queries import overview
from reporter.queries.domain_links import domain_links, linked_by_quality, mark_quality
from reporter.queries.export_rows import ExportRows, Filters
from reporter.queries.fact_rows import FACT_COLUMNS, all_fields

_LINK_WORDS = {LINK_FOLLOWED: "followed", LINK_NOT_FOLLOWED: "nofollow", LINK_REDIRECT: "redirect"}
COLOURS = {  # of the classes, as on the map page
    "quality": (0x1F, 0x5F, 0xA8),
    "discovered": (0x8B, 0x91, 0x99),
    "stubbed": (0x7A, 0x4F, 0xB5),
    "blacklisted": (0xB3, 0x26, 0x1E),
}

# A curator's words about the domain, from the config.
_NOTES = (("note", "string"), ("tags", "string"))


def _note_of(notes: EntryNotes | None, domain: str) -> tuple[str | None, tuple[str, ...] | None]:
    found = notes.of(domain) if notes is not None else None
    return (None, None) if found is None else (found.note or None, found.tags or None)


class PageGraph:
    """Pages and the links between them."""

    schema = Schema(
        level="page",
        node=(
            ("url", "string"),
            ("domain", "string"),
            ("title", "string"),
            ("state", "string"),
            ("class", "string"),
            ("depth", "integer"),
            ("depths", "string"),
            ("status", "integer"),
            ("first_run", "integer"),
            ("last_run", "integer"),
            ("error", "string"),
            ("redirect_to", "string"),
            ("content_type", "string"),
            ("visited_at", "string"),
            ("truncated", "integer"),
            ("in_degree", "integer"),
            ("out_degree", "integer"),
            ("validation", "string"),
            ("rejection_reason", "string"),
            ("origin", "string"),
            ("page_type", "string"),
            *((name, "integer" if name in ("bytes", "link_count") else "string") for name in FACT_COLUMNS),
            ("fields", "string"),
            *_NOTES,
        ),
        edge=(
            ("link", "string"),
            ("first_run", "integer"),
            ("last_run", "integer"),
            ("text", "string"),
            ("rel", "string"),
        ),
    )

    def __init__(self, reader: MapReader, filters: Filters, notes: EntryNotes | None = None) -> None:
        self._rows = ExportRows(reader, filters)
        self._notes = notes
        self._fields = all_fields(reader)

    def nodes(self) -> Iterator[Node]:
        fields = _Fields(self._fields)
        depths, in_degrees = _Depths(self._rows.depths()), _InDegrees(self._rows.in_degrees())
        for number, url, domain, title, state, klass, depth, *rest, out_degree in self._rows.pages():
            status, first, last, error, redirect, content_type, visited_at, truncated, word, reason, *more = rest
            in_degree = in_degrees.of(number)
            values = (
                *(url, domain, title, state, klass, depth, depths.of(number), status, first, last),
                *(error, redirect, content_type, visited_at, truncated, in_degree, out_degree, word, reason),
                *more,
                fields.of(number) or None,
                *_note_of(self._notes, domain),
            )
            yield Node(f"p{number}", url, values, Look(*COLOURS[klass], 4 + 2 * log2(1 + in_degree)))

    def edges(self, *, is_named: bool = False) -> Iterator[Edge]:
        for source, target, kind, first, last, text, rel, *ends in self._rows.links(is_named=is_named):
            names = (ends[0], ends[1]) if is_named else None
            yield Edge(f"p{source}", f"p{target}", 1, (_LINK_WORDS[kind], first, last, text, rel), names)


class _Depths:
    """The depths of pages asked for in ascending order: one pass over all depths beside the one over pages."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(self._rows, None)

    def of(self, page: int) -> dict[str, int]:
        found: dict[str, int] = {}
        while self._next is not None and self._next[0] <= page:
            if self._next[0] == page:
                found[self._next[1]] = self._next[2]
            self._next = next(self._rows, None)
        return found


class _Fields:
    """The user's own fields of pages asked for in ascending order."""

    def __init__(self, rows: Iterator[tuple[int, str, str]]) -> None:
        self._rows = rows
        self._next = next(self._rows, None)

    def of(self, page: int) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        while self._next is not None and self._next[0] <= page:
            if self._next[0] == page:
                found.setdefault(self._next[1], []).append(self._next[2])
            self._next = next(self._rows, None)
        return found


class _InDegrees:
    """The in-degrees of pages asked for in ascending order."""

    def __init__(self, rows: Iterator[tuple[int, int]]) -> None:
        self._rows = rows
        self._next = next(self._rows, None)

    def of(self, page: int) -> int:
        while self._next is not None and self._next[0] < page:
            self._next = next(self._rows, None)
        return self._next[1] if self._next is not None and self._next[0] == page else 0


class DomainGraph:
    """Domains, and the number of links from one to another."""

    _STATES = tuple(PageState)
    schema = Schema(
        level="domain",
        node=(
            ("class", "string"),
            ("depth", "integer"),
            ("pages", "integer"),
            ("first_run", "integer"),
            ("last_run", "integer"),
            *((f"pages_{state}", "integer") for state in tuple(PageState)),
            ("quality_domains", "integer"),
            ("in_degree", "integer"),
            ("out_degree", "integer"),
            ("breaker", "string"),
            *_NOTES,
        ),
        edge=(),
    )

    def __init__(self, reader: MapReader, filters: Filters, notes: EntryNotes | None = None) -> None:
        self._notes = notes
        self._reader = reader
        self._filters = filters
        self._rows = ExportRows(reader, filters)
        # By domain and state: small, and all that is held.
        self._by_state: dict[int, dict[str, int]] = {}
        self._facts: dict[int, tuple[int | None, int, int]] = {}  # (least depth, first run, last run)
        for domain, state, depth, first, last in self._rows.pages_of_domains():
            counts = self._by_state.setdefault(domain, {})
            counts[state] = counts.get(state, 0) + 1
            known = self._facts.get(domain)
            if known is not None:
                low, first, last = known[0], min(first, known[1]), max(last, known[2])
                depth = low if depth is None or (low is not None and low < depth) else depth
            if known != (depth, first, last):
                self._facts[domain] = (depth, first, last)

    def nodes(self) -> Iterator[Node]:
        mark_quality(self._reader, overview.domains(self._reader).values())
        from_quality = {domain: different for domain, different, _ in linked_by_quality(self._reader)}
        in_degrees, out_degrees = self._degrees()
        breakers = overview.breakers(self._reader, overview.runs(self._reader)[-1].id)
        for number, domain, klass in self._rows.domains():
            if number in self._facts:
                depth, first, last = self._facts[number]
                states = self._by_state[number]
                counts = [states.get(state, 0) for state in self._STATES]
                different = from_quality.get(number, 0)
                values = (
                    *(klass, depth, sum(counts), first, last, *counts),
                    *(different, in_degrees[number], out_degrees[number]),
                    breakers[number][0] if number in breakers else None,
                    *_note_of(self._notes, domain),
                )
                yield Node(f"d{number}", domain, values, Look(*COLOURS[klass], 5 + 5 * sqrt(different)))

    def _degrees(self) -> tuple[Counter[int], Counter[int]]:
        """For each domain of the whole map, the other domains that link to it and that it links to."""
        in_degrees, out_degrees = Counter[int](), Counter[int]()
        for source, target, _ in domain_links(self._reader):
            if source != target:
                in_degrees[target] += 1
                out_degrees[source] += 1
        return in_degrees, out_degrees

    def edges(self, *, is_named: bool = False) -> Iterator[Edge]:
        known = self._facts
        names = {number: name for number, name, _ in self._rows.domains() if number in known} if is_named else {}
        for source, target, links in domain_links(self._reader):
            if source in known and target in known and (source != target or self._filters.self_loops):
                ends = (names[source], names[target]) if is_named else None
                yield Edge(f"d{source}", f"d{target}", links, (), ends)
