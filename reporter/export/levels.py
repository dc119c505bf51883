"""Nodes and edges of an export: by page, or by domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT
from crawler.database.reader import MapReader
from crawler.model.states import PageState
from reporter.export.formats import Edge, Node, Schema
from reporter.queries.domain_links import domain_links
from reporter.queries.export_rows import ExportRows, Filters

_LINK_WORDS = {LINK_FOLLOWED: "followed", LINK_NOT_FOLLOWED: "nofollow", LINK_REDIRECT: "redirect"}


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
        ),
        edge=(("link", "string"), ("first_run", "integer"), ("last_run", "integer")),
    )

    def __init__(self, reader: MapReader, filters: Filters) -> None:
        self._rows = ExportRows(reader, filters)

    def nodes(self) -> Iterator[Node]:
        depths = _Depths(self._rows.depths())
        for number, url, domain, title, state, klass, depth, status, first, last in self._rows.pages():
            yield Node(
                f"p{number}", url, (url, domain, title, state, klass, depth, depths.of(number), status, first, last)
            )

    def edges(self) -> Iterator[Edge]:
        for source, target, kind, first, last in self._rows.links():
            yield Edge(f"p{source}", f"p{target}", 1, (_LINK_WORDS[kind], first, last))


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
        ),
        edge=(),
    )

    def __init__(self, reader: MapReader, filters: Filters) -> None:
        self._reader = reader
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
        for number, domain, klass in self._rows.domains():
            if number in self._facts:
                depth, first, last = self._facts[number]
                states = self._by_state[number]
                counts = [states.get(state, 0) for state in self._STATES]
                yield Node(f"d{number}", domain, (klass, depth, sum(counts), first, last, *counts))

    def edges(self) -> Iterator[Edge]:
        known = self._facts
        for source, target, links in domain_links(self._reader):
            if source in known and target in known:
                yield Edge(f"d{source}", f"d{target}", links, ())
