"""The rows of an export: pages, links and domains that pass its filters, one row at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crawler.database.ids import ORIGIN_BITS, pairs_of
from crawler.database.reader import MapReader


@dataclass(frozen=True, slots=True)
class Filters:
    """The pages (or domains) to export: those that pass all of these.

    depth    their least depth is this or less
    classes  they are in one of these classes (quality, blacklisted, stubbed, discovered)
    states   they are in one of these states; a domain passes if one of its pages does
    domain   their domain matches this pattern: `example.com`, or `*.example.com` for its subdomains too
    run      they were known in this run: first seen in it or before, last seen in it or later
    """

    depth: int | None = None
    classes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    domain: str | None = None
    run: int | None = None


class ExportRows:
    """Rows that pass the filters. One of these for a reader."""

    def __init__(self, reader: MapReader, filters: Filters) -> None:
        self._reader = reader
        self._filters = filters
        self._is_by_domain = self._note_domains()

    def pages(self) -> Iterator[tuple[Any, ...]]:
        """(id, URL, domain, title, state, class, depth, status, first run, last run), by id."""
        condition, values = self._page_condition("p")
        return self._reader.rows(
            "SELECT p.id, p.url, p.domain, p.title, p.state, d.class, p.depth, p.status_code, p.discovered_run,"
            " p.seen_run FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id"
            f" {'WHERE ' + condition if condition else ''} ORDER BY p.id",
            values,
        )

    def depths(self) -> Iterator[tuple[Any, ...]]:
        """(page id, origin, depth) of all pages, by page."""
        return self._reader.rows(
            f"SELECT id >> {ORIGIN_BITS}, quality_origin, depth FROM page_depths ORDER BY id",
        )

    def links(self) -> Iterator[tuple[Any, ...]]:
        """(from page, to page, kind, first run, last run) of links both ends of which pass, by their ends."""
        near, values = self._page_condition("f")
        far, more = self._page_condition("t")
        run = self._filters.run
        seen, runs = "", list[object]()
        if run is not None:
            seen, runs = " AND l.discovered_run <= ? AND l.last_run >= ?", [run, run]
        if near:
            source = (
                f"FROM pages f CROSS JOIN links l ON l.id {pairs_of('f.id')}"
                f" CROSS JOIN pages t ON t.id = l.to_page_id WHERE {near} AND {far}{seen} ORDER BY f.id, l.id"
            )
        else:
            source = "FROM links l ORDER BY l.id"
        return self._reader.rows(
            f"SELECT l.from_page_id, l.to_page_id, l.kind, l.discovered_run, l.last_run {source}",
            [*values, *more, *runs],
        )

    def pages_of_domains(self) -> Iterator[tuple[Any, ...]]:
        """(domain id, state, depth, first run, last run) of every page that passes."""
        condition, values = self._page_condition("p")
        return self._reader.rows(
            "SELECT p.domain_id, p.state, p.depth, p.discovered_run, p.seen_run FROM pages p"
            f" {'WHERE ' + condition if condition else ''}",
            values,
        )

    def domains(self) -> Iterator[tuple[Any, ...]]:
        """(id, name, class) of all domains, by id."""
        return self._reader.rows("SELECT id, domain, class FROM domain_states ORDER BY id")

    def _note_domains(self) -> bool:
        """Note the ids of domains that pass by class and pattern. False if all pass, and nothing was noted."""
        filters = self._filters
        if not filters.classes and filters.domain is None:
            return False
        conditions, values = ["1"], list[object]()
        if filters.classes:
            conditions.append(f"class IN ({','.join('?' * len(filters.classes))})")
            values += filters.classes
        if filters.domain is not None:
            base = filters.domain.lower().removeprefix("*.")
            if filters.domain.startswith("*."):
                conditions.append("(domain = ? OR substr(domain, -length(?)) = ?)")
                values += [base, f".{base}", f".{base}"]
            else:
                conditions.append("domain = ?")
                values.append(base)
        self._reader.note("CREATE TEMP TABLE passing (id INTEGER PRIMARY KEY)")
        self._reader.note(
            f"INSERT INTO temp.passing SELECT id FROM domain_states WHERE {' AND '.join(conditions)}", values
        )
        return True

    def _page_condition(self, alias: str) -> tuple[str, list[object]]:
        """The SQL condition that a page under this alias passes, with its values; "" if all pass."""
        filters = self._filters
        parts, values = list[str](), list[object]()
        if self._is_by_domain:
            parts.append(f"{alias}.domain_id IN (SELECT id FROM temp.passing)")
        if filters.depth is not None:
            parts.append(f"{alias}.depth <= ?")
            values.append(filters.depth)
        if filters.states:
            parts.append(f"{alias}.state IN ({','.join('?' * len(filters.states))})")
            values += filters.states
        if filters.run is not None:
            parts.append(f"{alias}.discovered_run <= ? AND {alias}.seen_run >= ?")
            values += [filters.run, filters.run]
        return " AND ".join(parts), values
