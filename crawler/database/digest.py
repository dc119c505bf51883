"""One line for a whole map: a hash that two maps share exactly if they say the same.

Covered: every page with its state, title, status code and error slug; every rejected page with its word and the slug of
its reason; the origin of pages that no link leads to; every depth; every link with its kind; the blacklist and stub
references; each domain's class and closure; texts and rels of links and the user's own fields, where there are
any. Left out: ids, clocks, runs,
the wire forms of URLs, request counts and everything else that may differ between two crawls of one terrain.

Rows are hashed one by one and the hashes are added up, so no order matters and nothing is sorted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace
from crawler.model.states import slug_of

_QUERIES: dict[str, str] = {
    "page": "SELECT url, state, title, status_code, error_message FROM pages",
    "depth": "SELECT p.url, d.quality_origin, d.depth FROM page_depths d JOIN pages p ON p.id = d.page_id",
    "link": (
        "SELECT a.url, b.url, l.kind FROM links l JOIN pages a ON a.id = l.from_page_id"
        " JOIN pages b ON b.id = l.to_page_id"
    ),
    "blacklisted": "SELECT url, reference_count FROM blacklisted_urls",
    "blacklisted-by": (
        "SELECT u.url, p.url FROM blacklisted_referrers r JOIN blacklisted_urls u ON u.id = r.blacklisted_url_id"
        " JOIN pages p ON p.id = r.referrer_page_id"
    ),
    "stubbed": "SELECT url, reference_count FROM stubbed_urls",
    "stubbed-by": (
        "SELECT u.url, p.url FROM stubbed_referrers r JOIN stubbed_urls u ON u.id = r.stubbed_url_id"
        " JOIN pages p ON p.id = r.referrer_page_id"
    ),
    "domain": "SELECT domain, class, closed_reason FROM domain_states",
}
# Kinds of rows that are younger than the digest count once there are some: a map without them has the digest it had.
_YOUNGER: dict[str, tuple[str, str, str]] = {  # (table and column that they need, …)
    "rejected": (
        "pages",
        "validation",
        "SELECT url, validation, rejection_reason FROM pages WHERE validation IN ('soft', 'hard')",
    ),
    "link-text": (
        "link_texts",
        "text",
        "SELECT a.url, b.url, t.text, t.rel FROM link_texts t JOIN links l ON l.id = t.id"
        " JOIN pages a ON a.id = l.from_page_id JOIN pages b ON b.id = l.to_page_id",
    ),
    "field": (
        "page_fields",
        "value",
        "SELECT p.url, f.name, f.position, f.value FROM page_fields f JOIN pages p ON p.id = f.id",
    ),
    "origin": ("pages", "origin", "SELECT url, origin FROM pages WHERE origin NOT IN ('linked', 'seed')"),
}
_SLUGS = {"page": 4, "rejected": 2}  # the column of which only the slug counts


def parts(database: MapPlace) -> dict[str, str]:
    """The hash of each kind of row, to find out where two maps differ. Raises MapError."""
    with open_map(database) as reader:
        sums = {name: _sum(name, reader.rows(sql)) for name, sql in _QUERIES.items()}
        younger = {
            name: _sum(name, reader.rows(sql))
            for name, (table, column, sql) in _YOUNGER.items()
            if reader.has_column(table, column)
        }
        return sums | {name: value for name, value in younger.items() if value != _sum(name, ())}


def digest(database: MapPlace) -> str:
    """The map's hash, as `sumi-ripple digest` prints it."""
    together = "\n".join(f"{name} {value}" for name, value in parts(database).items())
    return hashlib.sha256(together.encode()).hexdigest()


def _sum(name: str, rows: Iterable[tuple[Any, ...]]) -> str:
    total = 0
    count = 0
    for row in rows:
        if (place := _SLUGS.get(name)) is not None:
            row = (*row[:place], slug_of(row[place]))
        text = "\x1f".join("\x00" if value is None else str(value) for value in row)
        total += int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest(), "big")
        count += 1
    return f"{count}:{total % (1 << 256):064x}"
