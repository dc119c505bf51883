"""Two successive runs, compared by the live map and the map as the run before left it.

Pages have the same numbers in both, so the rows that differ are found where the tables lie side by side, and only those
are read. A link that both runs saw needs no look at the older map, unless it was known before either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from crawler.database.ids import PAIR_BITS, PAIR_LOW
from crawler.database.reader import MapReader, open_map
from reporter.queries.run_pages import DomainFacts, PageFacts

_BOTH = """
SELECT o.url_hash IS n.url_hash, o.seen_run = :before, n.seen_run = :after, n.discovered_run < :before,
       o.url_hash, o.url, o.id, o.state, o.title, o.status_code, o.error_message,
       (SELECT url FROM old.pages WHERE id = o.redirect_to),
       n.url_hash, n.url, n.id, n.state, n.title, n.status_code, n.error_message,
       (SELECT url FROM main.pages WHERE id = n.redirect_to)
FROM old.pages o LEFT JOIN main.pages n ON n.id = o.id
WHERE n.url_hash IS NOT o.url_hash OR (o.seen_run = :before) <> (n.seen_run = :after)
   OR (n.seen_run = :after AND (n.state, n.title, n.redirect_to) IS NOT (o.state, o.title, o.redirect_to))
"""
_ADDED = """
SELECT url_hash, url, id, state, title, status_code, error_message, NULL FROM main.pages
WHERE id > (SELECT coalesce(max(id), 0) FROM old.pages) AND seen_run = ?
"""
_LINKS = f"""
SELECT f.url, t.url, l.last_run = :before, l.discovered_run < :before
FROM main.links l CROSS JOIN main.pages f ON f.id = l.id >> {PAIR_BITS}
CROSS JOIN main.pages t ON t.id = l.id & {PAIR_LOW}
WHERE l.last_run = :before OR (l.last_run = :after AND l.discovered_run <> :before
      AND (l.discovered_run = :after
           OR NOT EXISTS (SELECT 1 FROM old.links o WHERE o.id = l.id AND o.last_run = :before)))
"""
_DOMAINS = """
SELECT d.domain, d.class, min(p.depth) FROM {map}.pages p CROSS JOIN {map}.domain_states d ON d.id = p.domain_id
WHERE p.seen_run = ? GROUP BY p.domain_id ORDER BY d.domain
"""


class PagePair(NamedTuple):
    """A page as two runs saw it; None: not in that run. `is_older`: it was known before the first of them."""

    was: PageFacts | None
    now: PageFacts | None
    is_older: bool


class LinkChange(NamedTuple):
    source: str
    target: str
    is_gone: bool
    is_older: bool  # it was known before the first of the two runs


class NotTheSamePages(Exception):
    """The two maps number their pages differently."""


class SuccessiveRuns:
    """The runs `before` and `after`. Valid inside the block that made it."""

    def __init__(self, reader: MapReader, before: int, after: int) -> None:
        self._reader = reader
        self._runs = {"before": before, "after": after}

    def pages(self) -> Iterator[PagePair]:
        """The pages that are not the same in both runs. Raises NotTheSamePages."""
        for is_same, is_in_first, is_in_second, is_older, *row in self._reader.rows(_BOTH, self._runs):
            if not is_same:
                raise NotTheSamePages
            was = PageFacts(*row[:8]) if is_in_first else None
            yield PagePair(was, PageFacts(*row[8:]) if is_in_second else None, bool(is_older))
        for added in self._reader.rows(_ADDED, (self._runs["after"],)):
            yield PagePair(None, PageFacts(*added), False)

    def links(self) -> Iterator[LinkChange]:
        """The links that one of the runs saw, and the other did not."""
        for source, target, is_gone, is_older in self._reader.rows(_LINKS, self._runs):
            yield LinkChange(source, target, bool(is_gone), bool(is_older))

    def domains(self) -> tuple[Iterator[DomainFacts], Iterator[DomainFacts]]:
        """All domains with a page, by name, of both runs."""
        old, new = (
            self._reader.rows(_DOMAINS.format(map=name), (run,))
            for name, run in (("old", self._runs["before"]), ("main", self._runs["after"]))
        )
        return (DomainFacts(*row) for row in old), (DomainFacts(*row) for row in new)

    def has_older_domain(self, name: str) -> bool:
        """Was a page of this domain known before the first of the two runs?"""
        sql = (
            "SELECT 1 FROM main.domain_states d CROSS JOIN main.pages p ON p.domain_id = d.id"
            " WHERE d.domain = ? AND p.discovered_run < ? LIMIT 1"
        )
        return self._reader.first(sql, (name, self._runs["before"])) is not None

    def domains_cut_short(self) -> set[str]:
        """Domains whose request budget ran out in one of the runs."""
        sql = " UNION ".join(
            f"SELECT domain FROM {name}.domain_states WHERE closed_reason = 'request-limit' AND run = :{run}"
            for name, run in (("old", "before"), ("main", "after"))
        )
        return {name for (name,) in self._reader.rows(sql, self._runs)}


@contextmanager
def open_successive_runs(live: Path, copy: Path, before: int, after: int) -> Iterator[SuccessiveRuns]:
    """One snapshot of both maps. Raises MapError."""
    with open_map(copy):
        pass  # a map of a format that this program reads
    with open_map(live) as reader:
        reader.note("ATTACH DATABASE ? AS old", (f"{copy.absolute().as_uri()}?mode=ro&immutable=1",))
        yield SuccessiveRuns(reader, before, after)
