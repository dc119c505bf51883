"""Questions about what pages say about themselves: facts, the user's own fields, and pages that show the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crawler.database.reader import MapReader


class PageFactsRow(NamedTuple):
    """A row of `page_facts`."""

    run: int
    content_hash: str
    stored: bool
    noarchive: bool
    bytes: int
    description: str | None
    language: str | None
    canonical: str | None
    heading: str | None
    link_count: int
    text_hash: str | None
    simhash: str | None


FACT_COLUMNS = ("description", "language", "canonical", "heading", "content_hash", "bytes", "link_count")


def has_facts(reader: MapReader) -> bool:
    return reader.has("page_facts")


def facts_of(reader: MapReader, page: int) -> PageFactsRow | None:
    """Those of the last accepted visit; None: there was none, or the map is of an older format."""
    if not has_facts(reader):
        return None
    row = reader.first(
        "SELECT run, content_hash, stored, noarchive, bytes, description, language, canonical, heading, link_count,"
        " text_hash, simhash FROM page_facts WHERE id = ?",
        (page,),
    )
    if row is None:
        return None
    run, digest, stored, noarchive, *rest = row
    return PageFactsRow(run, digest, bool(stored), bool(noarchive), *rest)


def fields_of_page(reader: MapReader, page: int) -> dict[str, tuple[str, ...]]:
    """The user's own fields of a page."""
    if not reader.has("page_fields"):
        return {}
    found: dict[str, list[str]] = {}
    for name, value in reader.rows("SELECT name, value FROM page_fields WHERE id = ? ORDER BY name, position", (page,)):
        found.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in found.items()}


def all_fields(reader: MapReader) -> Iterator[tuple[int, str, str]]:
    """(page, name, value) by page."""
    if reader.has("page_fields"):
        yield from reader.rows("SELECT id, name, value FROM page_fields ORDER BY id, name, position")


def same_text(reader: MapReader, run: int, text_hash: str, most: int) -> list[str]:
    """URLs of pages whose visit in this run showed this text."""
    rows = reader.rows(
        "SELECT p.url FROM page_facts f CROSS JOIN pages p ON p.id = f.id"
        " WHERE f.run = ? AND f.text_hash = ? ORDER BY p.url LIMIT ?",
        (run, text_hash, most),
    )
    return [url for (url,) in rows]


def same_text_groups(reader: MapReader, run: int, most: int) -> tuple[list[tuple[int, list[int]]], int]:
    """(pages, the first three of them) of the largest groups that showed one text in this run; how many there are."""
    if not has_facts(reader):
        return [], 0
    groups = "FROM page_facts WHERE run = ? AND text_hash IS NOT NULL GROUP BY text_hash HAVING count(*) > 1"
    total = reader.number(f"SELECT count(*) FROM (SELECT 1 {groups}) found", (run,))
    if not total:
        return [], 0
    found = reader.all(f"SELECT text_hash, count(*) {groups} ORDER BY count(*) DESC, text_hash LIMIT ?", (run, most))
    members: dict[str, list[int]] = {digest: [] for digest, _ in found}
    marks = ",".join("?" * len(members))
    rows = reader.rows(
        f"SELECT text_hash, id FROM page_facts WHERE run = ? AND text_hash IN ({marks}) ORDER BY id", (run, *members)
    )
    for digest, page in rows:
        if len(members[digest]) < 3:
            members[digest].append(page)
    return [(count, members[digest]) for digest, count in found], total


def simhashes(reader: MapReader, run: int) -> Iterable[tuple[int, str, int]]:
    """(a page, its text hash, its SimHash), one page for each text that was seen in this run."""
    if not reader.has_column("page_facts", "simhash"):
        return
    for page, text_hash, number in reader.rows(
        "SELECT min(id), text_hash, min(simhash) FROM page_facts WHERE run = ? AND simhash IS NOT NULL"
        " GROUP BY text_hash ORDER BY text_hash",
        (run,),
    ):
        yield page, text_hash, int(number, 16)
