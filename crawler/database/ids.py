"""PURE. Row ids that hold two numbers, so that the primary key is the uniqueness and related rows lie together.

A pair of pages (links, referrers) or of domains (`domain_links`) is `first << 32 | second`. A page and a quality
entry (`page_depths`) are `page << 16 | origin`. The hot loops and the SQL are built from these constants; the functions
are for everybody else.
"""

from __future__ import annotations

PAIR_BITS = 32
PAIR_LOW = (1 << PAIR_BITS) - 1  # the second number of a pair
ORIGIN_BITS = 16
ORIGIN_LOW = (1 << ORIGIN_BITS) - 1  # the origin of a depth row


def pair_id(first: int, second: int) -> int:
    """The id of the row for two pages, or two domains."""
    return first << PAIR_BITS | second


def split_pair(row: int) -> tuple[int, int]:
    """The two numbers of a pair's id."""
    return row >> PAIR_BITS, row & PAIR_LOW


def pair_range(first: int) -> tuple[int, int]:
    """The least and the greatest id of pairs that begin with this number."""
    return first << PAIR_BITS, first << PAIR_BITS | PAIR_LOW


def pair_sql(first: str, second: str) -> str:
    """`pair_id` of two SQL expressions."""
    return f"({first} << {PAIR_BITS} | {second})"


def pairs_of(first: str) -> str:
    """A condition on an id, in SQL: it is a pair that begins with this expression."""
    return f"BETWEEN {first} << {PAIR_BITS} AND ({first} << {PAIR_BITS} | {PAIR_LOW})"


def links_of(links: str, page: str) -> str:
    """The links of a page, as a condition in SQL: `links` is the name of the table there, `page` an expression.

    SQLite finds them by the range of ids, PostgreSQL by the page, which is kept from SQLite's indexes by the +.
    """
    return f"{links}.id {pairs_of(page)} AND +{links}.from_page_id = {page}"


def link_between(links: str, source: str, target: str) -> str:
    """The link from one page to another, as a condition in SQL."""
    return f"{links}.id = {pair_sql(source, target)} AND +{links}.from_page_id = {source}"


def depth_id(page: int, origin: int) -> int:
    """The id of a page's depth for one quality entry."""
    return page << ORIGIN_BITS | origin


def depths_of_page(page: int) -> tuple[int, int]:
    """The least and the greatest id of a page's depths."""
    return page << ORIGIN_BITS, page << ORIGIN_BITS | ORIGIN_LOW
