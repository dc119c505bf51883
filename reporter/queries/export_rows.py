"""The rows of an export: pages, links and domains that pass its filters, one row at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crawler.database.ids import ORIGIN_BITS, links_of
from crawler.database.reader import MapReader
from reporter.queries.discovery_rows import origin_column
from reporter.queries.domain_links import domains_around
from reporter.queries.fact_rows import FACT_COLUMNS, has_facts
from reporter.queries.link_texts import has_link_texts
from reporter.queries.one_page import has_reverse_index, judgement_columns, truncated_column
from reporter.queries.page_rule_rows import has_parts


@dataclass(frozen=True, slots=True)
class Filters:
    """The pages (or domains) to export: those that pass all of these.

    depth    their least depth is this or less
    classes  they are in one of these classes (quality, blacklisted, stubbed, discovered)
    states   they are in one of these states; a domain passes if one of its pages does
    domain   their domain matches this pattern: `example.com`, or `*.example.com` for its subdomains too
    run      they were known in this run: first seen in it or before, last seen in it or later
    around   their domain is at most `steps` links between domains away from this one, in either direction

    `self_loops` is about links: without it, those from a page (or domain) to itself are left out.
    """

    depth: int | None = None
    classes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    domain: str | None = None
    run: int | None = None
    around: str | None = None
    steps: int = 1
    self_loops: bool = True


class ExportRows:
    """Rows that pass the filters. One of these for a reader."""

    def __init__(self, reader: MapReader, filters: Filters) -> None:
        self._reader = reader
        self._filters = filters
        self._has_rules = reader.has_column("pages", "page_type")
        self._is_by_part = bool(filters.classes) and has_parts(reader)
        self._is_by_domain = self._note_domains()

    def pages(self) -> Iterator[tuple[Any, ...]]:
        """Pages by id.

        (id, URL, domain, title, state, class, depth, status, first run, last run, error, URL of its redirect, content
        type, time of the visit, was it cut short?, validation, rejection reason, origin, type, what it says about
        itself (`FACT_COLUMNS`), number of links on it)
        """
        condition, values = self._page_condition("p")
        is_known = has_facts(self._reader)
        facts = ", ".join(f"facts.{name}" if is_known else "NULL" for name in FACT_COLUMNS)
        joined = "LEFT JOIN page_facts facts ON facts.id = p.id AND facts.run = p.visited_run" if is_known else ""
        return self._reader.rows(
            "SELECT p.id, p.url, p.domain, p.title, p.state,"
            f" {self._class('p', 'd')}, p.depth, p.status_code, p.discovered_run,"
            " p.seen_run, p.error_message, (SELECT url FROM pages WHERE id = p.redirect_to), p.content_type,"
            f" p.visited_at, {truncated_column(self._reader)}, {judgement_columns(self._reader)},"
            f" {origin_column(self._reader, 'p')}, {'p.page_type' if self._has_rules else 'NULL'}, {facts},"
            f" (SELECT count(*) FROM links WHERE {links_of('links', 'p.id')})"
            f" FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id {joined}"
            f" {'WHERE ' + condition if condition else ''} ORDER BY p.id",
            values,
        )

    def _class(self, page: str, domain: str) -> str:
        return f"coalesce({page}.class, {domain}.class)" if self._has_rules else f"{domain}.class"

    def in_degrees(self) -> Iterator[tuple[int, int]]:
        """(page id, pages of the whole map that link there), by page. Pages without such links may be left out."""
        if has_reverse_index(self._reader):
            rows = self._reader.rows(
                "SELECT to_page_id, count(*) FROM links INDEXED BY idx_links_to GROUP BY to_page_id ORDER BY to_page_id"
            )
            return ((page, count) for page, count in rows)
        # While a run is under way there is no such index, and sorting all links would take more than 4 bytes a page.
        highest = self._reader.number("SELECT coalesce(max(id), 0) FROM pages")
        counts = array("I", bytes(4 * (highest + 1)))
        for (target,) in self._reader.rows("SELECT to_page_id FROM links"):
            counts[target] += 1
        return iter(enumerate(counts))

    def depths(self) -> Iterator[tuple[Any, ...]]:
        """(page id, origin, depth) of all pages, by page."""
        return self._reader.rows(
            f"SELECT id >> {ORIGIN_BITS}, quality_origin, depth FROM page_depths ORDER BY id",
        )

    def links(self, *, is_named: bool = False) -> Iterator[tuple[Any, ...]]:
        """Links both ends of which pass, by their ends.

        (from page, to page, kind, first run, last run, text, rel, and if `is_named` the URLs of both, else None)
        """
        near, values = self._page_condition("f")
        far, more = self._page_condition("t")
        conditions = [near, far] if near else []
        if self._filters.run is not None:
            conditions.append("l.discovered_run <= ? AND l.last_run >= ?")
            more += [self._filters.run, self._filters.run]
        if not self._filters.self_loops:
            conditions.append("l.from_page_id <> l.to_page_id")
        if near:
            source = (
                f"FROM pages f CROSS JOIN links l ON {links_of('l', 'f.id')} CROSS JOIN pages t ON t.id = l.to_page_id"
            )
        elif is_named:
            source = (
                "FROM links l CROSS JOIN pages f ON f.id = l.from_page_id CROSS JOIN pages t ON t.id = l.to_page_id"
            )
        else:
            source = "FROM links l"
        passing = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        names = "f.url, t.url" if is_named else "NULL, NULL"
        texts = "NULL, NULL"
        if has_link_texts(self._reader):
            texts = "x.text, x.rel"
            source += " LEFT JOIN link_texts x ON x.id = l.id"
        return self._reader.rows(
            f"SELECT l.from_page_id, l.to_page_id, l.kind, l.discovered_run, l.last_run, {texts}, {names}"
            f" {source} {passing}"
            f" ORDER BY {'f.id, l.id' if near else 'l.id'}",
            [*values, *more],
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
        if not filters.classes and filters.domain is None and filters.around is None:
            return False
        conditions, values = ["1 = 1"], list[object]()
        if filters.around is not None:
            near = domains_around(self._reader, filters.around, filters.steps)
            self._reader.note("CREATE TEMP TABLE around (id INTEGER PRIMARY KEY)")
            self._reader.note_many("INSERT INTO temp.around VALUES (?)", [(number,) for number in sorted(near)])
            conditions.append("id IN (SELECT id FROM temp.around)")
        if filters.classes:
            classes = (*filters.classes, "quality") if self._is_by_part else filters.classes
            conditions.append(f"class IN ({','.join('?' * len(classes))})")
            values += classes
        if filters.domain is not None:
            base = filters.domain.lower().removeprefix("*.")
            if filters.domain.startswith("*."):
                conditions.append("(domain = ? OR domain LIKE ? ESCAPE '!')")
                values += [base, "%." + base.replace("!", "!!").replace("_", "!_").replace("%", "!%")]
            else:
                conditions.append("domain = ?")
                values.append(base)
        self._reader.note("CREATE TEMP TABLE passing (id INTEGER PRIMARY KEY)")
        self._reader.note(
            f"INSERT INTO temp.passing SELECT id FROM domain_states WHERE {' AND '.join(conditions)}", values
        )
        return True

    def _page_condition(self, alias: str) -> tuple[str, list[object]]:
        """The SQL condition that a page under this alias passes, with its values; "" if all pass.

        The +: pages are read in their order, and an index by state or run would have them sorted in memory.
        """
        filters = self._filters
        parts, values = list[str](), list[object]()
        if self._is_by_domain:
            parts.append(f"{alias}.domain_id IN (SELECT id FROM temp.passing)")
        if self._is_by_part:  # of domains that are quality in part, some pages are not
            known = f"(SELECT class FROM domain_states WHERE id = {alias}.domain_id)"
            parts.append(f"coalesce({alias}.class, {known}) IN ({','.join('?' * len(filters.classes))})")
            values += filters.classes
        if filters.depth is not None:
            parts.append(f"{alias}.depth <= ?")
            values.append(filters.depth)
        if filters.states:
            parts.append(f"+{alias}.state IN ({','.join('?' * len(filters.states))})")
            values += filters.states
        if filters.run is not None:
            parts.append(f"+{alias}.discovered_run <= ? AND {alias}.seen_run >= ?")
            values += [filters.run, filters.run]
        return " AND ".join(parts), values
